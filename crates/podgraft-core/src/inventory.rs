//! The inventory: what the texts of a run say about objects that its policies need, such as Namespaces, ConfigMaps and
//! Secrets. The order of files and documents makes no difference.

mod checksum;
mod index;
mod lookups;
mod nearest;
mod needs;
mod object;
mod read;
mod recorded;
mod source_text;

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::outcome::{GeneratedObject, ObjectName};
use crate::record::lock::LockSet;
use crate::source::Place;
pub use checksum::sum;
pub use index::DataIndex;
pub use lookups::InventoryKey;
use lookups::RequestedKeys;
use nearest::{NearestObject, in_nearest_folder, is_another_answer, nearest};
pub use needs::InventoryNeeds;
use object::data_of;
pub use object::{DataEntries, DataKind, DataValue, NamespaceMeta};
pub(crate) use object::{data_fault, name_in, written_name};
pub use read::read_part;
pub(crate) use read::unreadable;
use recorded::RecordedObjects;
pub use recorded::RecordedPolicy;
pub(crate) use recorded::key_in_records;
pub use source_text::{InMemoryText, SourceText, TextPart, TextParts, map_parts};

/// The role of the text that an object comes from. If several define the same object, the first role counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceRole {
    /// A manifest, which will be applied.
    Manifest,
    /// A file that is not of this run and that `podgraft.lock` names: it may hold objects that earlier runs generated.
    RecordedFile,
    /// An object that a policy of this run generates.
    Companion,
    /// A text that is only read for the inventory (`--context`).
    Context,
}

/// What the texts of a run say about other objects; see the documentation of the module.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    /// The index of ConfigMaps and Secrets in the manifests, which are read when they are looked up. `None` if no policy
    /// needs data.
    pub index: Option<Arc<DataIndex>>,
    /// The lock files of earlier runs.
    locks: Arc<LockSet>,
    namespaces: BTreeMap<String, KnownObject<NamespaceMeta>>,
    data: ObjectMap<DataResult>,
    objects: ObjectMap<Arc<Value>>,
    /// What policies of this run generate, also where the manifests have an object of the name.
    generated: ObjectMap<Arc<Value>>,
    /// Manifests that earlier runs generated, and that this run replaces or takes out. Lookups do not find them.
    replaced: ObjectMap<Arc<Value>>,
    /// The generated objects in the records of all workloads.
    recorded: RecordedObjects,
    /// Documents of a stream that may be ConfigMaps or Secrets and cannot be read.
    unread: Vec<UnreadData>,
    lookups: RequestedKeys,
}

/// A document that may be a ConfigMap or Secret, and that cannot be read.
#[derive(Debug, Clone)]
struct UnreadData {
    /// Its name, without a folder. `None` if only the parser could tell it.
    name: Option<ObjectName>,
    place: Place,
}

/// What is known of objects, by their names.
type ObjectMap<T> = BTreeMap<ObjectName, KnownObject<T>>;

/// The data of a ConfigMap or Secret, or the reason why an API server would refuse it.
type DataResult = Result<Arc<DataEntries>, String>;

/// A known object and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownObject<T> {
    /// The role of the text that defines it.
    pub role: SourceRole,
    /// Its content.
    pub value: T,
    /// Where it is defined.
    pub place: Place,
    /// The place of another definition of the same role with other content.
    pub contradiction: Option<Place>,
}

impl<T> KnownObject<T> {
    fn new(role: SourceRole, value: T, place: Place) -> Self {
        KnownObject {
            role,
            value,
            place,
            contradiction: None,
        }
    }
}

impl<T: PartialEq> KnownObject<T> {
    fn rank(&self) -> (SourceRole, &str, usize) {
        (self.role, &self.place.source, self.place.line)
    }

    /// Merges two definitions of the same object. Their order makes no difference.
    fn join(self, other: Self) -> Self {
        let (mut first, second) = if self.rank() <= other.rank() {
            (self, other)
        } else {
            (other, self)
        };
        if first.role == second.role && first.contradiction.is_none() {
            first.contradiction = if first.value == second.value {
                second.contradiction
            } else {
                Some(second.place)
            };
        }
        first
    }
}

fn add_all<K: Ord, T: PartialEq>(
    to: &mut BTreeMap<K, KnownObject<T>>,
    others: BTreeMap<K, KnownObject<T>>,
) {
    others
        .into_iter()
        .for_each(|(key, known)| add(to, key, known));
}

fn add<K: Ord, T: PartialEq>(to: &mut BTreeMap<K, KnownObject<T>>, key: K, known: KnownObject<T>) {
    let joined = match to.remove(&key) {
        Some(existing) => existing.join(known),
        None => known,
    };
    to.insert(key, joined);
}

/// An error about an object whose content is unclear.
fn unclear(message: impl Into<String>, help: &str) -> Diagnostic {
    Diagnostic::error(Code::UnclearObject, message).help(help)
}

impl Inventory {
    /// Starts to note which objects are looked up, for [`Inventory::outdated_lookups`].
    pub(crate) fn track_lookups(&mut self) {
        self.lookups = RequestedKeys::tracking();
    }

    /// Returns the objects of `others` that would have changed the answer of an earlier lookup, with their places. In a
    /// stream, an object may come after the workload that needed it.
    pub(crate) fn outdated_lookups(&self, others: &Inventory) -> Vec<(InventoryKey, Place)> {
        let mut late = Vec::new();
        for (name, known) in &others.namespaces {
            let is_same = self
                .namespaces
                .get(name)
                .is_some_and(|before| before.value == known.value);
            let asked = InventoryKey::Namespace(name.clone());
            if !is_same && self.lookups.any_of(&asked, |_| true) {
                late.push((asked, known.place.clone()));
            }
        }
        for (name, known) in &others.data {
            let is_outdated = |asked: &InventoryKey| match asked {
                InventoryKey::Data(asked) => {
                    has_other_answer(asked, name, &self.data, &others.data)
                }
                _ => false,
            };
            let first = InventoryKey::Data(name.without_folder());
            if self.lookups.any_of(&first, is_outdated) {
                late.push((InventoryKey::Data(name.clone()), known.place.clone()));
            }
        }
        for (name, known) in &others.objects {
            let is_outdated = |asked: &InventoryKey| self.is_object_outdated(asked, name, others);
            let first = [InventoryKey::Object, InventoryKey::LookedUp];
            let mut first = first.into_iter().map(|key| key(name.without_folder()));
            if first.any(|first| self.lookups.any_of(&first, is_outdated)) {
                late.push((InventoryKey::Object(name.clone()), known.place.clone()));
            }
        }
        late
    }

    /// The places of unread objects of `others` that may be what an earlier lookup did not find.
    pub(crate) fn outdated_by_unread(&self, others: &Inventory) -> Vec<Place> {
        let is_missed = |asked: &InventoryKey, unread: &UnreadData| match asked {
            InventoryKey::Data(asked) => {
                unread.may_be(asked) && of_name(&self.data, asked).next().is_none()
            }
            _ => false,
        };
        let unread = others.unread.iter();
        let late = unread.filter(|unread| self.lookups.any(|asked| is_missed(asked, unread)));
        late.map(|unread| unread.place.clone()).collect()
    }

    fn is_object_outdated(&self, asked: &InventoryKey, name: &ObjectName, others: &Self) -> bool {
        match asked {
            // An object that was generated because it was missing would now exist twice.
            InventoryKey::Object(asked) => {
                let known = self.objects.get(name);
                asked == name && known.is_none_or(|known| known.role != SourceRole::Manifest)
            }
            InventoryKey::LookedUp(asked) => {
                has_other_answer(asked, name, &self.objects, &others.objects)
            }
            InventoryKey::Namespace(_) | InventoryKey::Data(_) => false,
        }
    }

    /// What policies of this run generate under a name.
    pub fn generated(&self, name: &ObjectName) -> Option<&KnownObject<Arc<Value>>> {
        self.generated.get(name)
    }

    /// Whether no needed object was found.
    pub fn is_empty(&self) -> bool {
        self.namespaces.is_empty()
            && self.data.is_empty()
            && self.objects.is_empty()
            && self.unread.is_empty()
    }

    /// Adds the objects of other texts.
    pub fn add(&mut self, other: Inventory) {
        self.recorded.add(other.recorded);
        self.unread.extend(other.unread);
        add_all(&mut self.namespaces, other.namespaces);
        add_all(&mut self.data, other.data);
        add_all(&mut self.objects, other.objects);
    }

    /// Adds an object that a policy generates.
    pub fn add_companion(&mut self, companion: GeneratedObject) {
        let is_new_version = self.set_replaced_aside(&companion);
        let (role, place) = (SourceRole::Companion, companion.place);
        if let Some(says) = data_of(&companion.name, &companion.object) {
            if is_new_version {
                // In a stream, the data of the earlier version is here and not in the index.
                self.data.remove(&companion.name);
            }
            let known = KnownObject::new(role, says.map(Arc::new), place.clone());
            add(&mut self.data, companion.name.clone(), known);
        }
        let known = KnownObject::new(role, companion.object, place);
        add(&mut self.generated, companion.name.clone(), known.clone());
        add(&mut self.objects, companion.name, known);
    }

    /// An object of a kind that policies generate, if it is among the manifests or generated. Objects of other folders
    /// do not count: they may be applied elsewhere.
    pub fn object(&self, name: &ObjectName) -> Option<&KnownObject<Arc<Value>>> {
        self.lookups.note(|| InventoryKey::Object(name.clone()));
        let known = of_name(&self.objects, name).chain(of_name(&self.replaced, name));
        let known = in_nearest_folder(name.folder.as_deref(), known)?;
        (known.role != SourceRole::Context).then_some(known)
    }

    /// The object that an expression looks up; `None` if there is none.
    ///
    /// # Errors
    /// When two texts say different things of it.
    pub(crate) fn looked_up(&self, name: &ObjectName) -> Result<Option<&Value>, Diagnostic> {
        self.lookups.note(|| InventoryKey::LookedUp(name.clone()));
        let Some(found) = nearest(name.folder.as_deref(), of_name(&self.objects, name)) else {
            return Ok(None);
        };
        let says = found.agreed(|| format!("the {name}"))?;
        Ok(Some(says))
    }

    /// The whole Namespace object of a name; `None` if there is none.
    ///
    /// # Errors
    /// When two texts say different things of it.
    pub(crate) fn namespace_object(&self, name: &str) -> Result<Option<&Value>, Diagnostic> {
        self.looked_up(&ObjectName {
            group: String::new(),
            kind: "Namespace".to_owned(),
            namespace: None,
            name: name.to_owned(),
            folder: None,
        })
    }

    /// The labels and annotations of a Namespace; `None` if there is none of this name.
    ///
    /// # Errors
    /// When two texts say different things of it.
    pub fn namespace(&self, name: &str) -> Result<Option<&NamespaceMeta>, Diagnostic> {
        self.lookups
            .note(|| InventoryKey::Namespace(name.to_owned()));
        let Some(known) = self.namespaces.get(name) else {
            return Ok(None);
        };
        let found = NearestObject::from(known);
        found.agreed(|| format!("the Namespace `{name}`")).map(Some)
    }

    /// The data of a ConfigMap or Secret; `None` if there is none of this name. An object without a namespace is for
    /// workloads without one: those of its folder and the folders below, and of other folders if it is the only one.
    ///
    /// # Errors
    /// When two texts say different things of it, or an API server would refuse its data.
    pub fn entries(&self, name: &ObjectName) -> Result<Option<Arc<DataEntries>>, Diagnostic> {
        self.lookups.note(|| InventoryKey::Data(name.clone()));
        let mut candidates = match &self.index {
            Some(index) => index.data(name)?,
            None => Arc::default(),
        };
        if !self.replaced.is_empty() {
            Arc::make_mut(&mut candidates).retain(|name, _| !self.replaced.contains_key(name));
        }
        for (name, known) in entries_of_name(&self.data, name) {
            add(Arc::make_mut(&mut candidates), name.clone(), known.clone());
        }
        let Some(found) = nearest(name.folder.as_deref(), of_name(&candidates, name)) else {
            return match self.unread.iter().find(|unread| unread.may_be(name)) {
                None => Ok(None),
                Some(UnreadData { name: None, place }) => Err(index::unreadable(place, name)),
                Some(unread) => Err(index::unread(vec![unread.place.clone()], name)),
            };
        };
        match found.agreed(|| format!("the {name}"))? {
            Ok(entries) => Ok(Some(Arc::clone(entries))),
            Err(reason) => {
                let message = format!("the {name} cannot be read: {reason}");
                let help = "fix the object: the API server would reject it as well";
                let problem = unclear(message, help);
                Err(problem.at(found.known.place.clone(), "this object"))
            }
        }
    }

    /// An object of the same kind and name in another namespace, or in none, and its place.
    pub(crate) fn namesake(&self, name: &ObjectName) -> Option<(ObjectName, Place)> {
        namesake_in(&self.data, name).or_else(|| self.index.as_ref()?.namesake(name))
    }
}

impl UnreadData {
    fn may_be(&self, name: &ObjectName) -> bool {
        let own_name = self.name.as_ref();
        own_name.is_none_or(|own_name| own_name.is_same_except_folder(name))
    }
}

/// The objects of a name in all folders, with these.
fn of_name<'i, T>(
    objects: &'i ObjectMap<T>,
    name: &ObjectName,
) -> impl Iterator<Item = (Option<&'i str>, &'i KnownObject<T>)> + Clone {
    entries_of_name(objects, name).map(|(name, known)| (name.folder.as_deref(), known))
}

/// The objects of a name in all folders, with their whole names.
fn entries_of_name<'i, T>(
    objects: &'i ObjectMap<T>,
    name: &ObjectName,
) -> impl Iterator<Item = (&'i ObjectName, &'i KnownObject<T>)> + Clone {
    let entries = objects.range(name.without_folder()..);
    entries.take_while(|(candidate, _)| candidate.is_same_except_folder(name))
}

/// Whether the lookup of a name would have another answer if the later objects had been known.
fn has_other_answer<T: PartialEq>(
    asked: &ObjectName,
    name: &ObjectName,
    before: &ObjectMap<T>,
    later: &ObjectMap<T>,
) -> bool {
    let (before, later) = (of_name(before, name), of_name(later, name));
    asked.is_same_except_folder(name) && is_another_answer(asked.folder.as_deref(), before, later)
}

/// An object of the same kind and name in another namespace, or in none, and its place.
fn namesake_in<T>(objects: &ObjectMap<T>, name: &ObjectName) -> Option<(ObjectName, Place)> {
    let mut objects = objects.iter();
    let is_namesake =
        |candidate: &ObjectName| candidate.kind == name.kind && candidate.name == name.name;
    let (found, known) = objects.find(|(candidate, _)| is_namesake(candidate))?;
    Some((found.clone(), known.place.clone()))
}

#[cfg(test)]
#[path = "inventory/tests.rs"]
mod tests;
