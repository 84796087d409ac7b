//! Name rules of Kubernetes (`k8s.io/apimachinery/pkg/util/validation`), as pure functions. Each returns what is wrong
//! with a text.

/// The result of a check. The error completes a sentence: "must ...".
pub(crate) type RuleCheck = Result<(), &'static str>;

/// Checks an RFC 1123 label, such as the name of a container or volume.
pub(crate) fn check_dns_label(text: &str) -> RuleCheck {
    if text.len() > 63 {
        return Err("must have at most 63 characters");
    }
    if !is_label(text) {
        return Err(
            "must be lower-case letters, digits and `-`, and begin and end with a letter or digit",
        );
    }
    Ok(())
}

/// Checks an RFC 1123 subdomain (labels joined by dots), which is the name of most objects.
pub(crate) fn check_dns_subdomain(text: &str) -> RuleCheck {
    if text.len() > 253 {
        return Err("must have at most 253 characters");
    }
    if !text.split('.').all(is_label) {
        return Err(
            "must be lower-case letters, digits, `-` and `.`, and begin and end with a letter or digit",
        );
    }
    Ok(())
}

/// Checks a segment of a path, which is the name of a Role, a ClusterRole and their bindings.
pub(crate) fn check_path_segment(text: &str) -> RuleCheck {
    if text.is_empty() {
        return Err("must not be empty");
    }
    if matches!(text, "." | "..") || text.contains(['/', '%']) {
        return Err("must have no `/` and no `%`, and be neither `.` nor `..`");
    }
    Ok(())
}

fn is_label(text: &str) -> bool {
    let is_body = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_body) && !text.starts_with('-') && !text.ends_with('-')
}

/// Checks an IANA service name, which is the name of a container port.
pub(crate) fn check_port_name(text: &str) -> RuleCheck {
    if text.len() > 15 {
        return Err("must have at most 15 characters");
    }
    if !is_label(text) || text.contains("--") || !text.bytes().any(|byte| byte.is_ascii_lowercase())
    {
        return Err("must be lower-case letters, digits and single `-`, with at least one letter");
    }
    Ok(())
}

/// Checks the key of an annotation: `[prefix/]name`. The prefix may have capitals, because the API server lower-cases
/// annotation keys before it checks them.
pub(crate) fn check_key(text: &str) -> RuleCheck {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if let Some(prefix) = prefix
        && check_dns_subdomain(&prefix.to_ascii_lowercase()).is_err()
    {
        return Err("must have a DNS name before its `/`");
    }
    if name.is_empty() || name.len() > 63 || !is_qualified(name) {
        return Err(
            "must be `[prefix/]name`, the name of 1 to 63 letters, digits, `-`, `_` and `.`",
        );
    }
    Ok(())
}

/// Checks the key of a label. Unlike annotation keys, the API server does not lower-case it first.
pub(crate) fn check_label_key(text: &str) -> RuleCheck {
    check_key(text)?;
    match text.split_once('/') {
        Some((prefix, _)) if check_dns_subdomain(prefix).is_err() => {
            Err("must have a DNS name before its `/`")
        }
        _ => Ok(()),
    }
}

/// Checks a key in the data of a ConfigMap or Secret.
pub(crate) fn check_config_key(text: &str) -> RuleCheck {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.is_empty()
        || text.len() > 253
        || !text.bytes().all(is_body)
        || text == "."
        || text.starts_with("..")
    {
        return Err("must be 1 to 253 letters, digits, `-`, `_` and `.`, and not begin with `..`");
    }
    Ok(())
}

/// Checks the value of a label, which may be empty.
pub(crate) fn check_label_value(text: &str) -> RuleCheck {
    if text.len() > 63 || !(text.is_empty() || is_qualified(text)) {
        return Err(
            "must be at most 63 letters, digits, `-`, `_` and `.`, and begin and end with a letter or digit",
        );
    }
    Ok(())
}

fn is_qualified(text: &str) -> bool {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.iter().copied().all(is_body) && is_end(bytes.first()) && is_end(bytes.last())
}

/// Checks the name of an environment variable. Since Kubernetes 1.32 all printable ASCII except `=` is allowed.
pub(crate) fn check_env_name(text: &str) -> RuleCheck {
    if text.is_empty()
        || !text
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=')
    {
        return Err("must be printable ASCII without `=`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_containers_are_dns_labels() {
        assert!(check_dns_label("agent-1").is_ok());
        for bad in ["", "Agent", "-a", "a-", "a.b", "a_b", &"a".repeat(64)] {
            assert!(check_dns_label(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_objects_may_have_dots() {
        assert!(check_dns_subdomain("a.b-c.d").is_ok());
        assert!(check_dns_subdomain("a..b").is_err());
    }

    #[test]
    fn names_of_roles_are_segments_of_a_path() {
        for good in ["system:agent", "Agent_x", "..."] {
            assert!(check_path_segment(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "a%b"] {
            assert!(check_path_segment(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_ports_are_short_and_have_a_letter() {
        assert!(check_port_name("jmx-metrics").is_ok());
        for bad in ["jmx-prometheus-exporter", "8080", "a--b", "HTTP"] {
            assert!(check_port_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn keys_may_have_a_prefix() {
        for good in ["app", "app.kubernetes.io/name", "a_B.c"] {
            assert!(check_key(good).is_ok(), "{good}");
        }
        for bad in ["", "/a", "a/", "a/b/c", "-a", "a b", "a_b/c"] {
            assert!(check_key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn prefixes_of_labels_have_no_capitals() {
        assert!(check_key("Example.com/a").is_ok() && check_label_key("example.com/A").is_ok());
        assert!(check_label_key("Example.com/a").is_err() && check_label_key("a/").is_err());
    }

    #[test]
    fn keys_of_config_maps_are_names_of_files() {
        assert!(check_config_key("config.yaml").is_ok() && check_config_key(".a_B-1").is_ok());
        for bad in ["", ".", "..", "..a", "a/b", "a b"] {
            assert!(check_config_key(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn label_values_may_be_empty() {
        assert!(check_label_value("").is_ok() && check_label_value("v1.2_x").is_ok());
        assert!(check_label_value("a b").is_err() && check_label_value("-a").is_err());
    }

    #[test]
    fn env_names_have_no_equals_sign() {
        assert!(check_env_name("my.var-1").is_ok());
        assert!(check_env_name("A=B").is_err() && check_env_name("").is_err());
    }
}
