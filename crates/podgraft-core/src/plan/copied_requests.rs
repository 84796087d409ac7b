//! Takes out the requests that an API server copied from the limits of policies.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::policy::quantity;
use crate::record::{Record, below};

use super::draft::{Draft, Refusal};
use super::draft_paths::DraftPaths;

/// Takes out of a live object each request that equals a limit of a policy. Only of `resources` that policies made or
/// filled: in others, the request may be the user's.
///
/// # Errors
/// When a part that must change may not be edited.
pub(super) fn take_out_copied_requests(
    record: &Record,
    paths: &DraftPaths,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let effects = || record.policies.iter().map(|policy| &policy.effects);
    let is_recorded = |path: &str| effects().any(|effects| effects.changes(path));
    let filled = effects().flat_map(|effects| effects.made.iter().chain(effects.filled.keys()));
    let filled: BTreeSet<&String> = filled.filter(|path| path.ends_with("/resources")).collect();
    for resources in filled {
        let (limits, requests) = (below(resources, "limits"), below(resources, "requests"));
        let Some(Value::Object(quantities)) = paths.value(draft, &requests) else {
            continue;
        };
        if is_recorded(&requests) {
            continue;
        }
        let is_copied = |name: &str, quantity: &Value| {
            let limit = below(&limits, name);
            let value = paths.value(draft, &limit);
            value.is_some_and(|value| quantity::is_same(&value, quantity))
                && (is_recorded(&limit) || is_recorded(&limits))
                && !is_recorded(&below(&requests, name))
        };
        let copied = quantities
            .iter()
            .filter(|(name, quantity)| is_copied(name, quantity));
        let copied: Vec<String> = copied.map(|(name, _)| below(&requests, name)).collect();
        let gone = match copied.len() == quantities.len() {
            true => vec![requests],
            false => copied,
        };
        for path in gone {
            paths.remove(draft, &path)?;
        }
    }
    Ok(())
}
