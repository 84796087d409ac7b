//! Turns a draft into an RFC 6902 patch, which other programs can carry out. In tests the `json-patch` crate does, and
//! its result must equal what the text editor wrote.

use json_patch::jsonptr::PointerBuf;
use json_patch::{
    AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation,
};
use serde_json::Value;

use super::draft::{Draft, DraftField, DraftKey, DraftValue, OpenedCollection};
use crate::yaml::tree::NodeId;
use crate::yaml::value::{key_text, to_value};

/// Returns the operations that turn the input's object into the draft's; empty if nothing changes. The object may have
/// changed by the time they are carried out, and list items are found by index. So the name of a changed item is tested
/// first, and the old text of a replaced string.
pub(crate) fn patch_of(draft: &Draft<'_>) -> Patch {
    let mut patch = Patcher {
        draft,
        operations: Vec::new(),
    };
    patch.part(&draft.root(), &mut Vec::new());
    Patch(patch.operations)
}

struct Patcher<'d, 't> {
    draft: &'d Draft<'t>,
    operations: Vec<PatchOperation>,
}

impl Patcher<'_, '_> {
    fn part(&mut self, part: &DraftValue, path: &mut Vec<String>) {
        match part {
            DraftValue::Node(_) | DraftValue::New(_) => {}
            DraftValue::Instead { of, value } => {
                // The patch must fail if the replaced text is no longer the one that was planned with.
                let before = to_value(self.draft.tree, *of).ok().filter(Value::is_string);
                self.operations
                    .extend(before.map(|value| test_of(path, value)));
                self.replace(path, (**value).clone());
            }
            DraftValue::Open(id) => match self.draft.opened(*id).clone() {
                OpenedCollection::Mapping { origin, fields } => {
                    let has_own = fields
                        .iter()
                        .any(|field| matches!(field.key, DraftKey::Node(_)));
                    match origin.filter(|_| has_own) {
                        Some(origin) => self.mapping(origin, &fields, path),
                        None => self.rewrite(part, origin.is_some(), path),
                    }
                }
                OpenedCollection::List { origin, items } => {
                    let has_own = items.iter().any(|item| self.draft.origin(item).is_some());
                    if has_own {
                        self.list(part, &items, path)
                    } else {
                        self.rewrite(part, origin.is_some(), path)
                    }
                }
            },
        }
    }

    /// Replaces a collection as a whole: one that was empty, or of which nothing stays.
    fn rewrite(&mut self, part: &DraftValue, was_present: bool, path: &[String]) {
        let is_untouched_null = matches!(part, DraftValue::Open(id) if self.draft.stays_null(*id));
        if was_present && !is_untouched_null {
            let value = self.draft.value(part).unwrap_or(Value::Null);
            self.replace(path, value);
        }
    }

    fn mapping(&mut self, origin: NodeId, fields: &[DraftField], path: &mut Vec<String>) {
        let tree = self.draft.tree;
        // Removals come first: a removed key may be added again in another place.
        for (key, _) in tree
            .entries(origin)
            .filter(|(key, _)| !fields.iter().any(|field| field.key == DraftKey::Node(*key)))
        {
            let Some(text) = key_text(tree, key) else {
                continue;
            };
            path.push(text);
            self.remove(path);
            path.pop();
        }
        for field in fields {
            let Some(key) = self.draft.key_in_value(&field.key) else {
                continue;
            };
            path.push(key);
            match field.key {
                DraftKey::New(_) => self.add(path, &field.value),
                DraftKey::Node(_) => self.part(&field.value, path),
            }
            path.pop();
        }
    }

    fn list(&mut self, part: &DraftValue, items: &[DraftValue], path: &mut Vec<String>) {
        let Some(origin) = self.draft.origin(part) else {
            return;
        };
        let tree = self.draft.tree;
        let children: Vec<_> = tree.children(origin).collect();
        // From the last to the first, so that the indexes of the others stay valid.
        for (at, node) in children.into_iter().enumerate().rev() {
            if items
                .iter()
                .any(|item| self.draft.origin(item) == Some(node))
            {
                continue;
            }
            path.push(at.to_string());
            self.remove(path);
            path.pop();
        }
        let last_original = items
            .iter()
            .rposition(|item| self.draft.origin(item).is_some());
        for (at, item) in items.iter().enumerate() {
            if let Some(node) = self.draft.origin(item) {
                path.push(at.to_string());
                let before = self.operations.len();
                self.part(item, path);
                if self.operations.len() > before {
                    let test = self.name_test(node, path);
                    self.operations.splice(before..before, test);
                }
            } else {
                // Behind the last original item, `-` appends whatever the length of the list is by then.
                path.push(match Some(at) > last_original {
                    true => "-".to_owned(),
                    false => at.to_string(),
                });
                self.add(path, item);
            }
            path.pop();
        }
    }

    /// A `test` that the item at the path still has its name.
    fn name_test(&self, item: NodeId, path: &[String]) -> Option<PatchOperation> {
        let tree = self.draft.tree;
        let value = to_value(tree, tree.get(tree.follow(item), "name")?).ok()?;
        Some(test_of(&[path, &["name".to_owned()]].concat(), value))
    }

    fn add(&mut self, path: &[String], part: &DraftValue) {
        let (path, value) = (pointer(path), self.draft.value(part).unwrap_or_default());
        let add = AddOperation { path, value };
        self.operations.push(PatchOperation::Add(add));
    }

    fn remove(&mut self, path: &[String]) {
        let path = pointer(path);
        let remove = RemoveOperation { path };
        self.operations.push(PatchOperation::Remove(remove));
    }

    fn replace(&mut self, path: &[String], value: Value) {
        let path = pointer(path);
        let replace = ReplaceOperation { path, value };
        self.operations.push(PatchOperation::Replace(replace));
    }
}

fn test_of(path: &[String], value: Value) -> PatchOperation {
    let path = pointer(path);
    PatchOperation::Test(TestOperation { path, value })
}

fn pointer(path: &[String]) -> PointerBuf {
    PointerBuf::from_tokens(path)
}
