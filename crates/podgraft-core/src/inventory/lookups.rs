//! Notes which objects were looked up. A stream is read only once, so an object may come after its lookup.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::outcome::ObjectName;

/// What was looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum InventoryKey {
    /// A Namespace.
    Namespace(String),
    /// The data of a ConfigMap or Secret.
    Data(ObjectName),
    /// An object of a kind that policies generate.
    Object(ObjectName),
    /// An object that an expression looks up.
    LookedUp(ObjectName),
}

impl fmt::Display for InventoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InventoryKey::Namespace(name) => write!(f, "Namespace {name}"),
            InventoryKey::Data(name)
            | InventoryKey::Object(name)
            | InventoryKey::LookedUp(name) => write!(f, "{name}"),
        }
    }
}

/// The keys that were looked up. Nothing is noted unless tracking was started. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestedKeys(Option<Arc<Mutex<BTreeSet<InventoryKey>>>>);

impl RequestedKeys {
    pub(super) fn tracking() -> Self {
        RequestedKeys(Some(Arc::default()))
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
