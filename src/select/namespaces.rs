//! What the Namespace of a workload says, and what it means that this is not known: a positive condition does not hold,
//! and anything else is an error, never decided by default.

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::{Doubt, NamespaceMeta};
use crate::manifest::pod::Workload;
use crate::outcome::{Skip, SkipCause};
use crate::policy::{Filter, LabelSelector, Policy, Requirement};

use super::filters::{Verdict, list, matches_any, wanted, wanted_and_found};
use super::{No, View, near};

/// The API server puts it on every Namespace, with its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// What is not known of a workload's namespace.
#[derive(Debug, Clone)]
pub(super) enum Unknown {
    /// Its name.
    Name,
    /// What its Namespace object says.
    Object,
    /// The Namespace object stands twice.
    Contradiction(Box<Doubt>),
}

impl View<'_, '_> {
    pub(super) fn check_namespace(&self, filter: &Filter) -> Verdict {
        if filter.namespaces.is_empty() && filter.namespace_selector.is_none() {
            return Verdict::Holds;
        }
        let Some(namespace) = &self.workload.namespace else {
            return Verdict::Unknown(Unknown::Name);
        };
        if !matches_any(&filter.namespaces, namespace) {
            let wanted = list(&filter.namespaces);
            let reason = format!("namespaces wants {wanted}, the workload is in `{namespace}`");
            let hint = near::glob(&filter.namespaces, namespace);
            return Verdict::Fails(Box::new(
                Skip::because(SkipCause::Match("namespaces"), reason)
                    .found_at(self.own_field("namespace"))
                    .hint(hint),
            ));
        }
        filter
            .namespace_selector
            .as_ref()
            .map_or(Verdict::Holds, |selector| {
                self.check_labels(selector, namespace)
            })
    }

    fn check_labels(&self, selector: &LabelSelector, namespace: &str) -> Verdict {
        let (by_name, by_object): (Vec<&Requirement>, Vec<&Requirement>) = selector
            .requirements
            .iter()
            .partition(|requirement| requirement.key == NAME_LABEL);
        if let Some(failed) = by_name
            .into_iter()
            .find(|requirement| !requirement.is_met(Some(namespace)))
        {
            let reason = format!(
                "namespaceSelector wants {}, the workload is in `{namespace}`",
                wanted(failed)
            );
            let skip = Skip::because(SkipCause::Match("namespaceSelector"), reason)
                .wanted_at(failed.at.clone());
            return Verdict::Fails(Box::new(skip.found_at(self.own_field("namespace"))));
        }
        if by_object.is_empty() {
            return Verdict::Holds;
        }
        let labels = match self.namespace_object() {
            Ok(Some(object)) => &object.labels,
            Ok(None) => return Verdict::Unknown(Unknown::Object),
            Err(doubt) => return Verdict::Unknown(Unknown::Contradiction(Box::new(doubt))),
        };
        let value = |requirement: &Requirement| labels.get(&requirement.key).map(String::as_str);
        match by_object
            .into_iter()
            .find(|requirement| !requirement.is_met(value(requirement)))
        {
            None => Verdict::Holds,
            Some(failed) => {
                let whose = format!("the Namespace `{namespace}`");
                let reason = wanted_and_found(failed, value(failed), "namespaceSelector", &whose);
                let skip = Skip::because(SkipCause::Match("namespaceSelector"), reason)
                    .wanted_at(failed.at.clone());
                Verdict::Fails(Box::new(skip.found_at(self.own_field("namespace"))))
            }
        }
    }

    /// The workload's Namespace object, where it is among the manifests.
    pub(super) fn namespace_object(&self) -> Result<Option<&NamespaceMeta>, Doubt> {
        match &self.workload.namespace {
            Some(namespace) => self.inventory.namespace(namespace),
            None => Ok(None),
        }
    }
}

const STATE_NAMESPACE: &str = "say with `--namespace NAME` where these manifests will be installed";
const GIVE_OBJECT: &str = "give the file that holds the Namespace with `--context`";

/// A positive condition on what is not known of a namespace does not hold.
pub(super) fn does_not_hold(
    policy: &Policy,
    workload: &Workload<'_>,
    unknown: Unknown,
    warnings: &mut Vec<Diagnostic>,
) -> No {
    let (message, help, reason) = match unknown {
        Unknown::Name => (
            format!(
                "{} states no namespace, and policy `{}` asks for one",
                workload.title(),
                policy.identity
            ),
            STATE_NAMESPACE,
            "the workload's namespace is not known",
        ),
        Unknown::Object => (
            format!(
                "{}, and policy `{}` asks for its labels or annotations",
                no_object(workload),
                policy.identity
            ),
            GIVE_OBJECT,
            "the workload's Namespace object is not known",
        ),
        Unknown::Contradiction(doubt) => return contradiction(*doubt, workload),
    };
    let label = match unknown {
        Unknown::Name => "no namespace here, so the policy does not apply",
        Unknown::Object | Unknown::Contradiction(_) => {
            "so the policy does not apply to this workload"
        }
    };
    let warning =
        Diagnostic::warning(Code::UnknownNamespace, message).at(workload.own_place(), label);
    warnings.push(warning.help(help));
    No::Skip(Box::new(Skip {
        is_near_miss: true,
        ..Skip::because(SkipCause::UnknownNamespace, reason)
    }))
}

/// Something else than a positive condition depends on what is not known of a namespace.
pub(super) fn undecided(
    policy: &Policy,
    workload: &Workload<'_>,
    unknown: Unknown,
    (what, at): (&str, Option<std::ops::Range<usize>>),
) -> No {
    let (fact, help) = match unknown {
        Unknown::Name => (
            format!("{} states no namespace", workload.title()),
            STATE_NAMESPACE,
        ),
        Unknown::Object => (no_object(workload), GIVE_OBJECT),
        Unknown::Contradiction(doubt) => return contradiction(*doubt, workload),
    };
    let message = format!(
        "{fact}, and {what} of policy `{}` depends on it",
        policy.identity
    );
    let label = match unknown {
        Unknown::Name => "no namespace here",
        Unknown::Object | Unknown::Contradiction(_) => "this workload",
    };
    let problem =
        Diagnostic::error(Code::UnknownNamespace, message).at(workload.own_place(), label);
    let problem = match at {
        Some(at) => problem.at(policy.text.place(at), "this decides by namespace"),
        None => problem,
    };
    No::Undecided(Box::new(problem.help(help)))
}

fn no_object(workload: &Workload<'_>) -> String {
    let namespace = workload.namespace.as_deref().unwrap_or_default();
    format!(
        "the Namespace `{namespace}` of {} is not among the manifests",
        workload.title()
    )
}

fn contradiction(doubt: Doubt, workload: &Workload<'_>) -> No {
    No::Undecided(Box::new(
        doubt
            .into_diagnostic()
            .at(workload.own_place(), "for this workload"),
    ))
}
