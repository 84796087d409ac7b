//! What is left in the mappings that a policy made when the policy's own fields have been removed from them.

use serde_json::Value;

use crate::policy::defaults::is_default;
use crate::record::below;

use crate::plan::draft::{Draft, Refusal};
use crate::plan::draft_paths::DraftPaths;

/// The mappings of which an API server takes only one field that is a mapping.
const WITH_ALTERNATIVES: [&str; 6] = [
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "postStart",
    "preStop",
    "valueFrom",
];

/// Empties a mapping of a live object that contains only defaults.
///
/// # Errors
/// When the mapping may not be edited.
pub(super) fn take_out_defaults(
    path: &str,
    paths: &DraftPaths,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let Some(mapping) = paths.value(draft, path) else {
        return Ok(());
    };
    let fields = mapping.as_object();
    let parent = path.rsplit('/').next().unwrap_or_default();
    let is_filled_in = |(key, value): (&String, &Value)| is_default(parent, key, value, &mapping);
    let Some(fields) = fields.filter(|fields| fields.iter().all(is_filled_in)) else {
        return Ok(());
    };
    for key in fields.keys() {
        paths.remove(draft, &below(path, key))?;
    }
    Ok(())
}

/// Whether a record path is that of a mapping that excludes others beside it: a source of a volume or of a variable, or
/// a handler of a probe or hook.
pub(super) fn is_alternative(path: &str) -> bool {
    let mut segments = path.rsplit('/').skip(1);
    let holder = segments.next().unwrap_or_default();
    let list = segments.next().unwrap_or_default();
    matches!(list, "volumes" | "env") || WITH_ALTERNATIVES.contains(&holder)
}

/// Whether two record paths are those of fields of one mapping.
pub(super) fn is_beside(path: &str, other: &str) -> bool {
    let holder = |path: &str| path.rsplit_once('/').map(|(holder, _)| holder.len());
    let length = holder(path);
    path != other && length == holder(other) && length.is_some_and(|at| path[..at] == other[..at])
}
