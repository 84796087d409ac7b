//! Puts removed changes back into a draft.

use serde_json::{Value, json};
use std::collections::BTreeMap;

use crate::record::{
    Effects, JoinHint, JoinedText, ORIGINAL, PolicyRecord, RecordPaths, has_token, split_last,
};
use crate::yaml::value::is_equal;

use super::draft::{Draft, DraftValue, Refusal};
use super::draft_paths::DraftPaths;
use super::rebase::{Entangled, rebased};

/// The steps that put a policy's changes back.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// The policy's record, without the changes.
    pub record: PolicyRecord,
    pub(super) steps: Vec<ReplayStep>,
}

/// What is put back at a record path.
#[derive(Debug, Clone)]
pub(super) struct ReplayStep {
    pub path: String,
    pub kind: StepKind,
}

#[derive(Debug, Clone)]
pub(super) enum StepKind {
    Insert {
        value: Value,
        digest: String,
        after: Option<String>,
    },
    /// Makes the change of a value from `was` again.
    Set {
        was: Value,
        value: Value,
        digest: String,
    },
    Remove,
    Join {
        joined: JoinedText,
        after: Option<String>,
    },
}

/// Why changes cannot be put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReplayError {
    /// Another value is at this path already.
    Conflict(String),
    /// The policy changed the value at this path, and what it makes of the one that is there now is not clear.
    Entangled(String),
    /// A part that must change may not be edited.
    Refused(Refusal),
}

impl From<Refusal> for ReplayError {
    fn from(refusal: Refusal) -> Self {
        ReplayError::Refused(refusal)
    }
}

impl Replay {
    pub(super) fn new(policy: &PolicyRecord) -> Self {
        // Not `policy.clone()`: the effects are most of it, and become the steps.
        let present = policy.effects.present.clone();
        let record = PolicyRecord {
            policy: policy.policy.clone(),
            digest: policy.digest.clone(),
            set: policy.set.clone(),
            generated: policy.generated.clone(),
            effects: Effects {
                present,
                ..Effects::default()
            },
            is_merged: policy.is_merged,
        };
        Replay {
            record,
            steps: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, path: &str, kind: StepKind) {
        let path = path.to_owned();
        self.steps.push(ReplayStep { path, kind });
    }

    /// Replaces lists of known digests in a policy's record with the one that was in place.
    pub(crate) fn resolve(&self, record: &mut PolicyRecord) {
        for ReplayStep { path, kind } in &self.steps {
            let (StepKind::Insert { digest, .. } | StepKind::Set { digest, .. }) = kind else {
                continue;
            };
            let effects = &mut record.effects;
            let replaced = effects.replaced.get_mut(path);
            let places = [
                effects.added.get_mut(path),
                effects.shared.get_mut(path),
                replaced.map(|replaced| &mut replaced.now),
            ];
            for place in places.into_iter().flatten() {
                digest.clone_into(place);
            }
        }
    }

    /// Puts the changes back into a draft. Returns the policy's new record, `None` if a part that differs has no value
    /// that all readers agree on.
    pub(super) fn apply<'t>(
        &self,
        draft: &mut Draft<'t>,
        record_paths: &RecordPaths,
    ) -> Result<Option<PolicyRecord>, ReplayError> {
        let before = draft.clone();
        let paths = DraftPaths::of(record_paths.clone());
        let mut replayed = ReplayedSteps::default();
        for step in &self.steps {
            if let Err(error) = replayed.put_back(step, draft, &paths) {
                *draft = before;
                return Err(error);
            }
        }
        let Some(mut effects) = draft.effects_since(&before, record_paths, &replayed.joins) else {
            return Ok(None);
        };
        if effects.is_empty() {
            // What was only opened counts as changed.
            *draft = before;
        }
        keep_digests(&mut effects, replayed.digests);
        effects.shared = replayed.shared;
        effects.joined.extend(replayed.twins);
        if !effects.is_empty() {
            effects.present.clone_from(&self.record.effects.present);
        }
        Ok(Some(PolicyRecord {
            effects,
            ..self.record.clone()
        }))
    }
}

/// What has been put back so far.
#[derive(Default)]
struct ReplayedSteps {
    joins: Vec<JoinHint>,
    /// Texts that were there already.
    twins: BTreeMap<String, JoinedText>,
    digests: BTreeMap<String, String>,
    /// Digests of items that were there already.
    shared: BTreeMap<String, String>,
}

impl ReplayedSteps {
    fn put_back(
        &mut self,
        ReplayStep { path, kind }: &ReplayStep,
        draft: &mut Draft<'_>,
        paths: &DraftPaths,
    ) -> Result<(), ReplayError> {
        match kind {
            StepKind::Insert {
                value,
                digest,
                after,
            } => {
                let known = match paths.get(draft, path) {
                    Some(part) if draft.value(&part).as_ref() == Some(value) => &mut self.shared,
                    Some(_) => return Err(ReplayError::Conflict(path.clone())),
                    None => {
                        paths.insert(draft, path, value.clone(), after.as_deref())?;
                        &mut self.digests
                    }
                };
                known.insert(path.clone(), digest.clone());
            }
            StepKind::Set { was, value, digest } => {
                if self.change_again(path, [was, value], draft, paths)? {
                    self.digests.insert(path.clone(), digest.clone());
                }
            }
            StepKind::Remove => paths.remove(draft, path)?,
            StepKind::Join { joined, after } => match is_joined(draft, path, joined, paths) {
                true => drop(self.twins.insert(path.clone(), as_shared(joined))),
                false => {
                    let joined = join(draft, path, joined, after.as_deref(), paths)?;
                    self.joins.extend(joined);
                }
            },
        }
        Ok(())
    }

    /// Makes the change of a value again. Returns whether it gives the value that is recorded.
    fn change_again(
        &self,
        path: &str,
        [was, value]: [&Value; 2],
        draft: &mut Draft<'_>,
        paths: &DraftPaths,
    ) -> Result<bool, ReplayError> {
        let existing = paths.value(draft, path);
        let key = path.rsplit('/').next().unwrap_or_default();
        let wanted = rebased(key, Some(was), Some(value), existing.as_ref());
        let wanted = wanted.map_err(|Entangled| ReplayError::Entangled(path.to_owned()))?;
        let Some(wanted) = wanted else {
            return Ok(false);
        };
        let Some(existing) = existing else {
            paths.insert(draft, path, wanted, None)?;
            return Ok(false);
        };
        if !is_equal(&existing, &wanted) {
            paths.set(draft, path, &existing, &wanted)?;
        }
        Ok(is_equal(&wanted, value))
    }
}

fn as_shared(joined: &JoinedText) -> JoinedText {
    JoinedText {
        shared: true,
        ..joined.clone()
    }
}

/// Keeps the recorded digests, so that a value that somebody changed still counts as changed.
fn keep_digests(effects: &mut Effects, digests: BTreeMap<String, String>) {
    for (path, digest) in digests {
        if let Some(added) = effects.added.get_mut(&path) {
            *added = digest;
        } else if let Some(replaced) = effects.replaced.get_mut(&path) {
            replaced.now = digest;
        }
    }
}

/// Whether the variable contains the text already. Uses the same test as planning a policy that is given.
fn is_joined(draft: &Draft<'_>, path: &str, joined: &JoinedText, paths: &DraftPaths) -> bool {
    let variable = paths.get(draft, path);
    let text = variable.and_then(|variable| draft.string_at(&variable, "value"));
    text.is_some_and(|text| {
        has_token(
            text.trim_end_matches('\n'),
            &joined.text,
            joined.separator(),
        )
    })
}

/// Joins the text to the variable again. Returns the hint for the new record, `None` if the path is that of no
/// variable.
fn join(
    draft: &mut Draft<'_>,
    path: &str,
    joined: &JoinedText,
    after: Option<&str>,
    paths: &DraftPaths,
) -> Result<Option<JoinHint>, Refusal> {
    let (list, name) = split_last(path);
    let Some(container) = list.strip_suffix("/env") else {
        return Ok(None);
    };
    let hint = JoinHint {
        container: container.to_owned(),
        name: name.clone(),
        is_before: joined.before,
        separator: joined.separator().to_owned(),
    };
    let variables = paths.get(draft, list).map(|list| draft.items(&list));
    // If several variables have the same name, the last one counts in Kubernetes.
    let is_named = |item: &DraftValue| draft.string_at(item, "name").as_deref() == Some(&name);
    let variables = variables.unwrap_or_default();
    let Some(index) = variables.iter().rposition(is_named) else {
        let variable = json!({"name": name, "value": joined.text});
        paths.insert(draft, path, variable, after)?;
        return Ok(Some(hint));
    };
    let from = draft.get(&variables[index], "valueFrom");
    if from.is_some_and(|from| !draft.is_null(&from)) {
        // `$(VAR)` is only expanded if VAR is earlier in the list, so the renamed variable stays in front.
        let original = format!("{ORIGINAL}{name}");
        let composed = join_texts(&format!("$({original})"), joined);
        paths.edit_item(draft, path, |draft, list| {
            let item = draft.open_item(list, index)?;
            draft.set(item, "name", Value::from(original), &[])?;
            draft.insert(list, index + 1, json!({"name": name, "value": composed}));
            Ok(())
        })?;
        return Ok(Some(hint));
    }
    let old = draft.string_at(&variables[index], "value");
    let text = join_texts(&old.unwrap_or_default(), joined);
    paths.edit_item(draft, path, |draft, list| {
        let item = draft.open_item(list, index)?;
        draft.set(item, "value", Value::from(text), &[])
    })?;
    Ok(Some(hint))
}

fn join_texts(old: &str, joined: &JoinedText) -> String {
    // A value from a `|` block ends with a line feed, which stays at the end.
    let body = old.trim_end_matches('\n');
    let tail = &old[body.len()..];
    let separator = joined.separator();
    match (body.is_empty(), joined.before) {
        (true, _) => joined.text.clone(),
        (false, true) => format!("{}{separator}{old}", joined.text),
        (false, false) => format!("{body}{separator}{}{tail}", joined.text),
    }
}
