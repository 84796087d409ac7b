//! A container's variables, modelled on a Go slice with its capacity, as the operator's code handles them. Two
//! containers may share one backing array: a change of one is visible in the other until the slice has to grow.

use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::rc::Rc;

use super::go_slice;

/// The variables of an init container that the operator copied from another container, and that share its array.
pub(super) type SharedVariables = Rc<RefCell<Vec<Value>>>;

/// A container's variables as a Go slice.
#[derive(Debug, Clone, Default)]
pub(super) struct Env {
    items: Vec<Value>,
    capacity: usize,
    /// The other container's variables while both share one backing array.
    shared: Option<SharedVariables>,
}

impl Env {
    /// The variables as `encoding/json` decodes them: appended one by one, which determines the capacity.
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

    /// The index of the first variable of a name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.items.iter().position(|item| item["name"] == name)
    }

    /// Whether a variable of a name exists, even with `valueFrom`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The text of the first variable of a name; empty if it has `valueFrom`, `None` if there is no such variable.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.find(name).map(|at| text_of(&self.items[at]))
    }

    /// Whether the first variable of a name has `valueFrom`.
    pub(super) fn is_from_elsewhere(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|at| comes_from_elsewhere(&self.items[at]))
    }

    /// Appends a variable. If the slice has to grow, it no longer shares its array.
    pub(super) fn append(&mut self, item: Value) {
        let length = self.items.len() + 1;
        if length > self.capacity {
            self.capacity = grown_capacity(self.capacity, length);
            self.shared = None;
        }
        self.items.push(item);
    }

    /// Appends those variables whose names are not there yet.
    pub(super) fn append_unset(&mut self, items: &[Value]) {
        for item in items {
            if !item["name"].as_str().is_some_and(|name| self.has(name)) {
                self.append(item.clone());
            }
        }
    }

    /// Inserts a variable before all others unless its name is there. This makes a new slice, as in the operator.
    pub(super) fn prepend_unset(&mut self, item: Value) {
        if item["name"].as_str().is_some_and(|name| self.has(name)) {
            return;
        }
        self.items.insert(0, item);
        self.capacity = grown_capacity(1, self.items.len()).max(1);
        self.shared = None;
    }

    /// Adds a variable, or changes the text of the one that is there.
    pub(super) fn extend(&mut self, name: &str, text: &str, changed: impl Fn(String) -> String) {
        match self.find(name) {
            None => self.append(variable(name, text)),
            Some(at) => self.set_text(at, changed(text_of(&self.items[at]))),
        }
    }

    /// Sets the text of a variable. A `valueFrom` stays beside it, as in the operator.
    fn set_text(&mut self, at: usize, text: String) {
        if let Some(fields) = self.items[at].as_object_mut() {
            match fields.get_mut("value") {
                Some(value) => *value = Value::String(text),
                // Behind `name`, where the operator's JSON has it.
                None => drop(fields.shift_insert(
                    fields.len().min(1),
                    "value".to_owned(),
                    Value::String(text),
                )),
            }
        }
        self.update_shared();
    }

    /// Moves the first variable of a name to the end, in place.
    pub(super) fn move_to_end(&mut self, name: &str) {
        if let Some(at) = self.find(name) {
            let item = self.items.remove(at);
            self.items.push(item);
            self.update_shared();
        }
    }

    /// A second view of the variables for another container, with the same backing array.
    pub(super) fn share(&mut self) -> SharedVariables {
        let shared = Rc::new(RefCell::new(self.items.clone()));
        self.shared = Some(Rc::clone(&shared));
        shared
    }

    /// Repeats a change in the shared array. Only the items that both slices can see are shared.
    fn update_shared(&self) {
        if let Some(shared) = &self.shared {
            let mut shared_items = shared.borrow_mut();
            let length = shared_items.len().min(self.items.len());
            shared_items[..length].clone_from_slice(&self.items[..length]);
        }
    }
}

/// A variable with a text. As in the operator's JSON (`omitempty`), an empty text is left out.
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

/// The items of a list; none if it is no list.
pub(super) fn items(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The text of a variable; empty if it has none.
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

/// A variable as the operator's Go types serialize it: known fields in their order, without empty ones.
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

/// The size of Go's `corev1.EnvVar` in bytes: two strings and a pointer.
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
