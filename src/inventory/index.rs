//! An index of the ConfigMaps and Secrets in the manifests. The texts are scanned at the first lookup. Of documents in
//! plain YAML, only those that are looked up are parsed.

use memchr::memmem::Finder;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{fmt, io};

use super::read::InventoryReader;
use super::{
    DataKind, DataName, DataResult, Inventory, InventoryNeeds, KnownObject, SourceRole,
    UnclearObject, add,
};
use crate::manifest::prefilter::{DocumentScan, ScannedDocuments};
use crate::manifest::workload::PodKinds;
use crate::options::Options;
use crate::source::Place;
use quick_name::plain_name;

mod quick_name;

/// A text of manifests that can be read repeatedly.
pub trait SourceText: fmt::Debug + Send + Sync {
    /// The name of the text in places.
    fn name(&self) -> &Arc<str>;

    /// Calls `each` with the consecutive parts of the whole text.
    ///
    /// # Errors
    /// When it cannot be read.
    fn scan(&self, each: &mut dyn FnMut(TextPart<'_>)) -> io::Result<()>;

    /// Returns the bytes of a range.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>>;
}

/// Consecutive documents of a text.
#[derive(Debug, Clone, Copy)]
pub struct TextPart<'t> {
    /// The byte offset in the text.
    pub start: usize,
    /// The line of the text on which the part begins, from 1.
    pub first_line: usize,
    /// Its bytes.
    pub text: &'t [u8],
}

/// A text in memory.
#[derive(Debug)]
pub struct InMemoryText {
    /// The name of the text in places.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<Vec<u8>>,
}

impl SourceText for InMemoryText {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn scan(&self, each: &mut dyn FnMut(TextPart<'_>)) -> io::Result<()> {
        each(TextPart {
            start: 0,
            first_line: 1,
            text: &self.text,
        });
        Ok(())
    }

    fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        Ok(self.text[range].to_vec())
    }
}

/// The index of a run, if its policies need data. It does not count in comparisons of inventories.
#[derive(Debug, Clone, Default)]
pub struct OptionalIndex(pub(super) Option<Arc<DataIndex>>);

impl From<Option<DataIndex>> for OptionalIndex {
    fn from(index: Option<DataIndex>) -> Self {
        OptionalIndex(index.map(Arc::new))
    }
}

impl PartialEq for OptionalIndex {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for OptionalIndex {}

/// The number of cached answers. The workloads of a chart look up the same objects one after another.
const KEPT_ANSWERS: usize = 256;

/// An index of ConfigMaps and Secrets; see the documentation of the module.
#[derive(Debug)]
pub struct DataIndex {
    texts: Vec<Arc<dyn SourceText>>,
    options: Options,
    kinds: PodKinds,
    found: OnceLock<ScanResult>,
    answers: Mutex<HashMap<DataName, Arc<DataMatches>>>,
}

/// The objects of one kind, namespace and name. If no namespace is known, there may be one in each folder.
type DataMatches = BTreeMap<DataName, KnownObject<DataResult>>;

/// The result of a scan of all texts.
#[derive(Debug, Default)]
struct ScanResult {
    /// Sorted by hash.
    documents: Vec<IndexedDocument>,
    /// The objects of documents that had to be parsed to find their names.
    parsed: Inventory,
    /// Documents that cannot be read, so they may be objects of any name.
    unreadable: Vec<Place>,
    /// The message about a text that could not be read.
    failed: Option<String>,
}

/// A document that holds one ConfigMap or Secret, and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IndexedDocument {
    /// The hash of kind, namespace and name.
    hash: u64,
    /// The hash of kind and name.
    hash_in_any_namespace: u64,
    /// The index of its text.
    text: usize,
    start: usize,
    length: usize,
    first_line: usize,
}

fn hash(kind: DataKind, namespace: Option<&str>, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, namespace, name).hash(&mut hasher);
    hasher.finish()
}

impl DataIndex {
    /// Returns an index of these texts. Nothing is read until the first lookup.
    pub fn of(texts: Vec<Arc<dyn SourceText>>, options: &Options) -> Self {
        DataIndex {
            texts,
            options: options.clone(),
            kinds: PodKinds::of(options),
            found: OnceLock::new(),
            answers: Mutex::default(),
        }
    }

    /// The objects of a name in the manifests, in all folders.
    pub(super) fn data(&self, name: &DataName) -> Result<Arc<DataMatches>, UnclearObject> {
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers().get(name) {
            return Ok(Arc::clone(known));
        }
        let known = Arc::new(self.look_up(name)?);
        let mut answers = answers();
        if answers.len() == KEPT_ANSWERS {
            answers.clear();
        }
        answers.insert(name.clone(), Arc::clone(&known));
        Ok(known)
    }

    fn look_up(&self, name: &DataName) -> Result<DataMatches, UnclearObject> {
        let found = self.found()?;
        let wanted = hash(name.kind, name.namespace.as_deref(), &name.name);
        let from = found
            .documents
            .partition_point(|document| document.hash < wanted);
        let documents = found.documents[from..]
            .iter()
            .take_while(|document| document.hash == wanted);
        let mut known = DataMatches::new();
        add_wanted(&mut known, name, &found.parsed.data);
        for document in documents {
            add_wanted(&mut known, name, &self.parse(document, name)?.data);
        }
        match found.unreadable.first() {
            // The object may be the document that cannot be read.
            Some(place) if known.is_empty() => Err(unreadable(place, name)),
            _ => Ok(known),
        }
    }

    /// An object of the same kind and name in another namespace, or in none, and its place.
    pub(super) fn namesake(&self, name: &DataName) -> Option<(DataName, Place)> {
        let found = self.found().ok()?;
        let is_namesake =
            |candidate: &DataName| candidate.kind == name.kind && candidate.name == name.name;
        let first = |inventory: &Inventory| {
            let (name, known) = inventory.data.iter().find(|(name, _)| is_namesake(name))?;
            Some((name.clone(), known.place.clone()))
        };
        let wanted = hash(name.kind, None, &name.name);
        let is_candidate = |document: &&IndexedDocument| document.hash_in_any_namespace == wanted;
        let mut documents = found.documents.iter().filter(is_candidate);
        first(&found.parsed).or_else(|| first(&self.parse(documents.next()?, name).ok()?))
    }

    fn found(&self) -> Result<&ScanResult, UnclearObject> {
        let found = self.found.get_or_init(|| self.scan());
        match &found.failed {
            None => Ok(found),
            Some(message) => Err(not_read(message.clone())),
        }
    }

    fn scan(&self) -> ScanResult {
        let needs = InventoryNeeds::of_data();
        let mut found = ScanResult::default();
        for (index, text) in self.texts.iter().enumerate() {
            let mut scan = TextScan {
                text: index,
                kinds: &self.kinds,
                reader: InventoryReader::new(
                    text.name(),
                    SourceRole::Manifest,
                    &needs,
                    &self.options,
                ),
                documents: &mut found.documents,
            };
            let scanned = text.scan(&mut |part| scan.part(part));
            let (parsed, unreadable) = scan.reader.into_found();
            found.parsed.add(parsed);
            found.unreadable.extend(unreadable);
            if let Err(error) = scanned {
                found.failed = Some(format!("`{}` cannot be read again: {error}", text.name()));
                return found;
            }
        }
        found.documents.sort_unstable();
        found
    }

    fn parse(
        &self,
        document: &IndexedDocument,
        name: &DataName,
    ) -> Result<Inventory, UnclearObject> {
        let text = &self.texts[document.text];
        let range = document.start..document.start + document.length;
        let bytes = text.read(range).map_err(|error| {
            not_read(format!("`{}` cannot be read again: {error}", text.name()))
        })?;
        let needs = InventoryNeeds::of_data();
        let mut reader =
            InventoryReader::new(text.name(), SourceRole::Manifest, &needs, &self.options);
        reader.document(&bytes, document.first_line, &self.kinds);
        match reader.into_found() {
            (_, unreadable) if !unreadable.is_empty() => Err(UnclearObject {
                message: format!("the {} cannot be read", name.title()),
                places: unreadable
                    .into_iter()
                    .map(|place| (place, "here"))
                    .collect(),
                help: "mend it, or leave the file out",
            }),
            (parsed, _) => Ok(parsed),
        }
    }
}

/// Adds what is known under a name. The name is compared again, because other names may have the same hash.
fn add_wanted(
    known: &mut DataMatches,
    wanted: &DataName,
    data: &BTreeMap<DataName, KnownObject<DataResult>>,
) {
    for (name, known_data) in data {
        if (name.kind, &name.namespace, &name.name)
            == (wanted.kind, &wanted.namespace, &wanted.name)
        {
            add(known, name.clone(), known_data.clone());
        }
    }
}

fn unreadable(place: &Place, name: &DataName) -> UnclearObject {
    UnclearObject {
        message: format!(
            "the {} was not found, and may be what cannot be read",
            name.title()
        ),
        places: vec![(place.clone(), "here")],
        help: "mend it, or leave the file out",
    }
}

fn not_read(message: String) -> UnclearObject {
    UnclearObject {
        message,
        places: Vec::new(),
        help: "run podgraft again",
    }
}

/// A scan of one text.
struct TextScan<'s, 'd> {
    text: usize,
    kinds: &'s PodKinds,
    reader: InventoryReader<'s>,
    documents: &'d mut Vec<IndexedDocument>,
}

impl TextScan<'_, '_> {
    fn part(&mut self, part: TextPart<'_>) {
        let words = [DataKind::ConfigMap, DataKind::Secret].map(|kind| kind.to_string());
        let finders = words.each_ref().map(|word| Finder::new(word.as_bytes()));
        let (mut line, mut counted) = (part.first_line, 0);
        for (chunk, class) in ScannedDocuments::of(part.text, self.kinds) {
            let kind = match class {
                DocumentScan::LetThrough {
                    kind: Some(kind),
                    is_object: true,
                    ..
                } => DataKind::of(kind),
                _ => None,
            };
            let may_hold_data = match class {
                DocumentScan::LetThrough { .. } => kind.is_some(),
                DocumentScan::Parse => finders
                    .iter()
                    .any(|finder| finder.find(chunk.text).is_some()),
            };
            if !may_hold_data {
                continue;
            }
            line += memchr::memchr_iter(b'\n', &part.text[counted..chunk.start]).count();
            counted = chunk.start;
            match (kind, plain_name(chunk.text)) {
                (Some(kind), Some(plain)) => {
                    let namespace = plain
                        .namespace
                        .or(self.reader.options.namespace_in(self.reader.name));
                    self.documents.push(IndexedDocument {
                        hash: hash(kind, namespace, plain.name),
                        hash_in_any_namespace: hash(kind, None, plain.name),
                        text: self.text,
                        start: part.start + chunk.start,
                        length: chunk.text.len(),
                        first_line: line,
                    });
                }
                _ => self.reader.document(chunk.text, line, self.kinds),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(text: &str) -> DataIndex {
        let text = InMemoryText {
            name: "a.yaml".into(),
            text: Arc::new(text.as_bytes().to_vec()),
        };
        DataIndex::of(vec![Arc::new(text)], &Options::default())
    }

    fn name(name: &str) -> DataName {
        DataName {
            kind: DataKind::ConfigMap,
            namespace: Some("shop".to_owned()),
            name: name.to_owned(),
            folder: None,
        }
    }

    fn value(index: &DataIndex, object: &str) -> Option<super::super::DataValue> {
        let found = index.data(&name(object)).expect("it is clear");
        let known = found.values().next()?;
        known.value.as_ref().expect("it is right").get("k").cloned()
    }

    #[test]
    fn each_way_to_write_an_object_is_found() {
        let text = "\
apiVersion: v1
kind: ConfigMap
metadata:
  labels:
    name: other
  name: plain
  namespace: shop
data: {k: '1'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: flow, namespace: shop}
data: {k: '2'}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: item
    namespace: shop
  data: {k: '3'}
---
{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"json\", \"namespace\": \"shop\"}, \"data\": {\"k\": \"4\"}}
";
        let index = index(text);
        for (object, wanted) in [("plain", "1"), ("flow", "2"), ("item", "3"), ("json", "4")] {
            assert_eq!(
                value(&index, object),
                Some(super::super::DataValue::Text(wanted.to_owned())),
                "{object}"
            );
        }
        assert_eq!(value(&index, "other"), None);
        let found = index.found().expect("it was read");
        assert_eq!((found.documents.len(), found.parsed.data.len()), (1, 3));
    }

    #[test]
    fn an_object_that_cannot_be_read_matters_to_those_who_ask_for_it() {
        let broken = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: broken\n  namespace: shop\ndata: {k: [}\n---\n";
        let whole = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: whole\n  namespace: shop\ndata: {k: v}\n";
        let index = index(&format!("{broken}{whole}"));
        assert!(value(&index, "whole").is_some());
        assert_eq!(value(&index, "absent"), None);
        let doubt = index.data(&name("broken")).unwrap_err();
        assert_eq!(doubt.places[0].0.line, 6);
    }

    #[test]
    fn what_may_be_of_any_name_is_a_doubt_where_an_object_is_missing() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: [}\n";
        assert!(index(text).data(&name("a")).is_err());
    }

    #[test]
    fn two_that_differ_contradict_each_other() {
        let text = |value: &str| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: shop\ndata: {{k: {value}}}\n---\n"
            )
        };
        let known = |texts: String| {
            Arc::unwrap_or_clone(index(&texts).data(&name("a")).expect("it is clear"))
                .pop_first()
                .expect("it is there")
                .1
        };
        assert!(known(text("a") + &text("a")).contradiction.is_none());
        assert!(known(text("a") + &text("b")).contradiction.is_some());
    }
}
