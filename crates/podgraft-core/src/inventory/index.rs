//! An index of the ConfigMaps and Secrets in the manifests. The texts are scanned at the first lookup. Of documents in
//! plain YAML, only those that are looked up are parsed.

use foldhash::HashMap;
use memchr::memmem::Finder;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::read::InventoryReader;
use super::source_text::{SourceText, TextPart, map_parts};
use super::{
    DataKind, DataResult, Inventory, InventoryNeeds, ObjectMap, SourceRole, add, entries_of_name,
    namesake_in, unclear,
};
use crate::diagnostic::Diagnostic;
use crate::manifest::prefilter::{DocumentScan, ScannedDocuments};
use crate::manifest::workload::PodKinds;
use crate::options::Options;
use crate::outcome::ObjectName;
use crate::source::{LineCounter, Place};
use quick_name::plain_name;

pub(super) mod quick_name;

const EXCLUDE: &str = "fix it, or exclude the file";

/// The number of cached answers. The workloads of a chart look up the same objects one after another.
const KEPT_ANSWERS: usize = 256;

/// An index of ConfigMaps and Secrets; see the documentation of the module.
#[derive(Debug)]
pub struct DataIndex {
    texts: Vec<Arc<dyn SourceText>>,
    threads: NonZeroUsize,
    options: Options,
    kinds: PodKinds,
    found: OnceLock<ScanResult>,
    answers: Mutex<HashMap<ObjectName, Arc<DataMatches>>>,
}

/// The objects of one kind, namespace and name. If no namespace is known, there may be one in each folder.
type DataMatches = ObjectMap<DataResult>;

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

impl ScanResult {
    /// Adds the result of the next part.
    fn append(&mut self, part: ScanResult) {
        self.documents.extend(part.documents);
        self.parsed.add(part.parsed);
        self.unreadable.extend(part.unreadable);
    }
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

fn hash(kind: &str, namespace: Option<&str>, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, namespace, name).hash(&mut hasher);
    hasher.finish()
}

impl DataIndex {
    /// Returns an index of these texts. Nothing is read until the first lookup, and then on up to `threads` threads.
    pub fn of(texts: Vec<Arc<dyn SourceText>>, threads: NonZeroUsize, options: &Options) -> Self {
        DataIndex {
            texts,
            threads,
            options: options.clone(),
            kinds: PodKinds::of(options),
            found: OnceLock::new(),
            answers: Mutex::default(),
        }
    }

    /// The objects of a name in the manifests, in all folders.
    pub(super) fn data(&self, name: &ObjectName) -> Result<Arc<DataMatches>, Diagnostic> {
        let name = &ObjectName {
            folder: None,
            ..name.clone()
        };
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

    fn look_up(&self, name: &ObjectName) -> Result<DataMatches, Diagnostic> {
        let found = self.found()?;
        let wanted = hash(&name.kind, name.namespace.as_deref(), &name.name);
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
    pub(super) fn namesake(&self, name: &ObjectName) -> Option<(ObjectName, Place)> {
        let found = self.found().ok()?;
        let wanted = hash(&name.kind, None, &name.name);
        let is_candidate = |document: &&IndexedDocument| document.hash_in_any_namespace == wanted;
        let mut documents = found.documents.iter().filter(is_candidate);
        namesake_in(&found.parsed.data, name)
            .or_else(|| namesake_in(&self.parse(documents.next()?, name).ok()?.data, name))
    }

    fn found(&self) -> Result<&ScanResult, Diagnostic> {
        let found = self.found.get_or_init(|| self.scan());
        match &found.failed {
            None => Ok(found),
            Some(message) => Err(not_read(message.clone())),
        }
    }

    fn scan(&self) -> ScanResult {
        let mut found = ScanResult::default();
        let scanned = map_parts(&self.texts, self.threads, |text, part| {
            self.scan_part(text, &part)
        });
        for (text, part) in scanned {
            match part {
                Ok(part) => found.append(part),
                Err(error) => {
                    let name = self.texts[text].name();
                    found.failed = Some(format!("`{name}` cannot be read again: {error}"));
                }
            }
        }
        found.documents.sort_unstable();
        found
    }

    /// Scans a part of the text with this index.
    fn scan_part(&self, text: usize, part: &TextPart<'_>) -> ScanResult {
        let (name, needs) = (self.texts[text].name(), InventoryNeeds::of_data());
        let mut reader = InventoryReader::new(name, SourceRole::Manifest, &needs, &self.options);
        let words = [DataKind::ConfigMap, DataKind::Secret].map(DataKind::name);
        let finders = words.map(Finder::new);
        let mut documents = Vec::new();
        let mut lines = LineCounter::new(&part.text, part.first_line);
        for (chunk, class) in ScannedDocuments::of(&part.text, &self.kinds) {
            let kind = match class {
                DocumentScan::LetThrough {
                    kind: Some(kind),
                    is_object: true,
                    ..
                } => DataKind::of(kind),
                DocumentScan::LetThrough { .. }
                | DocumentScan::Workload { .. }
                | DocumentScan::Parse => None,
            };
            let may_hold_data = match class {
                DocumentScan::LetThrough { .. } => kind.is_some(),
                DocumentScan::Workload { .. } => false,
                DocumentScan::Parse => finders
                    .iter()
                    .any(|finder| finder.find(chunk.text).is_some()),
            };
            if !may_hold_data {
                continue;
            }
            let first_line = lines.line_at(chunk.start);
            let Some((kind, plain)) = kind.zip(plain_name(chunk.text)) else {
                reader.document(chunk.text, first_line, &self.kinds);
                continue;
            };
            let namespace = plain.namespace.or(self.options.namespace_in(name));
            documents.push(IndexedDocument {
                hash: hash(kind.name(), namespace, plain.name),
                hash_in_any_namespace: hash(kind.name(), None, plain.name),
                text,
                start: part.start + chunk.start,
                length: chunk.text.len(),
                first_line,
            });
        }
        let (parsed, unreadable) = reader.into_found();
        ScanResult {
            documents,
            parsed,
            unreadable,
            failed: None,
        }
    }

    fn parse(
        &self,
        document: &IndexedDocument,
        name: &ObjectName,
    ) -> Result<Inventory, Diagnostic> {
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
            (_, unreadable) if !unreadable.is_empty() => Err(unread(unreadable, name)),
            (parsed, _) => Ok(parsed),
        }
    }
}

/// Adds what is known under a name. The name is compared again, because other names may have the same hash.
fn add_wanted(known: &mut DataMatches, wanted: &ObjectName, data: &DataMatches) {
    for (name, known_data) in entries_of_name(data, wanted) {
        add(known, name.clone(), known_data.clone());
    }
}

/// An object that cannot be read.
pub(super) fn unread(places: Vec<Place>, name: &ObjectName) -> Diagnostic {
    let problem = unclear(format!("the {name} cannot be read"), EXCLUDE);
    places
        .into_iter()
        .fold(problem, |problem, place| problem.at(place, "here"))
}

/// What cannot be read may be an object that is nowhere else.
pub(super) fn unreadable(place: &Place, name: &ObjectName) -> Diagnostic {
    let message = format!("the {name} was not found, but may be in a document that cannot be read");
    unclear(message, EXCLUDE).at(place.clone(), "here")
}

fn not_read(message: String) -> Diagnostic {
    unclear(message, "run podgraft again")
}

#[cfg(test)]
mod tests {
    use super::super::InMemoryText;
    use super::*;

    fn index(text: &str) -> DataIndex {
        index_on(NonZeroUsize::MIN, text)
    }

    fn index_on(threads: NonZeroUsize, text: &str) -> DataIndex {
        let text = InMemoryText {
            name: "a.yaml".into(),
            text: Arc::new(text.as_bytes().to_vec()),
        };
        DataIndex::of(vec![Arc::new(text)], threads, &Options::default())
    }

    fn name(name: &str) -> ObjectName {
        ObjectName {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
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
    fn the_parts_of_a_long_text_are_one_index_on_any_number_of_threads() {
        let filler = "# a comment\n".repeat(5_000);
        let document = |number: usize| {
            let object = format!("metadata: {{name: m{number}, namespace: shop}}");
            format!("kind: ConfigMap\napiVersion: v1\n{object}\ndata: {{k: '{number}'}}\n{filler}")
        };
        let documents: Vec<String> = (0..40).map(document).collect();
        let text = documents.join("---\n");
        for threads in [1, 2, 5] {
            let index = index_on(NonZeroUsize::new(threads).expect("not 0"), &text);
            let found = index.data(&name("m39")).expect("it is clear");
            let known = found.values().next().expect("it is there");
            assert_eq!(known.place.line, 39 * (4 + 5_000 + 1) + 3);
            for number in 0..40 {
                let wanted = super::super::DataValue::Text(number.to_string());
                assert_eq!(value(&index, &format!("m{number}")), Some(wanted));
            }
        }
    }

    #[test]
    fn an_object_that_cannot_be_read_matters_to_those_who_ask_for_it() {
        let broken = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: broken\n  namespace: shop\ndata: {k: [}\n---\n";
        let whole = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: whole\n  namespace: shop\ndata: {k: v}\n";
        let index = index(&format!("{broken}{whole}"));
        assert!(value(&index, "whole").is_some());
        assert_eq!(value(&index, "absent"), None);
        let doubt = index.data(&name("broken")).unwrap_err();
        assert_eq!(doubt.labels[0].place.line, 6);
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
