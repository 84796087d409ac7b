//! Collects the ephemeral containers of all policies for the pods of a workload, and checks them like an API server.

use crate::diagnostic::{Code, Diagnostic};
use crate::policy::PolicyValue;

use super::containers::text_of;
use super::{RuleContext, WorkloadPlan};

/// Adds a rule's ephemeral containers to those of the rules and policies before it.
pub(super) fn collect(
    subject: RuleContext<'_, '_>,
    items: &[PolicyValue],
    planned: &mut WorkloadPlan<'_>,
    problems: &mut Vec<Diagnostic>,
) {
    for item in items {
        let name = text_of(item, "name");
        let counterpart = planned
            .ephemeral_containers
            .iter()
            .find(|existing| text_of(existing, "name") == name);
        match counterpart {
            Some(counterpart) if counterpart.value == item.value => {}
            Some(_) => {
                let message =
                    format!("two ephemeral containers are named `{name}`, with different content");
                let problem = subject.problem(Code::Conflict, message, item);
                problems.push(problem.help("rename one of them"));
            }
            None => match check(subject, item) {
                Ok(()) => planned.ephemeral_containers.push(item.clone()),
                Err(problem) => problems.push(*problem),
            },
        }
    }
}

/// Checks that the name is free, since all kinds of containers share one name space, and that the target exists.
fn check(subject: RuleContext<'_, '_>, item: &PolicyValue) -> Result<(), Box<Diagnostic>> {
    let containers = subject.workload.containers();
    let name = text_of(item, "name");
    let title = subject.workload.title();
    if containers.iter().any(|container| container.name == name) {
        let message = format!("{title} already has a container `{name}`");
        let problem = subject.problem(Code::Conflict, message, item);
        return Err(Box::new(problem.help("rename the ephemeral container")));
    }
    let target = text_of(item, "targetContainerName");
    if !target.is_empty() && !containers.iter().any(|container| container.name == target) {
        let message = format!("{title} has no container `{target}` to share processes with");
        let help =
            "set `targetContainerName` to an existing container, or to `${containers.first.name}`";
        let problem = subject.problem(Code::Invalid, message, item);
        return Err(Box::new(problem.help(help)));
    }
    Ok(())
}
