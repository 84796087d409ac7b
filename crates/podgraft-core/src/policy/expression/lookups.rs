//! The state of `lookup`. The crate passes no context to functions, so known objects are in a thread local while an
//! expression is evaluated. An unknown object is noted, looked up afterwards, and the expression is evaluated again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::shared::SharedValue;

/// The key of an object that an expression looks up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookupKey {
    /// The group of its apiVersion.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// The namespace in the expression; `None` for that of the workload.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// Results of lookups by key; `None` if there is no such object.
pub(super) type LookupCache = BTreeMap<LookupKey, Option<SharedValue>>;

#[derive(Default)]
struct LookupState {
    known: LookupCache,
    asked: BTreeSet<LookupKey>,
}

thread_local! {
    static STATE: RefCell<LookupState> = RefCell::default();
}

/// Evaluates with known objects. Returns the result and the keys of objects that were asked for and are not known.
pub(super) fn within<T>(
    known: &mut LookupCache,
    evaluate: impl FnOnce() -> T,
) -> (T, BTreeSet<LookupKey>) {
    let known_before = std::mem::take(known);
    let outer = STATE.replace(LookupState {
        known: known_before,
        asked: BTreeSet::new(),
    });
    let evaluated = evaluate();
    let LookupState {
        known: known_after,
        asked,
    } = STATE.replace(outer);
    *known = known_after;
    (evaluated, asked)
}

/// The object of a key. `None` if there is none, or if it is not known yet; then its key is noted.
pub(super) fn find(wanted: LookupKey) -> Option<SharedValue> {
    STATE.with_borrow_mut(|state| match state.known.get(&wanted) {
        Some(found) => found.clone(),
        None => {
            state.asked.insert(wanted);
            None
        }
    })
}
