//! Adoption of what somebody changed to what its policy wants now: the policy stays its owner.

use serde_json::Value;

use crate::ownership::{JoinedText, Record};
use crate::plan::WorkloadPlan;
use crate::plan::draft_paths::{DraftPaths, RecordedPlaces};
use crate::plan::removal::{Drift, DriftHandling};
use crate::record::{ReplacedValue, digest, rest_below};
use crate::undo::{RecordedObject, StrippedDocument};
use crate::yaml::tree::NodeId;

use super::adopt::{StrippedWorkload, adopted};
use super::document::ParsedDocument;

impl ParsedDocument<'_> {
    /// Updates the records where somebody changed a value to what a given policy now wants, and adds the policies
    /// that `adopt` takes over. Returns whether a record changed.
    pub(super) fn adopt_changed(
        &self,
        recorded: &mut [RecordedObject<'_>],
        stripped: &StrippedDocument,
    ) -> bool {
        let mut changed = stripped.taken.iter().flat_map(|taken| &taken.changed);
        let is_changed = changed.any(|changed| self.is_given(&changed.policy));
        if !is_changed && !self.setting.options.adopt {
            return false;
        }
        let has_adopted = self.change_each(recorded, stripped, |recorded, base| {
            self.adopt_into(recorded, base)
        });
        if !is_changed {
            return has_adopted;
        }
        // What a policy wants may depend on the value itself. So the changed values are taken out, too.
        let mut assumed = Vec::new();
        let has_planned = self.change_each_forced(recorded, |recorded, base| {
            self.adopt_planned(recorded, base, &mut assumed)
        });
        if assumed.is_empty() {
            return has_adopted | has_planned;
        }
        let has_confirmed = self.change_each_forced(recorded, |recorded, base| {
            self.confirm_originals(recorded, base, &mut assumed)
        });
        for assumed in assumed.iter().filter(|assumed| !assumed.is_confirmed) {
            let mut recorded = recorded.iter_mut();
            let recorded_object = recorded.find(|recorded| recorded.node == assumed.node);
            let record = recorded_object.map(|recorded_object| &mut recorded_object.record);
            if let Some(replaced) = record.and_then(|record| replaced_in(record, &assumed.changed))
            {
                replaced.was.clone_from(&assumed.original);
            }
        }
        has_adopted | has_planned | has_confirmed
    }

    /// Calls `change` like [`ParsedDocument::change_each`], with documents that what somebody changed is taken out of, too.
    fn change_each_forced(
        &self,
        recorded: &mut [RecordedObject<'_>],
        change: impl FnMut(&mut RecordedObject<'_>, &StrippedWorkload<'_>) -> bool,
    ) -> bool {
        let forced = self.strip_with(recorded, |_| DriftHandling::Force);
        forced.is_ok_and(|forced| self.change_each(recorded, &forced, change))
    }

    /// Updates a record where somebody changed a value to what its policy puts there again after it was removed.
    /// Returns whether it changed.
    fn adopt_planned(
        &self,
        recorded_object: &mut RecordedObject<'_>,
        base: &StrippedWorkload<'_>,
        assumed: &mut Vec<AssumedOriginal>,
    ) -> bool {
        let planned = self.planned_again(recorded_object, base, None);
        let paths = recorded_object.record.paths();
        let current = RecordedPlaces::of(self.tree, recorded_object.node, paths.clone());
        let paths = DraftPaths::of(paths);
        let mut has_adopted = false;
        // Another policy is put back as it is, with what was changed.
        let changed = base.taken.changed.iter();
        for changed in changed.filter(|drift| self.is_given(&drift.policy)) {
            let (value, path) = (current.value(&changed.path), &changed.path);
            let planned_value = paths.value(&planned.draft, path);
            let (Some(value), Some(planned_value)) = (value, planned_value) else {
                continue;
            };
            if value == planned_value {
                has_adopted |= note_planned(recorded_object, changed, &planned, &value);
            } else if let Some(original) =
                assume_original(&mut recorded_object.record, changed, &value, &planned_value)
            {
                assumed.push(AssumedOriginal {
                    node: recorded_object.node,
                    changed: changed.clone(),
                    original,
                    is_confirmed: false,
                });
            }
        }
        has_adopted
    }

    /// Confirms the assumed original values with which the policies want what is there. Returns whether there is one.
    fn confirm_originals(
        &self,
        recorded_object: &mut RecordedObject<'_>,
        base: &StrippedWorkload<'_>,
        assumed: &mut [AssumedOriginal],
    ) -> bool {
        let planned = self.planned_again(recorded_object, base, None);
        let (node, paths) = (recorded_object.node, recorded_object.record.paths());
        let current = RecordedPlaces::of(self.tree, node, paths.clone());
        let paths = DraftPaths::of(paths);
        let mut has_confirmed = false;
        for assumed in assumed.iter_mut().filter(|assumed| assumed.node == node) {
            let (value, changed) = (current.value(&assumed.changed.path), &assumed.changed);
            if let Some(value) = value
                && paths.value(&planned.draft, &changed.path).as_ref() == Some(&value)
                && note_planned(recorded_object, changed, &planned, &value)
            {
                assumed.is_confirmed = true;
                has_confirmed = true;
            }
        }
        has_confirmed
    }

    fn adopt_into(
        &self,
        recorded_object: &mut RecordedObject<'_>,
        base: &StrippedWorkload<'_>,
    ) -> bool {
        let planned = self.planned_again(recorded_object, base, None);
        let mut has_adopted = note_changed(recorded_object, base, &planned);
        let is_recorded = recorded_object.from.is_some() || recorded_object.is_annotated;
        if !self.setting.options.adopt || !is_recorded {
            return has_adopted;
        }
        let (node, paths) = (recorded_object.node, recorded_object.record.paths());
        let places = RecordedPlaces::of(self.tree, node, paths);
        for report in &planned.policies {
            if recorded_object.record.policy(&report.policy).is_some() {
                continue;
            }
            let Some(policy) = adopted(report, &planned, &places) else {
                continue;
            };
            recorded_object.adopted.push(policy.policy.clone());
            recorded_object.record.policies.push(policy);
            has_adopted = true;
        }
        has_adopted
    }
}

/// Updates a record where somebody changed a value to what its policy wants. Returns whether it changed.
fn note_changed(
    recorded_object: &mut RecordedObject<'_>,
    base: &StrippedWorkload<'_>,
    planned: &WorkloadPlan<'_>,
) -> bool {
    let paths = recorded_object.record.paths();
    let workload = &base.workload;
    let places = RecordedPlaces::of(workload.tree, workload.object.node, paths);
    let mut has_noted = false;
    for changed in &base.taken.changed {
        let Some((_, met)) = planned.satisfied.iter().find(|(policy, met)| {
            *policy == changed.policy && rest_below(&changed.path, &met.path).is_some()
        }) else {
            continue;
        };
        let current_value = places.value(&changed.path);
        // Where the policy joins a text, the rest of a value that it had written as a whole is somebody else's.
        let is_whole = |value: &&Value| {
            let text = value.as_str().or_else(|| value.get("value")?.as_str());
            met.joined
                .as_ref()
                .is_none_or(|joined| text == Some(joined.text.as_str()))
        };
        let current_digest = current_value.as_ref().filter(is_whole).map(digest);
        let joined = met.joined.as_ref();
        has_noted |= note_existing(&mut recorded_object.record, changed, joined, current_digest);
    }
    has_noted
}

/// Records the changed content as its policy's own. Returns whether the record has an entry for it.
fn note_existing(
    record: &mut Record,
    changed: &Drift,
    current_join: Option<&JoinedText>,
    current_digest: Option<String>,
) -> bool {
    let (path, mut policies) = (&changed.path, record.policies.iter_mut());
    let Some(policy) = policies.find(|policy| policy.policy == changed.policy) else {
        return false;
    };
    let effects = &mut policy.effects;
    if let (Some(joined), Some(current_join)) = (effects.joined.get_mut(path), current_join) {
        joined.text.clone_from(&current_join.text);
        return true;
    }
    let Some(current_digest) = current_digest else {
        return false;
    };
    let replaced = effects.replaced.get_mut(path);
    let noted = match replaced.map(|replaced| &mut replaced.now) {
        None => effects.added.get_mut(path),
        noted => noted,
    };
    let Some(noted) = noted else {
        return false;
    };
    *noted = current_digest;
    true
}

/// A value that is assumed to be what people wrote beside a policy's text, where somebody changed both.
struct AssumedOriginal {
    node: NodeId,
    changed: Drift,
    /// The original value that was recorded.
    original: Value,
    /// Whether the policy wants what is there, with the assumed value.
    is_confirmed: bool,
}

fn note_planned(
    recorded_object: &mut RecordedObject<'_>,
    changed: &Drift,
    planned: &WorkloadPlan<'_>,
    value: &Value,
) -> bool {
    let policies = planned.record.iter().flat_map(|record| &record.policies);
    let mut new = policies.filter(|policy| policy.policy == changed.policy);
    let joined = new.find_map(|policy| policy.effects.joined.get(&changed.path));
    let digest = Some(digest(value));
    note_existing(&mut recorded_object.record, changed, joined, digest)
}

fn replaced_in<'r>(record: &'r mut Record, changed: &Drift) -> Option<&'r mut ReplacedValue> {
    let mut policies = record.policies.iter_mut();
    let policy = policies.find(|policy| policy.policy == changed.policy)?;
    policy.effects.replaced.get_mut(&changed.path)
}

/// Records as the original value what the current text has beside the text that the policy adds to a value now.
/// Returns the original value that was recorded. `None` if the policy adds no text, or it is not there.
fn assume_original(
    record: &mut Record,
    changed: &Drift,
    current: &Value,
    planned: &Value,
) -> Option<Value> {
    let replaced = replaced_in(record, changed)?;
    let original = replaced
        .was
        .as_str()
        .filter(|original| !original.is_empty())?;
    let (current, planned) = (current.as_str()?, planned.as_str()?);
    let rest = match planned.strip_prefix(original) {
        Some(added) => current.strip_suffix(added)?,
        None => current.strip_prefix(planned.strip_suffix(original)?)?,
    };
    Some(std::mem::replace(&mut replaced.was, Value::from(rest)))
}
