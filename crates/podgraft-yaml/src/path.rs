//! The way from a value to something in it, as keys and places in lists.

use serde_json::Value;
use std::borrow::Borrow;
use std::fmt;

/// One step of a path into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// The entry of a list.
    Index(usize),
}

/// The path from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Path(pub Vec<Step>);

/// Paths are ordered as their steps are.
impl Borrow<[Step]> for Path {
    fn borrow(&self) -> &[Step] {
        &self.0
    }
}

impl Path {
    /// The way over these keys.
    pub fn of(keys: &[&str]) -> Self {
        Path(keys.iter().map(|&key| Step::Key(key.to_owned())).collect())
    }

    /// One key further.
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// One list entry further.
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// Further, over all steps of another path.
    pub fn join(&self, further: &Path) -> Self {
        Path(self.0.iter().chain(&further.0).cloned().collect())
    }

    /// Whether the way goes through the end of another.
    pub fn starts_with(&self, other: &Path) -> bool {
        self.0.starts_with(&other.0)
    }

    /// The last key with the indices behind it: `args[0]`. Empty for the root.
    pub fn name(&self) -> String {
        let from = self
            .0
            .iter()
            .rposition(|step| matches!(step, Step::Key(_)))
            .unwrap_or(0);
        Path(self.0[from..].to_vec()).to_string()
    }

    /// What is there, if anything is, to change it.
    pub fn get_mut<'v>(&self, value: &'v mut Value) -> Option<&'v mut Value> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        })
    }

    /// What is there, if anything is.
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
                Step::Key(key) if at == 0 => write!(f, "{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
