//! What the policies of a run need to know of other objects.

use std::collections::BTreeSet;

use crate::manifest::workload::group_of;
use crate::policy::expression::ObjectKinds;
use crate::policy::{GenerateEntry, OptFrom, Policy, Rule, WorkloadFilter};
use crate::record::lock::LockSet;

use super::DataKind;

/// The kinds of objects that the policies of a run need. If there are none, no text is read for the inventory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InventoryNeeds {
    /// Whether labels and annotations of Namespaces are needed.
    pub namespaces: bool,
    /// Whether the data of ConfigMaps and Secrets is needed.
    pub data: bool,
    /// The groups and kinds of objects that policies generate: existing ones are compared with the generated.
    pub generated: BTreeSet<(String, String)>,
    /// The groups and kinds of objects that expressions look up.
    pub looked_up: ObjectKinds,
}

impl InventoryNeeds {
    /// The needs of these policies.
    pub fn of(policies: &[Policy]) -> Self {
        let active = || policies.iter().filter(|policy| !policy.suspend);
        InventoryNeeds {
            namespaces: active().any(needs_namespaces),
            data: active().any(|policy| {
                !policy.config_keys.is_empty()
                    || policy.rules.iter().any(asks_data)
                    || policy
                        .mutation
                        .as_ref()
                        .is_some_and(|mutation| mutation.asks_data())
            }),
            generated: active()
                .flat_map(|policy| &policy.generate)
                .map(type_of)
                .collect(),
            looked_up: active()
                .flat_map(|policy| policy.looks_up.iter().cloned())
                .collect(),
        }
    }

    /// Adds what shows which ConfigMaps and Secrets of earlier runs this one takes out: their data does not count.
    pub fn add_recorded(&mut self, locks: &LockSet) {
        for object in locks.generated().filter(|_| self.data) {
            let kind = object.name.split(' ').next().unwrap_or_default();
            if DataKind::of(kind.as_bytes()).is_some() {
                self.generated.insert((String::new(), kind.to_owned()));
            }
        }
    }

    /// The need for the data of ConfigMaps and Secrets only.
    pub(super) fn of_data() -> Self {
        InventoryNeeds {
            data: true,
            ..InventoryNeeds::default()
        }
    }

    /// The need for the objects that policies generate only.
    pub fn only_generated(&self) -> Self {
        InventoryNeeds {
            generated: self.generated.clone(),
            ..InventoryNeeds::default()
        }
    }

    /// Whether nothing is needed.
    pub fn is_nothing(&self) -> bool {
        *self == InventoryNeeds::default()
    }

    /// The names of all kinds that are needed.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        let data = self.data.then_some(["ConfigMap", "Secret"]);
        let generated = self.generated.iter().map(|(_, kind)| kind.as_str());
        let kinds = self.kinds_of_whole_objects().chain(generated);
        kinds.chain(data.into_iter().flatten())
    }

    /// The names of the kinds of which every object is read. Of the kinds that policies generate, only the names matter,
    /// and the data of a ConfigMap or Secret only where it is looked up.
    pub(super) fn kinds_of_whole_objects(&self) -> impl Iterator<Item = &str> {
        let namespaces = self.namespaces.then_some("Namespace");
        let looked_up = self.looked_up.iter().map(|(_, kind)| kind.as_str());
        namespaces.into_iter().chain(looked_up)
    }
}

fn type_of(generate: &GenerateEntry) -> (String, String) {
    let (api_version, kind) = generate.resource.type_of();
    (group_of(api_version).to_owned(), kind.to_owned())
}

/// Whether a rule needs data: for checksums, or because a variable that it joins a text to may come from `envFrom`.
fn asks_data(rule: &Rule) -> bool {
    rule.has("checksums", |inject| !inject.checksums.is_empty()) || rule.joins_env()
}

/// Whether a policy reads the labels or annotations of Namespaces.
fn needs_namespaces(policy: &Policy) -> bool {
    let of_rules = policy.rules.iter();
    let of_rules = of_rules.flat_map(|rule| std::iter::once(&rule.selects).chain(&rule.excludes));
    let mut filters = std::iter::once(&policy.selects)
        .chain(&policy.excludes)
        .chain(of_rules);
    let mut opts = policy.opt_in.iter().chain(&policy.opt_out);
    policy.mutation.is_some()
        || filters.any(asks_namespace)
        || opts.any(|opt| opt.from.contains(&OptFrom::Namespace))
}

fn asks_namespace(filter: &WorkloadFilter) -> bool {
    filter.namespace_selector.is_some() || filter.any.iter().any(asks_namespace)
}
