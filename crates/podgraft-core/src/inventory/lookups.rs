//! Notes which objects were looked up. A stream is read only once, so an object may come after its lookup.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

impl InventoryKey {
    /// Whether both are the same lookup, perhaps from different folders.
    fn is_same_except_folder(&self, other: &Self) -> bool {
        match (self, other) {
            (InventoryKey::Namespace(name), InventoryKey::Namespace(other)) => name == other,
            (InventoryKey::Data(name), InventoryKey::Data(other))
            | (InventoryKey::Object(name), InventoryKey::Object(other))
            | (InventoryKey::LookedUp(name), InventoryKey::LookedUp(other)) => {
                name.is_same_except_folder(other)
            }
            _ => false,
        }
    }
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
        if let Some(mut names) = self.keys() {
            names.insert(name());
        }
    }

    pub(super) fn any(&self, predicate: impl Fn(&InventoryKey) -> bool) -> bool {
        self.keys().is_some_and(|names| names.iter().any(predicate))
    }

    /// Whether a lookup from any folder fulfills a condition. `first` is the same lookup from no folder.
    pub(super) fn any_of(
        &self,
        first: &InventoryKey,
        predicate: impl Fn(&InventoryKey) -> bool,
    ) -> bool {
        self.keys().is_some_and(|names| {
            let mut names = names
                .range(first..)
                .take_while(|name| name.is_same_except_folder(first));
            names.any(predicate)
        })
    }

    fn keys(&self) -> Option<MutexGuard<'_, BTreeSet<InventoryKey>>> {
        let names = self.0.as_ref()?;
        Some(names.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
