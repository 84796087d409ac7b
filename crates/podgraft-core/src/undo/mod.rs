//! Removes the recorded changes from a document and restores its original bytes.

mod compose;
mod text_differences;

use foldhash::HashMap;
use serde_json::Value;
use std::collections::BTreeMap;

use crate::edit::{LoweringError, TextCache, lower};
use crate::manifest::object::{DocumentContent, find_objects};
use crate::manifest::pod::Workload;
use crate::manifest::workload::PodKinds;
use crate::ownership::{WorkloadKey, marked_policies};
use crate::plan::draft::{Draft, Refusal};
use crate::plan::draft_paths::RecordedPlaces;
use crate::plan::marks::written_marker;
use crate::plan::removal::{DriftHandling, RemovalResult, take_out};
use crate::record::lock::{LockSet, MarkedWorkload, RecordSearch};
use crate::record::{MARKER, RECORD, Record, RecordError, RecordPaths, RecordedValue};
use crate::verify::{Difference, verify};
use crate::yaml::parse::{ParseErrorKind, parse, reparse};
use crate::yaml::splice::{Edit, changes_of, splice};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

pub(crate) use compose::{ComposedEdit, ComposedPiece, compose, compose_traced};
pub(crate) use text_differences::{comments_in, places_between};

/// An object with a record.
#[derive(Debug, Clone)]
pub(crate) struct RecordedObject<'t> {
    /// The object's node.
    pub node: NodeId,
    /// The node that diagnostics point at: the value of the record annotation, or the marker if the record is in a
    /// lock file.
    pub at: NodeId,
    /// The record is in an annotation.
    pub is_annotated: bool,
    /// The key of its entry in the lock file.
    pub from: Option<WorkloadKey>,
    /// That entry is of another workload, of which this one may be a copy.
    pub is_copied: bool,
    /// The record.
    pub record: Record,
    /// The policies in the record that this run adopts.
    pub adopted: Vec<String>,
    /// The earlier names of policies, by their names in the record.
    pub renamed: BTreeMap<String, String>,
    /// The object's value.
    pub value: RecordedValue<'t>,
}

impl<'t> RecordedObject<'t> {
    /// An object with a record that is neither in an annotation nor in a lock file yet.
    pub(crate) fn of(at: NodeId, record: Record, value: RecordedValue<'t>) -> Self {
        RecordedObject {
            node: value.node,
            at,
            is_annotated: false,
            from: None,
            is_copied: false,
            record,
            adopted: Vec::new(),
            renamed: BTreeMap::new(),
            value,
        }
    }
}

/// A document without its recorded changes: the stripped document.
pub(crate) struct StrippedDocument<'t> {
    /// The edits that remove the changes from the document.
    pub edits: Vec<Edit>,
    /// The text of the stripped document.
    pub text: String,
    /// What was removed from each recorded object, in order.
    pub taken: Vec<RemovalResult>,
    /// Somebody changed an object since, so not every byte may be restored.
    pub is_inexact: bool,
    /// What the text must say of each recorded object; empty if that is proven.
    unproven: Vec<(NodeId, Draft<'t>)>,
}

/// Why the recorded changes cannot be removed from a document.
#[derive(Debug, Clone)]
pub(crate) enum RemovalObstacle {
    /// A change that is not allowed.
    Refused(Refusal),
    /// A change that cannot be written safely.
    CannotWrite(LoweringError),
    /// The record contradicts the document: somebody changed the record, at this node.
    Forged(NodeId),
    /// With the recorded values, the document would nest too deep: somebody changed the record at this node.
    TooDeep(NodeId),
    /// The result is wrong, which is a bug.
    Wrong(String),
}

/// Reads an object's record from its annotation. `None` if there is none.
///
/// # Errors
/// If it cannot be read, with its node.
pub(crate) fn read_record<'t>(
    tree: &'t Tree<'t>,
    object: NodeId,
) -> Result<Option<RecordedObject<'t>>, (NodeId, RecordError)> {
    let annotations = tree
        .get(object, "metadata")
        .and_then(|metadata| tree.get(metadata, "annotations"));
    let Some(at) = annotations.and_then(|annotations| tree.get(annotations, RECORD)) else {
        return Ok(None);
    };
    let text = tree
        .scalar(at)
        .ok_or_else(|| (at, RecordError::Damaged("it is not text".to_owned())))?;
    let mut record = Record::read(text).map_err(|error| (at, error))?;
    let value = RecordedValue::of(tree, object).ok_or((at, RecordError::Ambiguous))?;
    let followed = record.follow_renames(&value);
    followed.map_err(|error| (at, error))?;
    let is_annotated = true;
    Ok(Some(RecordedObject {
        is_annotated,
        ..RecordedObject::of(at, record, value)
    }))
}

/// Returns the record of a marked workload from the lock files.
///
/// # Errors
/// If several records may be meant, or the workload has no plain value, with the node of the marker.
pub(crate) fn locked_record<'t>(
    workload: &Workload<'t>,
    locks: &LockSet,
    search: &RecordSearch<'_>,
) -> Result<Option<RecordedObject<'t>>, (NodeId, RecordError)> {
    let (tree, node) = (workload.tree, workload.object.node);
    let Some(at) = workload.workload_annotation(MARKER) else {
        return Ok(None);
    };
    let lock = locks.of_file(&workload.source.name);
    let (Some(marked), Some((lock, file))) = (tree.scalar(at), lock) else {
        return Ok(None);
    };
    let key = key_in_lock(workload, file);
    let Some(value) = RecordedValue::of(tree, node) else {
        return match lock.may_name(&key, search.is_present) {
            true => Err((at, RecordError::Ambiguous)),
            false => Ok(None),
        };
    };
    let marked: Vec<&str> = marked_policies(marked).collect();
    let paths = RecordPaths::of(&workload.pod_kind.path);
    let places = RecordedPlaces::of(tree, node, paths.clone());
    let lookup = |path: &str| places.value(path);
    let marked = MarkedWorkload {
        key: &key,
        paths: &paths,
        marked: &marked,
        lookup: &lookup,
        value: &value,
    };
    let found = lock.find_record(&marked, search);
    let found = found.map_err(|error| (at, RecordError::Locked(error)))?;
    let Some(mut found) = found else {
        return Ok(None);
    };
    let followed = found.record.follow_renames(&value);
    followed.map_err(|error| (at, error))?;
    Ok(Some(RecordedObject {
        from: Some(found.from),
        is_copied: found.is_copied,
        ..RecordedObject::of(at, found.record, value)
    }))
}

/// The key of a workload in the lock file. `file` is the path of its file from there.
pub(crate) fn key_in_lock(workload: &Workload<'_>, file: &str) -> WorkloadKey {
    WorkloadKey {
        file: file.to_owned(),
        kind: workload.object.kind.clone(),
        namespace: workload.stated_namespace().to_owned(),
        name: workload.name.clone(),
    }
}

/// The objects of a document, in order.
pub(crate) fn objects_of(tree: &Tree<'_>, kinds: &PodKinds) -> Vec<NodeId> {
    let node = |found| match found {
        DocumentContent::Object(object) => object.node,
        DocumentContent::Untyped { node, .. } => node,
    };
    find_objects(tree, kinds).into_iter().map(node).collect()
}

/// The index of each node: the first one of an object that a List names twice, with an alias.
pub(crate) fn indices_of(
    nodes: impl DoubleEndedIterator<Item = NodeId> + ExactSizeIterator,
) -> HashMap<NodeId, usize> {
    let indexed = nodes.enumerate().rev();
    indexed.map(|(index, node)| (node, index)).collect()
}

/// Removes all recorded changes, as if nothing had ever been injected. If more text follows the document, its last
/// line end stays, even if it had none when it was the last document. [`StrippedDocument::parse`] proves the result.
///
/// # Errors
/// See [`RemovalObstacle`].
pub(crate) fn strip<'t>(
    tree: &'t Tree<'t>,
    kinds: &PodKinds,
    recorded: &[RecordedObject<'_>],
    has_more: bool,
    leniency: impl Fn(&str) -> DriftHandling,
) -> Result<StrippedDocument<'t>, RemovalObstacle> {
    if recorded.is_empty() {
        return Ok(StrippedDocument {
            edits: Vec::new(),
            text: tree.text().to_owned(),
            taken: Vec::new(),
            is_inexact: false,
            unproven: Vec::new(),
        });
    }
    let (mut edits, mut taken, mut drafts) = (Vec::new(), Vec::new(), Vec::new());
    let mut written = TextCache::default();
    for recorded_object in recorded {
        let node = recorded_object.node;
        let (record, renamed) = (&recorded_object.record, &recorded_object.renamed);
        let marker = written_marker(&Draft::new(tree, node), record, renamed);
        let (draft, taken_out) =
            take_out(record, &marker, tree, node, &leniency).map_err(RemovalObstacle::Refused)?;
        edits.extend(lower(&draft, node, &mut written).map_err(RemovalObstacle::CannotWrite)?);
        taken.push(taken_out);
        drafts.push((node, draft));
    }
    // At the same offset, insertions go before replacements.
    edits.sort_by_key(|edit: &Edit| (edit.at.start, !edit.at.is_empty()));
    let stripped = StrippedDocument {
        text: spliced(tree.text(), &edits)?,
        edits,
        taken,
        is_inexact: false,
        unproven: drafts,
    };
    let mut recorded_objects = recorded.iter();
    match recorded_objects.find(|recorded_object| recorded_object.record.text.is_some()) {
        Some(noted) => {
            stripped.parse(tree, recorded)?;
            let proven = StrippedDocument {
                unproven: Vec::new(),
                ..stripped
            };
            give_back_text(tree, kinds, recorded, has_more, proven, noted.at)
        }
        None => Ok(stripped),
    }
}

impl StrippedDocument<'_> {
    /// Parses the text, and proves that it says what the drafts say. `tree` is that of the document with the recorded
    /// changes.
    ///
    /// # Errors
    /// See [`RemovalObstacle`].
    pub(crate) fn parse(
        &self,
        tree: &Tree<'_>,
        recorded: &[RecordedObject<'_>],
    ) -> Result<Tree<'_>, RemovalObstacle> {
        let output = match reparse(tree, &self.text, &changes_of(&self.edits)) {
            Ok(output) => output,
            Err(error) if error.kind == ParseErrorKind::TooDeep => {
                return Err(RemovalObstacle::TooDeep(self.deepest(tree, recorded)));
            }
            Err(error) => {
                let message = format!("it cannot be parsed ({:?})", error.kind);
                return Err(RemovalObstacle::Wrong(message));
            }
        };
        if !self.unproven.is_empty() {
            verify(&output, tree, &self.unproven, &[])
                .map_err(|difference| RemovalObstacle::Wrong(described(&difference, &output)))?;
        }
        Ok(output)
    }

    /// The place of the record with the deepest values. Each record fits into a document by itself, but its object may
    /// be too deep in its document for it.
    fn deepest(&self, tree: &Tree<'_>, recorded: &[RecordedObject<'_>]) -> NodeId {
        let depth_of = |draft: &Draft<'_>| draft.value(&draft.root()).as_ref().map_or(0, depth);
        let objects = recorded.iter().zip(&self.unproven);
        let deepest = objects.max_by_key(|(_, (_, draft))| depth_of(draft));
        deepest.map_or(tree.roots()[0], |(recorded_object, _)| recorded_object.at)
    }
}

fn described(difference: &Difference, output: &Tree<'_>) -> String {
    let Difference { node, description } = difference;
    let at = node.map_or(String::new(), |node| {
        format!(" at `{}`", output.slice(node))
    });
    format!("there is {description}{at}")
}

/// Restores the recorded text differences. `noted` is the place of the first record that has some.
fn give_back_text<'t>(
    tree: &Tree<'_>,
    kinds: &PodKinds,
    recorded: &[RecordedObject<'_>],
    has_more: bool,
    stripped: StrippedDocument<'t>,
    noted: NodeId,
) -> Result<StrippedDocument<'t>, RemovalObstacle> {
    let indices = indices_of(objects_of(tree, kinds).into_iter());
    let records = recorded.iter().filter_map(|recorded_object| {
        let index = *indices.get(&recorded_object.node)?;
        Some((index, &recorded_object.record))
    });
    let records: Vec<(usize, &Record)> = records.collect();
    let text_differences::RestoringEdits {
        edits: mut further,
        is_as_it_was,
        has_lost,
    } = text_differences::edits_of(&stripped.text, kinds, &records)
        .map_err(RemovalObstacle::Wrong)?;
    let was_last = has_more && text_differences::keep_line_end(&stripped.text, &mut further);
    let original = spliced(&stripped.text, &further)?;
    if has_same_values(&stripped.text, &original) {
        return Ok(StrippedDocument {
            edits: compose(tree.text().len(), &stripped.edits, &further),
            text: original,
            is_inexact: has_lost,
            ..stripped
        });
    }
    // If somebody changed the object, the places may have moved. And the kept line end may be part of a value.
    match !is_as_it_was || was_last {
        true => Ok(StrippedDocument {
            is_inexact: !is_as_it_was,
            ..stripped
        }),
        false => Err(RemovalObstacle::Forged(noted)),
    }
}

fn spliced(text: &str, edits: &[Edit]) -> Result<String, RemovalObstacle> {
    String::from_utf8(splice(text.as_bytes(), edits))
        .map_err(|_| RemovalObstacle::Wrong("it is not UTF-8".to_owned()))
}

/// Whether two texts have the same values, apart from the order of list items. Text differences must not change
/// values, whoever wrote the record.
fn has_same_values(undone: &str, original: &str) -> bool {
    let (undone, original) = (unordered_values(undone), unordered_values(original));
    undone.is_some() && undone == original
}

fn unordered_values(text: &str) -> Option<Vec<Value>> {
    let tree = parse(text).ok()?;
    let roots = tree.roots().iter();
    Some(roots.map(|&root| unordered_value(&tree, root)).collect())
}

/// Returns a value with sorted lists. A node without a value that readers agree on, such as a mapping with a
/// duplicate key, becomes a list of its contents.
fn unordered_value(tree: &Tree<'_>, id: NodeId) -> Value {
    match to_value(tree, id) {
        Ok(value) => sort_lists(value),
        Err(_) if tree.kind(id).is_collection() => tree
            .children(id)
            .map(|inner| unordered_value(tree, inner))
            .collect(),
        Err(_) => Value::from(tree.slice(id)),
    }
}

fn sort_lists(mut value: Value) -> Value {
    match &mut value {
        Value::Array(items) => {
            items
                .iter_mut()
                .for_each(|item| *item = sort_lists(item.take()));
            items.sort_by_cached_key(Value::to_string);
        }
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| *field = sort_lists(field.take()));
            fields.sort_keys();
        }
        _ => {}
    }
    value
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .values()
            .map(depth)
            .max()
            .map_or(0, |inner| inner + 1),
        Value::Array(items) => items.iter().map(depth).max().map_or(0, |inner| inner + 1),
        _ => 0,
    }
}
