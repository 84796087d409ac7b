//! Checks the ConfigMap keys that injected items need: a pod does not start without them.

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::DataKind;
use crate::policy::ConfigKey;

use super::RuleContext;

/// Returns an error for each key that its ConfigMap lacks, and a warning if the ConfigMap is not among the manifests.
pub(super) fn check(subject: RuleContext<'_, '_>) -> Vec<Diagnostic> {
    subject
        .policy
        .config_keys
        .iter()
        .filter_map(|key| check_one(subject, key))
        .collect()
}

fn check_one(subject: RuleContext<'_, '_>, wanted: &ConfigKey) -> Option<Diagnostic> {
    let (policy, workload) = (subject.policy, subject.workload);
    let name = DataKind::ConfigMap.beside(workload, &wanted.name);
    let labelled = |problem: Diagnostic| {
        let needs = format!("policy `{}` needs it", policy.identity);
        problem.at(policy.text.place(wanted.at.clone()), needs)
    };
    match subject.inventory.entries(&name) {
        Err(doubt) => Some(labelled(doubt)),
        Ok(Some(entries)) if entries.contains_key(&wanted.key) => None,
        Ok(Some(entries)) => {
            let message = format!("the {} has no key `{}`", name, wanted.key);
            let keys: Vec<&str> = entries.keys().map(String::as_str).collect();
            let problem = labelled(Diagnostic::error(Code::MissingObject, message));
            let problem = problem.at(workload.name_place(), "for this workload");
            Some(problem.help(format!("its keys: {}", keys.join(", "))))
        }
        Ok(None) => {
            let message = format!(
                "the {} is not among the manifests, so its key cannot be checked",
                name
            );
            let warning = labelled(Diagnostic::warning(Code::MissingObject, message));
            let help =
                "pods do not start without it; pass the file that contains it with `--context`";
            Some(warning.help(help))
        }
    }
}
