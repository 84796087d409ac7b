//! From a path in a policy's value to its place in the file: by the file's tree while it is there, afterwards by what was
//! kept of it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::replacement::ItemMoves;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, Step, find};

/// The positions of values in a policy's file.
#[derive(Debug, Clone)]
pub enum Places<'t> {
    /// Looked up in the tree, from a node.
    Tree(&'t Tree<'t>, NodeId),
    /// Looked up in what was kept.
    Kept(Arc<StoredPlaces>),
    /// Of a value that was made from another: looked up where each part comes from.
    Converted(Arc<ValueOrigins>, Box<Places<'t>>),
    /// Of a value into which items of lists were spliced.
    Moved(Arc<ItemMoves>, Box<Places<'t>>),
    /// Of a policy that nobody has as a file: looked up in the resource that it is for.
    OfResource(Arc<ResourcePlaces<'t>>),
}

/// Which fields of a resource the parts of its policy read.
#[derive(Debug, Clone)]
pub struct ResourcePlaces<'t> {
    /// Parts of the policy, each with the fields that it reads; the first that is there counts.
    origins: Vec<(Path, Vec<Path>)>,
    /// The resource as it is written.
    value: Value,
    resource: Places<'t>,
    policy: Places<'t>,
}

impl<'t> ResourcePlaces<'t> {
    /// The places of a policy's parts in a resource.
    pub fn new(
        origins: Vec<(Path, Vec<Path>)>,
        (value, resource): (Value, Places<'t>),
        policy: Places<'t>,
    ) -> Self {
        ResourcePlaces {
            origins,
            value,
            resource,
            policy,
        }
    }

    /// The field that a part of the policy is about: that which it reads, or which is read within it, or around it.
    fn field(&self, path: &Path) -> Option<Path> {
        let read = |fields: &[Path]| {
            fields
                .iter()
                .find(|field| field.get(&self.value).is_some())
                .cloned()
        };
        let mut inner = self.origins.iter();
        let within = inner.find_map(|(part, fields)| {
            (part.starts_with(path) && path.0.len() > 1)
                .then(|| read(fields))
                .flatten()
        });
        let around = || {
            (0..path.0.len()).rev().find_map(|end| {
                let (part, rest) = path.0.split_at(end);
                let mut origins = self.origins.iter().filter(|(origin, _)| origin.0 == part);
                let mut field = origins.find_map(|(_, fields)| read(fields))?;
                for step in rest {
                    let further = field.join(&Path(vec![step.clone()]));
                    if further.get(&self.value).is_none() {
                        break;
                    }
                    field = further;
                }
                Some(field)
            })
        };
        within.or_else(around)
    }

    fn find(&self, path: &Path) -> ValueSpan {
        let name = || Path::of(&["metadata", "name"]);
        self.resource.find(&self.field(path).unwrap_or_else(name))
    }

    /// Texts were filled in. An item that was spliced in comes from the entry that it is, where there is one.
    pub fn filled(&self, moves: &ItemMoves, value: &Value) -> Self {
        let mut origins = Vec::new();
        for (part, fields) in &self.origins {
            for moved in moves.new_paths(part) {
                let item = moved.get(value).filter(|_| moves.old_path(&moved) == *part);
                let entry = |field: &Path| {
                    let entries = field.get(&self.value)?.as_array()?;
                    let at = entries.iter().position(|entry| Some(entry) == item)?;
                    Some(field.index(at))
                };
                let is_item = matches!(moved.0.last(), Some(Step::Index(_)));
                let entries = fields.iter().filter(|_| is_item).filter_map(entry);
                let fields = entries.chain(fields.iter().cloned()).collect();
                origins.push((moved, fields));
            }
        }
        let policy = Places::Moved(Arc::new(moves.clone()), Box::new(self.policy.clone()));
        ResourcePlaces {
            origins,
            policy,
            ..self.clone()
        }
    }
}

/// Maps parts of a value to the parts of another value that they come from.
#[derive(Debug)]
pub struct ValueOrigins {
    /// The longest first.
    origins: Vec<(Path, Path)>,
}

impl ValueOrigins {
    /// The parts of the value, each with the part that it comes from.
    pub fn new(mut origins: Vec<(Path, Path)>) -> Self {
        origins.sort_by_key(|(part, _)| std::cmp::Reverse(part.0.len()));
        ValueOrigins { origins }
    }

    /// Where something comes from; what is in a part is taken to come from the same place in its origin.
    fn of(&self, path: &Path) -> Path {
        let found = self.origins.iter().find(|(part, _)| path.starts_with(part));
        found.map_or_else(Path::default, |(part, origin)| {
            origin.join(&Path(path.0[part.0.len()..].to_vec()))
        })
    }
}

/// The byte ranges of a value and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSpan {
    /// The key's.
    pub key: Option<Range<usize>>,
    /// The value's.
    pub value: Range<usize>,
}

/// The positions of a value and of everything in it.
#[derive(Debug, Default)]
pub struct StoredPlaces {
    /// Of what is on the way to the value, none.
    place: Option<ValueSpan>,
    within: BTreeMap<Step, StoredPlaces>,
}

impl Places<'_> {
    /// The place of a path, or of the longest beginning of it that is there.
    pub fn find(&self, path: &Path) -> ValueSpan {
        match self {
            Places::Tree(tree, root) => {
                let found = find(tree, *root, path);
                ValueSpan {
                    key: found.key.map(|key| tree.span(key)),
                    value: tree.span(found.value),
                }
            }
            Places::Kept(kept) => kept.find(path),
            Places::Converted(origins, places) => places.find(&origins.of(path)),
            Places::Moved(moves, places) => places.find(&moves.old_path(path)),
            Places::OfResource(resource) => resource.find(path),
        }
    }

    /// A scalar as it is written; not known any more once the tree is gone, and of what was never written.
    pub fn written(&self, path: &Path) -> Option<&str> {
        match self {
            Places::Tree(tree, root) => tree.scalar(find(tree, *root, path).value),
            Places::Moved(moves, places) => places.written(&moves.old_path(path)),
            Places::OfResource(resource) => resource.policy.written(path),
            Places::Kept(_) | Places::Converted(..) => None,
        }
    }

    /// What the user calls the field at a path.
    pub fn name(&self, path: &Path) -> String {
        match self {
            Places::Converted(origins, _) => origins.of(path).name(),
            Places::Moved(moves, places) => places.name(&moves.old_path(path)),
            Places::OfResource(resource) => {
                resource.field(path).unwrap_or_else(|| path.clone()).name()
            }
            Places::Tree(..) | Places::Kept(_) => path.name(),
        }
    }

    /// What is needed later of a value at a path.
    pub fn keep(&self, value: &Value, path: &Path) -> Arc<StoredPlaces> {
        let mut kept = StoredPlaces::of(self, value, path);
        for step in path.0.iter().rev() {
            kept = StoredPlaces {
                place: None,
                within: BTreeMap::from([(step.clone(), kept)]),
            };
        }
        Arc::new(kept)
    }
}

impl StoredPlaces {
    fn of(places: &Places<'_>, value: &Value, path: &Path) -> Self {
        let kept = |step: Step| {
            let path = path.join(&Path(vec![step.clone()]));
            let value = Path(vec![step.clone()]).get(value).unwrap_or(&Value::Null);
            (step, StoredPlaces::of(places, value, &path))
        };
        let within = match value {
            Value::Array(entries) => (0..entries.len()).map(Step::Index).map(kept).collect(),
            Value::Object(map) => map.keys().cloned().map(Step::Key).map(kept).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => BTreeMap::new(),
        };
        StoredPlaces {
            place: Some(places.find(path)),
            within,
        }
    }

    /// The place of a path, or of the longest beginning of it that was kept.
    pub fn find(&self, path: &Path) -> ValueSpan {
        let (mut at, mut place) = (self, self.place.as_ref());
        for step in &path.0 {
            let Some(inner) = at.within.get(step) else {
                break;
            };
            (at, place) = (inner, inner.place.as_ref().or(place));
        }
        place.cloned().unwrap_or(ValueSpan {
            key: None,
            value: 0..0,
        })
    }
}
