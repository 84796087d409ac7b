//! Adoption: what a policy wants and a manifest has already is the policy's own, whoever wrote it, where podgraft had put
//! something there before. A bot that raises an image in the policy and in the manifest changes nothing of who owns it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::manifest::object::{Found, find_objects};
use crate::manifest::pod::Workload;
use crate::plan::recording::{Earlier, Met};
use crate::plan::{Planned, plan};
use crate::record::{Effects, Joined, MARKER, Paths, PolicyRecord, Record, VERSION, digest};
use crate::report::Outcome;
use crate::source::Source;
use crate::undo::{Recorded, Stripped};
use crate::yaml::parse::parse;
use crate::yaml::tree::Tree;
use crate::yaml::value::to_value;

use super::Chunk;

impl<'a> Chunk<'a, '_> {
    /// Adds a record for each workload that is marked and has none, of the given policies that have nothing to do there.
    pub(super) fn adopt_marked<'t>(
        &self,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        found: &[Found],
        recorded: &mut Vec<Recorded>,
    ) where
        'a: 't,
    {
        let options = self.setting.options;
        if !options.lock || options.take_out.is_undo() || !self.is_marked() {
            return;
        }
        for found in found {
            let Found::Object(object) = found else {
                continue;
            };
            if recorded.iter().any(|one| one.node == object.node) {
                continue;
            }
            let workload = self.read_workload(object, tree, source);
            let Some(workload) = workload.filter(|workload| self.is_wanted(workload)) else {
                continue;
            };
            let mark = workload.own_annotation(MARKER);
            let (Some(at), Ok(value)) = (mark, to_value(tree, object.node)) else {
                continue;
            };
            let planned = self.planned(&workload, None);
            let paths = Paths::of(&workload.pod_kind.path);
            let marked = tree
                .scalar(at)
                .unwrap_or_default()
                .split(',')
                .map(str::trim);
            let policies: Vec<PolicyRecord> = marked
                .filter_map(|policy| adopted(policy, &planned, &paths, &value))
                .collect();
            if policies.is_empty() {
                continue;
            }
            let made = [paths.in_object(&["metadata", "annotations"])];
            recorded.push(Recorded {
                node: object.node,
                at,
                is_annotated: false,
                from: None,
                record: Record {
                    version: VERSION,
                    pod: paths.template(),
                    policies,
                    marker: Effects {
                        made: made.into(),
                        ..Effects::default()
                    },
                    ..Record::default()
                },
                value,
            });
        }
        recorded.sort_by_key(|one| tree.span(one.node).start);
    }

    /// Notes in the records what somebody changed to what a given policy wants now. Returns whether there was any.
    pub(super) fn adopt_changed(
        &self,
        source: &Source<'_>,
        tree: &Tree<'_>,
        recorded: &mut [Recorded],
        stripped: &Stripped,
    ) -> bool {
        let is_given = |policy: &str| {
            let mut policies = self.setting.policies.iter();
            policies.any(|given| given.identity == policy)
        };
        let mut changed = stripped.taken.iter().flat_map(|taken| &taken.changed);
        if !changed.any(|changed| is_given(&changed.policy)) {
            return false;
        }
        let Ok(base_tree) = parse(&stripped.text) else {
            return false;
        };
        let base_source = Source {
            text: &stripped.text,
            ..source.clone()
        };
        let own = find_objects(tree, self.setting.kinds);
        let bases = find_objects(&base_tree, self.setting.kinds);
        let mut has_adopted = false;
        for (one, taken) in recorded.iter_mut().zip(&stripped.taken) {
            let is_it =
                |found: &Found| matches!(found, Found::Object(object) if object.node == one.node);
            let base = own.iter().position(is_it).and_then(|at| bases.get(at));
            let Some(Found::Object(base)) = base else {
                continue;
            };
            let Some(workload) = self.read_workload(base, &base_tree, &base_source) else {
                continue;
            };
            let earlier = Earlier {
                record: one.record.clone(),
                is_annotated: one.is_annotated,
                current: one.value.clone(),
                taken: taken.clone(),
            };
            let planned = self.planned(&workload, Some(&earlier));
            for changed in &taken.changed {
                let is_met = |(policy, met): &&(String, Met)| {
                    let below = changed.path.strip_prefix(met.path.as_str());
                    *policy == changed.policy
                        && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
                };
                let Some((_, met)) = planned.met.iter().find(is_met) else {
                    continue;
                };
                let paths = one.record.paths();
                let there = paths.get(&taken.value, &changed.path).map(digest);
                let policies = &mut one.record.policies;
                let policy = policies.iter_mut().find(|own| own.policy == changed.policy);
                has_adopted |= policy.is_some_and(|policy| {
                    note(
                        &mut policy.effects,
                        &changed.path,
                        met.joined.as_ref(),
                        there,
                    )
                });
            }
        }
        has_adopted
    }

    pub(super) fn planned<'t>(
        &self,
        workload: &Workload<'t>,
        earlier: Option<&Earlier>,
    ) -> Planned<'t> {
        let super::Setting {
            policies,
            options,
            inventory,
            ..
        } = self.setting;
        plan(workload, policies, options, inventory, earlier)
    }
}

/// What a policy that has nothing to do would have put there, had it been the one.
fn adopted(
    policy: &str,
    planned: &Planned<'_>,
    paths: &Paths,
    value: &Value,
) -> Option<PolicyRecord> {
    let mut reports = planned.policies.iter();
    let report = reports.find(|report| &*report.policy == policy)?;
    if report.outcome != Outcome::UpToDate {
        return None;
    }
    let mut effects = Effects::default();
    for (_, met) in planned.met.iter().filter(|(own, _)| own == policy) {
        match &met.joined {
            Some(joined) => {
                let there = paths.get(value, &format!("{}/value", met.path));
                let joined = Joined {
                    // A variable that holds nothing else is not one of the manifest.
                    new: there.and_then(Value::as_str) == Some(joined.text.as_str()),
                    ..joined.clone()
                };
                effects.joined.insert(met.path.clone(), joined);
            }
            None => {
                let there = paths.get(value, &met.path)?;
                effects.added.insert(met.path.clone(), digest(there));
            }
        }
        effects.made.extend(holders(&met.path));
    }
    let record = PolicyRecord {
        policy: policy.to_owned(),
        digest: effects.digest(),
        effects,
        ..PolicyRecord::default()
    };
    (!record.effects.is_empty()).then_some(record)
}

/// The mappings and lists around an item, below the pod template: undo leaves none of them empty.
fn holders(path: &str) -> BTreeSet<String> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.skip(1).map(|at| path[..at].to_owned()).collect()
}

/// Notes what is there as the policy's own.
fn note(effects: &mut Effects, path: &str, met: Option<&Joined>, there: Option<String>) -> bool {
    if let (Some(joined), Some(met)) = (effects.joined.get_mut(path), met) {
        joined.text.clone_from(&met.text);
        return true;
    }
    let Some(there) = there else { return false };
    let replaced = effects.replaced.get_mut(path);
    let digests = match replaced {
        Some(replaced) => &mut replaced.now,
        None => match effects.added.get_mut(path) {
            Some(digests) => digests,
            None => return false,
        },
    };
    *digests = there;
    true
}
