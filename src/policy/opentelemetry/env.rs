//! A container's variables as the operator's code works on them: a Go slice, with the room behind its end. Two
//! containers may share one, and then a change of the one is seen in the other for as long as the slice has room.

use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::rc::Rc;

/// The variables of an init container that was made from another container.
pub type Shared = Rc<RefCell<Vec<Value>>>;

/// See the module's text.
#[derive(Debug, Clone, Default)]
pub struct Env {
    items: Vec<Value>,
    capacity: usize,
    shared: Option<Shared>,
}

impl Env {
    /// As decoded from JSON, entry by entry.
    pub fn of(items: Vec<Value>) -> Self {
        let mut capacity = 0;
        for length in 1..=items.len() {
            capacity = grown(capacity, length);
        }
        Env {
            items,
            capacity,
            shared: None,
        }
    }

    /// The variables.
    pub fn items(&self) -> &[Value] {
        &self.items
    }

    /// The first variable of a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.items.iter().position(|item| item["name"] == name)
    }

    /// Whether a variable of a name is there, whatever it says.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The text of the first variable of a name; empty where it comes from elsewhere.
    pub fn text(&self, name: &str) -> Option<String> {
        self.find(name).map(|at| text_of(&self.items[at]))
    }

    /// Whether the first variable of a name comes from elsewhere.
    pub fn is_from_elsewhere(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|at| comes_from_elsewhere(&self.items[at]))
    }

    /// A variable at the end.
    pub fn append(&mut self, item: Value) {
        let length = self.items.len() + 1;
        if length > self.capacity {
            self.capacity = grown(self.capacity, length);
            self.shared = None;
        }
        self.items.push(item);
    }

    /// Variables at the end, as far as none of their name is there.
    pub fn append_unset(&mut self, items: &[Value]) {
        for item in items {
            if !item["name"].as_str().is_some_and(|name| self.has(name)) {
                self.append(item.clone());
            }
        }
    }

    /// A variable before all others, if none of its name is there.
    pub fn prepend_unset(&mut self, item: Value) {
        if item["name"].as_str().is_some_and(|name| self.has(name)) {
            return;
        }
        self.items.insert(0, item);
        self.capacity = grown(1, self.items.len()).max(1);
        self.shared = None;
    }

    /// Gives a variable another text, whatever else it says.
    pub fn set_text(&mut self, at: usize, text: String) {
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
        self.tell();
    }

    /// The first variable of a name becomes the last of all.
    pub fn move_to_end(&mut self, name: &str) {
        if let Some(at) = self.find(name) {
            let item = self.items.remove(at);
            self.items.push(item);
            self.tell();
        }
    }

    /// The same variables, for another container.
    pub fn share(&mut self) -> Shared {
        let shared = Rc::new(RefCell::new(self.items.clone()));
        self.shared = Some(Rc::clone(&shared));
        shared
    }

    fn tell(&self) {
        if let Some(shared) = &self.shared {
            let mut theirs = shared.borrow_mut();
            let length = theirs.len().min(self.items.len());
            theirs[..length].clone_from_slice(&self.items[..length]);
        }
    }
}

/// A variable with a text; an empty one is not written, as in the operator's JSON.
pub fn variable(name: &str, text: &str) -> Value {
    if text.is_empty() {
        json!({"name": name})
    } else {
        json!({"name": name, "value": text})
    }
}

/// A variable of the downward API.
pub fn field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

/// A variable's text.
pub fn text_of(item: &Value) -> String {
    match &item["value"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Whether a variable has `valueFrom`.
pub fn comes_from_elsewhere(item: &Value) -> bool {
    !item["valueFrom"].is_null()
}

/// A variable of a resource as the operator's types write it.
pub fn plain(item: &Value) -> Value {
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
const SIZE: usize = 40;
/// Blocks above this size have a header.
const HEADER_FROM: usize = 512;
const HEADER: usize = 8;
/// The sizes of blocks of Go's allocator, as far as lists of variables go.
const BLOCKS: &[usize] = &[
    8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352,
    384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048,
    2304, 2688, 3072, 3200, 3456, 4096, 4864, 5120, 5376, 6144, 6528, 6784, 6912, 8192,
];

/// The room of a slice that has to grow to a length (`growslice` of Go's runtime).
fn grown(capacity: usize, length: usize) -> usize {
    if length <= capacity {
        return capacity;
    }
    let wanted = length.max(2 * capacity);
    let header = if wanted * SIZE > HEADER_FROM {
        HEADER
    } else {
        0
    };
    let bytes = wanted * SIZE + header;
    let block = BLOCKS.iter().find(|&&block| block >= bytes);
    block.map_or(wanted, |block| (block - header) / SIZE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_grows_as_in_go() {
        assert_eq!(
            [1, 2, 3, 5, 9].map(|length| Env::of(vec![json!({}); length]).capacity),
            [1, 2, 4, 8, 17]
        );
        assert_eq!(grown(1, 7), 7);
    }

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
