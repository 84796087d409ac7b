//! Notes for the record and the marker that a draft cannot show: texts that were joined, and items that were there already.

use serde_json::Value;

use crate::policy::EnvOp;
use crate::record::{JoinHint, JoinedText, RecordPaths, identities};

use super::draft::DraftValue;
use super::draft::effects::stated;
use super::env::VariableChange;
use super::planner::Planner;
use super::recording::SatisfiedChange;

impl Planner<'_, '_> {
    /// Notes that a text was joined to a variable.
    pub(super) fn note_join(&mut self, change: VariableChange<'_>) {
        if self.is_recording {
            let path = RecordPaths::of(&self.workload.pod_kind.path);
            self.notes.joins.push(JoinHint {
                container: path.in_pod(&[
                    "spec",
                    change.container.list.key(),
                    change.container.name,
                ]),
                name: change.entry.name.clone(),
                is_before: change.entry.op == EnvOp::Prepend,
                separator: change.entry.separator.clone(),
            });
        }
    }

    /// Notes that a variable has the text already: the manifest has it, or another policy has joined it.
    pub(super) fn note_twin(&mut self, change: VariableChange<'_>, variable: &DraftValue) {
        let value = self.draft.get(variable, "value");
        let node = value.and_then(|value| self.draft.origin(&value));
        let before = node.and_then(|node| self.draft.tree.scalar(node));
        let before = before.unwrap_or_default();
        let is_of_manifest =
            super::joined::joined(before, change.addition(), change.entry) == before;
        if is_of_manifest && !self.is_recording {
            return;
        }
        let paths = RecordPaths::of(&self.workload.pod_kind.path);
        let list = change.list().path();
        let path = paths.in_pod(&[&list[..], &[&change.entry.name]].concat());
        let joined = JoinedText {
            text: change.addition().to_owned(),
            separator: stated(&change.entry.separator),
            before: change.entry.op == EnvOp::Prepend,
            ..JoinedText::default()
        };
        if is_of_manifest {
            let joined = Some(joined);
            self.notes.satisfied.push(SatisfiedChange { path, joined });
        } else {
            let joined = JoinedText {
                shared: true,
                ..joined
            };
            self.notes.repeated_joins.push((path, joined));
        }
    }

    /// Notes that an item of a list of the pod template, or of what is in one, is there already.
    pub(super) fn note_shared_item(&mut self, part: &DraftValue, list: &[&str]) {
        self.note_shared(part, |paths, value| {
            let key = list.last().copied().unwrap_or_default();
            let names = identities(key, std::slice::from_ref(value));
            format!("{}/{}", paths.in_pod(list), names.concat())
        });
    }

    /// Notes that a value is there already: the manifest has it, or another policy has added it.
    pub(super) fn note_shared(
        &mut self,
        part: &DraftValue,
        path: impl FnOnce(&RecordPaths, &Value) -> String,
    ) {
        let is_of_manifest = self.draft.origin(part).is_some();
        if is_of_manifest && !self.is_recording {
            return;
        }
        let Some(value) = self.draft.value(part) else {
            return;
        };
        let path = path(&RecordPaths::of(&self.workload.pod_kind.path), &value);
        match is_of_manifest {
            true => self
                .notes
                .satisfied
                .push(SatisfiedChange { path, joined: None }),
            false => self.notes.shared.push((path, value)),
        }
    }
}
