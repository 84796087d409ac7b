//! Adoption: what a policy wants and a manifest has already is the policy's own, whoever wrote it, where podgraft had put
//! something there before. A bot that raises an image in the policy and in the manifest changes nothing of who owns it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::change::list;
use crate::diagnostic::Diagnostic;
use crate::manifest::object::{Found, Object, find_objects};
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::plan::recording::{Earlier, Met, has_twin_containers};
use crate::plan::{Planned, plan};
use crate::record::fold::ORIGINAL;
use crate::record::{
    Effects, Joined, MARKER, Paths, PolicyRecord, Record, Taken, VERSION, arrange, digest,
};
use crate::source::Source;
use crate::undo::{Recorded, Stripped};
use crate::yaml::parse::parse;
use crate::yaml::tree::Tree;
use crate::yaml::value::to_value;

use super::document::Document;

impl<'a> Document<'a> {
    /// Adds a record for each workload that has none, of the given policies that have nothing to do there: `adopt` asks
    /// all of them, other runs those that the workload is marked with.
    pub(super) fn adopt_unrecorded<'t>(
        &self,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        found: &[Found],
        recorded: &mut Vec<Recorded>,
    ) where
        'a: 't,
    {
        let options = self.setting.options;
        let may_adopt = options.lock && !options.take_out.is_undo();
        if !may_adopt || !(options.adopt || self.is_marked()) || !self.has_records() {
            return;
        }
        for found in found {
            let Found::Object(object) = found else {
                continue;
            };
            if recorded.iter().all(|one| one.node != object.node) {
                recorded.extend(self.adopted_object(object, tree, source));
            }
        }
        recorded.sort_by_key(|one| tree.span(one.node).start);
    }

    /// A record for an object that has none.
    fn adopted_object<'t>(
        &self,
        object: &Object,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
    ) -> Option<Recorded>
    where
        'a: 't,
    {
        let workload = self.read_workload(object, tree, source)?;
        let mark = workload.own_annotation(MARKER);
        let may_adopt = mark.is_some() || self.setting.options.adopt;
        if !self.is_wanted(&workload) || !may_adopt {
            return None;
        }
        let value = to_value(tree, object.node).ok()?;
        if has_twin_containers(&value, &workload.pod_kind.path) {
            return None;
        }
        let policies = self.adopted_policies(&workload, &value);
        if policies.is_empty() {
            return None;
        }
        let paths = Paths::of(&workload.pod_kind.path);
        let made = mark.map(|_| paths.in_object(&["metadata", "annotations"]));
        Some(Recorded {
            node: object.node,
            at: mark.unwrap_or(object.node),
            is_annotated: false,
            from: None,
            adopted: policies.iter().map(|own| own.policy.clone()).collect(),
            record: Record {
                version: VERSION,
                pod: paths.template(),
                policies,
                marker: Effects {
                    made: made.into_iter().collect(),
                    ..Effects::default()
                },
                ..Record::default()
            },
            value,
        })
    }

    fn adopted_policies(&self, workload: &Workload<'_>, value: &Value) -> Vec<PolicyRecord> {
        let planned = self.planned(workload, None);
        let paths = Paths::of(&workload.pod_kind.path);
        let mark = workload.own_annotation(MARKER);
        let marked: Vec<&str> = mark
            .and_then(|mark| workload.tree.scalar(mark))
            .map(|marked| marked.split(',').map(str::trim).collect())
            .unwrap_or_default();
        let reports = planned.policies.iter();
        let mut policies: Vec<PolicyRecord> = reports
            .filter(|report| self.setting.options.adopt || marked.contains(&&*report.policy))
            .filter_map(|report| adopted(report, &planned, &paths, value))
            .collect();
        note_originals(&mut policies, &paths, value);
        policies
    }

    /// Notes in the records what somebody changed to what a given policy wants now, and what `adopt` takes over beside
    /// what is recorded. Returns whether there was any.
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
        let adopts = self.setting.options.adopt;
        let mut changed = stripped.taken.iter().flat_map(|taken| &taken.changed);
        if !adopts && !changed.any(|changed| is_given(&changed.policy)) {
            return false;
        }
        let mut has_adopted = false;
        self.each_base(source, tree, recorded, stripped, |one, taken, base| {
            let earlier = earlier(one, taken, None);
            let planned = self.planned(base, Some(&earlier));
            has_adopted |= note_changed(one, taken, &planned);
            if !adopts || one.from.is_none() && !one.is_annotated {
                return;
            }
            for report in &planned.policies {
                if one.record.policy(&report.policy).is_some() {
                    continue;
                }
                let policy = adopted(report, &planned, &one.record.paths(), &one.value);
                one.adopted
                    .extend(policy.as_ref().map(|own| own.policy.clone()));
                has_adopted |= policy.is_some();
                one.record.policies.extend(policy);
            }
        });
        has_adopted
    }

    /// Takes the adopted policies off again where they would not put the same there once more: a patch of what it has
    /// written itself, a text that somebody else had joined. Returns whether there was any.
    pub(super) fn disown(
        &self,
        source: &Source<'_>,
        tree: &Tree<'_>,
        recorded: &mut Vec<Recorded>,
        stripped: &Stripped,
    ) -> bool {
        if recorded.iter().all(|one| one.adopted.is_empty()) {
            return false;
        }
        let mut has_disowned = false;
        self.each_base(source, tree, recorded, stripped, |one, taken, base| {
            if one.adopted.is_empty() {
                return;
            }
            let earlier = earlier(one, taken, Some(one.adopted.clone()));
            let planned = self.planned(base, Some(&earlier));
            let target = planned.draft.value(&planned.draft.root());
            let is_same = target.is_some_and(|mut target| {
                arrange(&mut target, &one.value);
                unmarked(target) == unmarked(one.value.clone())
            });
            if !is_same {
                let policies = &mut one.record.policies;
                policies.retain(|own| !one.adopted.contains(&own.policy));
                one.adopted.clear();
                has_disowned = true;
            }
        });
        recorded.retain(|one| !one.record.policies.is_empty());
        has_disowned
    }

    /// Every recorded workload, with what was taken out of it and the workload without.
    fn each_base(
        &self,
        source: &Source<'_>,
        tree: &Tree<'_>,
        recorded: &mut [Recorded],
        stripped: &Stripped,
        mut ask: impl FnMut(&mut Recorded, &Taken, &Workload<'_>),
    ) {
        let Ok(base_tree) = parse(&stripped.text) else {
            return;
        };
        let base_source = Source {
            text: &stripped.text,
            ..source.clone()
        };
        let own = find_objects(tree, self.setting.kinds);
        let bases = find_objects(&base_tree, self.setting.kinds);
        for (one, taken) in recorded.iter_mut().zip(&stripped.taken) {
            let is_it =
                |found: &Found| matches!(found, Found::Object(object) if object.node == one.node);
            let base = own.iter().position(is_it).and_then(|at| bases.get(at));
            let Some(Found::Object(base)) = base else {
                continue;
            };
            if let Some(base) = self.read_workload(base, &base_tree, &base_source) {
                ask(one, taken, &base);
            }
        }
    }

    pub(super) fn planned<'t>(
        &self,
        workload: &Workload<'t>,
        earlier: Option<&Earlier<'_>>,
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

fn earlier<'r>(one: &'r Recorded, taken: &'r Taken, adopting: Option<Vec<String>>) -> Earlier<'r> {
    Earlier {
        record: one.record.clone(),
        is_annotated: one.is_annotated,
        current: &one.value,
        taken,
        adopting,
    }
}

/// Notes in a record what somebody changed to what a policy wants. Returns whether there was any.
fn note_changed(one: &mut Recorded, taken: &Taken, planned: &Planned<'_>) -> bool {
    let paths = one.record.paths();
    let mut has_noted = false;
    for changed in &taken.changed {
        let is_met = |(policy, met): &&(String, Met)| {
            let below = changed.path.strip_prefix(met.path.as_str());
            *policy == changed.policy
                && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        let Some((_, met)) = planned.met.iter().find(is_met) else {
            continue;
        };
        let there = paths.get(&taken.value, &changed.path).map(digest);
        let policies = &mut one.record.policies;
        let policy = policies.iter_mut().find(|own| own.policy == changed.policy);
        has_noted |= policy.is_some_and(|policy| {
            let (effects, joined) = (&mut policy.effects, met.joined.as_ref());
            note(effects, &changed.path, joined, there)
        });
    }
    has_noted
}

/// An object without the mark that podgraft writes.
fn unmarked(mut object: Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata
        && let Some(Value::Object(annotations)) = metadata.get_mut("annotations")
    {
        annotations.remove(MARKER);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

/// Why policies are not adopted.
pub(super) fn not_adopted(planned: Planned<'_>) -> Vec<PolicyReport> {
    let Planned {
        policies,
        diagnostics,
        ..
    } = planned;
    let why = |report: &PolicyReport| match &report.outcome {
        Outcome::Injected(changes) => Some(format!("{} is not there", list(changes))),
        Outcome::UpToDate => Some("nothing of it is there, or not by itself".to_owned()),
        Outcome::Failed => {
            let is_own = |problem: &&Diagnostic| {
                problem.is_error() && problem.policy.as_ref() == Some(&report.policy)
            };
            let problem = diagnostics.iter().find(is_own);
            Some(problem.map_or_else(|| "it fails".to_owned(), |own| own.message.clone()))
        }
        Outcome::TakenOut(_) | Outcome::Skipped(_) => None,
    };
    let outcome = |mut report: PolicyReport| {
        if let Some(why) = why(&report) {
            let skip = Skip::because(SkipCause::NotAdopted, format!("not adopted: {why}"));
            report.outcome = Outcome::Skipped(Skip {
                is_near_miss: true,
                ..skip
            });
        }
        report
    };
    policies.into_iter().map(outcome).collect()
}

/// What a policy that has nothing to do would have put there, had it been the one.
fn adopted(
    report: &PolicyReport,
    planned: &Planned<'_>,
    paths: &Paths,
    value: &Value,
) -> Option<PolicyRecord> {
    if report.outcome != Outcome::UpToDate {
        return None;
    }
    let policy = &*report.policy;
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

/// The first text that was joined to a variable with `valueFrom` had the variable renamed.
fn note_originals(policies: &mut [PolicyRecord], paths: &Paths, value: &Value) {
    let mut seen = BTreeSet::new();
    for (path, joined) in policies.iter_mut().flat_map(|own| &mut own.effects.joined) {
        let Some((list, name)) = path.rsplit_once('/').filter(|_| seen.insert(path.clone())) else {
            continue;
        };
        let original = format!("{ORIGINAL}{name}");
        let text = paths.get(value, &format!("{path}/value"));
        let is_composed = text
            .and_then(Value::as_str)
            .is_some_and(|text| text.contains(&format!("$({original})")));
        if is_composed && paths.get(value, &format!("{list}/{original}")).is_some() {
            joined.renamed = Some(original);
        }
    }
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
