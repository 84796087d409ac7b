//! What was asked for, where a text goes by once and the answer may come too late.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::DataName;
use crate::outcome::ObjectName;

/// A key of the inventory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum InventoryKey {
    /// A Namespace.
    Namespace(String),
    /// What a ConfigMap or Secret holds.
    Data(DataName),
    /// An object of a kind that policies generate.
    Object(ObjectName),
    /// An object that an expression looks up.
    LookedUp(ObjectName),
}

impl fmt::Display for InventoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InventoryKey::Namespace(name) => write!(f, "Namespace {name}"),
            InventoryKey::Data(name) => write!(f, "{}", name.title()),
            InventoryKey::Object(name) | InventoryKey::LookedUp(name) => write!(f, "{name}"),
        }
    }
}

/// The keys that were looked up. Nothing is recorded unless the inventory is watched.
#[derive(Debug, Default)]
pub(super) struct RequestedKeys(Option<Mutex<BTreeSet<InventoryKey>>>);

impl RequestedKeys {
    pub(super) fn tracking() -> Self {
        RequestedKeys(Some(Mutex::default()))
    }

    pub(super) fn note(&self, name: impl FnOnce() -> InventoryKey) {
        if let Some(names) = &self.0 {
            names
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(name());
        }
    }

    pub(super) fn any(&self, predicate: impl Fn(&InventoryKey) -> bool) -> bool {
        let names = self
            .0
            .as_ref()
            .map(|names| names.lock().unwrap_or_else(PoisonError::into_inner));
        names.is_some_and(|names| names.iter().any(predicate))
    }
}

impl Clone for RequestedKeys {
    fn clone(&self) -> Self {
        let names = self
            .0
            .as_ref()
            .map(|names| names.lock().unwrap_or_else(PoisonError::into_inner).clone());
        RequestedKeys(names.map(Mutex::new))
    }
}

/// Two inventories that know the same are equal, whoever asked.
impl PartialEq for RequestedKeys {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RequestedKeys {}
