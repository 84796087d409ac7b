//! The inventory: what the texts of a run say about objects that its policies need, such as Namespaces, ConfigMaps and
//! Secrets. The order of files and documents makes no difference.

mod checksum;
mod index;
mod lookups;
mod nearest;
mod object;
mod read;
mod recorded;
mod source_text;

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
pub use index::{DataIndex, OptionalIndex};
pub use lookups::InventoryKey;
use lookups::RequestedKeys;
use nearest::{in_nearest_folder, is_another_answer, nearest};
use object::data_of;
pub use object::{
    DataEntries, DataKind, DataName, DataValue, NamespaceMeta, name_in, written_name,
};
pub use read::{read, read_part};
use recorded::RecordedObjects;
pub use recorded::RecordedPolicy;
pub use source_text::{InMemoryText, SourceText, TextPart, TextParts, map_parts};

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

    /// The need for the data of ConfigMaps and Secrets only.
    fn of_data() -> Self {
        InventoryNeeds {
            data: true,
            ..InventoryNeeds::default()
        }
    }

    /// Whether nothing is needed.
    pub fn is_nothing(&self) -> bool {
        *self == InventoryNeeds::default()
    }

    /// The names of all kinds that are needed.
    fn kinds(&self) -> impl Iterator<Item = &str> {
        let generated = self.generated.iter().map(|(_, kind)| kind.as_str());
        self.kinds_of_facts().chain(generated)
    }

    /// The names of the kinds of which policies read something. Of the kinds that they generate, only the existence of
    /// an object matters.
    fn kinds_of_facts(&self) -> impl Iterator<Item = &str> {
        let namespaces = self.namespaces.then_some("Namespace");
        let data = self
            .data
            .then_some(["ConfigMap", "Secret"])
            .into_iter()
            .flatten();
        let looked_up = self.looked_up.iter().map(|(_, kind)| kind.as_str());
        namespaces.into_iter().chain(data).chain(looked_up)
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

/// The role of the text that an object comes from. If several define the same object, the first role counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceRole {
    /// A manifest, which will be applied.
    Manifest,
    /// An object that a policy of this run generates.
    Companion,
    /// A text that is only read for the inventory (`--context`).
    Context,
}

/// What the texts of a run say about other objects; see the documentation of the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The index of ConfigMaps and Secrets in the manifests, which are read when they are looked up.
    pub index: OptionalIndex,
    /// The lock files of earlier runs.
    locks: Arc<LockSet>,
    namespaces: BTreeMap<String, KnownObject<NamespaceMeta>>,
    data: BTreeMap<DataName, KnownObject<DataResult>>,
    objects: BTreeMap<ObjectName, KnownObject<Arc<Value>>>,
    /// What policies of this run generate, also where the manifests have an object of the name.
    generated: BTreeMap<ObjectName, KnownObject<Arc<Value>>>,
    /// The generated objects in the records of all workloads.
    recorded: RecordedObjects,
    lookups: RequestedKeys,
}

/// The data of a ConfigMap or Secret, or the reason why an API server would refuse it.
type DataResult = Result<Arc<DataEntries>, String>;

/// A known object and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownObject<T> {
    /// The role of the text that defines it.
    pub standing: SourceRole,
    /// Its content.
    pub value: T,
    /// Where it is defined.
    pub place: Place,
    /// The place of another definition of the same role with other content.
    pub contradiction: Option<Place>,
}

impl<T: PartialEq> KnownObject<T> {
    /// Merges two definitions of the same object. Their order makes no difference.
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
    /// A sentence.
    pub message: String,
    /// Places in the texts, with labels.
    pub places: Vec<(Place, &'static str)>,
    /// What to do next.
    pub help: &'static str,
}

impl UnclearObject {
    /// Returns an error with the places.
    pub fn into_diagnostic(self) -> Diagnostic {
        let problem = Diagnostic::error(Code::UnclearObject, self.message);
        self.places
            .into_iter()
            .fold(problem, |problem, (place, text)| problem.at(place, text))
            .help(self.help)
    }
}

impl Inventory {
    /// Starts to note which objects are looked up, for [`Inventory::outdated_lookups`].
    pub fn track_lookups(&mut self) {
        self.lookups = RequestedKeys::tracking();
    }

    /// Returns the objects of `others` that would have changed the answer of an earlier lookup, with their places. In a
    /// stream, an object may come after the workload that needed it.
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
            // An object that was generated because it was missing would now exist twice.
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

    /// What policies of this run generate under a name.
    pub fn generated(&self, name: &ObjectName) -> Option<&KnownObject<Arc<Value>>> {
        self.generated.get(name)
    }

    /// Whether no needed object was found.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty() && self.data.is_empty() && self.objects.is_empty()
    }

    /// Adds the objects of other texts.
    pub fn add(&mut self, other: Inventory) {
        self.recorded.add(other.recorded);
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
        add(&mut self.generated, companion.name.clone(), known.clone());
        add(&mut self.objects, companion.name, known);
    }

    /// An object of a kind that policies generate, if it is among the manifests or generated. Objects of other folders
    /// do not count: they may be applied elsewhere.
    pub fn object(&self, name: &ObjectName) -> Option<&KnownObject<Arc<Value>>> {
        self.lookups.note(|| InventoryKey::Object(name.clone()));
        let known = in_nearest_folder(name.folder.as_deref(), self.objects_of(name))?;
        (known.standing != SourceRole::Context).then_some(known)
    }

    /// The objects of a name in all folders.
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

    /// The data of the ConfigMaps or Secrets of a name in all folders.
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

    /// The object that an expression looks up; `None` if there is none.
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

    /// The whole Namespace object of a name; `None` if there is none. A Namespace has no namespace itself, so that of
    /// the run is ignored.
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

    /// The labels and annotations of a Namespace; `None` if there is none of this name.
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

    /// The data of a ConfigMap or Secret; `None` if there is none of this name. An object without a namespace is for
    /// workloads without one: those of its folder and the folders below, and of other folders if it is the only one.
    ///
    /// # Errors
    /// When two texts say different things of it, or an API server would refuse its data.
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

    /// An object of the same kind and name in another namespace, or in none, and its place.
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
