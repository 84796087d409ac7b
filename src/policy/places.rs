//! From a path in a policy's value to its place in the file: by the file's tree while it is there, afterwards by what was
//! kept of it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::put::Moves;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, find};

/// Where what stands in a policy's file.
#[derive(Debug, Clone)]
pub enum Places<'t> {
    /// Looked up in the tree, from a node.
    Tree(&'t Tree<'t>, NodeId),
    /// Looked up in what was kept.
    Kept(Arc<KeptPlaces>),
    /// Of a value that was made from another: looked up where each part comes from.
    Converted(Arc<Origins>, Box<Places<'t>>),
    /// Of a value into which items of lists were spliced.
    Moved(Arc<Moves>, Box<Places<'t>>),
}

/// Which parts of a value come from which parts of another.
#[derive(Debug)]
pub struct Origins {
    /// The longest first.
    origins: Vec<(Path, Path)>,
}

impl Origins {
    /// The parts of the value, each with the part that it comes from.
    pub fn new(mut origins: Vec<(Path, Path)>) -> Self {
        origins.sort_by_key(|(part, _)| std::cmp::Reverse(part.0.len()));
        Origins { origins }
    }

    /// Where something comes from; what is in a part is taken to come from the same place in its origin.
    fn of(&self, path: &Path) -> Path {
        let found = self.origins.iter().find(|(part, _)| path.starts_with(part));
        found.map_or_else(Path::default, |(part, origin)| {
            origin.join(&Path(path.0[part.0.len()..].to_vec()))
        })
    }
}

/// The bytes of a value, and of its key where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPlace {
    /// The key's.
    pub key: Option<Range<usize>>,
    /// The value's.
    pub value: Range<usize>,
}

/// The places of a value and of all in it.
#[derive(Debug)]
pub struct KeptPlaces {
    places: BTreeMap<Path, FoundPlace>,
}

impl Places<'_> {
    /// The place of a path, or of the longest beginning of it that is there.
    pub fn find(&self, path: &Path) -> FoundPlace {
        match self {
            Places::Tree(tree, root) => {
                let found = find(tree, *root, path);
                FoundPlace {
                    key: found.key.map(|key| tree.span(key)),
                    value: tree.span(found.value),
                }
            }
            Places::Kept(kept) => kept.find(path),
            Places::Converted(origins, places) => places.find(&origins.of(path)),
            Places::Moved(moves, places) => places.find(&moves.before(path)),
        }
    }

    /// A scalar as it is written; not known any more once the tree is gone, and of what was never written.
    pub fn written(&self, path: &Path) -> Option<&str> {
        match self {
            Places::Tree(tree, root) => tree.scalar(find(tree, *root, path).value),
            Places::Moved(moves, places) => places.written(&moves.before(path)),
            Places::Kept(_) | Places::Converted(..) => None,
        }
    }

    /// What the user calls the field at a path.
    pub fn name(&self, path: &Path) -> String {
        match self {
            Places::Converted(origins, _) => origins.of(path).name(),
            Places::Moved(moves, places) => places.name(&moves.before(path)),
            Places::Tree(..) | Places::Kept(_) => path.name(),
        }
    }

    /// What is needed later of a value at a path.
    pub fn keep(&self, value: &Value, path: &Path) -> Arc<KeptPlaces> {
        let mut kept = KeptPlaces {
            places: BTreeMap::new(),
        };
        kept.add(self, value, path.clone());
        Arc::new(kept)
    }
}

impl KeptPlaces {
    fn add(&mut self, places: &Places<'_>, value: &Value, path: Path) {
        match value {
            Value::Array(entries) => {
                entries
                    .iter()
                    .enumerate()
                    .for_each(|(at, entry)| self.add(places, entry, path.index(at)));
            }
            Value::Object(map) => map
                .iter()
                .for_each(|(key, entry)| self.add(places, entry, path.key(key))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        self.places.insert(path.clone(), places.find(&path));
    }

    /// The place of a path, or of the longest beginning of it that was kept.
    pub fn find(&self, path: &Path) -> FoundPlace {
        let mut path = path.clone();
        loop {
            match (self.places.get(&path), path.0.pop()) {
                (Some(place), _) => return place.clone(),
                (None, Some(_)) => {}
                (None, None) => {
                    return FoundPlace {
                        key: None,
                        value: 0..0,
                    };
                }
            }
        }
    }
}
