//! JSON patches of a policy, parsed.

use super::PolicyValue;
use super::words::PatchScope;

/// One entry of `patches`.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchEntry {
    /// The entry as written in the policy.
    pub item: PolicyValue,
    /// Its index in the list. Patches are applied in this order.
    pub index: usize,
    /// The object that the pointers start from.
    pub scope: PatchScope,
    /// The operations, applied all or not at all.
    pub patch: json_patch::Patch,
}
