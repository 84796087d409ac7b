//! Implementations of expression functions that are not in CEL. They are pure and take texts.

use regex_lite::{Regex, RegexBuilder};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use std::cell::RefCell;

use super::names::check_dns_label;

/// The maximal length in bytes of a text that an expression makes.
pub(crate) const MAX_TEXT: usize = 1 << 20;

/// The tag of an image, or else its digest, or else `latest`, which is what a node pulls.
pub(crate) fn image_tag(image: &str) -> String {
    let (named, digest) = split_digest(image);
    match (split_tag(named).1, digest) {
        (Some(tag), _) => tag.to_owned(),
        (None, Some(digest)) => digest.to_owned(),
        (None, None) => "latest".to_owned(),
    }
}

/// The image without tag and digest, as `name` in kustomize's `images`.
pub(crate) fn image_name(image: &str) -> String {
    split_tag(split_digest(image).0).0.to_owned()
}

/// The pull policy that an API server sets if none is stated.
/// <https://kubernetes.io/docs/concepts/containers/images/#imagepullpolicy-defaulting>
pub(crate) fn default_pull_policy(image: &str) -> &'static str {
    // A digest beside the tag makes no difference here.
    let (named, digest) = split_digest(image);
    let tag = split_tag(named).1;
    if tag.is_none() && digest.is_none() || tag == Some("latest") {
        "Always"
    } else {
        "IfNotPresent"
    }
}

/// Splits the digest from the rest of an image.
pub(super) fn split_digest(image: &str) -> (&str, Option<&str>) {
    image
        .split_once('@')
        .map_or((image, None), |(named, digest)| (named, Some(digest)))
}

/// Splits name and tag. A colon before the last slash belongs to the port of the registry.
pub(super) fn split_tag(named: &str) -> (&str, Option<&str>) {
    match named.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (named, None),
    }
}

/// A DNS label made of a text: lower case, with `-` for other characters. A long text is cut and ends in a part of its
/// checksum, so that different texts give different labels.
///
/// # Errors
/// The text has no letter or digit.
pub(crate) fn dns_label(text: &str) -> Result<String, String> {
    const MAX_LENGTH: usize = 63;
    const HASH_LENGTH: usize = 8;
    let lower = text.to_ascii_lowercase();
    let label = lower.replace(|char: char| !char.is_ascii_alphanumeric(), "-");
    let label = label.trim_matches('-');
    let label = if label.len() <= MAX_LENGTH {
        label.to_owned()
    } else {
        let head = label[..MAX_LENGTH - HASH_LENGTH - 1].trim_end_matches('-');
        format!("{head}-{}", &sha256(text)[..HASH_LENGTH])
    };
    check_dns_label(&label)
        .map(|()| label)
        .map_err(|_| format!("cannot make a DNS label from `{text}`: it has no letter or digit"))
}

/// The SHA-256 of a text, in lower-case hex.
pub(crate) fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The SHA-1 of a text, in lower-case hex. For names that other programs derive in this way, not for security.
pub(crate) fn sha1(text: &str) -> String {
    hex(&Sha1::digest(text.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a regular expression matches somewhere in a text.
///
/// # Errors
/// The pattern is invalid.
pub(crate) fn matches(text: &str, pattern: &str) -> Result<bool, String> {
    Ok(regex(pattern)?.is_match(text))
}

/// The first `most` matches of a regular expression. Each further search may scan all of the remaining text, so `pay`
/// is called with its length first. An error of `pay` ends the search.
///
/// # Errors
/// The outer error: the pattern is invalid. The inner error is that of `pay`.
pub(crate) fn find_all<E>(
    text: &str,
    pattern: &str,
    most: usize,
    mut pay: impl FnMut(usize) -> Result<(), E>,
) -> Result<Result<Vec<String>, E>, String> {
    let regex = regex(pattern)?;
    let mut found = Vec::new();
    let mut matches = regex.find_iter(text);
    while found.len() < most
        && let Some(next) = matches.next()
    {
        found.push(next.as_str().to_owned());
        if found.len() < most
            && let Err(stop) = pay(text.len() - next.end())
        {
            return Ok(Err(stop));
        }
    }
    Ok(Ok(found))
}

/// The cost of searching one byte, in 1/64 steps. The engine walks through the pattern for each byte, and repeats
/// counted parts, so a pattern with `{` costs the maximum.
pub(crate) fn weight(pattern: &str) -> usize {
    const MAX_WEIGHT: usize = 4 * 64;
    if pattern.contains('{') {
        MAX_WEIGHT
    } else {
        (2 * pattern.len()).clamp(1, MAX_WEIGHT)
    }
}

/// The size limit of a compiled pattern in bytes. A larger one could take seconds for a text.
const MAX_REGEX: usize = 64 << 10;

thread_local! {
    /// The last compiled pattern. An expression in a comprehension uses the same one for each entry.
    static LAST: RefCell<Option<Regex>> = const { RefCell::new(None) };
}

/// Whether a pattern is the last one that was compiled.
pub(crate) fn is_compiled(pattern: &str) -> bool {
    LAST.with_borrow(|last| last.as_ref().is_some_and(|last| last.as_str() == pattern))
}

fn regex(pattern: &str) -> Result<Regex, String> {
    if is_compiled(pattern)
        && let Some(last) = LAST.with_borrow(Clone::clone)
    {
        return Ok(last);
    }
    let compiled = RegexBuilder::new(pattern).size_limit(MAX_REGEX).build();
    let compiled = compiled
        .map_err(|error| format!("`{pattern}` is not a valid regular expression: {error}"))?;
    LAST.set(Some(compiled.clone()));
    Ok(compiled)
}

/// Replaces the first `most` occurrences of `from`, or all.
///
/// # Errors
/// The result would be too long.
pub(crate) fn replace(
    text: &str,
    from: &str,
    to: &str,
    most: Option<usize>,
) -> Result<String, String> {
    let found = text.matches(from).count().min(most.unwrap_or(usize::MAX));
    if text.len().saturating_add(found.saturating_mul(to.len())) > MAX_TEXT {
        return Err("the result would be longer than 1 MiB".to_owned());
    }
    Ok(text.replacen(from, to, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_with_a_tag_or_a_digest_stays_the_same() {
        for image in [
            "busybox",
            "a.b:5000/busybox:latest",
            "busybox:latest@sha256:ab",
        ] {
            assert_eq!(default_pull_policy(image), "Always");
        }
        for image in ["busybox:1", "busybox@sha256:ab"] {
            assert_eq!(default_pull_policy(image), "IfNotPresent");
        }
        assert_eq!(
            (default_pull_policy("a"), default_pull_policy("a:1")),
            ("Always", "IfNotPresent")
        );
    }

    #[test]
    fn a_dns_label_is_one_and_long_ones_stay_apart() {
        assert_eq!(dns_label("Orders_v2.").unwrap(), "orders-v2");
        let (first, second) = (
            dns_label(&"a".repeat(70)).unwrap(),
            dns_label(&"a".repeat(71)).unwrap(),
        );
        assert_eq!(first.len(), 63);
        assert_ne!(first, second);
        assert!(dns_label("..").is_err());
    }

    /// `a*b` looks to the end for each `a`.
    #[test]
    fn every_search_is_paid_by_what_is_left() {
        let text = "a".repeat(100);
        let mut paid = 0;
        let found = find_all(&text, "a*b|a", usize::MAX, |left| {
            paid += left;
            Ok::<(), ()>(())
        });
        assert_eq!((found.unwrap().unwrap().len(), paid), (100, 99 * 100 / 2));
        let stopped = find_all(&text, "a*b|a", usize::MAX, |left| {
            if left < 90 { Err(left) } else { Ok(()) }
        });
        assert_eq!(stopped.unwrap(), Err(89));
        assert_eq!(
            find_all(&text, "a", 1, |_| Err(())).unwrap().unwrap(),
            ["a"]
        );
    }

    #[test]
    fn a_replacement_does_not_explode() {
        assert_eq!(replace("a.b.c", ".", "-", None).unwrap(), "a-b-c");
        assert_eq!(replace("a.b.c", ".", "-", Some(1)).unwrap(), "a-b.c");
        let long = "a".repeat(10_000);
        assert!(replace(&long, "", &long, None).is_err());
    }
}
