//! Maps a path in a policy's value to its place in the file. Uses the file's tree while it exists, and stored byte
//! ranges afterwards.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::replacement::ItemMoves;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, Step, find};

/// A way to find the byte range of a value in a policy's file.
#[derive(Debug, Clone)]
pub enum Places<'t> {
    /// In the tree of the file, below a node.
    Tree(&'t Tree<'t>, NodeId),
    /// In stored byte ranges.
    Kept(Arc<StoredPlaces>),
    /// For a value in whose lists items were spliced in, repeated or left out: at the old index.
    Moved(Arc<ItemMoves>, Box<Places<'t>>),
    /// For a built-in policy, whose file the user does not have: in the resource that it is applied for.
    OfResource(Arc<ResourcePlaces<'t>>),
}

/// Maps parts of a policy to the fields of a resource that they read.
#[derive(Debug, Clone)]
pub struct ResourcePlaces<'t> {
    /// Paths in the policy, each with the fields that it reads. The first field that exists is the place.
    pub origins: Vec<(Path, Vec<Path>)>,
    /// The resource as written, without defaults.
    pub value: Value,
    /// The places of the resource.
    pub resource: Places<'t>,
    /// The places of the policy.
    pub policy: Places<'t>,
}

impl ResourcePlaces<'_> {
    /// The field of the resource that a path of the policy is about: a field that is read at or below the path, or else
    /// by a parent of the path.
    fn field(&self, path: &Path) -> Option<Path> {
        let mut ends = (0..path.0.len()).rev();
        self.field_within(path)
            .or_else(|| ends.find_map(|end| self.field_around(&path.0[..end], &path.0[end..])))
    }

    /// The first field that is read at a path or below it.
    fn field_within(&self, path: &Path) -> Option<Path> {
        let mut inner = self.origins.iter();
        inner.find_map(|(part, fields)| {
            (part.starts_with(path) && path.0.len() > 1)
                .then(|| self.first_stated(fields))
                .flatten()
        })
    }

    /// The field that a parent of a path reads, as far as the rest of the path leads into it.
    fn field_around(&self, part: &[Step], rest: &[Step]) -> Option<Path> {
        let mut origins = self.origins.iter().filter(|(origin, _)| origin.0 == part);
        let mut field = origins.find_map(|(_, fields)| self.first_stated(fields))?;
        for step in rest {
            let further = field.join(&Path(vec![step.clone()]));
            if further.get(&self.value).is_none() {
                break;
            }
            field = further;
        }
        Some(field)
    }

    fn first_stated(&self, fields: &[Path]) -> Option<Path> {
        let mut fields = fields.iter();
        fields
            .find(|field| field.get(&self.value).is_some())
            .cloned()
    }

    fn find(&self, path: &Path) -> ValueSpan {
        let name = || Path::of(&["metadata", "name"]);
        self.resource.find(&self.field(path).unwrap_or_else(name))
    }

    /// The places after templates were filled in. An item that was spliced in is placed at the equal entry of the
    /// resource's list, if there is one.
    pub fn filled(&self, moves: &ItemMoves, value: &Value) -> Self {
        let mut origins = Vec::new();
        for (part, fields) in &self.origins {
            for moved in moves.new_paths(part) {
                let item = moved.get(value).filter(|_| moves.old_path(&moved) == *part);
                let is_item = matches!(moved.0.last(), Some(Step::Index(_)));
                let lists = fields.iter().filter(|_| is_item);
                let entries = lists.filter_map(|field| {
                    let entries = field.get(&self.value)?.as_array()?;
                    let at = entries.iter().position(|entry| Some(entry) == item)?;
                    Some(field.index(at))
                });
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

/// The byte ranges of a value and its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueSpan {
    /// The byte range of the key; `None` for list items and the root.
    pub key: Option<Range<usize>>,
    /// The byte range of the value.
    pub value: Range<usize>,
}

/// The byte ranges of a value and everything in it, kept after the tree is gone.
#[derive(Debug, Default)]
pub struct StoredPlaces {
    /// `None` for the nodes on the way to the kept value.
    place: Option<ValueSpan>,
    within: BTreeMap<Step, StoredPlaces>,
}

impl Places<'_> {
    /// The byte ranges at a path, or at its longest prefix that exists.
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
            Places::Moved(moves, places) => places.find(&moves.old_path(path)),
            Places::OfResource(resource) => resource.find(path),
        }
    }

    /// A scalar as written. `None` for a value that was computed, or after the tree is gone.
    pub fn written(&self, path: &Path) -> Option<&str> {
        match self {
            Places::Tree(tree, root) => tree.scalar(find(tree, *root, path).value),
            Places::Moved(moves, places) if !moves.are_copies => {
                places.written(&moves.old_path(path))
            }
            Places::OfResource(resource) => resource.policy.written(path),
            Places::Kept(_) | Places::Moved(..) => None,
        }
    }

    /// The field name at a path, as the user knows it: of the old path if it moved.
    pub fn name(&self, path: &Path) -> String {
        match self {
            Places::Moved(moves, places) => places.name(&moves.old_path(path)),
            Places::OfResource(resource) => {
                resource.field(path).unwrap_or_else(|| path.clone()).name()
            }
            Places::Tree(..) | Places::Kept(_) => path.name(),
        }
    }

    /// The field of the resource that a part of the policy reads. `None` if it reads none, or if the user has the
    /// policy's file.
    pub(crate) fn field_of_resource(&self, path: &Path) -> Option<String> {
        match self {
            Places::OfResource(resource) => resource.field_within(path).map(|field| field.name()),
            _ => None,
        }
    }

    /// The kind of the resource, if the user does not have the policy's file.
    pub(crate) fn kind_of_resource(&self) -> Option<&str> {
        match self {
            Places::OfResource(resource) => resource.value.get("kind")?.as_str(),
            _ => None,
        }
    }

    /// Stores the byte ranges of the value at a path, so that they outlive the tree.
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
        let steps: Vec<Step> = match value {
            Value::Array(entries) => (0..entries.len()).map(Step::Index).collect(),
            Value::Object(map) => map.keys().cloned().map(Step::Key).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        let within = steps.into_iter().map(|step| {
            let below = Path(vec![step.clone()]);
            let value = below.get(value).unwrap_or(&Value::Null);
            (step, StoredPlaces::of(places, value, &path.join(&below)))
        });
        StoredPlaces {
            place: Some(places.find(path)),
            within: within.collect(),
        }
    }

    /// The byte ranges at a path, or at its longest prefix that was stored.
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
