//! The workloads of a file that have podgraft's marker. Used when a marked workload has no entry in the lock file,
//! because it may have been renamed.

use memchr::memmem;
use std::collections::HashSet;
use std::sync::OnceLock;

use crate::manifest::object::{DocumentContent, find_objects};
use crate::manifest::pod::Workload;
use crate::manifest::workload::PodKinds;
use crate::ownership::WorkloadKey;
use crate::record::MARKER;
use crate::source::Source;
use crate::yaml::parse::parse;
use crate::yaml::stream::chunks;

/// Kind, stated namespace, name.
type MarkedName = (String, String, String);

/// The marked workloads of a file, found on first use.
pub(super) struct MarkedWorkloads<'s> {
    text: &'s [u8],
    kinds: &'s PodKinds,
    names: OnceLock<HashSet<MarkedName>>,
}

impl<'s> MarkedWorkloads<'s> {
    /// `text` must be that of the whole file.
    pub(super) fn of(text: &'s [u8], kinds: &'s PodKinds) -> Self {
        MarkedWorkloads {
            text,
            kinds,
            names: OnceLock::new(),
        }
    }

    /// Whether the file has a marked workload with the kind, stated namespace and name of this key.
    pub(super) fn contains(&self, key: &WorkloadKey) -> bool {
        let names = self.names.get_or_init(|| self.find());
        names.contains(&(key.kind.clone(), key.namespace.clone(), key.name.clone()))
    }

    fn find(&self) -> HashSet<MarkedName> {
        let is_marked = |text: &&[u8]| memmem::find(text, MARKER.as_bytes()).is_some();
        let mut names = HashSet::new();
        for text in chunks(self.text).map(|chunk| chunk.text).filter(is_marked) {
            let Ok(text) = std::str::from_utf8(text) else {
                continue;
            };
            let Ok(tree) = parse(text) else { continue };
            let source = Source::new("", text);
            for found in find_objects(&tree, self.kinds) {
                let DocumentContent::Object(object) = found else {
                    continue;
                };
                let kind = self.kinds.find(&object.api_version, &object.kind);
                let read = |kind| Workload::read(&tree, &source, object, kind, None).ok();
                let Some(workload) = kind.and_then(read) else {
                    continue;
                };
                if workload.workload_annotation(MARKER).is_some() {
                    let namespace = workload.stated_namespace().to_owned();
                    names.insert((workload.object.kind, namespace, workload.name));
                }
            }
        }
        names
    }
}
