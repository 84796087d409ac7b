//! Adoption of what somebody changed to what its policy wants now: the policy stays its owner.

use serde_json::Value;

use crate::manifest::pod::Workload;
use crate::ownership::{JoinedText, Record};
use crate::plan::WorkloadPlan;
use crate::plan::draft_paths::{DraftPaths, RecordedPlaces};
use crate::plan::removal::{Drift, DriftHandling, RemovalResult};
use crate::record::digest;
use crate::source::Source;
use crate::undo::{RecordedObject, StrippedDocument};
use crate::yaml::tree::Tree;

use super::adopt::{adopted, earlier};
use super::document::DocumentTask;

impl DocumentTask<'_> {
    /// Updates the records where somebody changed a value to what a given policy now wants, and adds the policies
    /// that `adopt` takes over. Returns whether a record changed.
    pub(super) fn adopt_changed(
        &self,
        source: &Source<'_>,
        tree: &Tree<'_>,
        recorded: &mut [RecordedObject<'_>],
        stripped: &StrippedDocument,
    ) -> bool {
        let mut changed = stripped.taken.iter().flat_map(|taken| &taken.changed);
        let is_changed = changed.any(|changed| self.is_given(&changed.policy));
        if !is_changed && !self.setting.options.adopt {
            return false;
        }
        let adopt = |recorded: &mut RecordedObject<'_>, taken: &_, base: &Workload<'_>| {
            self.adopt_into(recorded, taken, base, tree)
        };
        let has_adopted = self.change_each(source, tree, recorded, stripped, adopt);
        // What a policy wants may depend on the value itself. So the changed values are taken out, too.
        let strip = || {
            self.strip_with(tree, recorded, |_| DriftHandling::Force)
                .ok()
        };
        let forced = is_changed.then(strip).flatten();
        let adopt = |recorded: &mut RecordedObject<'_>, taken: &_, base: &Workload<'_>| {
            self.adopt_planned(recorded, taken, base, tree)
        };
        has_adopted
            | forced.is_some_and(|forced| self.change_each(source, tree, recorded, &forced, adopt))
    }

    /// Updates a record where somebody changed a value to what its policy puts there again after it was removed.
    /// Returns whether it changed.
    fn adopt_planned(
        &self,
        recorded_object: &mut RecordedObject<'_>,
        taken: &RemovalResult,
        base: &Workload<'_>,
        tree: &Tree<'_>,
    ) -> bool {
        let earlier = earlier(recorded_object, taken, None);
        let planned = self.planned(base, Some(&earlier));
        let paths = recorded_object.record.paths();
        let current = RecordedPlaces::of(tree, recorded_object.node, paths.clone());
        let paths = DraftPaths::of(paths);
        let record = planned.record.unwrap_or_default();
        let mut has_adopted = false;
        // Another policy is put back as it is, with what was changed.
        for changed in taken
            .changed
            .iter()
            .filter(|drift| self.is_given(&drift.policy))
        {
            let (value, path) = (current.value(&changed.path), &changed.path);
            if value.is_some() && value == paths.value(&planned.draft, path) {
                let new = record.policy(&changed.policy);
                let joined = new.and_then(|policy| policy.effects.joined.get(path));
                let digest = value.as_ref().map(digest);
                has_adopted |= note_existing(&mut recorded_object.record, changed, joined, digest);
            }
        }
        has_adopted
    }

    fn adopt_into(
        &self,
        recorded_object: &mut RecordedObject<'_>,
        taken: &RemovalResult,
        base: &Workload<'_>,
        tree: &Tree<'_>,
    ) -> bool {
        let earlier = earlier(recorded_object, taken, None);
        let planned = self.planned(base, Some(&earlier));
        let mut has_adopted = note_changed(recorded_object, taken, base, &planned);
        let is_recorded = recorded_object.from.is_some() || recorded_object.is_annotated;
        if !self.setting.options.adopt || !is_recorded {
            return has_adopted;
        }
        let (node, paths) = (recorded_object.node, recorded_object.record.paths());
        let places = RecordedPlaces::of(tree, node, paths);
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
    taken: &RemovalResult,
    base: &Workload<'_>,
    planned: &WorkloadPlan<'_>,
) -> bool {
    let paths = recorded_object.record.paths();
    let base = RecordedPlaces::of(base.tree, base.object.node, paths);
    let mut has_noted = false;
    for changed in &taken.changed {
        let Some((_, met)) = planned.satisfied.iter().find(|(policy, met)| {
            let below = changed.path.strip_prefix(met.path.as_str());
            *policy == changed.policy
                && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        }) else {
            continue;
        };
        let current_value = base.value(&changed.path);
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
    let digests = match replaced {
        Some(replaced) => &mut replaced.now,
        None => match effects.added.get_mut(path) {
            Some(digests) => digests,
            None => return false,
        },
    };
    *digests = current_digest;
    true
}
