//! Reads `patches`: RFC 6902 operations, as types of the `json-patch` crate.

use json_patch::jsonptr::PointerBuf;
use serde_json::Value;

use super::types::{JsonPatchOperation, OperationKind, Patch};
use super::{PolicyReader, rules};
use crate::diagnostic::Code;
use crate::policy::PatchEntry;
use crate::policy::document::{Document, KEY_LIMIT};
use crate::yaml::parse::MAX_DEPTH;
use crate::yaml::scalar::is_long_key;
use crate::yaml::value::{Path, Step};

/// The paths of all fields of patches except `value`. They may not have `${...}`.
pub(super) fn no_values(document: &Document<'_>) -> Vec<Path> {
    let mut paths = Vec::new();
    for inject in rules::injects(document) {
        for patch in document.entries(&inject.key("patches")) {
            for operation in document.entries(&patch.key("patch")) {
                paths.extend(["op", "path", "from"].map(|word| operation.key(word)));
            }
            paths.extend(["patchType", "scope"].map(|word| patch.key(word)));
        }
    }
    paths
}

/// Whether a path leads into a patch with `scope: Container`.
pub(super) fn is_of_container(document: &Value, path: &Path, inject: &Path) -> bool {
    let [Step::Key(key), Step::Index(index), ..] = &path.0[inject.0.len()..] else {
        return false;
    };
    let scope = inject.key("patches").index(*index).key("scope");
    key == "patches" && scope.get(document).and_then(Value::as_str) == Some("Container")
}

impl PolicyReader<'_, '_> {
    pub(super) fn patches(&mut self, at: &Path) -> Vec<PatchEntry> {
        let read = self.read_each(at, Self::patch);
        read.into_iter().flatten().collect()
    }

    fn patch(&mut self, entry: Patch, at: &Path) -> Option<PatchEntry> {
        let operations = at.key("patch");
        let before = self.problems.len();
        self.check_operations(&entry, &operations);
        let Some(Step::Index(index)) = at.0.last().filter(|_| self.problems.len() == before) else {
            return None;
        };
        let item = self.kubernetes_item(at);
        match serde_json::from_value(item.value["patch"].clone()) {
            Ok(patch) => Some(PatchEntry {
                item,
                index: *index,
                scope: entry.scope,
                patch,
            }),
            Err(error) => {
                let message = format!("the patch is not valid: {error}");
                let problem = self.document.error(Code::BadPatch, &operations, message);
                self.problems.push(problem);
                None
            }
        }
    }

    fn bad_patch(&mut self, at: &Path, message: impl Into<String>, help: &str) {
        self.problems
            .push(self.document.error(Code::BadPatch, at, message).help(help));
    }

    fn check_operations(&mut self, entry: &Patch, at: &Path) {
        if entry
            .patch
            .iter()
            .all(|operation| operation.op == OperationKind::Test)
        {
            let help = "add an operation: add, remove, replace, move, or copy";
            self.bad_patch(at, "the patch changes nothing", help);
        }
        for (index, operation) in entry.patch.iter().enumerate() {
            self.check_operation(operation, &at.index(index));
        }
    }

    fn check_operation(&mut self, operation: &JsonPatchOperation, at: &Path) {
        let word = format!("{:?}", operation.op).to_lowercase();
        self.check_pointer(&operation.path, &at.key("path"));
        if operation.path.is_empty() && operation.op != OperationKind::Test {
            let help = "specify what to change: `/` and a key";
            self.bad_patch(
                &at.key("path"),
                format!("`{word}` cannot change everything at once"),
                help,
            );
        }
        self.check_value(operation, &word, at);
        self.check_from(operation, &word, at);
    }

    fn check_value(&mut self, operation: &JsonPatchOperation, word: &str, at: &Path) {
        use OperationKind::{Add, Copy, Move, Remove, Replace, Test};
        // `value: null` is a value, so look for the key.
        let has_value = at.key("value").get(&self.document.value).is_some();
        match (operation.op, has_value) {
            (Add | Replace | Test, false) => {
                self.bad_patch(at, format!("`{word}` requires `value`"), "add `value`");
            }
            (Remove | Move | Copy, true) => {
                let message = format!("`{word}` does not accept `value`");
                self.bad_patch(&at.key("value"), message, "remove it");
            }
            (Add | Replace | Test, true) | (Remove | Move | Copy, false) => {}
        }
    }

    fn check_from(&mut self, operation: &JsonPatchOperation, word: &str, at: &Path) {
        use OperationKind::{Add, Copy, Move, Remove, Replace, Test};
        match (operation.op, &operation.from) {
            (Move | Copy, None) => {
                let message = format!("`{word}` requires `from`");
                self.bad_patch(at, message, "set `from` to the path of the value");
            }
            (Add | Remove | Replace | Test, Some(_)) => {
                let message = format!("`{word}` does not accept `from`");
                self.bad_patch(&at.key("from"), message, "remove it");
            }
            (Move | Copy, Some(from)) => {
                self.check_pointer(from, &at.key("from"));
                if operation.op == Move && operation.path.starts_with(&format!("{from}/")) {
                    let help = "copy it, or move something else";
                    self.bad_patch(at, "a value cannot be moved into itself", help);
                }
            }
            (Add | Remove | Replace | Test, None) => {}
        }
    }

    fn check_pointer(&mut self, text: &str, at: &Path) {
        // `add` at this pointer would make a document that is too deep to be parsed again.
        if text.matches('/').count() > MAX_DEPTH {
            let message = format!("`{}` is more than {MAX_DEPTH} levels deep", at.name());
            let help = "use a path that exists: no manifest is nested that deeply";
            self.problems
                .push(self.document.error(Code::TooDeep, at, message).help(help));
            return;
        }
        if text.split('/').any(is_long_key) {
            let message = format!("`{}` contains a key that is too long", at.name());
            let problem = self.document.error(Code::TooLong, at, message);
            self.problems.push(problem.help(KEY_LIMIT));
            return;
        }
        if PointerBuf::parse(text.to_owned()).is_err() {
            let message = format!("`{text}` is not a JSON pointer");
            let help = "write `/` before every key, as in `/metadata/annotations`; in a key, write \
                        `/` as `~1` and `~` as `~0`";
            self.bad_patch(at, message, help);
        }
    }
}
