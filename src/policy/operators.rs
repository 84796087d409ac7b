//! Words of the internal policy that only the resources of other operators say.

use std::ops::Range;

/// A pod annotation by which an operator says that it is done with a pod. With the policy's own name in podgraft's
/// marker it is podgraft's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignMark {
    /// The annotation.
    pub annotation: String,
    /// The values that say so.
    pub values: Vec<String>,
}

/// A key of a ConfigMap of the workload's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigKey {
    /// The ConfigMap.
    pub name: String,
    /// The key.
    pub key: String,
    /// Where the policy's file names them.
    pub at: Range<usize>,
}
