//! Validates what kept policies restore: it is part of the result, like what the given policies inject.

use std::collections::BTreeSet;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::manifest::pod::Workload;
use crate::options::Options;
use crate::policy::Policy;
use crate::record::words::undo_command;
use crate::yaml::value::to_value;

use super::draft::Draft;
use super::faults::faults_of;
use super::recording::{EarlierRun, kept};

/// Returns faults that only kept policies cause: neither the manifest without injections has them, nor the workload
/// before the run. Faults that are in `reported` already are left out.
pub(crate) fn faults_of_kept(
    base: &Workload<'_>,
    result: &Draft<'_>,
    earlier: &EarlierRun<'_>,
    policies: &[Policy],
    options: &Options,
    reported: &[Diagnostic],
) -> Vec<Diagnostic> {
    let kept: Vec<&str> = kept(policies, earlier, options).collect();
    let Some(first) = kept.first() else {
        return Vec::new();
    };
    let Some(result) = result.value(&result.root()) else {
        return Vec::new();
    };
    let mut found = faults_of(&result, base.pod_kind);
    found.retain(|fault| {
        let mut reported = reported.iter();
        !reported.any(|problem| problem.message.ends_with(&*fault.message))
    });
    if found.is_empty() {
        return Vec::new();
    }
    let input = to_value(base.tree, base.object.node).unwrap_or_default();
    let before = [&input, earlier.current.whole()].map(|value| faults_of(value, base.pod_kind));
    let before = before.iter().flatten();
    let before: BTreeSet<&str> = before.map(|fault| &*fault.message).collect();
    found.retain(|fault| !before.contains(&*fault.message));
    let names = kept.iter().map(|name| format!("`{name}`"));
    let names = names.collect::<Vec<_>>().join(", ");
    let command = undo_command(first, &base.source.name);
    let help = match options.take_out.is_undo() {
        true => format!("remove it as well: {command}"),
        false => format!("pass it as well, or remove it: {command}"),
    };
    let severity = match options.force {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let title = base.title();
    let problems = found.iter().map(|fault| {
        let fault = &fault.message;
        let message = format!(
            "the API server would reject {title} with what an earlier run injected for {names}: \
             {fault}"
        );
        let problem = Diagnostic::error(Code::Invalid, message);
        problem.with_severity(severity).help(&*help)
    });
    problems.collect()
}
