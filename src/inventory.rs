//! What all sources of a run say together, as far as its policies ask: Namespaces, and what ConfigMaps and Secrets hold.
//! The order of files and documents makes no difference.

mod checksum;
mod index;
mod lookups;
mod nearest;
mod object;
mod read;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::workload::group_of;
use crate::outcome::{GeneratedObject, ObjectName};
use crate::policy::expression::ObjectKinds;
use crate::policy::{GenerateEntry, OptFrom, Policy, Rule, WorkloadFilter};
use crate::record::lock::LockSet;
use crate::source::Place;
pub use checksum::sum;
pub use index::{DataIndex, InMemoryText, OptionalIndex, SourceText, TextPart};
pub use lookups::InventoryKey;
use lookups::RequestedKeys;
use nearest::{in_nearest_folder, is_another_answer, nearest};
use object::data_of;
pub use object::{
    DataEntries, DataKind, DataName, DataValue, NamespaceMeta, name_in, written_name,
};
pub use read::{read, read_part};

/// The objects that the policies of a run look up. No source is read if there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InventoryNeeds {
    /// Labels and annotations of Namespaces.
    pub namespaces: bool,
    /// What ConfigMaps and Secrets hold.
    pub data: bool,
    /// Objects of these groups and kinds as a whole, which policies generate, too.
    pub generated: BTreeSet<(String, String)>,
    /// Objects of these groups and kinds as a whole, which expressions look up.
    pub looked_up: ObjectKinds,
}

impl InventoryNeeds {
    /// What these policies ask for.
    pub fn of(policies: &[Policy]) -> Self {
        let active = || policies.iter().filter(|policy| !policy.suspend);
        let asks_namespace = |policy: &Policy| {
            let rules = policy
                .rules
                .iter()
                .flat_map(|rule| std::iter::once(&rule.selects).chain(&rule.excludes));
            let mut filters = std::iter::once(&policy.selects)
                .chain(&policy.excludes)
                .chain(rules);
            let mut opts = policy.opt_in.iter().chain(&policy.opt_out);
            policy.mutation.is_some()
                || filters.any(asks_namespace)
                || opts.any(|opt| opt.from.contains(&OptFrom::Namespace))
        };
        InventoryNeeds {
            namespaces: active().any(asks_namespace),
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

    /// What ConfigMaps and Secrets hold, and nothing else.
    fn of_data() -> Self {
        InventoryNeeds {
            data: true,
            ..InventoryNeeds::default()
        }
    }

    /// Whether nothing is asked for.
    pub fn is_nothing(&self) -> bool {
        *self == InventoryNeeds::default()
    }

    /// The kinds of object that answer.
    fn kinds(&self) -> impl Iterator<Item = &str> {
        let namespaces = self.namespaces.then_some("Namespace");
        let data = self
            .data
            .then_some(["ConfigMap", "Secret"])
            .into_iter()
            .flatten();
        let objects = self.generated.iter().chain(&self.looked_up);
        let objects = objects.map(|(_, kind)| kind.as_str());
        namespaces.into_iter().chain(data).chain(objects)
    }
}

fn type_of(generate: &GenerateEntry) -> (String, String) {
    let (api_version, kind) = generate.resource.type_of();
    (group_of(api_version).to_owned(), kind.to_owned())
}

/// A variable that is joined with what is there may come from `envFrom`.
fn asks_data(rule: &Rule) -> bool {
    rule.has("checksums", |inject| !inject.checksums.is_empty()) || rule.joins_env()
}

fn asks_namespace(filter: &WorkloadFilter) -> bool {
    filter.namespace_selector.is_some() || filter.any.iter().any(asks_namespace)
}

/// The role of a text in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceRole {
    /// A manifest: it says what will be applied.
    Manifest,
    /// A policy of this run generates it.
    Companion,
    /// Read for facts alone: what a manifest says of the same object counts more.
    Context,
}

/// See the module's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Where ConfigMaps and Secrets stand in the manifests, to be read when one is asked for.
    pub index: OptionalIndex,
    /// What earlier runs put into the files, as their lock files say.
    locks: Arc<LockSet>,
    namespaces: BTreeMap<String, KnownObject<NamespaceMeta>>,
    data: BTreeMap<DataName, KnownObject<DataResult>>,
    objects: BTreeMap<ObjectName, KnownObject<Arc<Value>>>,
    /// Objects that records of manifests name, with their digests.
    recorded: BTreeSet<(String, String)>,
    lookups: RequestedKeys,
}

/// What a ConfigMap or Secret holds, or why an API server would refuse it.
type DataResult = Result<Arc<DataEntries>, String>;

/// A known object and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownObject<T> {
    /// What the text is that says so.
    pub standing: SourceRole,
    /// What it says.
    pub value: T,
    /// Where.
    pub place: Place,
    /// Where another text of the same standing says something else.
    pub contradiction: Option<Place>,
}

impl<T: PartialEq> KnownObject<T> {
    /// Of two that speak of the same object. The order of the two makes no difference.
    fn join(self, other: Self) -> Self {
        let key = |known: &Self| {
            (
                known.standing,
                known.place.source.to_string(),
                known.place.line,
            )
        };
        let (mut first, second) = if key(&self) <= key(&other) {
            (self, other)
        } else {
            (other, self)
        };
        if first.standing == second.standing && first.contradiction.is_none() {
            first.contradiction = if first.value == second.value {
                second.contradiction
            } else {
                Some(second.place)
            };
        }
        first
    }
}

fn add<K: Ord, T: PartialEq>(to: &mut BTreeMap<K, KnownObject<T>>, key: K, known: KnownObject<T>) {
    let joined = match to.remove(&key) {
        Some(existing) => existing.join(known),
        None => known,
    };
    to.insert(key, joined);
}

/// Why the content of an object is unclear.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclearObject {
    /// In words.
    pub message: String,
    /// Where.
    pub places: Vec<(Place, &'static str)>,
    /// What to do next.
    pub help: &'static str,
}

impl UnclearObject {
    /// As an error, with the places.
    pub fn into_diagnostic(self) -> Diagnostic {
        let problem = Diagnostic::error(Code::UnclearObject, self.message);
        self.places
            .into_iter()
            .fold(problem, |problem, (place, text)| problem.at(place, text))
            .help(self.help)
    }
}

impl Inventory {
    /// Notes from now on what is asked for, for [`Inventory::outdated_lookups`].
    pub fn track_lookups(&mut self) {
        self.lookups = RequestedKeys::tracking();
    }

    /// What other texts say that would have been another answer to what was asked before, with its place.
    pub fn outdated_lookups(&self, others: &Inventory) -> Vec<(InventoryKey, Place)> {
        let mut late = Vec::new();
        for (name, known) in &others.namespaces {
            let is_same = self
                .namespaces
                .get(name)
                .is_some_and(|before| before.value == known.value);
            let asked = InventoryKey::Namespace(name.clone());
            if !is_same && self.lookups.any(|tracked| *tracked == asked) {
                late.push((asked, known.place.clone()));
            }
        }
        for (name, known) in &others.data {
            let is_late = |asked: &InventoryKey| {
                let InventoryKey::Data(asked) = asked else {
                    return false;
                };
                let (before, new) = (self.data_of(name), others.data_of(name));
                asked.is_same_except_folder(name)
                    && is_another_answer(asked.folder.as_deref(), before, new)
            };
            if self.lookups.any(is_late) {
                late.push((InventoryKey::Data(name.clone()), known.place.clone()));
            }
        }
        for (name, known) in &others.objects {
            // One that was written because it was not there would be there twice.
            let is_known = self
                .objects
                .get(name)
                .is_some_and(|before| before.standing == SourceRole::Manifest);
            let is_late = |asked: &InventoryKey| match asked {
                InventoryKey::Object(asked) => asked == name && !is_known,
                InventoryKey::LookedUp(asked) => {
                    let (before, new) = (self.objects_of(name), others.objects_of(name));
                    asked.is_same_except_folder(name)
                        && is_another_answer(asked.folder.as_deref(), before, new)
                }
                InventoryKey::Namespace(_) | InventoryKey::Data(_) => false,
            };
            if self.lookups.any(is_late) {
                late.push((InventoryKey::Object(name.clone()), known.place.clone()));
            }
        }
        late
    }

    /// Whether a record of some workload says that podgraft wrote an object with this content.
    pub fn is_recorded(&self, name: &str, digest: &str) -> bool {
        !self.recorded.is_empty()
            && self
                .recorded
                .contains(&(name.to_owned(), digest.to_owned()))
    }

    /// Whether the texts say nothing that was asked for.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.data.is_empty() && self.objects.is_empty()
    }

    /// Adds what the lock files of the run say.
    pub fn add_locks(&mut self, locks: Arc<LockSet>) {
        let generated = locks.generated();
        let generated = generated.map(|(name, digest)| (name.clone(), digest.clone()));
        self.recorded.extend(generated);
        self.locks = locks;
    }

    /// What the lock files of the run say.
    pub fn locks(&self) -> &Arc<LockSet> {
        &self.locks
    }

    /// Adds what other texts say.
    pub fn add(&mut self, other: Inventory) {
        self.recorded.extend(other.recorded);
        other
            .namespaces
            .into_iter()
            .for_each(|(name, known)| add(&mut self.namespaces, name, known));
        other
            .data
            .into_iter()
            .for_each(|(name, known)| add(&mut self.data, name, known));
        other
            .objects
            .into_iter()
            .for_each(|(name, known)| add(&mut self.objects, name, known));
    }

    /// Adds an object that a policy generates.
    pub fn add_companion(&mut self, companion: GeneratedObject) {
        let (standing, place) = (SourceRole::Companion, companion.place);
        if let Some((name, says)) = data_of(&companion.name, &companion.object) {
            add(
                &mut self.data,
                name,
                KnownObject {
                    standing,
                    value: says.map(Arc::new),
                    place: place.clone(),
                    contradiction: None,
                },
            );
        }
        let known = KnownObject {
            standing,
            value: companion.object,
            place,
            contradiction: None,
        };
        add(&mut self.objects, companion.name, known);
    }

    /// An object of a kind that policies generate, where it is among the manifests or is generated. Another folder's is
    /// not meant: it may be applied elsewhere.
    pub fn object(&self, name: &ObjectName) -> Option<&KnownObject<Arc<Value>>> {
        self.lookups.note(|| InventoryKey::Object(name.clone()));
        let known = in_nearest_folder(name.folder.as_deref(), self.objects_of(name))?;
        (known.standing != SourceRole::Context).then_some(known)
    }

    /// The objects of a name, with their folders.
    fn objects_of<'i>(
        &'i self,
        name: &ObjectName,
    ) -> impl Iterator<Item = (Option<&'i str>, &'i KnownObject<Arc<Value>>)> + Clone {
        let first = ObjectName {
            folder: None,
            ..name.clone()
        };
        let entries = self.objects.range(first..);
        entries
            .take_while(move |(candidate, _)| candidate.is_same_except_folder(name))
            .map(|(name, known)| (name.folder.as_deref(), known))
    }

    /// What the ConfigMaps or Secrets of a name hold, with their folders.
    fn data_of<'i>(
        &'i self,
        name: &DataName,
    ) -> impl Iterator<Item = (Option<&'i str>, &'i KnownObject<DataResult>)> + Clone {
        let first = DataName {
            folder: None,
            ..name.clone()
        };
        let entries = self.data.range(first..);
        entries
            .take_while(move |(candidate, _)| candidate.is_same_except_folder(name))
            .map(|(name, known)| (name.folder.as_deref(), known))
    }

    /// An object that an expression looks up; `None` where there is none.
    ///
    /// # Errors
    /// When two texts say different things of it.
    pub fn looked_up(&self, name: &ObjectName) -> Result<Option<&Value>, UnclearObject> {
        self.lookups.note(|| InventoryKey::LookedUp(name.clone()));
        let Some(found) = nearest(name.folder.as_deref(), self.objects_of(name)) else {
            return Ok(None);
        };
        let says = found.agreed(|| format!("the {name}"))?;
        Ok(Some(says))
    }

    /// The whole Namespace of a name, whatever namespace the run has; `None` where there is none.
    ///
    /// # Errors
    /// When two texts say different things of it.
    pub fn namespace_object(&self, name: &str) -> Result<Option<&Value>, UnclearObject> {
        let named = |namespace: Option<&str>| ObjectName {
            group: String::new(),
            kind: "Namespace".to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            folder: None,
        };
        let is_wanted = |candidate: &&ObjectName| {
            candidate.group.is_empty() && candidate.kind == "Namespace" && candidate.name == name
        };
        let found = self.objects.keys().find(is_wanted);
        self.looked_up(found.unwrap_or(&named(None)))
    }

    /// The Namespace object of a name; `None` where there is none.
    ///
    /// # Errors
    /// When two texts say different things of it.
    pub fn namespace(&self, name: &str) -> Result<Option<&NamespaceMeta>, UnclearObject> {
        self.lookups
            .note(|| InventoryKey::Namespace(name.to_owned()));
        let Some(known) = self.namespaces.get(name) else {
            return Ok(None);
        };
        known.agreed(|| format!("the Namespace `{name}`")).map(Some)
    }

    /// What a ConfigMap or Secret holds; `None` where there is none of this name. An object without a namespace is for
    /// workloads without one: of its own folder, of those below, and of others where it is the only one.
    ///
    /// # Errors
    /// When two texts say different things of it, or it holds what no API server takes.
    pub fn entries(&self, name: &DataName) -> Result<Option<Arc<DataEntries>>, UnclearObject> {
        self.lookups.note(|| InventoryKey::Data(name.clone()));
        let any = DataName {
            folder: None,
            ..name.clone()
        };
        let mut candidates = match &self.index.0 {
            Some(index) => index.data(&any)?,
            None => Arc::default(),
        };
        let known = self.data.range(any.clone()..);
        for (name, known) in
            known.take_while(|(candidate, _)| candidate.is_same_except_folder(name))
        {
            add(Arc::make_mut(&mut candidates), name.clone(), known.clone());
        }
        let with_folders = candidates
            .iter()
            .map(|(name, known)| (name.folder.as_deref(), known));
        let Some(found) = nearest(name.folder.as_deref(), with_folders) else {
            return Ok(None);
        };
        match found.agreed(|| format!("the {}", name.title()))? {
            Ok(entries) => Ok(Some(Arc::clone(entries))),
            Err(reason) => Err(UnclearObject {
                message: format!("the {} cannot be read: {reason}", name.title()),
                places: vec![(found.place().clone(), "this object")],
                help: "an API server would refuse it, too",
            }),
        }
    }

    /// Where an object of the same kind and name stands that is in another namespace, or in none.
    pub fn namesake(&self, name: &DataName) -> Option<(DataName, Place)> {
        let is_namesake =
            |candidate: &&DataName| candidate.kind == name.kind && candidate.name == name.name;
        match self.data.keys().find(is_namesake) {
            Some(found) => Some((found.clone(), self.data[found].place.clone())),
            None => self.index.0.as_ref()?.namesake(name),
        }
    }
}

impl<T> KnownObject<T> {
    fn agreed(&self, title: impl Fn() -> String) -> Result<&T, UnclearObject> {
        match &self.contradiction {
            None => Ok(&self.value),
            Some(contradicting) => Err(contradiction(&title(), &self.place, contradicting)),
        }
    }
}

fn contradiction(title: &str, first: &Place, second: &Place) -> UnclearObject {
    UnclearObject {
        message: format!("{title} stands twice, and does not say the same"),
        places: vec![
            (first.clone(), "one of them"),
            (second.clone(), "the other"),
        ],
        help: "take one of the two out",
    }
}

#[cfg(test)]
#[path = "inventory/tests.rs"]
mod tests;
