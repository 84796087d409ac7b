//! Notes which objects were looked up. A stream is read only once, so an object may come after its lookup.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::DataName;
use crate::outcome::ObjectName;

/// What was looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum InventoryKey {
    /// A Namespace.
    Namespace(String),
    /// The data of a ConfigMap or Secret.
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

/// The keys that were looked up. Nothing is noted unless tracking was started.
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

/// Always equal: inventories are equal if they know the same, whatever was looked up in them.
impl PartialEq for RequestedKeys {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RequestedKeys {}
