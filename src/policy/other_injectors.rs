//! What others have to do with a policy's workloads: other injectors, and objects that pods need.

use globset::GlobMatcher;
use std::ops::Range;

use super::MetadataKey;

/// What shows in the input that another injector is done with a pod. With the policy's own name in podgraft's marker it
/// is podgraft's work.
#[derive(Debug, Clone)]
pub enum OtherInjector {
    /// An annotation or label with a value that fits a glob; without globs any value.
    Mark(MetadataKey, Vec<GlobMatcher>),
    /// A container of a name that fits.
    Container(GlobMatcher),
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
