//! Containers that policies of this run add, for later policies that choose them by `containers.include: [injected]`.

use serde_json::Value;
use std::sync::Arc;

use crate::manifest::pod::{Container, ContainerListKey, Workload};
use crate::options::Options;
use crate::ownership::marked_policies;
use crate::policy::{ContainerList, Policy};
use crate::record::MARKER;
use crate::select::{Baseline, InjectedContainer};
use crate::yaml::tree::NodeId;
use crate::yaml::value::to_value;

use super::draft::{Draft, DraftValue, Refusal};
use super::equality::is_same;
use super::{RuleContext, RunContext, WorkloadPlan, baseline, order, plan_once};

/// A container that this run adds, or that an earlier run added in the same form.
pub(super) struct AddedContainer {
    /// The container's node in the input, or the pod spec's if the input does not have it.
    node: NodeId,
    list: ContainerListKey,
    index: usize,
    value: Arc<Value>,
}

impl AddedContainer {
    /// The form in which rules choose it.
    pub(super) fn container(&self) -> Container<'_> {
        Container::added(self.node, self.list, self.index, &self.value)
    }
}

/// Whether a rule of the policy includes containers that other policies add.
fn asks(policy: &Policy) -> bool {
    let mut rules = policy.rules.iter();
    rules.any(|rule| rule.containers.include.contains(&ContainerList::Injected))
}

/// The added containers in a draft, as a policy sees them. Empty if the policy does not include such containers.
pub(super) fn containers(subject: RuleContext<'_, '_>, draft: &Draft<'_>) -> Vec<AddedContainer> {
    let (policy, workload) = (subject.policy, subject.workload);
    if !asks(policy) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for list in ContainerListKey::ALL {
        for (index, item) in items(draft, workload, list).iter().enumerate() {
            let known = match draft.origin(item).map(|node| workload.tree.follow(node)) {
                None => draft
                    .value(item)
                    .map(|value| (workload.pod_spec, Arc::new(value))),
                Some(node) => subject
                    .base
                    .injected
                    .get(&node)
                    .and_then(|injected| injected.before.get(&policy.identity))
                    .map(|value| (node, Arc::clone(value))),
            };
            found.extend(known.map(|(node, value)| AddedContainer {
                node,
                list,
                index,
                value,
            }));
        }
    }
    found
}

/// The items of a container list in a draft.
fn items(draft: &Draft<'_>, workload: &Workload<'_>, list: ContainerListKey) -> Vec<DraftValue> {
    let keys = workload.pod_kind.path.iter().map(String::as_str);
    let list = keys
        .chain(["spec", list.key()])
        .try_fold(draft.root(), |part, key| draft.get(&part, key));
    list.map(|list| draft.items(&list)).unwrap_or_default()
}

/// Returns the baseline. A container of the input may be the work of several policies, so that it equals none of
/// theirs: then all such containers are taken out and all policies applied. Those that come back as they were are
/// injected. Other items that equal one of a policy are its work if the mark of the workload names the policy, or if
/// the run writes no marks. With a record, what was injected is out already.
pub(super) fn base_of(workload: &Workload<'_>, run: RunContext<'_>, has_record: bool) -> Baseline {
    let (policies, options) = (run.policies, run.options);
    let mark = workload.workload_annotation(MARKER);
    let mark = mark.and_then(|mark| workload.tree.string(mark));
    let is_unmarked_run = options.adopt || options.no_marker && !has_record;
    let is_own_work = |policy: &Policy| {
        let mut marked = mark.into_iter().flat_map(marked_policies);
        is_unmarked_run || marked.any(|marked| *marked == *policy.identity)
    };
    let (mut base, unlike) = baseline::base_of(workload, run, is_own_work);
    if !policies.iter().any(asks) {
        return base;
    }
    let containers = workload.containers().iter();
    let doubtful: Vec<&Container<'_>> = containers
        .filter(|container| {
            base.left_out.contains(&container.node) || unlike.contains(&container.node)
        })
        .collect();
    if doubtful.is_empty() {
        return base;
    }
    let Some(planned) = planned_without(workload, run, &base, &doubtful) else {
        return base;
    };
    base = Baseline::without(base.left_out);
    for existing in doubtful {
        let value = to_value(workload.tree, existing.node).ok();
        let pair = value.zip(value_in(&planned.draft, workload, existing));
        let is_equal = pair.is_some_and(|(value, made)| is_same(&value, &made));
        if unlike.contains(&existing.node) && !is_equal {
            continue;
        }
        base.left_out.insert(existing.node);
        let injected = injected(workload, existing, policies, &planned);
        base.injected.insert(existing.node, injected);
    }
    base
}

/// Applies all policies to the workload without the doubtful containers. The nodes that `base` leaves out are hidden.
fn planned_without<'t>(
    workload: &Workload<'t>,
    run: RunContext<'_>,
    base: &Baseline,
    doubtful: &[&Container<'_>],
) -> Option<WorkloadPlan<'t>> {
    let nodes = doubtful.iter().map(|container| container.node);
    let without = Baseline::without(base.left_out.iter().copied().chain(nodes).collect());
    let options = Options {
        authors: true,
        ..Options::default()
    };
    let run = RunContext {
        options: &options,
        ..run
    };
    let draft = draft_without(workload, doubtful).ok()?;
    Some(plan_once(draft, workload, &without, run))
}

/// The value of a container in a draft, found by its name.
fn value_in(
    draft: &Draft<'_>,
    workload: &Workload<'_>,
    container: &Container<'_>,
) -> Option<Value> {
    let items = items(draft, workload, container.list);
    let mut items = items.iter();
    let item = items.find(|item| draft.is_text_at(item, "name", container.name))?;
    draft.value(item)
}

/// A container as it was added first, and as it was before each policy that includes added containers.
fn injected(
    workload: &Workload<'_>,
    container: &Container<'_>,
    policies: &[Policy],
    planned: &WorkloadPlan<'_>,
) -> InjectedContainer {
    let mut steps = planned.steps.iter();
    let added = steps.find_map(|(_, draft)| value_in(draft, workload, container));
    // The state after the last policy before this one that changed anything.
    let before = |at: usize| {
        let mut steps = planned.steps.iter().rev();
        value_in(&steps.find(|(step, _)| *step < at)?.1, workload, container)
    };
    let asking = policies.iter().enumerate();
    let asking = asking.filter(|(_, policy)| asks(policy));
    let before =
        asking.filter_map(|(at, policy)| Some((policy.identity.clone(), Arc::new(before(at)?))));
    InjectedContainer {
        added: Arc::new(added.unwrap_or_default()),
        before: before.collect(),
    }
}

/// Returns a draft of the input without some of its containers.
fn draft_without<'t>(
    workload: &Workload<'t>,
    containers: &[&Container<'_>],
) -> Result<Draft<'t>, Refusal> {
    let mut draft = Draft::new(workload.tree, workload.object.node);
    let within = draft.open_path(&workload.pod_kind.path)?;
    let pod_spec = draft.open_mapping(within, "spec", order::TEMPLATE)?;
    for container in containers {
        let list = draft.open_list(pod_spec, container.list.key(), order::POD_SPEC)?;
        let items = draft.raw_items(list).iter();
        let mut origins = items.map(|item| draft.origin(item));
        let is_match = |node: Option<NodeId>| {
            node.map(|node| workload.tree.follow(node)) == Some(container.node)
        };
        if let Some(at) = origins.position(is_match) {
            draft.remove(list, at)?;
        }
    }
    Ok(draft)
}
