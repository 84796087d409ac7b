//! Adoption: if a manifest already has what a policy wants, the policy becomes its owner, whoever wrote it, provided
//! that podgraft injected something there before. So ownership does not change when a bot raises an image in both the
//! policy and the manifest.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::change::list;
use crate::diagnostic::Diagnostic;
use crate::manifest::object::{DocumentContent, Object, find_objects};
use crate::manifest::pod::Workload;
use crate::outcome::{Outcome, PolicyReport, Skip, SkipCause};
use crate::ownership::marked_policies;
use crate::plan::draft_paths::RecordedPlaces;
use crate::plan::recording::EarlierRun;
use crate::plan::removal::RemovalResult;
use crate::plan::{WorkloadPlan, plan};
use crate::record::{
    Effects, JoinedText, MARKER, ORIGINAL, PolicyRecord, Record, RecordPaths, RecordedValue,
    VERSION, digest, has_twin_containers, restore_order,
};
use crate::undo::{RecordedObject, StrippedDocument, indices_of, objects_of};
use crate::yaml::parse::parse;

use super::document::ParsedDocument;

impl<'t> ParsedDocument<'t> {
    /// Adds a record to each workload without one, for the given policies that find everything in place. `adopt`
    /// considers all given policies, other runs those that the marker names. Another run also adds those that the record
    /// of a workload has lost, as in a merge.
    pub(super) fn adopt_unrecorded(
        &self,
        found: &[DocumentContent],
        recorded: &mut Vec<RecordedObject<'t>>,
    ) {
        let options = self.setting.options;
        let may_adopt = options.lock && !options.take_out.is_undo();
        if !may_adopt || !(options.adopt || self.is_marked()) || !self.has_records() {
            return;
        }
        let positions = indices_of(recorded.iter().map(|recorded_object| recorded_object.node));
        for object in found.iter().filter_map(DocumentContent::as_object) {
            match positions.get(&object.node) {
                None => recorded.extend(self.adopted_object(object)),
                Some(_) if options.adopt => {}
                Some(&at) => self.adopt_missing(object, &mut recorded[at]),
            }
        }
        recorded.sort_by_key(|recorded_object| self.tree.span(recorded_object.node).start);
    }

    /// Adds the policies of the marker that the record of an object does not have, if they find everything in place.
    fn adopt_missing(&self, object: &Object, recorded_object: &mut RecordedObject<'_>) {
        if recorded_object.is_annotated {
            return;
        }
        let record = &mut recorded_object.record;
        let is_recorded = |policy: &str| record.policies.iter().any(|known| known.policy == policy);
        let marker = self.tree.string(recorded_object.at).unwrap_or_default();
        let mut missing: Vec<&str> = marked_policies(marker).collect();
        missing.retain(|policy| !is_recorded(policy) && self.is_given(policy));
        if missing.is_empty() {
            return;
        }
        let workload = self.read_workload(object);
        let Some(workload) = workload.filter(|workload| self.is_wanted(workload)) else {
            return;
        };
        let mut policies = self.adopted_policies(&workload);
        policies.retain(|policy_record| missing.contains(&&*policy_record.policy));
        let names = policies
            .iter()
            .map(|policy_record| policy_record.policy.clone());
        recorded_object.adopted = names.collect();
        record.policies.append(&mut policies);
    }

    /// Returns a record for an object that has none. `None` if no policy can be adopted.
    fn adopted_object(&self, object: &Object) -> Option<RecordedObject<'t>> {
        let workload = self.read_workload(object)?;
        let mark = workload.workload_annotation(MARKER);
        let may_adopt = mark.is_some() || self.setting.options.adopt;
        if !self.is_wanted(&workload) || !may_adopt {
            return None;
        }
        let value = RecordedValue::of(self.tree, object.node)?;
        if has_twin_containers(workload.tree, workload.pod_spec) {
            return None;
        }
        let policies = self.adopted_policies(&workload);
        if policies.is_empty() {
            return None;
        }
        let paths = RecordPaths::of(&workload.pod_kind.path);
        let made = mark.map(|_| paths.in_object(&["metadata", "annotations"]));
        let names = policies.iter().map(|report| report.policy.clone());
        let adopted = names.collect();
        let record = Record {
            version: VERSION,
            pod: paths.template(),
            policies,
            marker: Effects {
                made: made.into_iter().collect(),
                ..Effects::default()
            },
            ..Record::default()
        };
        Some(RecordedObject {
            adopted,
            ..RecordedObject::of(mark.unwrap_or(object.node), record, value)
        })
    }

    fn adopted_policies(&self, workload: &Workload<'_>) -> Vec<PolicyRecord> {
        let planned = self.planned(workload, None);
        let paths = RecordPaths::of(&workload.pod_kind.path);
        let places = RecordedPlaces::of(workload.tree, workload.object.node, paths);
        let mark = workload.workload_annotation(MARKER);
        let marked: Vec<&str> = mark
            .and_then(|mark| workload.tree.scalar(mark))
            .map(|marked| marked_policies(marked).collect())
            .unwrap_or_default();
        let reports = planned.policies.iter();
        let mut policies: Vec<PolicyRecord> = reports
            .filter(|report| self.setting.options.adopt || marked.contains(&&*report.policy))
            .filter_map(|report| adopted(report, &planned, &places))
            .collect();
        note_originals(&mut policies, &places);
        policies
    }

    /// Revokes adoptions after which the policies would not inject the same again: a patch that reads its own output,
    /// or a text that somebody else had joined. Returns whether there were any.
    pub(super) fn revoke_adoptions(
        &self,
        recorded: &mut Vec<RecordedObject<'_>>,
        stripped: &StrippedDocument,
    ) -> bool {
        if recorded
            .iter()
            .all(|recorded_object| recorded_object.adopted.is_empty())
        {
            return false;
        }
        let has_revoked = self.change_each(recorded, stripped, |recorded, base| {
            self.revoke_in(recorded, base)
        });
        recorded.retain(|recorded_object| !recorded_object.record.policies.is_empty());
        has_revoked
    }

    fn revoke_in(
        &self,
        recorded_object: &mut RecordedObject<'_>,
        base: &StrippedWorkload<'_>,
    ) -> bool {
        if recorded_object.adopted.is_empty() {
            return false;
        }
        let adopted = std::mem::take(&mut recorded_object.adopted);
        let policies = recorded_object.record.policies.iter();
        let names = policies.map(|policy_record| policy_record.policy.clone());
        let planned = self.planned_again(recorded_object, base, Some(names.collect()));
        let target = planned.draft.value(&planned.draft.root());
        let is_same = target.is_some_and(|mut target| {
            restore_order(&mut target, recorded_object.value.whole());
            unmarked(target) == unmarked(recorded_object.value.whole().clone())
        });
        if is_same {
            recorded_object.adopted = adopted;
        } else {
            let policies = &mut recorded_object.record.policies;
            policies.retain(|policy_record| !adopted.contains(&policy_record.policy));
        }
        !is_same
    }

    /// Calls `change` for each recorded workload, with its stripped form. Returns whether one returned `true`.
    pub(super) fn change_each(
        &self,
        recorded: &mut [RecordedObject<'_>],
        stripped: &StrippedDocument,
        mut change: impl FnMut(&mut RecordedObject<'_>, &StrippedWorkload<'_>) -> bool,
    ) -> bool {
        let Ok(base_tree) = parse(&stripped.text) else {
            return false;
        };
        let base_source = self.source.with_text(&stripped.text);
        let indices = indices_of(objects_of(self.tree, self.setting.kinds).into_iter());
        let bases = find_objects(&base_tree, self.setting.kinds);
        let mut has_changed = false;
        for (recorded_object, taken) in recorded.iter_mut().zip(&stripped.taken) {
            let index = indices.get(&recorded_object.node);
            let base = index.and_then(|&index| bases.get(index)?.as_object());
            let Some(base) = base else {
                continue;
            };
            let document = self.task.parsed(&base_tree, &base_source);
            if let Some(workload) = document.read_workload(base) {
                has_changed |= change(recorded_object, &StrippedWorkload { workload, taken });
            }
        }
        has_changed
    }

    pub(super) fn planned<'w>(
        &self,
        workload: &Workload<'w>,
        earlier: Option<&EarlierRun<'_>>,
    ) -> WorkloadPlan<'w> {
        plan(workload, self.setting.run, earlier)
    }

    /// Plans a stripped workload again.
    pub(super) fn planned_again<'w>(
        &self,
        recorded_object: &RecordedObject<'_>,
        base: &StrippedWorkload<'w>,
        adopting: Option<Vec<String>>,
    ) -> WorkloadPlan<'w> {
        let earlier = EarlierRun {
            record: recorded_object.record.clone(),
            is_annotated: recorded_object.is_annotated,
            current: &recorded_object.value,
            taken: base.taken,
            adopting,
            recovered: &recorded_object.adopted,
        };
        self.planned(&base.workload, Some(&earlier))
    }
}

/// A recorded workload without its recorded changes.
pub(super) struct StrippedWorkload<'s> {
    pub workload: Workload<'s>,
    pub taken: &'s RemovalResult,
}

/// Removes podgraft's marker from an object. Annotations that are null are as good as none.
pub(super) fn unmarked(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata.get_mut("annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.shift_remove(MARKER);
        }
        let is_empty =
            |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if metadata.get("annotations").is_some_and(is_empty) {
            metadata.remove("annotations");
        }
    }
    object
}

/// Reports why each policy is not adopted.
pub(super) fn not_adopted(planned: WorkloadPlan<'_>) -> Vec<PolicyReport> {
    let mut policies = planned.policies;
    for report in &mut policies {
        if let Some(reason) = reason_against(report, &planned.diagnostics) {
            let skip = Skip::because(SkipCause::NotAdopted, format!("not adopted: {reason}"));
            report.outcome = Outcome::Skipped(Skip {
                is_near_miss: true,
                ..skip
            });
        }
    }
    policies
}

/// Why a policy was not adopted that selects the workload.
fn reason_against(report: &PolicyReport, diagnostics: &[Diagnostic]) -> Option<String> {
    match &report.outcome {
        Outcome::Injected(changes) => Some(format!("missing {}", list(changes))),
        Outcome::UpToDate => {
            Some("nothing that it injects is present, or not on its own".to_owned())
        }
        Outcome::Failed(_) => {
            let mut errors = diagnostics.iter().filter(|problem| problem.is_error());
            let problem = errors.find(|problem| problem.policy.as_ref() == Some(&report.policy));
            Some(problem.map_or_else(
                || "the policy fails".to_owned(),
                |problem| problem.message.clone(),
            ))
        }
        Outcome::TakenOut(_) | Outcome::Skipped(_) => None,
    }
}

/// Returns the record that a policy would have if it had injected what is in place. `None` if there is nothing to
/// adopt.
pub(super) fn adopted(
    report: &PolicyReport,
    planned: &WorkloadPlan<'_>,
    places: &RecordedPlaces<'_>,
) -> Option<PolicyRecord> {
    if report.outcome != Outcome::UpToDate {
        return None;
    }
    let policy = &*report.policy;
    let mut effects = Effects::default();
    for (_, matched) in planned
        .satisfied
        .iter()
        .filter(|(owner, _)| owner == policy)
    {
        match &matched.joined {
            Some(joined) => {
                let existing = places.value(&format!("{}/value", matched.path));
                let joined = JoinedText {
                    // A variable with no other text counts as the policy's own.
                    new: existing.as_ref().and_then(Value::as_str) == Some(joined.text.as_str()),
                    ..joined.clone()
                };
                effects.joined.insert(matched.path.clone(), joined);
            }
            None => {
                let existing = places.value(&matched.path)?;
                effects
                    .added
                    .insert(matched.path.clone(), digest(&existing));
            }
        }
        effects.made.extend(holders(&matched.path));
    }
    let record = PolicyRecord {
        policy: policy.to_owned(),
        digest: effects.digest(),
        effects,
        ..PolicyRecord::default()
    };
    (!record.effects.is_empty()).then_some(record)
}

/// Notes which variables were renamed. Joining a text to a variable with `valueFrom` renames that variable; the first
/// policy that joined a text is the one that did it.
fn note_originals(policies: &mut [PolicyRecord], places: &RecordedPlaces<'_>) {
    let mut seen = BTreeSet::new();
    for (path, joined) in policies
        .iter_mut()
        .flat_map(|policy_record| &mut policy_record.effects.joined)
    {
        let Some((list, name)) = path.rsplit_once('/').filter(|_| seen.insert(path.clone())) else {
            continue;
        };
        let original = format!("{ORIGINAL}{name}");
        let text = places.value(&format!("{path}/value"));
        let is_composed = text
            .as_ref()
            .and_then(Value::as_str)
            .is_some_and(|text| text.contains(&format!("$({original})")));
        if is_composed && places.has(&format!("{list}/{original}")) {
            joined.renamed = Some(original);
        }
    }
}

/// Returns the paths of the mappings and lists around an item, below the pod template. Undo removes those that become
/// empty.
fn holders(path: &str) -> BTreeSet<String> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    ends.skip(1).map(|at| path[..at].to_owned()).collect()
}
