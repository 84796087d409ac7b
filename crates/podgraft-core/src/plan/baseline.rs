//! Finds podgraft's own work in an input that has no record: items of the input that equal those of the given policies.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::change::MetadataOwner;
use crate::inventory::Inventory;
use crate::manifest::pod::Workload;
use crate::policy::parts::{CONTAINER_LISTS, ListItems, POD_LISTS};
use crate::policy::template::has_expression;
use crate::policy::{EnvOp, Injection, OnConflict, Policy, PolicyValue, Rule};
use crate::record::name_field;
use crate::select::{Baseline, WorkloadFacts};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{field, to_value};

use super::RunContext;
use super::equality::is_same;
use super::expand::expand;

/// The most passes over the policies. What a policy injects depends on that of others, but hardly ever in long chains.
const MOST_PASSES: usize = 4;

/// Returns the baseline of a workload under the given policies: the input without the items that the policies inject
/// into what is left. Also returns the containers that have the name of an injected one, but other content.
/// `is_own_work` tells whether an item of the input that equals one of a policy is its own work: people write the same
/// labels and variables, but hardly ever the same container, so those of any policy are left out.
pub(super) fn base_of(
    workload: &Workload<'_>,
    RunContext {
        policies,
        inventory,
        ..
    }: RunContext<'_>,
    is_own_work: impl Fn(&Policy) -> bool,
) -> (Baseline, BTreeSet<NodeId>) {
    let given = policies.iter().filter(|policy| !policy.suspend);
    let search = OwnWork {
        workload,
        given: given.map(|policy| (policy, is_own_work(policy))).collect(),
        inventory,
        looks_at_items: policies.iter().any(looks_at_items),
    };
    if !search.looks_at_items {
        let (left_out, unlike) = search.items(&Baseline::default());
        return (Baseline::without(left_out), unlike);
    }
    // Expressions are evaluated over what is left, so what they give and what is left depend on each other. The search
    // begins without anything that has the name of an injected item.
    let mut seen = Baseline::without(search.candidates());
    let mut unlike = BTreeSet::new();
    for pass in 1..=MOST_PASSES {
        let left_out;
        (left_out, unlike) = search.items(&seen);
        if left_out == seen.left_out {
            break;
        }
        // What is the policy's only as long as the policy sees it is the user's, such as an annotation that it reads.
        seen = Baseline::without(match pass {
            MOST_PASSES => left_out.intersection(&seen.left_out).copied().collect(),
            _ => left_out,
        });
    }
    // The search notes missing objects that rules look up which may not even apply. Do not report those.
    match policies.iter().any(|policy| !policy.looks_up.is_empty()) {
        true => (Baseline::without(seen.left_out), unlike),
        false => (seen, unlike),
    }
}

/// Whether a policy can see list items other than containers: by an expression, or by the names of variables.
fn looks_at_items(policy: &Policy) -> bool {
    !policy.match_conditions.is_empty() || policy.rules.iter().any(does_rule_look_at_items)
}

fn does_rule_look_at_items(rule: &Rule) -> bool {
    let choice = &rule.containers;
    rule.template.is_some()
        || !rule.match_conditions.is_empty()
        || !choice.match_conditions.is_empty()
        || choice.computed_names.iter().any(Option::is_some)
        || !choice.with_env.is_empty()
        || !choice.without_env.is_empty()
}

/// The search for podgraft's own work in a workload.
struct OwnWork<'r, 't> {
    workload: &'r Workload<'t>,
    /// The policies, each with whether what equals its items is its work.
    given: Vec<(&'r Policy, bool)>,
    inventory: &'r Inventory,
    looks_at_items: bool,
}

impl OwnWork<'_, '_> {
    /// The items of the input that equal those which the policies inject into what `seen` leaves, and the containers that
    /// only have the name of an injected one.
    fn items(&self, seen: &Baseline) -> (BTreeSet<NodeId>, BTreeSet<NodeId>) {
        let mut found = OwnItems::of(self.workload);
        for &(policy, is_own_work) in &self.given {
            for rule in &policy.rules {
                self.items_of_rule(policy, rule, is_own_work, seen, &mut found);
            }
        }
        (found.equal, found.unlike)
    }

    fn items_of_rule(
        &self,
        policy: &Policy,
        rule: &Rule,
        is_own_work: bool,
        seen: &Baseline,
        found: &mut OwnItems<'_, '_>,
    ) {
        let workload = self.workload;
        let facts = WorkloadFacts::new(policy, workload, seen, self.inventory);
        let template = rule.template.as_ref();
        if template.is_some_and(|template| !self.may_be_present(template.written(), is_own_work)) {
            return;
        }
        let is_own_item = is_own_work && self.looks_at_items;
        let chosen = match template.is_some() || is_own_work {
            true => facts.choose_containers(&rule.containers, &[]),
            false => Ok(Vec::new()),
        };
        let Ok(chosen) = chosen else { return };
        // What cannot be evaluated was not injected either. Planning reports the error if the rule applies.
        let Ok(expanded) = expand(facts, rule, &chosen) else {
            return;
        };
        let (mut items, mut texts) = (OwnItems::of(workload), OwnItems::of(workload));
        for inject in expanded.injects() {
            items.containers(inject);
            if is_own_work {
                texts.texts(inject);
            }
        }
        found.equal.extend(&items.equal);
        found.unlike.extend(&items.unlike);
        if !is_own_item && texts.equal.is_empty() {
            return;
        }
        for inject in expanded.injects() {
            items.lists(workload.pod_spec, inject.items_of_lists().0);
        }
        let of_all = chosen
            .iter()
            .map(|container| (container, &*expanded.inject));
        let of_each = chosen.iter().zip(&expanded.of_containers);
        for (container, inject) in of_all.chain(of_each) {
            let (_, policy_items) = inject.items_of_lists();
            items.lists(container.node, policy_items);
        }
        // People write the same labels. If nothing else of the rule is there, no earlier run applied it.
        let is_absent = items.equal.is_empty()
            && items.unlike.is_empty()
            && expanded
                .injects()
                .any(|inject| stays_as_it_is(rule, inject));
        if !is_absent {
            found.equal.append(&mut texts.equal);
        }
        if is_own_item {
            found.equal.append(&mut items.equal);
        }
    }

    /// Whether the input may hold something of an `inject`, judging by names without expressions. If not, the expressions
    /// of the `inject` need not be evaluated.
    fn may_be_present(&self, inject: &Value, is_own_work: bool) -> bool {
        let workload = self.workload;
        let tree = workload.tree;
        let holds = |holder: NodeId, list: &&str| {
            inject.get(list).is_some() && tree.get(holder, list).is_some()
        };
        let mut added = ADDED_CONTAINERS.iter().filter_map(|list| inject.get(list));
        let has_container = added.any(|list| may_have_container(workload, list));
        if has_container || !is_own_work {
            return has_container;
        }
        let mut containers = workload.containers().iter();
        let mut texts = texts_of(workload).into_iter();
        POD_LISTS.iter().any(|list| holds(workload.pod_spec, list))
            || containers.any(|container| {
                let mut lists = CONTAINER_LISTS.iter();
                lists.any(|list| holds(container.node, list))
            })
            || texts.any(|(word, mapping)| {
                let mapping = mapping.filter(|_| inject.get(word).is_some());
                mapping.is_some_and(|mapping| may_have_entry(tree, mapping, &inject[word]))
            })
    }

    /// Everything that has the name of an item which a policy injects: the names that are no expressions. Of a rule
    /// without expressions, the items of containers that are equal to its own.
    fn candidates(&self) -> BTreeSet<NodeId> {
        let workload = self.workload;
        let mut found = self.equal_in_containers();
        for &(policy, is_own_work) in &self.given {
            let templates = policy
                .rules
                .iter()
                .filter_map(|rule| rule.template.as_ref());
            for inject in templates.map(|template| template.written()) {
                for list in ADDED_CONTAINERS {
                    let named = workload.containers().iter();
                    let named = named.filter(|container| has_item(inject, list, container.name));
                    found.extend(named.map(|container| container.node));
                }
                if !is_own_work {
                    continue;
                }
                for list in POD_LISTS {
                    found.extend(self.named_items(workload.pod_spec, list, inject));
                }
                for container in workload.containers() {
                    for list in CONTAINER_LISTS {
                        found.extend(self.named_items(container.node, list, inject));
                    }
                }
                found.extend(self.named_texts(inject));
            }
        }
        found
    }

    /// The items of containers that are equal to one that a rule without expressions injects, whatever containers it
    /// chooses.
    fn equal_in_containers(&self) -> BTreeSet<NodeId> {
        let mut found = OwnItems::of(self.workload);
        let own = self.given.iter().filter(|(_, is_own_work)| *is_own_work);
        let rules = own.flat_map(|(policy, _)| &policy.rules);
        for rule in rules.filter(|rule| rule.template.is_none()) {
            for container in self.workload.containers() {
                let (_, policy_items) = rule.inject.items_of_lists();
                found.lists(container.node, policy_items);
            }
        }
        found.equal
    }

    /// The items of a list of the input whose names an `inject` has in a list of the same key.
    fn named_items(&self, holder: NodeId, list: &str, inject: &Value) -> Vec<NodeId> {
        let tree = self.workload.tree;
        let existing = inject.get(list).and_then(|_| tree.get(holder, list));
        let (Some(existing), Some(field)) = (existing, name_field(list)) else {
            return Vec::new();
        };
        let is_named = |item: &NodeId| {
            let name = tree.get(*item, field).and_then(|name| tree.string(name));
            name.is_some_and(|name| has_item(inject, list, name))
        };
        tree.items(existing).filter(is_named).collect()
    }

    /// The labels and annotations of the input whose keys an `inject` has.
    fn named_texts(&self, inject: &Value) -> Vec<NodeId> {
        let tree = self.workload.tree;
        let mut found = Vec::new();
        for (word, mapping) in texts_of(self.workload) {
            if let (Some(entries), Some(mapping)) = (inject.get(word), mapping) {
                found.extend(keys_of(entries).filter_map(|key| tree.get(mapping, key)));
            }
        }
        found
    }
}

/// Whether an `inject` has items that are in the output as the policy has them. Joined texts are not, and other values than
/// those of the manifest only if these are conflicts.
fn stays_as_it_is(rule: &Rule, inject: &Injection) -> bool {
    let (of_pod, of_container) = inject.items_of_lists();
    let has_containers = !inject.init_containers.is_empty() || !inject.sidecars.is_empty();
    let has_variables = inject.env.iter().any(|change| change.op == EnvOp::Set);
    let mut lists = of_pod.into_iter().chain(of_container);
    let has_items = lists.any(|(list, items)| list != "env" && !items.is_empty());
    rule.on_conflict == OnConflict::Error && (has_containers || has_variables || has_items)
}

/// The lists of `inject` whose items are containers.
const ADDED_CONTAINERS: [&str; 2] = ["initContainers", "sidecars"];

/// Whether a list of an `inject` as it is written has an item of this name.
fn has_item(inject: &Value, list: &str, name: &str) -> bool {
    let items = inject.get(list).and_then(Value::as_array);
    let field = name_field(list).unwrap_or("name");
    let mut items = items.into_iter().flatten();
    items.any(|item| item.get(field).and_then(Value::as_str) == Some(name))
}

/// The keys of labels or annotations as an `inject` has them: a mapping, or a list of entries with a `key`.
fn keys_of(entries: &Value) -> impl Iterator<Item = &str> {
    let keys = entries.as_object().into_iter().flat_map(|map| map.keys());
    let items = entries.as_array().into_iter().flatten();
    let listed = items.filter_map(|entry| entry.get("key")?.as_str());
    keys.map(String::as_str).chain(listed)
}

fn may_have_container(workload: &Workload<'_>, injected: &Value) -> bool {
    let mut items = injected.as_array().into_iter().flatten();
    let may_be_there = |name: &str| {
        let mut containers = workload.containers().iter();
        has_expression(name) || containers.any(|container| container.name == name)
    };
    !injected.is_array()
        || items.any(|item| {
            field(item, "name")
                .and_then(Value::as_str)
                .is_none_or(may_be_there)
        })
}

fn may_have_entry(tree: &Tree<'_>, mapping: NodeId, injected: &Value) -> bool {
    let is_present = |key: &String| has_expression(key) || tree.get(mapping, key).is_some();
    injected
        .as_object()
        .is_none_or(|entries| entries.keys().any(is_present))
}

/// The fields of `inject` for labels and annotations, each with the node of those that the workload has.
fn texts_of(workload: &Workload<'_>) -> [(&'static str, Option<NodeId>); 4] {
    let (pod, object) = (workload.pod_metadata(), workload.metadata());
    [
        ("podAnnotations", pod.annotations),
        ("podLabels", pod.labels),
        ("annotations", object.annotations),
        ("labels", object.labels),
    ]
}

/// Items of the input that are compared with those of the policies.
struct OwnItems<'w, 't> {
    workload: &'w Workload<'t>,
    /// Those that equal one of a policy.
    equal: BTreeSet<NodeId>,
    /// Containers that have the name of an injected one, but other content.
    unlike: BTreeSet<NodeId>,
}

impl<'w, 't> OwnItems<'w, 't> {
    fn of(workload: &'w Workload<'t>) -> Self {
        OwnItems {
            workload,
            equal: BTreeSet::new(),
            unlike: BTreeSet::new(),
        }
    }

    /// Finds the items of lists that equal one of a policy's.
    fn lists<'p>(&mut self, holder: NodeId, policy_items: impl IntoIterator<Item = ListItems<'p>>) {
        let tree = self.workload.tree;
        for (list, policy_items) in policy_items {
            let is_own = |item: &NodeId| {
                let is_equal = |value| policy_items.iter().any(|own| is_same(&value, &own.value));
                to_value(tree, *item).is_ok_and(is_equal)
            };
            let node = tree.get(holder, list).filter(|_| !policy_items.is_empty());
            let items = node.into_iter().flat_map(|node| tree.items(node));
            self.equal.extend(items.filter(is_own));
        }
    }

    fn containers(&mut self, inject: &Injection) {
        let workload = self.workload;
        let init = inject.init_containers.iter().map(|(item, _)| item);
        let policy_containers: Vec<&PolicyValue> = init
            .chain(inject.sidecars.iter().map(|(item, ..)| item))
            .collect();
        if policy_containers.is_empty() {
            return;
        }
        for container in workload.containers() {
            let counterpart = policy_containers.iter().find(|item| {
                field(&item.value, "name").and_then(Value::as_str) == Some(container.name)
            });
            let value = counterpart.and_then(|_| to_value(workload.tree, container.node).ok());
            if let (Some(item), Some(value)) = (counterpart, value) {
                match is_same(&value, &item.value) {
                    true => self.equal.insert(container.node),
                    false => self.unlike.insert(container.node),
                };
            }
        }
    }

    fn texts(&mut self, inject: &Injection) {
        let workload = self.workload;
        let policy_texts = [
            &inject.pod_annotations,
            &inject.pod_labels,
            &inject.annotations,
            &inject.labels,
        ];
        for ((_, mapping), policy_texts) in texts_of(workload).into_iter().zip(policy_texts) {
            let Some(mapping) = mapping else { continue };
            for (key, item) in policy_texts {
                let found = workload.tree.get(mapping, key);
                let has_policy_value =
                    |node: &NodeId| workload.tree.string(*node) == item.value.as_str();
                self.equal.extend(found.filter(has_policy_value));
            }
        }
        let texts = inject.text_changes.iter();
        for text in texts.filter(|text| text.change.op != EnvOp::Remove) {
            let metadata = match text.owner {
                MetadataOwner::Pod => workload.pod_metadata(),
                MetadataOwner::Workload => workload.metadata(),
            };
            let mapping = metadata.texts(text.field);
            let found = workload.tree.get_in(mapping, &text.change.name);
            let wanted = field(&text.change.item.value, "value").and_then(Value::as_str);
            let has_policy_value = |node: &NodeId| {
                wanted.is_some_and(|wanted| workload.tree.string(*node) == Some(wanted))
            };
            self.equal.extend(found.filter(has_policy_value));
        }
    }
}
