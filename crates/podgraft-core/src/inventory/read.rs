//! Reads the needed objects of a text. Documents that cannot hold such an object are not parsed.

use memchr::memmem::{self, Finder};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::index::quick_name::{PlainName, plain_name};
use super::object::data_of;
use super::{
    DataKind, Inventory, InventoryNeeds, KnownObject, NamespaceMeta, SourceRole, UnreadData, add,
    name_in,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::object::{Object, find_template_line, objects_in};
use crate::manifest::prefilter::{DocumentScan, classify};
use crate::manifest::workload::PodKinds;
use crate::options::Options;
use crate::outcome::ObjectName;
use crate::record::{RECORD, Record};
use crate::source::{LineCounter, Place, Source};
use crate::yaml::parse::parse;
use crate::yaml::stream::chunks;
use crate::yaml::tree::Tree;
use crate::yaml::value::to_value;

/// Returns the needed objects of a text, and errors about documents that may hold one but cannot be read. Bytes that
/// are not UTF-8 are skipped here: they are reported where the text is read as manifests.
///
/// The text may be a part of a file that begins on the line `first_line`.
pub fn read_part(
    name: &Arc<str>,
    text: &[u8],
    first_line: usize,
    role: SourceRole,
    needs: &InventoryNeeds,
    options: &Options,
) -> (Inventory, Vec<Diagnostic>) {
    let mut reader = InventoryReader::new(name, role, needs, options);
    // A generated object may exist because an earlier run wrote it; the records of workloads tell.
    let record = (!needs.generated.is_empty() && role == SourceRole::Manifest).then_some(RECORD);
    let words: Vec<Finder<'_>> = needs.kinds().chain(record).map(Finder::new).collect();
    let has_word = |text: &[u8]| words.iter().any(|word| word.find(text).is_some());
    if !has_word(text) {
        return (reader.found, Vec::new());
    }
    let kinds = PodKinds::of(options);
    let mut lines = LineCounter::new(text, first_line);
    for chunk in chunks(text).filter(|chunk| has_word(chunk.text)) {
        reader.document(chunk.text, lines.line_at(chunk.start), &kinds);
    }
    let problems = reader.unreadable.into_iter();
    let problems = problems.map(|place| unreadable_in(role, place));
    (reader.found, problems.collect())
}

fn unreadable_in(role: SourceRole, place: Place) -> Diagnostic {
    let problem = unreadable(place);
    match role {
        SourceRole::Manifest | SourceRole::Companion | SourceRole::Context => problem,
        SourceRole::RecordedFile => problem.help(
            "fix it: podgraft.lock says that this file needs generated objects, which may be here",
        ),
    }
}

/// A template with nothing where a `{{ }}` has its lines for itself, and elsewhere with what no name contains.
fn without_actions(text: &str) -> String {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, (action, behind))) = rest
        .split_once("{{")
        .and_then(|(before, rest)| Some((before, rest.split_once("}}")?)))
    {
        done.push_str(before);
        let line = &done[done.rfind('\n').map_or(0, |at| at + 1)..];
        let end = behind.split('\n').next().unwrap_or_default();
        if !line.trim().is_empty() || !end.trim().is_empty() {
            done.push('_');
        }
        // The places of what follows stay on their lines.
        done.extend(action.matches('\n'));
        rest = behind;
    }
    done + rest
}

/// The error for a document that may be what a policy needs.
pub(crate) fn unreadable(place: Place) -> Diagnostic {
    let is_template = place.excerpt[place.start..].starts_with("{{");
    let (code, reason, help) = match is_template {
        true => (
            Code::NotRendered,
            "is a template that has not been rendered",
            "render it first (`helm template`), or exclude the file",
        ),
        false => (
            Code::NotYaml,
            "cannot be read",
            "fix it, or exclude the file",
        ),
    };
    let message =
        format!("a policy needs other objects, and a document that may be one of them {reason}");
    Diagnostic::error(code, message)
        .at(place, "here")
        .help(help)
}

/// Reads documents into an inventory.
pub(super) struct InventoryReader<'r> {
    name: &'r Arc<str>,
    role: SourceRole,
    needs: &'r InventoryNeeds,
    options: &'r Options,
    found: Inventory,
    /// Documents that may hold a needed object and cannot be read.
    unreadable: Vec<Place>,
}

impl<'r> InventoryReader<'r> {
    pub(super) fn new(
        name: &'r Arc<str>,
        role: SourceRole,
        needs: &'r InventoryNeeds,
        options: &'r Options,
    ) -> Self {
        InventoryReader {
            name,
            role,
            needs,
            options,
            found: Inventory::default(),
            unreadable: Vec::new(),
        }
    }

    /// The objects that were read, and the places of documents that may hold one and cannot be read.
    pub(super) fn into_found(mut self) -> (Inventory, Vec<Place>) {
        let unread = std::mem::take(&mut self.found.unread).into_iter();
        self.unreadable.extend(unread.map(|unread| unread.place));
        (self.found, self.unreadable)
    }

    pub(super) fn document(&mut self, bytes: &[u8], first_line: usize, kinds: &PodKinds) {
        let has_record =
            !self.needs.generated.is_empty() && memmem::find(bytes, RECORD.as_bytes()).is_some();
        let is_planned = self.role == SourceRole::Manifest;
        let (kind, is_asked_for, is_read_elsewhere) = match classify(bytes, kinds) {
            DocumentScan::LetThrough {
                kind, is_object, ..
            } => {
                let is_asked_for = has_record || kind.is_some_and(|kind| self.asks_for(kind));
                (kind, is_object && is_asked_for, false)
            }
            DocumentScan::Workload { kind } => {
                (Some(kind), has_record || self.asks_for(kind), is_planned)
            }
            DocumentScan::Parse => (None, true, is_planned),
        };
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|_| is_asked_for) else {
            return;
        };
        let source = Source::from_line(Arc::clone(self.name), text, first_line);
        match parse(text) {
            Ok(tree) => {
                for object in objects_in(&tree, kinds) {
                    let is_recorded = has_record && self.record(&object, &tree);
                    if !is_recorded && self.asks_for(&object.kind) {
                        self.object(&object, &tree, &source);
                    }
                }
            }
            // The pipeline parses this document as well and reports a better error.
            Err(_) if is_read_elsewhere => {}
            Err(error) => self.refuse(&source, error.at, kind, None),
        }
    }

    /// Adds the generated objects that the object's record names. `false` if it has no readable record; errors in it
    /// are reported when the workload is planned.
    fn record(&mut self, object: &Object, tree: &Tree<'_>) -> bool {
        let annotations = tree
            .get(object.node, "metadata")
            .and_then(|metadata| tree.get(metadata, "annotations"));
        let record =
            annotations.and_then(|annotations| tree.scalar(tree.get(annotations, RECORD)?));
        let Some(record) = record.and_then(|text| Record::read(text).ok()) else {
            return false;
        };
        for recorded in record.policies {
            self.found.recorded.add_policy(recorded);
        }
        true
    }

    fn asks_for(&self, kind: impl AsRef<[u8]>) -> bool {
        self.needs
            .kinds()
            .any(|wanted| wanted.as_bytes() == kind.as_ref())
    }

    /// Notes a document that cannot be read: it may hold an object that a policy needs, so it cannot be skipped silently.
    /// Of the data of a ConfigMap or Secret, that matters to who looks it up. Of a template of a kind that policies
    /// generate, the names are all that matters: no earlier run wrote it.
    fn refuse(
        &mut self,
        source: &Source<'_>,
        at: Range<usize>,
        kind: Option<&[u8]>,
        object: Option<(&Object, &Tree<'_>)>,
    ) {
        let template = find_template_line(source.text);
        let place = source.place(template.clone().unwrap_or(at));
        let is_kind = |wanted: &str| kind.is_some_and(|kind| wanted.as_bytes() == kind);
        let is_data = self.needs.data && kind.and_then(DataKind::of).is_some();
        if kind.is_none()
            || self.needs.kinds_of_whole_objects().any(is_kind)
            || is_data && self.role != SourceRole::Manifest
        {
            return self.unreadable.push(place);
        }
        if is_data {
            let name = self.plain_name(source, kind);
            let place = place.clone();
            self.found.unread.push(UnreadData { name, place });
        }
        let mut generated = self.needs.generated.iter();
        if generated.any(|(_, kind)| is_kind(kind)) {
            match (template, object) {
                (Some(_), Some((object, tree))) => self.add_name(object, tree, &place),
                (Some(_), None) => self.template(source, &place),
                (None, _) => self.unreadable.push(place),
            }
        }
    }

    /// The name of a ConfigMap or Secret, if it is told without the parser.
    fn plain_name(&self, source: &Source<'_>, kind: Option<&[u8]>) -> Option<ObjectName> {
        let PlainName { name, namespace } = plain_name(source.text.as_bytes())?;
        let namespace = namespace.or(self.options.namespace_in(&source.name));
        Some(ObjectName {
            group: String::new(),
            kind: kind.and_then(DataKind::of)?.name().to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
            folder: None,
        })
    }

    /// Adds the names that a template states. If even without its `{{ }}` it cannot be read, it may have any name.
    fn template(&mut self, source: &Source<'_>, place: &Place) {
        if self.role == SourceRole::Context {
            return;
        }
        let text = without_actions(source.text);
        let Ok(tree) = parse(&text) else {
            return self.unreadable.push(place.clone());
        };
        for object in objects_in(&tree, &PodKinds::of(self.options)) {
            self.add_name(&object, &tree, place);
        }
    }

    /// Adds an object of which only the name is known.
    fn add_name(&mut self, object: &Object, tree: &Tree<'_>, place: &Place) {
        let metadata = ["name", "namespace"].map(|key| (key, object.metadata_text(tree, key)));
        let stated = json!({
            "apiVersion": object.api_version,
            "kind": object.kind,
            "metadata": BTreeMap::from(metadata),
        });
        let is_meant = self.role != SourceRole::Context && self.asks_for(&object.kind);
        if let Some(name) = name_in(&stated, &place.source, self.options).filter(|_| is_meant) {
            let known = KnownObject::new(self.role, Arc::new(stated), place.clone());
            add(&mut self.found.objects, name, known);
        }
    }

    fn object(&mut self, object: &Object, tree: &Tree<'_>, source: &Source<'_>) {
        let name = tree
            .get(object.node, "metadata")
            .and_then(|metadata| tree.get(metadata, "name"));
        let place = source.place(tree.span(name.unwrap_or(object.node)));
        let value = match to_value(tree, object.node) {
            Ok(value) => value,
            Err(error) => {
                let kind = Some(object.kind.as_bytes());
                return self.refuse(source, error.at, kind, Some((object, tree)));
            }
        };
        let Some(name) = name_in(&value, &source.name, self.options) else {
            return;
        };
        let role = self.role;
        if self.needs.namespaces && name.group.is_empty() && name.kind == "Namespace" {
            let known = KnownObject::new(role, NamespaceMeta::of(&value), place.clone());
            add(&mut self.found.namespaces, name.name.clone(), known);
        }
        if let Some(data) = data_of(&name, &value).filter(|_| self.needs.data) {
            let known = KnownObject::new(role, data.map(Arc::new), place.clone());
            add(&mut self.found.data, name.clone(), known);
        }
        let kind = (name.group.clone(), name.kind.clone());
        let is_generated = self.needs.generated.contains(&kind) && role != SourceRole::Context;
        if is_generated || self.needs.looked_up.contains(&kind) {
            let known = KnownObject::new(role, Arc::new(value), place);
            add(&mut self.found.objects, name, known);
        }
    }
}
