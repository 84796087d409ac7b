//! Evaluates the expressions of a rule for one workload. A rule without expressions is used as it is.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use crate::manifest::pod::{Container, Workload};
use crate::policy::expression::Evaluator;
use crate::policy::images::mirror_images;
use crate::policy::{Injection, InjectionTemplate, Policy, Rule};
use crate::select::WorkloadFacts;
use crate::yaml::tree::NodeId;

/// What a rule injects into one workload.
#[derive(Debug)]
pub(super) struct ExpandedInjection<'r> {
    /// What goes into the pod, the workload, and every chosen container without an entry in `of_containers`.
    pub inject: Cow<'r, Injection>,
    /// What goes into each chosen container, in their order; empty if all get the same.
    pub of_containers: Vec<Injection>,
}

impl ExpandedInjection<'_> {
    /// The common injection, and those of the containers.
    pub(super) fn injects(&self) -> impl Iterator<Item = &Injection> + Clone {
        std::iter::once(&*self.inject).chain(&self.of_containers)
    }

    /// Returns a note if the rule has only ephemeral containers, which no workload gets.
    pub(super) fn nothing_to_write(&self, policy: &Policy) -> Option<Diagnostic> {
        let first = self.inject.ephemeral_containers.first()?;
        let rest = Injection {
            ephemeral_containers: Vec::new(),
            ..self.inject.clone().into_owned()
        };
        if !self.of_containers.is_empty() || rest != Injection::default() {
            return None;
        }
        let message = format!(
            "policy `{}` has only ephemeral containers, which are never written into a workload",
            policy.identity
        );
        let note = Diagnostic::note(Code::NothingToWrite, message);
        let note = note.at(policy.text.place(first.at.clone()), "for running pods");
        Some(note.help("`podgraft debug` prints the patch bodies and the `kubectl debug` commands"))
    }
}

/// Evaluates a rule's expressions. A rule without expressions is borrowed as it is.
pub(super) fn expand<'r>(
    facts: WorkloadFacts<'_, '_>,
    rule: &'r Rule,
    chosen: &[Container<'_>],
) -> Diagnosed<ExpandedInjection<'r>> {
    let Some(template) = &rule.template else {
        return Ok(ExpandedInjection {
            inject: Cow::Borrowed(&rule.inject),
            of_containers: Vec::new(),
        });
    };
    // The cache key are the template and the nodes of the containers. Containers that this run adds have no node and
    // may still change, so with them nothing is cached.
    let nodes: Option<Vec<NodeId>> = chosen.iter().map(Container::input_node).collect();
    let expansion = nodes.map(|nodes| (Arc::as_ptr(template).addr(), nodes));
    let expanded = facts.base.expanded.borrow();
    if let Some(found) = expansion.as_ref().and_then(|key| expanded.get(key)) {
        return Ok(ExpandedInjection {
            inject: Cow::Owned(found.0.clone()),
            of_containers: found.1.clone(),
        });
    }
    // The cache is borrowed mutably below.
    drop(expanded);
    let of_container = |container| WorkloadFacts {
        container: Some(container),
        ..facts
    };
    let of_chosen: Vec<WorkloadFacts<'_, '_>> = chosen.iter().map(of_container).collect();
    let (mut inject, of_containers) =
        evaluate(template, &of_chosen).map_err(|problems| each_once(problems, facts.workload))?;
    mirror_images(&mut inject, &facts.policy.image_mirrors);
    let expansion_value = Rc::new((inject.clone(), of_containers.clone()));
    let mut expanded = facts.base.expanded.borrow_mut();
    expansion.map(|expansion| expanded.insert(expansion, expansion_value));
    Ok(ExpandedInjection {
        inject: Cow::Owned(inject),
        of_containers,
    })
}

/// Adds the workload's place to problems, and drops duplicates: several containers may have the same problem.
fn each_once(problems: Vec<Diagnostic>, workload: &Workload<'_>) -> Vec<Diagnostic> {
    let mut distinct: Vec<Diagnostic> = Vec::new();
    for problem in problems {
        let problem = problem.at(workload.name_place(), "for this workload");
        if !distinct.contains(&problem) {
            distinct.push(problem);
        }
    }
    distinct
}

/// Evaluates a template for the pod, and for the container of each of the facts.
fn evaluate(
    template: &InjectionTemplate,
    facts: &[WorkloadFacts<'_, '_>],
) -> Diagnosed<(Injection, Vec<Injection>)> {
    let evaluators: Vec<Evaluator<'_>> = facts.iter().map(WorkloadFacts::evaluator).collect();
    let mut problems = Vec::new();
    let inject = template.expand_pod(&evaluators).unwrap_or_else(|found| {
        problems.extend(found);
        Injection::default()
    });
    let mut of_containers = Vec::new();
    for evaluator in &evaluators {
        match template.expand_container(evaluator) {
            Ok(inject) => of_containers.extend(inject),
            Err(found) => problems.extend(found),
        }
    }
    unless(problems, (inject, of_containers))
}
