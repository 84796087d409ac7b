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
pub use index::{DataIndex, OptionalIndex};
pub use lookups::InventoryKey;
use lookups::RequestedKeys;
use nearest::{in_nearest_folder, is_another_answer, nearest};
pub use needs::InventoryNeeds;
use object::data_of;
pub use object::{
    DataEntries, DataKind, DataName, DataValue, NamespaceMeta, data_fault, name_in, written_name,
};
pub use read::{read, read_part};
use recorded::RecordedObjects;
pub use recorded::RecordedPolicy;
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
    /// Manifests that earlier runs generated, and that a new version takes the place of. Lookups find the new one.
    replaced: BTreeMap<ObjectName, KnownObject<Arc<Value>>>,
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
    fn rank(&self) -> (SourceRole, &str, usize) {
        (self.standing, &self.place.source, self.place.line)
    }

    /// Merges two definitions of the same object. Their order makes no difference.
    fn join(self, other: Self) -> Self {
        let (mut first, second) = if self.rank() <= other.rank() {
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
            if self
                .lookups
                .any(|asked| self.is_data_outdated(asked, name, others))
            {
                late.push((InventoryKey::Data(name.clone()), known.place.clone()));
            }
        }
        for (name, known) in &others.objects {
            if self
                .lookups
                .any(|asked| self.is_object_outdated(asked, name, others))
            {
                late.push((InventoryKey::Object(name.clone()), known.place.clone()));
            }
        }
        late
    }

    fn is_data_outdated(&self, asked: &InventoryKey, name: &DataName, others: &Self) -> bool {
        let InventoryKey::Data(asked) = asked else {
            return false;
        };
        let (before, new) = (self.data_of(name), others.data_of(name));
        asked.is_same_except_folder(name) && is_another_answer(asked.folder.as_deref(), before, new)
    }

    fn is_object_outdated(&self, asked: &InventoryKey, name: &ObjectName, others: &Self) -> bool {
        match asked {
            // An object that was generated because it was missing would now exist twice.
            InventoryKey::Object(asked) => {
                let known = self.objects.get(name);
                asked == name && known.is_none_or(|known| known.standing != SourceRole::Manifest)
            }
            InventoryKey::LookedUp(asked) => {
                let (before, new) = (self.objects_of(name), others.objects_of(name));
                asked.is_same_except_folder(name)
                    && is_another_answer(asked.folder.as_deref(), before, new)
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
        let is_new_version = self.set_replaced_aside(&companion);
        let (standing, place) = (SourceRole::Companion, companion.place);
        if let Some((name, says)) = data_of(&companion.name, &companion.object) {
            if is_new_version {
                // In a stream, the data of the earlier version is here and not in the index.
                self.data.remove(&name);
            }
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
        let standing = self.objects_of(name).chain(of_name(&self.replaced, name));
        let known = in_nearest_folder(name.folder.as_deref(), standing)?;
        (known.standing != SourceRole::Context).then_some(known)
    }

    /// The objects of a name in all folders.
    fn objects_of<'i>(
        &'i self,
        name: &ObjectName,
    ) -> impl Iterator<Item = (Option<&'i str>, &'i KnownObject<Arc<Value>>)> + Clone {
        of_name(&self.objects, name)
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
        let absent = ObjectName {
            group: String::new(),
            kind: "Namespace".to_owned(),
            namespace: None,
            name: name.to_owned(),
            folder: None,
        };
        let is_wanted = |candidate: &&ObjectName| {
            candidate.group.is_empty() && candidate.kind == "Namespace" && candidate.name == name
        };
        let found = self.objects.keys().find(is_wanted);
        self.looked_up(found.unwrap_or(&absent))
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
        if !self.replaced.is_empty() {
            Arc::make_mut(&mut candidates).retain(|name, _| !self.is_replaced(name));
        }
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

/// The objects of a name in all folders, with these.
fn of_name<'i>(
    objects: &'i BTreeMap<ObjectName, KnownObject<Arc<Value>>>,
    name: &ObjectName,
) -> impl Iterator<Item = (Option<&'i str>, &'i KnownObject<Arc<Value>>)> + Clone {
    let first = ObjectName {
        folder: None,
        ..name.clone()
    };
    let entries = objects.range(first..);
    entries
        .take_while(move |(candidate, _)| candidate.is_same_except_folder(name))
        .map(|(name, known)| (name.folder.as_deref(), known))
}

fn contradiction(title: &str, first: &Place, second: &Place) -> UnclearObject {
    UnclearObject {
        message: format!("{title} stands twice, and does not say the same"),
        places: vec![
            (first.clone(), "one of them"),
            (second.clone(), "the other"),
        ],
        help: match first.source == second.source {
            true => "take one of the two out",
            false => "take one of the two out, or leave its file out of the run with `--exclude`",
        },
    }
}

#[cfg(test)]
#[path = "inventory/tests.rs"]
mod tests;
