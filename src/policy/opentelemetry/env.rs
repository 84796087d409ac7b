//! A container's variables as the operator's code works on them: a Go slice, with the room behind its end. Two
//! containers may share one, and then a change of the one is seen in the other for as long as the slice has room.

use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::rc::Rc;

use super::go_slice;

/// The variables of an init container that was made from another container.
pub(super) type SharedVariables = Rc<RefCell<Vec<Value>>>;

/// See the module's text.
#[derive(Debug, Clone, Default)]
pub(super) struct Env {
    items: Vec<Value>,
    capacity: usize,
    shared: Option<SharedVariables>,
}

impl Env {
    /// As decoded from JSON, entry by entry.
    pub(super) fn of(items: Vec<Value>) -> Self {
        Env {
            capacity: go_slice::decoded(ENV_VAR_SIZE, items.len()),
            items,
            shared: None,
        }
    }

    /// The variables.
    pub(super) fn items(&self) -> &[Value] {
        &self.items
    }

    /// The first variable of a name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.items.iter().position(|item| item["name"] == name)
    }

    /// Whether a variable of a name is there, whatever it says.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The text of the first variable of a name; empty where it comes from elsewhere.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.find(name).map(|at| text_of(&self.items[at]))
    }

    /// Whether the first variable of a name comes from elsewhere.
    pub(super) fn is_from_elsewhere(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|at| comes_from_elsewhere(&self.items[at]))
    }

    /// A variable at the end.
    pub(super) fn append(&mut self, item: Value) {
        let length = self.items.len() + 1;
        if length > self.capacity {
            self.capacity = grown_capacity(self.capacity, length);
            self.shared = None;
        }
        self.items.push(item);
    }

    /// Variables at the end, as far as none of their name is there.
    pub(super) fn append_unset(&mut self, items: &[Value]) {
        for item in items {
            if !item["name"].as_str().is_some_and(|name| self.has(name)) {
                self.append(item.clone());
            }
        }
    }

    /// A variable before all others, if none of its name is there.
    pub(super) fn prepend_unset(&mut self, item: Value) {
        if item["name"].as_str().is_some_and(|name| self.has(name)) {
            return;
        }
        self.items.insert(0, item);
        self.capacity = grown_capacity(1, self.items.len()).max(1);
        self.shared = None;
    }

    /// Gives a variable another text, whatever else it says.
    pub(super) fn set_text(&mut self, at: usize, text: String) {
        if let Some(fields) = self.items[at].as_object_mut() {
            match fields.get_mut("value") {
                Some(value) => *value = Value::String(text),
                None => drop(fields.shift_insert(
                    fields.len().min(1),
                    "value".to_owned(),
                    Value::String(text),
                )),
            }
        }
        self.update_shared();
    }

    /// The first variable of a name becomes the last of all.
    pub(super) fn move_to_end(&mut self, name: &str) {
        if let Some(at) = self.find(name) {
            let item = self.items.remove(at);
            self.items.push(item);
            self.update_shared();
        }
    }

    /// The same variables, for another container.
    pub(super) fn share(&mut self) -> SharedVariables {
        let shared = Rc::new(RefCell::new(self.items.clone()));
        self.shared = Some(Rc::clone(&shared));
        shared
    }

    fn update_shared(&self) {
        if let Some(shared) = &self.shared {
            let mut shared_items = shared.borrow_mut();
            let length = shared_items.len().min(self.items.len());
            shared_items[..length].clone_from_slice(&self.items[..length]);
        }
    }
}

/// A variable with a text; an empty one is not written, as in the operator's JSON.
pub(super) fn variable(name: &str, text: &str) -> Value {
    if text.is_empty() {
        json!({"name": name})
    } else {
        json!({"name": name, "value": text})
    }
}

/// A variable of the downward API.
pub(super) fn field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// A variable's text.
pub(super) fn text_of(item: &Value) -> String {
    match &item["value"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Whether a variable has `valueFrom`.
pub(super) fn comes_from_elsewhere(item: &Value) -> bool {
    !item["valueFrom"].is_null()
}

/// A variable of a resource as the operator's types write it.
pub(super) fn normalized(item: &Value) -> Value {
    let mut plain = Map::new();
    for key in ["name", "value", "valueFrom"] {
        let value = &item[key];
        if !value.is_null() && value.as_str() != Some("") {
            plain.insert(key.to_owned(), value.clone());
        }
    }
    Value::Object(plain)
}

/// Bytes of Go's `corev1.EnvVar`.
const ENV_VAR_SIZE: usize = 40;

fn grown_capacity(capacity: usize, length: usize) -> usize {
    go_slice::grown(ENV_VAR_SIZE, capacity, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_shares_a_slice_sees_changes_until_it_grows() {
        let mut env = Env::of(vec![
            variable("A", "1"),
            variable("B", "2"),
            variable("C", "3"),
        ]);
        let shared = env.share();
        env.set_text(0, "x".to_owned());
        env.append(variable("D", "4"));
        env.move_to_end("A");
        assert_eq!(shared.borrow()[0]["name"], "B");
        env.append(variable("E", "5"));
        env.set_text(0, "y".to_owned());
        assert_eq!(shared.borrow()[0]["value"], "2");
    }
}
