//! What was probably meant where a condition nearly holds, and where things stand in the document.
//!
//! Labels that differ in a digit or a whole word are other labels. What counts as nearly the same is another case, a
//! blank or a dash for an underscore, and one letter of a longer word that is wrong, missing, too many or out of order.

use globset::GlobMatcher;
use serde_json::Value;
use std::ops::Range;

use crate::outcome::{Skip, SkipCause};
use crate::policy::{Policy, SelectorOperator, SelectorRequirement, WorkloadFilter};
use crate::yaml::scalar::resolve;
use crate::yaml::tree::NodeId;

use super::BaselineView;

/// Shorter words are too often one letter apart.
const MIN_LENGTH: usize = 4;

/// Whether a text is another one with a slip of the pen. Never true of equal texts.
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

/// A label's value as a manifest must write it: quoted where YAML would read something else than a string.
fn as_string(text: &str) -> String {
    match resolve(text) {
        Value::String(_) => text.to_owned(),
        _ => format!("\"{text}\""),
    }
}

/// The glob without wildcards that a text nearly is.
pub(super) fn glob(globs: &[GlobMatcher], text: &str) -> Option<String> {
    let mut words = globs.iter().map(|glob| glob.glob().glob());
    let near = words.find(|word| !word.contains(['*', '?', '[', '{']) && is_nearly(word, text))?;
    Some(format!("did you mean `{near}`?"))
}

impl BaselineView<'_, '_> {
    /// What to do about a label that does not fit.
    pub(super) fn near_label(
        &self,
        requirement: &SelectorRequirement,
        labels: Option<NodeId>,
        value: Option<&str>,
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
                .or_else(|| self.label_elsewhere(requirement, labels)),
            (SelectorOperator::NotIn | SelectorOperator::DoesNotExist, _)
            | (SelectorOperator::Exists, Some(_)) => None,
        }
    }

    /// The label stands on the workload where the pod template's counts, or the other way round.
    fn label_elsewhere(
        &self,
        requirement: &SelectorRequirement,
        labels: Option<NodeId>,
    ) -> Option<String> {
        let of = |metadata| self.texts_of(metadata, "labels");
        let (of_workload, of_pod) = (
            of(self.workload.metadata()),
            of(self.workload.pod_metadata()),
        );
        let fits = |labels| requirement.is_met(self.text_under(labels, &requirement.key));
        if fits(of_workload) && labels == of_pod && of_workload != of_pod {
            return Some(
                "the workload itself has it: `selector` reads the pod template, `workloadSelector` the workload"
                    .to_owned(),
            );
        }
        (fits(of_pod) && labels == of_workload && of_workload != of_pod).then(|| {
            "the pod template has it: `workloadSelector` reads the workload, `selector` the pod template".to_owned()
        })
    }

    /// A key of the mapping that is nearly the wanted one.
    pub(super) fn near_key(&self, wanted: &str, mapping: Option<NodeId>) -> Option<String> {
        let tree = self.workload.tree;
        let mut keys = tree
            .entries(mapping?)
            .filter_map(|(key, _)| tree.scalar(key));
        let near = keys.find(|key| is_nearly(wanted, key))?;
        Some(format!("there is `{near}`; did you mean `{wanted}`?"))
    }

    /// An annotation that is nearly the wanted one.
    pub(super) fn near_annotation(&self, wanted: &str) -> Option<String> {
        let holders = [self.workload.pod_metadata(), self.workload.metadata()];
        holders
            .iter()
            .find_map(|&metadata| self.near_key(wanted, self.texts_of(metadata, "annotations")))
    }

    /// `labels` or `annotations`.
    pub(super) fn texts_of(&self, metadata: Option<NodeId>, field: &str) -> Option<NodeId> {
        self.workload.tree.get(metadata?, field)
    }

    /// Where the value under a key stands in the document.
    pub(super) fn span_in(&self, mapping: Option<NodeId>, key: &str) -> Option<Range<usize>> {
        let tree = self.workload.tree;
        Some(tree.span(tree.get(mapping?, key)?))
    }

    /// Where a field of the workload's own metadata stands.
    pub(super) fn workload_field(&self, key: &str) -> Option<Range<usize>> {
        self.span_in(self.workload.metadata(), key)
    }

    /// Where an annotation of the pod template, or else of the workload, stands.
    pub(super) fn annotation_span(&self, key: &str) -> Option<Range<usize>> {
        let holders = [self.workload.pod_metadata(), self.workload.metadata()];
        holders
            .iter()
            .find_map(|&metadata| self.span_in(self.texts_of(metadata, "annotations"), key))
    }
}

impl Policy {
    /// Gives a reason of a filter its place: that of the field that it speaks of, or the filter's.
    pub(super) fn with_place(&self, skip: Box<Skip>, filter: &WorkloadFilter) -> Box<Skip> {
        if skip.in_policy.is_some() {
            return skip;
        }
        let SkipCause::Match(field) = skip.cause else {
            return Box::new(skip.wanted_at(filter.at.clone()));
        };
        let text = self.text.text.get(filter.at.clone()).unwrap_or_default();
        let at = text.find(&format!("{field}:"));
        let at = at.map(|at| filter.at.start + at);
        let at = at.map_or(filter.at.clone(), |at| at..at + field.len());
        Box::new(skip.wanted_at(at))
    }
}

#[cfg(test)]
mod tests {
    use super::is_nearly;

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
