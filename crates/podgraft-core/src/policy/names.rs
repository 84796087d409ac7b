//! Name rules of Kubernetes (`k8s.io/apimachinery/pkg/util/validation`), as pure functions. Each returns what is wrong
//! with a text.

/// The result of a check. The error completes a sentence: "must ...".
pub(crate) type RuleCheck = Result<(), &'static str>;

/// The rule as an error, unless it holds.
pub(crate) fn require(holds: bool, rule: &'static str) -> RuleCheck {
    if holds { Ok(()) } else { Err(rule) }
}

/// Checks an RFC 1123 label, such as the name of a container or volume.
pub(crate) fn check_dns_label(text: &str) -> RuleCheck {
    require(text.len() <= 63, "must have at most 63 characters")?;
    require(
        is_label(text),
        "must contain only lowercase letters, digits, and `-`, and must start and end with a \
         letter or digit",
    )
}

/// Checks an RFC 1123 subdomain (labels joined by dots), which is the name of most objects.
pub(crate) fn check_dns_subdomain(text: &str) -> RuleCheck {
    require(text.len() <= 253, "must have at most 253 characters")?;
    require(
        text.split('.').all(is_label),
        "must contain only lowercase letters, digits, `-`, and `.`, and must start and end with a \
         letter or digit",
    )
}

/// Checks a segment of a path, which is the name of a Role, a ClusterRole and their bindings.
pub(crate) fn check_path_segment(text: &str) -> RuleCheck {
    require(!text.is_empty(), "must not be empty")?;
    require(
        !matches!(text, "." | "..") && !text.contains(['/', '%']),
        "must not contain `/` or `%`, and must not be `.` or `..`",
    )
}

fn is_label(text: &str) -> bool {
    let is_body = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_body) && !text.starts_with('-') && !text.ends_with('-')
}

/// Checks an IANA service name, which is the name of a container port.
pub(crate) fn check_port_name(text: &str) -> RuleCheck {
    require(text.len() <= 15, "must have at most 15 characters")?;
    let has_letter = text.bytes().any(|byte| byte.is_ascii_lowercase());
    require(
        is_label(text) && !text.contains("--") && has_letter,
        "must contain only lowercase letters, digits, and single `-`, with at least one letter",
    )
}

/// Checks the key of an annotation: `[prefix/]name`. The prefix may have capitals, because the API server lower-cases
/// annotation keys before it checks them.
pub(crate) fn check_key(text: &str) -> RuleCheck {
    if text.contains('/') {
        check_prefix(&text.to_ascii_lowercase())?;
    }
    let name = text.split_once('/').map_or(text, |(_, name)| name);
    require(
        !name.is_empty() && name.len() <= 63 && is_qualified(name),
        "must have the form `[prefix/]name`, where the name is 1 to 63 letters, digits, `-`, `_`, \
         or `.`",
    )
}

/// Checks the key of a label. Unlike annotation keys, the API server does not lower-case it first.
pub(crate) fn check_label_key(text: &str) -> RuleCheck {
    check_key(text)?;
    check_prefix(text)
}

fn check_prefix(key: &str) -> RuleCheck {
    let prefix = key.split_once('/').map(|(prefix, _)| prefix);
    require(
        prefix.is_none_or(|prefix| check_dns_subdomain(prefix).is_ok()),
        "must have a DNS name before the `/`",
    )
}

/// Checks a key in the data of a ConfigMap or Secret.
pub(crate) fn check_config_key(text: &str) -> RuleCheck {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_file_name = text != "." && !text.starts_with("..");
    require(
        (1..=253).contains(&text.len()) && text.bytes().all(is_body) && is_file_name,
        "must be 1 to 253 letters, digits, `-`, `_`, or `.`, and must not start with `..`",
    )
}

pub(crate) fn check_label_value(text: &str) -> RuleCheck {
    require(
        text.len() <= 63 && (text.is_empty() || is_qualified(text)),
        "must be at most 63 letters, digits, `-`, `_`, or `.`, and must start and end with a \
         letter or digit",
    )
}

fn is_qualified(text: &str) -> bool {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().copied().all(is_body) && is_end(bytes.first()) && is_end(bytes.last())
}

/// Checks the name of an environment variable. Since Kubernetes 1.32 all printable ASCII except `=` is allowed.
pub(crate) fn check_env_name(text: &str) -> RuleCheck {
    let is_right = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    require(
        !text.is_empty() && text.bytes().all(is_right),
        "must contain only printable ASCII characters other than `=`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check, names that it takes, and names that it refuses.
    type NameCases<'n> = (fn(&str) -> RuleCheck, &'n [&'n str], &'n [&'n str]);

    #[test]
    fn each_check_takes_its_own_and_refuses_others() {
        let long = "a".repeat(64);
        let checks: [NameCases<'_>; 9] = [
            (
                check_dns_label,
                &["agent-1"],
                &["", "Agent", "-a", "a-", "a.b", "a_b", &long],
            ),
            (check_dns_subdomain, &["a.b-c.d"], &["a..b"]),
            (
                check_path_segment,
                &["system:agent", "Agent_x", "..."],
                &["", ".", "..", "a/b", "a%b"],
            ),
            (
                check_port_name,
                &["jmx-metrics"],
                &["jmx-prometheus-exporter", "8080", "a--b", "HTTP"],
            ),
            (
                check_key,
                &["app", "app.kubernetes.io/name", "a_B.c", "Example.com/a"],
                &["", "/a", "a/", "a/b/c", "-a", "a b", "a_b/c"],
            ),
            (
                check_label_key,
                &["example.com/A"],
                &["Example.com/a", "a/"],
            ),
            (
                check_config_key,
                &["config.yaml", ".a_B-1"],
                &["", ".", "..", "..a", "a/b", "a b"],
            ),
            (check_label_value, &["", "v1.2_x"], &["a b", "-a"]),
            (check_env_name, &["my.var-1"], &["A=B", ""]),
        ];
        for (check, good, bad) in checks {
            let refused = |text: &&&str| check(text).is_err();
            assert_eq!(good.iter().find(refused), None);
            assert_eq!(bad.iter().filter(refused).count(), bad.len(), "{bad:?}");
        }
    }
}
