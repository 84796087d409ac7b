//! A document with records in, the document without what they say out: the bytes that it had before.

mod compose;
mod places;

use serde_json::Value;

use crate::edit::{CannotWrite, Written, lower};
use crate::manifest::object::{Found, find_objects};
use crate::manifest::pod::Workload;
use crate::manifest::workload::PodKinds;
use crate::ownership::WorkloadKey;
use crate::plan::draft::{Draft, Refusal};
use crate::plan::reconcile::reconcile;
use crate::record::lock::Locks;
use crate::record::{Leniency, MARKER, Paths, RECORD, Record, Taken, Unreadable, take_out};
use crate::verify::{Difference, verify};
use crate::yaml::parse::{Change, ParseError, ParseErrorKind, parse, parse_again};
use crate::yaml::splice::{Edit, changes_of, splice};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::to_value;

pub(crate) use compose::compose;
pub(crate) use places::places_between;

/// An object that has a record.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    /// The object.
    pub node: NodeId,
    /// The record's place: the value of the annotation, or the mark of the policies that a lock file knows more of.
    pub at: NodeId,
    /// The record stands in an annotation.
    pub is_annotated: bool,
    /// Where the lock file has it.
    pub from: Option<WorkloadKey>,
    /// What it says.
    pub record: Record,
    /// Of the policies in it, those that this run adopts.
    pub adopted: Vec<String>,
    /// The object's value.
    pub value: Value,
}

/// A document without what its records say.
#[derive(Debug, Clone)]
pub(crate) struct Stripped {
    /// What turns the document into it.
    pub edits: Vec<Edit>,
    /// Its text.
    pub text: String,
    /// What was taken out of each recorded object, in their order.
    pub taken: Vec<Taken>,
    /// Somebody changed an object since, so that not everything has the form that it had.
    pub is_inexact: bool,
}

/// Why a document cannot be had without what its records say.
#[derive(Debug, Clone)]
pub(crate) enum Obstacle {
    /// Something may not be edited.
    Refused(Refusal),
    /// There is no safe way to write it.
    CannotWrite(CannotWrite),
    /// What a record says cannot be: somebody changed the record.
    Forged(NodeId),
    /// What the record at this place says would nest deeper than a document may: somebody changed the record.
    TooDeep(NodeId),
    /// The result is not what it must be: a bug.
    Wrong(String),
}

/// Reads an object's record.
///
/// # Errors
/// When there is one that cannot be read, with its place.
pub(crate) fn read_record(
    tree: &Tree<'_>,
    object: NodeId,
) -> Result<Option<Recorded>, (NodeId, Unreadable)> {
    let annotations = tree
        .get(object, "metadata")
        .and_then(|metadata| tree.get(metadata, "annotations"));
    let Some(at) = annotations.and_then(|annotations| tree.get(annotations, RECORD)) else {
        return Ok(None);
    };
    let text = tree
        .scalar(at)
        .ok_or_else(|| (at, Unreadable::Damaged("it is no text".to_owned())))?;
    let mut record = Record::read(text).map_err(|why| (at, why))?;
    let value = to_value(tree, object);
    let value = value.map_err(|_| (at, Unreadable::Ambiguous))?;
    record.follow_renames(&value);
    Ok(Some(Recorded {
        node: object,
        at,
        is_annotated: true,
        from: None,
        record,
        adopted: Vec::new(),
        value,
    }))
}

/// The record that the run's lock files have of a marked workload.
///
/// # Errors
/// The record may be one of several, with the place of the mark.
pub(crate) fn locked_record(
    workload: &Workload<'_>,
    locks: &Locks,
    is_here: &dyn Fn(&WorkloadKey) -> bool,
) -> Result<Option<Recorded>, (NodeId, Unreadable)> {
    let (tree, node) = (workload.tree, workload.object.node);
    let Some(at) = workload.own_annotation(MARKER) else {
        return Ok(None);
    };
    let (Some(marked), Ok(value)) = (tree.scalar(at), to_value(tree, node)) else {
        return Ok(None);
    };
    let marked: Vec<&str> = marked.split(',').map(str::trim).collect();
    let found = locks.record(
        &workload.source.name,
        (
            &workload.object.kind,
            workload.stated_namespace(),
            &workload.name,
        ),
        &Paths::of(&workload.pod_kind.path),
        (&marked, &value),
        is_here,
    );
    let found = found.map_err(|several| (at, Unreadable::Several(several)))?;
    Ok(found.map(|(from, mut record)| {
        record.follow_renames(&value);
        Recorded {
            node,
            at,
            is_annotated: false,
            from: Some(from),
            record,
            adopted: Vec::new(),
            value,
        }
    }))
}

/// The objects of a document, in order.
pub(crate) fn objects_of(tree: &Tree<'_>, kinds: &PodKinds) -> Vec<NodeId> {
    let node = |found| match found {
        Found::Object(object) => object.node,
        Found::Untyped { node, .. } => node,
    };
    find_objects(tree, kinds).into_iter().map(node).collect()
}

/// Takes out all that the records say, as if nothing had ever been injected. Where there is more text behind the
/// document, it keeps its last line end, whatever it had when it was the last.
///
/// # Errors
/// See [`Obstacle`].
pub(crate) fn strip(
    tree: &Tree<'_>,
    kinds: &PodKinds,
    recorded: &[Recorded],
    has_more: bool,
    leniency: impl Fn(&str) -> Leniency,
) -> Result<Stripped, Obstacle> {
    if recorded.is_empty() {
        return Ok(Stripped {
            edits: Vec::new(),
            text: tree.text().to_owned(),
            taken: Vec::new(),
            is_inexact: false,
        });
    }
    let (mut edits, mut taken, mut drafts) = (Vec::new(), Vec::new(), Vec::new());
    let mut written = Written::default();
    for one in recorded {
        let own = take_out(&one.record, &one.value, &leniency);
        let mut draft = Draft::new(tree, one.node);
        reconcile(&mut draft, &one.value, &own.value).map_err(Obstacle::Refused)?;
        edits.extend(lower(&draft, one.node, &mut written).map_err(Obstacle::CannotWrite)?);
        taken.push(own);
        drafts.push((one.node, draft));
    }
    edits.sort_by_key(|edit: &Edit| (edit.at.start, !edit.at.is_empty()));
    let text = spliced(tree.text(), &edits)?;
    let changes = changes_of(&edits);
    check(tree, (&text, &changes), &drafts, (recorded, &taken))?;
    let stripped = Stripped {
        edits,
        text,
        taken,
        is_inexact: false,
    };
    match recorded.iter().find(|one| one.record.text.is_some()) {
        Some(noted) => give_back_text(tree, kinds, recorded, has_more, stripped, noted.at),
        None => Ok(stripped),
    }
}

/// Does what the records say of the text beside the values; `noted` is the place of the first record that does.
fn give_back_text(
    tree: &Tree<'_>,
    kinds: &PodKinds,
    recorded: &[Recorded],
    has_more: bool,
    stripped: Stripped,
    noted: NodeId,
) -> Result<Stripped, Obstacle> {
    let own = objects_of(tree, kinds);
    let records: Vec<(usize, &Record)> = recorded
        .iter()
        .filter_map(|one| Some((own.iter().position(|node| *node == one.node)?, &one.record)))
        .collect();
    let places::Further {
        edits: mut further,
        is_as_it_was,
        has_lost,
    } = places::edits_of(&stripped.text, kinds, &records).map_err(Obstacle::Wrong)?;
    let was_last = has_more && places::keep_line_end(&stripped.text, &mut further);
    let original = spliced(&stripped.text, &further)?;
    if has_same_values(&stripped.text, &original) {
        return Ok(Stripped {
            edits: compose(tree.text().len(), &stripped.edits, &further),
            text: original,
            is_inexact: has_lost,
            ..stripped
        });
    }
    // Beside what somebody changed since, the places are not where they were; and a last line end may be a value's.
    match !is_as_it_was || was_last {
        true => Ok(Stripped {
            is_inexact: !is_as_it_was,
            ..stripped
        }),
        false => Err(Obstacle::Forged(noted)),
    }
}

fn spliced(text: &str, edits: &[Edit]) -> Result<String, Obstacle> {
    String::from_utf8(splice(text.as_bytes(), edits))
        .map_err(|_| Obstacle::Wrong("it is not UTF-8".to_owned()))
}

/// What a record says about text changes no value, whoever wrote the record; items of a list may change places.
fn has_same_values(undone: &str, original: &str) -> bool {
    let values = |text: &str| -> Option<Vec<Value>> {
        let tree = parse(text).ok()?;
        Some(
            tree.roots()
                .iter()
                .map(|&root| loosely(&tree, root))
                .collect(),
        )
    };
    matches!((values(undone), values(original)), (Some(undone), Some(original)) if undone == original)
}

/// A value without the order of its lists. What has none that readers agree on, as a mapping with one key twice, becomes
/// a list of what it holds.
fn loosely(tree: &Tree<'_>, id: NodeId) -> Value {
    match to_value(tree, id) {
        Ok(value) => in_any_order(value),
        Err(_) if tree.kind(id).is_collection() => tree
            .children(id)
            .map(|inner| loosely(tree, inner))
            .collect(),
        Err(_) => Value::from(tree.slice(id)),
    }
}

fn in_any_order(mut value: Value) -> Value {
    match &mut value {
        Value::Array(items) => {
            items
                .iter_mut()
                .for_each(|item| *item = in_any_order(item.take()));
            items.sort_by_cached_key(Value::to_string);
        }
        Value::Object(fields) => {
            fields
                .values_mut()
                .for_each(|field| *field = in_any_order(field.take()));
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

fn check(
    tree: &Tree<'_>,
    (text, changes): (&str, &[Change]),
    drafts: &[(NodeId, Draft<'_>)],
    (recorded, taken): (&[Recorded], &[Taken]),
) -> Result<(), Obstacle> {
    match parse_again(tree, text, changes) {
        Err(ParseError {
            kind: ParseErrorKind::TooDeep,
            ..
        }) => {
            // What a record says fits into a document, and this object stands too deep in its own for that.
            let deepest = recorded
                .iter()
                .zip(taken)
                .max_by_key(|(_, taken)| depth(&taken.value));
            Err(Obstacle::TooDeep(
                deepest.map_or(tree.roots()[0], |(one, _)| one.at),
            ))
        }
        Err(error) => Err(Obstacle::Wrong(format!(
            "it cannot be parsed ({:?})",
            error.kind
        ))),
        Ok(output) => verify(&output, tree, drafts, &[]).map_err(|Difference { node, what }| {
            let at = node.map_or(String::new(), |node| {
                format!(" at `{}`", output.slice(node))
            });
            Obstacle::Wrong(format!("there is {what}{at}"))
        }),
    }
}
