//! Takes out the defaults of a live object that an API server derived from what policies put there. They are no defaults
//! of what comes back.

use serde_json::Value;
use std::collections::BTreeSet;

use crate::policy::defaults::is_default;
use crate::policy::quantity;
use crate::record::{Effects, Record, below};

use super::draft::{Draft, Refusal};
use super::draft_paths::DraftPaths;

/// Takes them out of a live object.
///
/// # Errors
/// When a part that must change may not be edited.
pub(super) fn take_out_dependent_defaults(
    record: &Record,
    paths: &DraftPaths,
    draft: &mut Draft<'_>,
) -> Result<(), Refusal> {
    let recorded = Recorded { record, paths };
    for resources in recorded.resources() {
        recorded.take_out_copied_requests(&resources, draft)?;
    }
    for container in recorded.containers_with_another_image() {
        recorded.take_out_pull_policy(container, draft)?;
    }
    Ok(())
}

struct Recorded<'r> {
    record: &'r Record,
    paths: &'r DraftPaths,
}

impl<'r> Recorded<'r> {
    fn effects(&self) -> impl Iterator<Item = &'r Effects> {
        self.record.policies.iter().map(|policy| &policy.effects)
    }

    fn changes(&self, path: &str) -> bool {
        self.effects().any(|effects| effects.changes(path))
    }

    /// Whether a policy added an item that contains the path. All in it is of policies or of the server.
    fn is_in_item(&self, path: &str) -> bool {
        let mut holders = path.match_indices('/').map(|(at, _)| &path[..at]);
        holders.any(|holder| {
            let mut effects = self.effects();
            effects.any(|effects| effects.added.contains_key(holder))
        })
    }

    /// The `resources` whose requests are not the user's: policies made or filled them, or set a limit in an item of
    /// another policy.
    fn resources(&self) -> BTreeSet<String> {
        let filled = self
            .effects()
            .flat_map(|effects| effects.made.iter().chain(effects.filled.keys()))
            .filter(|path| path.ends_with("/resources"))
            .map(String::as_str);
        let limits = self.effects().flat_map(Effects::changed_paths);
        let limits = limits.filter_map(|path| {
            let (holder, _) = path.rsplit_once('/')?;
            holder
                .strip_suffix("/limits")
                .or_else(|| path.strip_suffix("/limits"))
        });
        let in_items = limits.filter(|path| self.is_in_item(path));
        filled.chain(in_items).map(str::to_owned).collect()
    }

    /// Takes out each request that equals a limit of a policy. Where something else stays in the `resources`, all requests
    /// stay, because the next record no longer says that a policy made the `resources`.
    fn take_out_copied_requests(
        &self,
        resources: &str,
        draft: &mut Draft<'_>,
    ) -> Result<(), Refusal> {
        let (limits, requests) = (below(resources, "limits"), below(resources, "requests"));
        let Some(Value::Object(quantities)) = self.paths.value(draft, &requests) else {
            return Ok(());
        };
        if self.changes(&requests) {
            return Ok(());
        }
        let is_copied = |name: &str, quantity: &Value| {
            let limit = below(&limits, name);
            let value = self.paths.value(draft, &limit);
            value.is_some_and(|value| quantity::is_same(&value, quantity))
                && (self.changes(&limit) || self.changes(&limits))
                && !self.changes(&below(&requests, name))
        };
        let (copied, others): (Vec<_>, Vec<_>) = quantities
            .iter()
            .partition(|(name, quantity)| is_copied(name, quantity));
        let has_others = others
            .iter()
            .any(|(name, _)| !self.changes(&below(&requests, name)));
        if !self.is_in_item(resources) && (has_others || self.keeps_limits(&limits, draft)) {
            return Ok(());
        }
        let gone = match others.is_empty() {
            true => vec![requests],
            false => copied
                .iter()
                .map(|(name, _)| below(&requests, name))
                .collect(),
        };
        for path in gone {
            self.paths.remove(draft, &path)?;
        }
        Ok(())
    }

    /// Whether something of a mapping of limits stays without what policies changed, even if it is empty.
    fn keeps_limits(&self, limits: &str, draft: &Draft<'_>) -> bool {
        if self.changes(limits) {
            return false;
        }
        let is_made = self.effects().any(|effects| effects.made.contains(limits));
        let value = self.paths.value(draft, limits);
        let fields = value.as_ref().and_then(Value::as_object);
        let mut names = fields.into_iter().flat_map(|fields| fields.keys());
        !is_made || names.any(|name| !self.changes(&below(limits, name)))
    }

    /// The containers of policies whose image another policy replaced.
    fn containers_with_another_image(&self) -> impl Iterator<Item = &'r str> {
        let replaced = self.effects().flat_map(|effects| effects.replaced.keys());
        let containers = replaced.filter_map(|path| path.strip_suffix("/image"));
        containers.filter(|path| {
            self.effects()
                .any(|effects| effects.added.contains_key(*path))
        })
    }

    /// Takes out the pull policy that is the default of the image.
    fn take_out_pull_policy(&self, container: &str, draft: &mut Draft<'_>) -> Result<(), Refusal> {
        const KEY: &str = "imagePullPolicy";
        let path = below(container, KEY);
        let value = self.paths.value(draft, &path);
        let value = value.filter(|_| !self.changes(&path));
        let (Some(value), Some(owner)) = (value, self.paths.value(draft, container)) else {
            return Ok(());
        };
        match is_default("", KEY, &value, &owner) {
            true => self.paths.remove(draft, &path),
            false => Ok(()),
        }
    }
}
