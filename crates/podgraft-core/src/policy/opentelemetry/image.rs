//! Reads the version from an image reference, with the grammar of `github.com/distribution/reference`.

use regex_lite::Regex;
use std::sync::LazyLock;

/// Capture groups: name, tag, digest. <https://pkg.go.dev/github.com/distribution/reference>
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let label = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])";
    let domain = format!(r"(?:{label}(?:\.{label})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?");
    let part = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*";
    let name = format!("(?:{domain}/)?{part}(?:/{part})*");
    let tag = r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}";
    let digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
    Regex::new(&format!("^({name})(?::({tag}))?(?:@({digest}))?$")).ok()
});

const MAX_NAME_LENGTH: usize = 255;

/// The tag, the digest or `tag@digest`. `None` if the reference is invalid or has neither.
pub(super) fn version(image: &str) -> Option<String> {
    let found = REFERENCE.as_ref()?.captures(image)?;
    let text = |at| found.get(at).map(|part| part.as_str());
    if text(1)?.len() > MAX_NAME_LENGTH || text(3).is_some_and(|digest| !is_digest(digest)) {
        return None;
    }
    match (text(2), text(3)) {
        (Some(tag), Some(digest)) => Some(format!("{tag}@{digest}")),
        (tag, digest) => tag.or(digest).map(str::to_owned),
    }
}

/// Whether a digest is valid: <https://pkg.go.dev/github.com/opencontainers/go-digest> knows these algorithms and
/// lengths.
fn is_digest(digest: &str) -> bool {
    let lengths = [("sha256", 64), ("sha384", 96), ("sha512", 128)];
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        lengths.contains(&(algorithm, hex.len())) && hex.bytes().all(is_hex)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_states_its_version() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (image, wanted) in [
            (
                "registry.example.com:5000/team/app:1.4.2",
                Some("1.4.2".to_owned()),
            ),
            ("app", None),
            ("registry.example.com:5000/app", None),
            ("Upper/case:1", Some("1".to_owned())),
            ("Upper:1", None),
            ("UPPER.example.com/case:1", Some("1".to_owned())),
            ("app:1 ", None),
            ("app@sha256:abc", None),
            (&format!("app@{digest}"), Some(digest.clone())),
            (&format!("app:1@{digest}"), Some(format!("1@{digest}"))),
            ("", None),
        ] {
            assert_eq!(version(image), wanted, "{image}");
        }
    }
}
