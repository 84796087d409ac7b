//! What a policy checks of a workload's surroundings: marks of other injectors, and keys of ConfigMaps.

use globset::GlobMatcher;
use std::ops::Range;

use super::MetadataKey;

/// A mark that another injector has handled the pod: such a workload is left alone. If podgraft's marker names the
/// policy itself, the mark is podgraft's own and does not count.
#[derive(Debug, Clone)]
pub enum OtherInjector {
    /// An annotation or label whose value matches a glob. Without globs any value matches.
    Mark(MetadataKey, Vec<GlobMatcher>),
    /// A container whose name matches.
    Container(GlobMatcher),
}

/// A key of a ConfigMap in the workload's namespace, from `requires`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigKey {
    /// The name of the ConfigMap.
    pub name: String,
    /// The key.
    pub key: String,
    /// The byte range in the policy's file.
    pub at: Range<usize>,
}
