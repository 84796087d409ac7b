//! Texts that a document contains if a policy selects a workload in it. Most workloads of a fleet are not selected, and
//! a search for a text takes a hundredth of the time that parsing the document takes.

use memchr::memmem::Finder;

use crate::policy::{LabelSelector, Policy, SelectorOperator, WorkloadFilter};

/// With more policies, the searches take longer than parsing.
const MOST_POLICIES: usize = 8;

/// For each policy, all texts that a document with a workload that it selects contains.
#[derive(Debug)]
pub struct RequiredTexts<'p>(Vec<Vec<Finder<'p>>>);

impl<'p> RequiredTexts<'p> {
    /// The texts of some policies. `None` if there is no policy, or one of them may select a workload whatever the text
    /// of its document is.
    pub fn of(policies: &'p [Policy]) -> Option<Self> {
        if policies.is_empty() || policies.len() > MOST_POLICIES {
            return None;
        }
        let texts = policies.iter().map(|policy| {
            let texts = texts_of(policy);
            (!texts.is_empty()).then(|| texts.into_iter().map(Finder::new).collect())
        });
        texts.collect::<Option<_>>().map(RequiredTexts)
    }

    /// Whether a policy may select a workload in a document. False only if none does.
    pub fn may_select(&self, document: &[u8]) -> bool {
        let is_in = |text: &Finder<'_>| text.find(document).is_some();
        self.0.iter().any(|texts| texts.iter().all(is_in))
            || may_have_escapes(document)
            || has_template_braces(document)
    }
}

/// The required texts of a policy; the longest, which are the rarest, first.
fn texts_of(policy: &Policy) -> Vec<&str> {
    // The namespace of a workload is compared before its labels, and gives a warning if it is not known.
    // An object that a policy looks up or generates may be any document, so one that cannot be read is an error.
    let needs_objects = !policy.looks_up.is_empty() || !policy.generate.is_empty();
    if policy.namespace.is_some() || needs_objects {
        return Vec::new();
    }
    let WorkloadFilter {
        selector,
        workload_selector,
        annotations,
        ..
    } = &policy.selects;
    let selectors = [selector, workload_selector].into_iter().flatten();
    let mut texts: Vec<&str> = selectors.flat_map(texts_of_selector).collect();
    texts.extend(annotations.iter().map(|(key, _)| key.as_str()));
    texts.retain(|text| is_written_as_it_is(text));
    texts.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    texts
}

fn texts_of_selector(selector: &LabelSelector) -> Vec<&str> {
    let mut texts = Vec::new();
    for requirement in &selector.requirements {
        match (requirement.operator, &*requirement.values) {
            (SelectorOperator::In, [value]) => texts.extend([&*requirement.key, value]),
            (SelectorOperator::In | SelectorOperator::Exists, _) => texts.push(&*requirement.key),
            (SelectorOperator::NotIn | SelectorOperator::DoesNotExist, _) => {}
        }
    }
    texts
}

/// Whether YAML has no other way to write a text than its own characters, except for escapes. A text with blanks may
/// be folded.
fn is_written_as_it_is(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    !text.is_empty() && text.bytes().all(is_plain)
}

/// Whether a double-quoted scalar without blanks may have an escape: the backslash of the first one is on the line on
/// which the scalar begins. A line break in a scalar is a blank unless it is escaped.
fn may_have_escapes(document: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', document).any(|at| {
        let start = memchr::memrchr(b'\n', &document[..at]).map_or(0, |line_feed| line_feed + 1);
        memchr::memchr(b'"', &document[start..at]).is_some()
    })
}

/// Whether a document may be a template that is not rendered, which has its labels only when it is.
fn has_template_braces(document: &[u8]) -> bool {
    memchr::memmem::find(document, b"{{").is_some()
}

#[cfg(test)]
mod tests {
    use super::{is_written_as_it_is, may_have_escapes};

    #[test]
    fn a_backslash_behind_a_quote_may_be_an_escape() {
        for text in [r#"a: "\x6a""#, "a: \"j\\\n  ava\"", r#"{"a": "\u006a"}"#] {
            assert!(may_have_escapes(text.as_bytes()), "{text}");
        }
        for text in ["a: \"b\"\nc: |\n  d \\\n  e", r"a: '\x6a'", "\\ \""] {
            assert!(!may_have_escapes(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn text_with_blanks_or_other_letters_may_be_written_in_other_ways() {
        for (text, expected) in [
            ("app.kubernetes.io/name", true),
            ("a b", false),
            ("ä", false),
            ("", false),
        ] {
            assert_eq!(is_written_as_it_is(text), expected, "{text}");
        }
    }
}
