//! Evaluates conditions on the Namespace of a workload. If it is not known, a positive condition does not hold, and any
//! other condition is an error, never decided by default.

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::NamespaceMeta;
use crate::manifest::pod::Workload;
use crate::outcome::{Skip, SkipCause};
use crate::policy::{ConditionWord, LabelSelector, SelectorRequirement, WorkloadFilter};

use super::filters::{FilterResult, list, matches_any, wanted_and_found};
use super::{NotApplied, WorkloadFacts, near_miss};

/// The label that the API server puts on every Namespace; its value is the name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// What is unknown about the namespace of a workload.
#[derive(Debug, Clone)]
pub(super) enum NamespaceUncertainty {
    /// The name of the namespace.
    Name,
    /// The content of the Namespace object.
    Object,
    /// Two texts contradict each other about the Namespace object.
    Contradiction(Box<Diagnostic>),
}

impl WorkloadFacts<'_, '_> {
    pub(super) fn check_namespace(&self, filter: &WorkloadFilter) -> FilterResult {
        if filter.namespaces.is_empty() && filter.namespace_selector.is_none() {
            return FilterResult::Holds;
        }
        let Some(namespace) = &self.workload.namespace else {
            return FilterResult::Unknown(NamespaceUncertainty::Name);
        };
        if !matches_any(&filter.namespaces, namespace) {
            let word = filter.words.get("namespaces");
            let wanted = word.and_then(ConditionWord::wanted_part);
            let wanted = wanted.map(|wanted| format!("{wanted} its name"));
            let wanted = wanted.unwrap_or_else(|| {
                let globs = list(&filter.namespaces);
                format!("{} requires {globs}", filter.word("namespaces"))
            });
            let reason = format!("{wanted}, but the workload is in `{namespace}`");
            let hint = near_miss::name(&filter.namespaces, namespace);
            let skip = Skip::because(SkipCause::Match("namespaces"), reason);
            let skip = skip.found_at(self.workload_field("namespace"));
            return skip.hint(hint).into();
        }
        filter
            .namespace_selector
            .as_ref()
            .map_or(FilterResult::Holds, |selector| {
                self.check_labels(selector, namespace)
            })
    }

    fn check_labels(&self, selector: &LabelSelector, namespace: &str) -> FilterResult {
        let (by_name, by_object): (Vec<&SelectorRequirement>, Vec<&SelectorRequirement>) = selector
            .requirements
            .iter()
            .partition(|requirement| requirement.key == NAME_LABEL);
        if let Some(failed) = by_name
            .into_iter()
            .find(|requirement| !requirement.is_met(Some(namespace)))
        {
            let reason = format!(
                "namespaceSelector requires {failed}, but the workload is in `{namespace}`"
            );
            return self.fails_label(failed, reason);
        }
        if by_object.is_empty() {
            return FilterResult::Holds;
        }
        let labels = match self.namespace_meta() {
            Ok(Some(object)) => &object.labels,
            Ok(None) => return FilterResult::Unknown(NamespaceUncertainty::Object),
            Err(doubt) => {
                return FilterResult::Unknown(NamespaceUncertainty::Contradiction(Box::new(doubt)));
            }
        };
        let value =
            |requirement: &SelectorRequirement| labels.get(&requirement.key).map(String::as_str);
        match by_object
            .into_iter()
            .find(|requirement| !requirement.is_met(value(requirement)))
        {
            None => FilterResult::Holds,
            Some(failed) => {
                let holder = format!("the Namespace `{namespace}`");
                let reason = wanted_and_found(failed, value(failed), "namespaceSelector", &holder);
                self.fails_label(failed, reason)
            }
        }
    }

    fn fails_label(&self, failed: &SelectorRequirement, reason: String) -> FilterResult {
        let skip = Skip::because(SkipCause::Match("namespaceSelector"), reason);
        let skip = skip.wanted_at(failed.at.clone());
        skip.found_at(self.workload_field("namespace")).into()
    }

    /// The workload's Namespace object; `None` if it is not known.
    pub(super) fn namespace_meta(&self) -> Result<Option<&NamespaceMeta>, Diagnostic> {
        match &self.workload.namespace {
            Some(namespace) => self.inventory.namespace(namespace),
            None => Ok(None),
        }
    }
}

const STATE_NAMESPACE: &str = "set the namespace of these manifests with `--namespace NAME`";
const GIVE_OBJECT: &str = "pass the file that contains the Namespace with `--context`";

impl WorkloadFacts<'_, '_> {
    /// The result of a positive condition on something unknown about the namespace: it does not hold, with a warning.
    pub(super) fn does_not_hold(
        &self,
        unknown: NamespaceUncertainty,
        warnings: &mut Vec<Diagnostic>,
    ) -> NotApplied {
        let workload = self.workload;
        let (fact, wanted, help, reason, label) = match unknown {
            NamespaceUncertainty::Name => (
                no_name(workload),
                "one",
                STATE_NAMESPACE,
                "the workload's namespace is not known",
                "no namespace here, so the policy does not apply",
            ),
            NamespaceUncertainty::Object => (
                no_object(workload),
                "its labels or annotations",
                GIVE_OBJECT,
                "the workload's Namespace object is not known",
                "the policy does not apply to this workload",
            ),
            NamespaceUncertainty::Contradiction(doubt) => return contradiction(*doubt, workload),
        };
        let identity = &self.policy.identity;
        let message = format!("{fact}, but policy `{identity}` requires {wanted}");
        let warning =
            Diagnostic::warning(Code::UnknownNamespace, message).at(workload.name_place(), label);
        warnings.push(warning.help(help));
        NotApplied::from(Skip {
            is_near_miss: true,
            ..Skip::because(SkipCause::UnknownNamespace, reason)
        })
    }

    /// The result of any other condition on something unknown about the namespace: an error.
    pub(super) fn undecided(
        &self,
        unknown: NamespaceUncertainty,
        subject: &str,
        at: Option<std::ops::Range<usize>>,
    ) -> NotApplied {
        let workload = self.workload;
        let (fact, help, label) = match unknown {
            NamespaceUncertainty::Name => (no_name(workload), STATE_NAMESPACE, "no namespace here"),
            NamespaceUncertainty::Object => (no_object(workload), GIVE_OBJECT, "this workload"),
            NamespaceUncertainty::Contradiction(doubt) => return contradiction(*doubt, workload),
        };
        let identity = &self.policy.identity;
        let message = format!("{fact}, and {subject} of policy `{identity}` depends on it");
        let problem =
            Diagnostic::error(Code::UnknownNamespace, message).at(workload.name_place(), label);
        let problem = match at {
            Some(at) => problem.at(self.policy.text.place(at), "this depends on the namespace"),
            None => problem,
        };
        NotApplied::Undecided(Box::new(problem.help(help)))
    }
}

fn no_name(workload: &Workload<'_>) -> String {
    format!("{} does not specify a namespace", workload.title())
}

fn no_object(workload: &Workload<'_>) -> String {
    let namespace = workload.namespace.as_deref().unwrap_or_default();
    format!(
        "the Namespace `{namespace}` of {} is not among the manifests",
        workload.title()
    )
}

fn contradiction(problem: Diagnostic, workload: &Workload<'_>) -> NotApplied {
    let problem = problem.at(workload.name_place(), "for this workload");
    NotApplied::Undecided(Box::new(problem))
}
