//! What was asked for, where a text goes by once and the answer may come too late.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::DataName;
use crate::outcome::ObjectName;

/// Something that an inventory may know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A Namespace.
    Namespace(String),
    /// What a ConfigMap or Secret holds.
    Data(DataName),
    /// An object of a kind that policies generate.
    Object(ObjectName),
    /// An object that an expression looks up.
    LookedUp(ObjectName),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Namespace(name) => write!(f, "Namespace {name}"),
            Name::Data(name) => write!(f, "{}", name.title()),
            Name::Object(name) | Name::LookedUp(name) => write!(f, "{name}"),
        }
    }
}

/// The names that were asked for; none are noted where nobody wants to know.
#[derive(Debug, Default)]
pub(super) struct Asked(Option<Mutex<BTreeSet<Name>>>);

impl Asked {
    pub(super) fn nothing_yet() -> Self {
        Asked(Some(Mutex::default()))
    }

    pub(super) fn note(&self, name: impl FnOnce() -> Name) {
        if let Some(names) = &self.0 {
            names
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(name());
        }
    }

    pub(super) fn any(&self, is_it: impl Fn(&Name) -> bool) -> bool {
        let names = self
            .0
            .as_ref()
            .map(|names| names.lock().unwrap_or_else(PoisonError::into_inner));
        names.is_some_and(|names| names.iter().any(is_it))
    }
}

impl Clone for Asked {
    fn clone(&self) -> Self {
        let names = self
            .0
            .as_ref()
            .map(|names| names.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Asked(names.map(Mutex::new))
    }
}

/// Two inventories that know the same are equal, whoever asked.
impl PartialEq for Asked {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Asked {}
