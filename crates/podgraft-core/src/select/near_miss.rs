//! Hints for conditions that nearly hold, and positions of labels and annotations in the document.
//!
//! Two texts are nearly the same if they differ in case, in blanks around them, in `-` for `_`, or in one letter of a
//! longer word that is wrong, missing, extra or swapped. Texts that differ in a digit or a whole word are not.

use globset::GlobMatcher;
use serde_json::Value;
use std::ops::Range;

use crate::outcome::{Skip, SkipCause};
use crate::policy::names::check_dns_subdomain;
use crate::policy::{Policy, SelectorOperator, SelectorRequirement, WorkloadFilter};
use crate::yaml::scalar::resolve;
use crate::yaml::tree::NodeId;

use super::WorkloadFacts;

/// The minimum length of a word with a typo: shorter words are too often one letter apart.
const MIN_LENGTH: usize = 4;

/// Whether a text is another one with a typo. `false` for equal texts.
pub(super) fn is_nearly(wanted: &str, found: &str) -> bool {
    if wanted == found {
        return false;
    }
    let plain = |text: &str| text.trim().to_lowercase().replace('_', "-");
    let (wanted, found) = (plain(wanted), plain(found));
    let is_word =
        |text: &str| text.len() >= MIN_LENGTH && !text.contains(|c: char| c.is_ascii_digit());
    wanted == found
        || is_word(&wanted) && is_word(&found) && strsim::osa_distance(&wanted, &found) == 1
}

/// A label's value as a manifest must write it: quoted if YAML would not read it as a string.
fn as_string(text: &str) -> String {
    match resolve(text) {
        Value::String(_) => text.to_owned(),
        _ => format!("\"{text}\""),
    }
}

/// A hint if the name of an object is nearly one of the globs without wildcards. A glob that no name can match is the
/// mistake itself.
pub(super) fn name(globs: &[GlobMatcher], name: &str) -> Option<String> {
    let near = near_word(globs, name)?;
    Some(match check_dns_subdomain(near) {
        Ok(()) => format!("did you mean `{near}`?"),
        Err(rule) => format!("no object can have the name `{near}`: a name {rule}"),
    })
}

/// A hint if a text is nearly one of the globs without wildcards.
pub(super) fn glob(globs: &[GlobMatcher], text: &str) -> Option<String> {
    near_word(globs, text).map(|near| format!("did you mean `{near}`?"))
}

fn near_word<'g>(globs: &'g [GlobMatcher], text: &str) -> Option<&'g str> {
    let mut words = globs.iter().map(|glob| glob.glob().glob());
    words.find(|word| !word.contains(['*', '?', '[', '{']) && is_nearly(word, text))
}

impl WorkloadFacts<'_, '_> {
    /// A hint for a label that does not meet a requirement.
    pub(super) fn near_label(
        &self,
        requirement: &SelectorRequirement,
        labels: Option<NodeId>,
        value: Option<&str>,
        word: &str,
    ) -> Option<String> {
        let key = &requirement.key;
        match (requirement.operator, value) {
            (SelectorOperator::In, Some(value)) => {
                let near = requirement
                    .values
                    .iter()
                    .find(|wanted| is_nearly(wanted, value))?;
                Some(format!("did you mean `{key}: {}`?", as_string(near)))
            }
            (SelectorOperator::In | SelectorOperator::Exists, None) => self
                .near_key(key, labels)
                .or_else(|| self.label_elsewhere(requirement, labels, word)),
            (SelectorOperator::NotIn | SelectorOperator::DoesNotExist, _)
            | (SelectorOperator::Exists, Some(_)) => None,
        }
    }

    /// A hint if the label is on the workload but that of the pod template counts, or the other way round.
    fn label_elsewhere(
        &self,
        requirement: &SelectorRequirement,
        labels: Option<NodeId>,
        word: &str,
    ) -> Option<String> {
        let [of_pod, of_workload] = self.any_texts("labels");
        let fits = |labels| requirement.is_met(self.text_under(labels, &requirement.key));
        if of_workload == of_pod {
            return None;
        }
        let other = match word {
            "selector" => "; `workloadSelector` reads the workload",
            "workloadSelector" => "; `selector` reads the pod template",
            _ => "",
        };
        if fits(of_workload) && labels == of_pod {
            return Some(format!(
                "the workload itself has it, but `{word}` reads the pod template{other}"
            ));
        }
        (fits(of_pod) && labels == of_workload)
            .then(|| format!("the pod template has it, but `{word}` reads the workload{other}"))
    }

    /// A hint if a key of the mapping is nearly the wanted one.
    pub(super) fn near_key(&self, wanted: &str, mapping: Option<NodeId>) -> Option<String> {
        let tree = self.workload.tree;
        let mut keys = tree
            .entries(mapping?)
            .filter_map(|(key, _)| tree.scalar(key));
        let near = keys.find(|key| is_nearly(wanted, key))?;
        Some(format!("there is `{near}`; did you mean `{wanted}`?"))
    }

    /// A hint if the key of an annotation is nearly the wanted one.
    pub(super) fn near_annotation(&self, wanted: &str) -> Option<String> {
        let mut annotations = self.any_texts("annotations").into_iter();
        annotations.find_map(|annotations| self.near_key(wanted, annotations))
    }

    /// The byte range of the value under a key.
    pub(super) fn span_in(&self, mapping: Option<NodeId>, key: &str) -> Option<Range<usize>> {
        let tree = self.workload.tree;
        Some(tree.span(tree.get(mapping?, key)?))
    }

    /// The byte range of a field of the workload's metadata.
    pub(super) fn workload_field(&self, key: &str) -> Option<Range<usize>> {
        self.span_in(self.workload.metadata().node, key)
    }

    /// The byte range of an annotation of the pod template, or else of the workload.
    pub(super) fn annotation_span(&self, key: &str) -> Option<Range<usize>> {
        let mut annotations = self.any_texts("annotations").into_iter();
        annotations.find_map(|annotations| self.span_in(annotations, key))
    }
}

impl Policy {
    /// Adds the place in the policy to a skip: that of the field of the filter that failed, or of the filter itself.
    pub(super) fn with_place(&self, skip: Box<Skip>, filter: &WorkloadFilter) -> Box<Skip> {
        if skip.in_policy.is_some() {
            return skip;
        }
        let SkipCause::Match(field) = skip.cause else {
            return Box::new(skip.wanted_at(filter.at.clone()));
        };
        if let Some(word) = filter.words.get(field) {
            return Box::new(skip.wanted_at(word.at.clone()));
        }
        let text = self.text.text.get(filter.at.clone()).unwrap_or_default();
        let at = text.find(&format!("{field}:"));
        let at = at.map(|at| filter.at.start + at);
        let at = at.map_or(filter.at.clone(), |at| at..at + field.len());
        Box::new(skip.wanted_at(at))
    }
}

#[cfg(test)]
mod tests {
    use super::{is_nearly, name};
    use crate::glob::{GlobSubject, compile};

    #[test]
    fn a_name_that_no_object_has_is_not_proposed() {
        let hint = |word: &str| name(&[compile(word, GlobSubject::Text).unwrap()], "orders");
        assert_eq!(hint("order").unwrap(), "did you mean `order`?");
        for word in ["ORDERS", "!orders"] {
            let hint = hint(word).unwrap();
            assert!(hint.starts_with("no object can have the name"), "{hint}");
        }
        assert_eq!(hint("orders-*"), None);
    }

    #[test]
    fn a_slip_of_the_pen_is_near_and_another_word_is_not() {
        for (wanted, found) in [
            ("java", "Java"),
            ("java", "jvaa"),
            ("java", "java "),
            ("my_app", "my-app"),
            ("java", "jav"),
        ] {
            assert_eq!(is_nearly(wanted, found), found != "jav", "{wanted} {found}");
        }
        assert!(is_nearly("enabled", "enable"));
        for (wanted, found) in [
            ("java", "java"),
            ("web-1", "web-2"),
            ("go", "goo"),
            ("java", "nodejs"),
            ("v1", "V2"),
        ] {
            assert!(!is_nearly(wanted, found), "{wanted} {found}");
        }
    }
}
