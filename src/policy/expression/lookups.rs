//! `lookup`: the crate hands its functions nothing of ours, so what is known of other objects stands here while an
//! expression is evaluated. What it asks for beyond that is noted, found out, and the expression evaluated again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::shared::SharedValue;

/// The key of an object that an expression looks up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookupKey {
    /// Of its apiVersion.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// As the expression names it; `None` for the workload's own.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// The results of lookups so far, by key.
pub(super) type LookupCache = BTreeMap<LookupKey, Option<SharedValue>>;

#[derive(Default)]
struct LookupState {
    known: LookupCache,
    asked: BTreeSet<LookupKey>,
}

thread_local! {
    static STATE: RefCell<LookupState> = RefCell::default();
}

/// Evaluates with what is known, and gives back what was asked for beyond it.
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

/// What is known of an object; of one that was never asked for, nothing yet.
pub(super) fn find(wanted: LookupKey) -> Option<SharedValue> {
    STATE.with_borrow_mut(|state| match state.known.get(&wanted) {
        Some(found) => found.clone(),
        None => {
            state.asked.insert(wanted);
            None
        }
    })
}
