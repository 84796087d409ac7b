//! JSON patches of a policy.

use super::PolicyValue;
use super::words::PatchScope;

/// One entry of `patches`.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchEntry {
    /// The entry as it stands in the policy.
    pub item: PolicyValue,
    /// Its place in the list, from 0: patches are carried out in this order.
    pub index: usize,
    /// What its paths begin at.
    pub scope: PatchScope,
    /// What to do, all or nothing.
    pub patch: json_patch::Patch,
}
