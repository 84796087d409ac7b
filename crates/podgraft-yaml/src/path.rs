//! The path from a value to a part of it, as mapping keys and list indices.

use serde_json::Value;
use std::borrow::Borrow;
use std::fmt;

use crate::scalar;

/// One step of a path into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// The entry of a list, counted from 0.
    Index(usize),
}

/// The path from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Path(pub Vec<Step>);

/// Lets a map keyed by paths be searched with a slice of steps: a [`Path`] compares as its steps do.
impl Borrow<[Step]> for Path {
    fn borrow(&self) -> &[Step] {
        &self.0
    }
}

impl Path {
    /// The path through these keys, outermost first.
    pub fn of(keys: &[&str]) -> Self {
        Path(keys.iter().map(|&key| Step::Key(key.to_owned())).collect())
    }

    /// Returns this path with a key appended.
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// Returns this path with a list index appended.
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// Returns this path with all steps of `further` appended.
    pub fn join(&self, further: &Path) -> Self {
        Path(self.0.iter().chain(&further.0).cloned().collect())
    }

    /// Whether the other path is a prefix of this one. Every path is a prefix of itself.
    pub fn starts_with(&self, other: &Path) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The path of the first key in a value that is too long to be written.
    pub fn of_long_key(value: &Value) -> Option<Self> {
        match value {
            Value::Object(map) => map.iter().find_map(|(key, inner)| {
                let path = Path::of(&[key]);
                if scalar::is_long_key(key) {
                    return Some(path);
                }
                Some(path.join(&Path::of_long_key(inner)?))
            }),
            Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
                let path = Path::of_long_key(item)?;
                Some(Path::default().index(at).join(&path))
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
    }

    /// Returns the last key with the indices that follow it: `args[0]`. Empty for the root.
    pub fn name(&self) -> String {
        let from = self
            .0
            .iter()
            .rposition(|step| matches!(step, Step::Key(_)))
            .unwrap_or(0);
        Path(self.0[from..].to_vec()).to_string()
    }

    /// Returns the value at this path in `value`, mutably. `None` if there is none.
    pub fn get_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        })
    }

    /// Returns the value at this path in `value`. `None` if there is none.
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if at == 0 => f.write_str(key)?,
                Step::Key(key) => {
                    f.write_str(".")?;
                    f.write_str(key)?;
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
