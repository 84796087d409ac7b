//! Matches a workload with the filters of a policy or a rule. The first condition that fails is the reason.

use globset::GlobMatcher;

use super::namespaces::NamespaceUncertainty;
use super::{NotApplied, WorkloadFacts, near_miss};
use crate::diagnostic::Diagnostic;
use crate::glob::is_match;
use crate::manifest::object::Object;
use crate::mask;
use crate::outcome::{Skip, SkipCause};
use crate::policy::{
    ConditionWord, Hooks, KindPattern, LabelSelector, Sample, SelectorRequirement, WorkloadFilter,
};
use crate::yaml::tree::NodeId;

const HOOKS: &[&str] = &["helm.sh/hook", "argocd.argoproj.io/hook"];

/// The conditions on labels, each with what has the labels.
const POD_LABELS: (&str, &str) = ("selector", "the pod template");
const OWN_LABELS: (&str, &str) = ("workloadSelector", "the workload");

/// The result of matching a filter with a workload.
pub(super) enum FilterResult {
    Holds,
    Fails(Box<Skip>),
    /// All other conditions hold, but something about the namespace is not known.
    Unknown(NamespaceUncertainty),
}

impl From<Skip> for FilterResult {
    fn from(skip: Skip) -> Self {
        FilterResult::Fails(Box::new(skip))
    }
}

/// Whether a text matches one of the globs. An empty list matches every text.
pub(super) fn matches_any(globs: &[GlobMatcher], text: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| is_match(glob, text))
}

pub(super) fn list(globs: &[GlobMatcher]) -> String {
    let texts: Vec<&str> = globs.iter().map(|glob| glob.glob().glob()).collect();
    texts.join(", ")
}

impl WorkloadFacts<'_, '_> {
    pub(super) fn check_filters(
        &self,
        (owner, hooks): (&str, Hooks),
        selects: &WorkloadFilter,
        excludes: &[WorkloadFilter],
        warnings: &mut Vec<Diagnostic>,
    ) -> Result<(), NotApplied> {
        match self.filter(selects, hooks) {
            FilterResult::Holds => {}
            FilterResult::Fails(skip) => {
                return Err(NotApplied::Skip(match self.gives_reasons {
                    true => self.policy.with_place(skip, selects),
                    false => skip,
                }));
            }
            FilterResult::Unknown(unknown) => {
                return Err(self.does_not_hold(unknown, warnings));
            }
        }
        let mut unknown = None;
        for exclude in excludes {
            match self.filter(exclude, Hooks::Include) {
                FilterResult::Fails(_) => {}
                FilterResult::Holds => {
                    let reason = format!("excluded by the {owner}'s `exclude`");
                    let skip = Skip::because(SkipCause::Excluded, reason);
                    return Err(skip.wanted_at(exclude.at.clone()).into());
                }
                // Another entry may exclude the workload whatever its namespace is.
                FilterResult::Unknown(found) => {
                    unknown.get_or_insert((found, exclude.at.clone()));
                }
            }
        }
        match unknown {
            Some((unknown, at)) => Err(self.undecided(unknown, "an `exclude`", Some(at))),
            None => Ok(()),
        }
    }

    fn filter(&self, filter: &WorkloadFilter, hooks: Hooks) -> FilterResult {
        let workload = self.workload;
        let (pod_labels, own_labels) = (workload.pod_metadata().labels, workload.metadata().labels);
        let (by_pod, by_own) = (filter.selector.as_ref(), filter.workload_selector.as_ref());
        let failed = self
            .check_kind(filter)
            .or_else(|| self.check_name(filter))
            .or_else(|| self.check_hooks(filter, hooks))
            .or_else(|| self.check_selector(by_pod, pod_labels, filter, POD_LABELS))
            .or_else(|| self.check_selector(by_own, own_labels, filter, OWN_LABELS))
            .or_else(|| self.check_annotations(filter))
            .or_else(|| self.check_images(filter))
            .or_else(|| self.check_sample(filter.sample.as_ref()));
        if let Some(reason) = failed {
            return reason.into();
        }
        let namespace_verdict = self.check_namespace(filter);
        if filter.any.is_empty() || matches!(namespace_verdict, FilterResult::Fails(_)) {
            return namespace_verdict;
        }
        let verdicts = filter.any.iter();
        let verdicts: Vec<FilterResult> = verdicts
            .map(|alternative| self.filter(alternative, Hooks::Include))
            .collect();
        let holds = |verdict: &FilterResult| matches!(verdict, FilterResult::Holds);
        if verdicts.iter().any(holds) {
            return namespace_verdict;
        }
        let unknown = verdicts
            .into_iter()
            .find(|verdict| matches!(verdict, FilterResult::Unknown(_)));
        unknown.unwrap_or_else(|| {
            let reason = format!("no entry of `{}` matches", filter.word("any"));
            Skip::because(SkipCause::Match("any"), reason).into()
        })
    }

    /// The reason for a condition that does not hold, if nobody reads it.
    fn without_words(&self, condition: &'static str) -> Option<Skip> {
        let skip = || Skip::because(SkipCause::Match(condition), String::new());
        (!self.gives_reasons).then(skip)
    }

    fn check_kind(&self, filter: &WorkloadFilter) -> Option<Skip> {
        let (object, kinds) = (&self.workload.object, &filter.kinds);
        if kinds.is_empty() || kinds.iter().any(|pattern| fits(pattern, object)) {
            return None;
        }
        if let Some(skip) = self.without_words("kinds") {
            return Some(skip);
        }
        let names: Vec<String> = kinds.iter().map(written).collect();
        let reason = format!(
            "{} requires {}, but this is {}/{}",
            filter.word("kinds"),
            names.join(", "),
            object.api_version,
            object.kind
        );
        Some(
            Skip::because(SkipCause::Match("kinds"), reason)
                .found_at(self.span_in(Some(object.node), "kind")),
        )
    }

    fn check_name(&self, filter: &WorkloadFilter) -> Option<Skip> {
        let (name, names) = (&self.workload.name, &filter.names);
        if matches_any(names, name) {
            return None;
        }
        if let Some(skip) = self.without_words("names") {
            return Some(skip);
        }
        let word = filter.words.get("names");
        let reason = match word.and_then(ConditionWord::wanted_part) {
            Some(wanted) => format!("{wanted} the name, but the name is `{name}`"),
            None => {
                let wanted = list(names);
                format!(
                    "{} requires {wanted}, but the name is `{name}`",
                    filter.word("names")
                )
            }
        };
        let skip = Skip::because(SkipCause::Match("names"), reason);
        let skip = skip.found_at(self.workload_field("name"));
        Some(skip.hint(near_miss::name(names, name)))
    }

    fn check_hooks(&self, filter: &WorkloadFilter, by_default: Hooks) -> Option<Skip> {
        let hooks = filter.hooks.unwrap_or(by_default);
        let hook = HOOKS.iter().find(|key| self.annotation(key).is_some());
        match (hooks, hook) {
            (Hooks::Exclude, Some(key)) => {
                let at = self.span_in(self.workload.metadata().annotations, key);
                let why = match filter.words.get("hooks") {
                    Some(word) => format!("{} excludes hooks", word.field),
                    None => "`hooks` is Exclude".to_owned(),
                };
                let reason = format!("it is a hook (annotation `{key}`), and {why}");
                Some(Skip::because(SkipCause::Match("hooks"), reason).found_at(at))
            }
            (Hooks::Only, None) => Some(Skip::because(
                SkipCause::Match("hooks"),
                "it is not a hook, and `hooks` is Only",
            )),
            _ => None,
        }
    }

    fn check_selector(
        &self,
        selector: Option<&LabelSelector>,
        labels: Option<NodeId>,
        filter: &WorkloadFilter,
        (condition, subject): (&'static str, &str),
    ) -> Option<Skip> {
        let failed = selector?
            .requirements
            .iter()
            .find(|requirement| !requirement.is_met(self.text_under(labels, &requirement.key)))?;
        if let Some(skip) = self.without_words(condition) {
            return Some(skip);
        }
        let found = self.text_under(labels, &failed.key);
        let at = self
            .span_in(labels, &failed.key)
            .or_else(|| labels.map(|labels| self.workload.tree.span(labels)));
        let word = filter.word(condition);
        let written = self.workload.tree.get_in(labels, &failed.key);
        let reason = match (found, written) {
            (None, Some(_)) => format!(
                "{word} requires {failed}, but the label `{}` of {subject} was injected",
                failed.key
            ),
            _ => wanted_and_found(failed, found, word, subject),
        };
        let skip = Skip::because(SkipCause::Match(condition), reason).wanted_at(failed.at.clone());
        let hint = self.near_label(failed, labels, found, word);
        Some(skip.found_at(at).hint(hint))
    }

    fn check_annotations(&self, filter: &WorkloadFilter) -> Option<Skip> {
        let fails = |(key, glob): &&(String, GlobMatcher)| {
            let annotation = self.any_annotation(key);
            !annotation.is_some_and(|value| glob.is_match(value))
        };
        let (key, glob) = filter.annotations.iter().find(fails)?;
        if let Some(skip) = self.without_words("annotations") {
            return Some(skip);
        }
        let found = match self.any_annotation(key) {
            Some(value) => format!("it is `{}`", mask::value(key, value)),
            None => "there is none".to_owned(),
        };
        let (word, wanted) = (filter.word("annotations"), glob.glob().glob());
        let reason = format!("{word} requires {key}: {wanted}, but {found}");
        let hint = match self.any_annotation(key) {
            Some(value) => near_miss::glob(std::slice::from_ref(glob), value),
            None => self.near_annotation(key),
        };
        Some(
            Skip::because(SkipCause::Match("annotations"), reason)
                .found_at(self.annotation_span(key))
                .hint(hint),
        )
    }

    fn check_images(&self, filter: &WorkloadFilter) -> Option<Skip> {
        let images = &filter.images;
        if images.is_empty() {
            return None;
        }
        let containers = self.workload.containers();
        let mut considered = containers
            .iter()
            .filter(|container| !self.base.left_out.contains(&container.node));
        let holds = considered.any(|container| matches_any(images, container.image));
        (!holds).then(|| {
            let at = containers
                .first()
                .and_then(|container| self.span_in(Some(container.node), "image"));
            let (word, wanted) = (filter.word("images"), list(images));
            let reason = format!("{word} requires {wanted}, but no container matches");
            Skip::because(SkipCause::Match("images"), reason).found_at(at)
        })
    }

    fn check_sample(&self, sample: Option<&Sample>) -> Option<Skip> {
        let sample = sample?;
        let workload = self.workload;
        let key = format!(
            "{}/{}/{}",
            workload.namespace.as_deref().unwrap_or_default(),
            workload.object.kind,
            workload.name
        );
        let holds = share_of(&key, &sample.salt) < sample.percent;
        (!holds).then(|| {
            Skip::because(
                SkipCause::Match("sample"),
                format!("not among the {} percent of `sample`", sample.percent),
            )
        })
    }
}

fn fits(pattern: &KindPattern, object: &Object) -> bool {
    let api_version = pattern.api_version.as_ref();
    is_match(&pattern.kind, &object.kind)
        && api_version.is_none_or(|glob| is_match(glob, &object.api_version))
}

/// A pattern as text, such as `apps/*/Deployment`.
fn written(pattern: &KindPattern) -> String {
    let kind = pattern.kind.glob().glob();
    match &pattern.api_version {
        Some(api_version) => format!("{}/{kind}", api_version.glob().glob()),
        None => kind.to_owned(),
    }
}

/// A sentence about a requirement that is not met: what it wants, and what is there instead.
pub(super) fn wanted_and_found(
    failed: &SelectorRequirement,
    found: Option<&str>,
    field: &str,
    subject: &str,
) -> String {
    let found = match found {
        Some(value) => {
            let value = mask::value(&failed.key, value);
            format!("{subject} has {}={value}", failed.key)
        }
        None => format!("{subject} has no label `{}`", failed.key),
    };
    format!("{field} requires {}, but {found}", failed)
}

/// A number from 0 to below 100 that depends only on the texts: FNV-1a, and a finisher that spreads its bits. Without
/// it, short texts that differ in the last letter would have similar hashes.
fn share_of(key: &str, salt: &str) -> f64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in salt.bytes().chain([0]).chain(key.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^= hash >> 33;
    let share = u32::try_from(hash % 1_000_000).expect("a remainder of a million fits");
    f64::from(share) / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_stable_and_of_about_its_size() {
        let shares: Vec<f64> = (0..1000)
            .map(|at| share_of(&format!("shop/Deployment/app-{at}"), ""))
            .collect();
        let below = shares.iter().filter(|share| **share < 30.0).count();
        assert!((250..350).contains(&below), "{below}");
        assert_eq!(shares[7], share_of("shop/Deployment/app-7", ""));
        assert_ne!(shares[7], share_of("shop/Deployment/app-7", "other"));
    }
}
