//! The `results` of a ResourceList: findings and changes, with the item, its file and the field.

use serde_json::{Value, json};

use super::{INDEX, PATH, ResourceList};
use crate::diagnostic::{Diagnostic, Severity};
use crate::outcome::WorkloadReport;
use crate::source::Place;
use crate::wording::{self, without_nulls};
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, Step};

/// Converts a diagnostic to a result. The item is the one that holds the first place in the list.
pub fn of_diagnostic(list: &ResourceList<'_>, diagnostic: &Diagnostic) -> Value {
    let mut places = diagnostic.labels.iter().map(|label| &label.place);
    let mut others = places.clone();
    let place = places.find(|place| place.source == list.source.name);
    let at = place.map(|place| list.offset(place));
    let item = at.and_then(|at| list.item_at(at));
    let mut message = diagnostic.message.clone();
    if let Some(place) = others.find(|place| place.source != list.source.name) {
        message = format!("{message} ({})", place.link());
    }
    if let Some(help) = &diagnostic.help {
        message = format!("{message}; {help}");
    }
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "info",
    };
    let field = item.zip(at).and_then(|(item, at)| list.field_at(item, at));
    list.result(message, severity, item, field, Some(diagnostic.code.name()))
}

/// One result for each policy that changed the workload.
pub fn of_workload(list: &ResourceList<'_>, workload: &WorkloadReport) -> Vec<Value> {
    let item = list.item_at(list.line_start(workload.line));
    let reports = workload.policies.iter();
    reports
        .filter_map(|report| report.words("injected by "))
        .map(|message| list.result(message, "info", item, None, None))
        .collect()
}

impl ResourceList<'_> {
    /// The edit that adds results to the list; `None` if there are no results.
    pub fn results_edit(&self, results: &[Value]) -> Option<Edit> {
        if results.is_empty() {
            return None;
        }
        let as_json = |result: &Value| wording::json(result.to_string());
        let lines: Vec<String> = results.iter().map(as_json).collect();
        let entries = |key: &str| {
            let mut entries = self.tree.entries(self.root);
            entries.find(|(name, _)| self.tree.scalar(*name) == Some(key))
        };
        if let Some((key, value)) = entries("results") {
            let earlier = self.value(value).unwrap_or(Value::Null);
            let earlier = earlier.as_array().into_iter().flatten().map(as_json);
            let texts: Vec<String> = earlier.chain(lines).collect();
            let start = self.tree.span(key).start;
            let end = self.tree.span(value).end.max(self.tree.span(key).end);
            let end = start + self.source.text[start..end].trim_end().len();
            // `results` may have no value. Then its span may end before the colon, which has to be replaced too.
            let colon = match self.source.text[start..end].contains(':') {
                true => 0,
                false => self.source.text[end..].find(':').map_or(0, |at| at + 1),
            };
            return Some(Edit {
                at: start..end + colon,
                text: format!("\"results\": [{}]", texts.join(", ")).into(),
            });
        }
        let first = entries("items").or_else(|| self.tree.entries(self.root).next())?;
        let start = self.tree.start_with_properties(first.0);
        let text = match self.tree.kind(self.root).is_flow() {
            // A flow mapping takes JSON only; in a block mapping, each result is an item of a block sequence.
            true => format!("\"results\": [{}], ", lines.join(", ")),
            false => {
                let line_start = self.source.text[..start].rfind('\n').map_or(0, |at| at + 1);
                let indent = &self.source.text[line_start..start];
                let entry = |line: &String| format!("{indent}- {line}\n");
                let entries: String = lines.iter().map(entry).collect();
                format!("results:\n{entries}{indent}")
            }
        };
        Some(Edit::insertion(start, text))
    }

    /// An entry of `results`. Its severity is always written, because orchestrators take a missing one for `error`.
    fn result(
        &self,
        message: String,
        severity: &str,
        item: Option<NodeId>,
        field: Option<String>,
        code: Option<&str>,
    ) -> Value {
        without_nulls(json!({
            "message": message,
            "severity": severity,
            "resourceRef": item.map(|item| self.resource(item)),
            "field": field.map(|path| json!({"path": path})),
            "file": item.and_then(|item| self.file(item)),
            "tags": code.map(|code| json!({"code": code})),
        }))
    }

    fn resource(&self, item: NodeId) -> Value {
        let metadata = self.tree.get(item, "metadata");
        let of_metadata = |key: &str| metadata.map_or("", |metadata| self.word(metadata, key));
        let namespace = of_metadata("namespace");
        without_nulls(json!({
            "apiVersion": self.word(item, "apiVersion"),
            "kind": self.word(item, "kind"),
            "name": of_metadata("name"),
            "namespace": (!namespace.is_empty()).then_some(namespace),
        }))
    }

    /// The file of an item, if the orchestrator notes it.
    fn file(&self, item: NodeId) -> Option<Value> {
        let index = self.annotation(item, &INDEX);
        let index: usize = index.and_then(|index| index.parse().ok()).unwrap_or(0);
        Some(json!({"path": self.annotation(item, &PATH)?, "index": index}))
    }

    /// The place of a line's text, without its indentation and the `-` of list items.
    pub fn place_of_line(&self, line: usize) -> Place {
        let start = self.line_start(line);
        let text = &self.source.text[start..];
        let indent = text.len() - text.trim_start_matches([' ', '-']).len();
        let end = text.find('\n').unwrap_or(text.len()).max(indent);
        self.source.place(start + indent..start + end)
    }

    fn line_start(&self, line: usize) -> usize {
        let text = self.source.text.as_bytes();
        let starts = self.line_starts.get_or_init(|| {
            let ends = memchr::memchr_iter(b'\n', text);
            std::iter::once(0).chain(ends.map(|at| at + 1)).collect()
        });
        starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or(text.len())
    }

    fn offset(&self, place: &Place) -> usize {
        let start = self.line_start(place.line);
        let chars = self.source.text[start..].chars().take(place.column - 1);
        start + chars.map(char::len_utf8).sum::<usize>()
    }

    /// The item at an offset. The line of its `-` belongs to the item, although the node begins after the `-`.
    fn item_at(&self, at: usize) -> Option<NodeId> {
        let line_end = self.source.text[at..]
            .find('\n')
            .map_or(self.source.text.len(), |end| at + end);
        // The last item that begins on this line or before it.
        let behind = self
            .items
            .partition_point(|&item| self.tree.span(item).start <= line_end);
        let item = *self.items.get(behind.checked_sub(1)?)?;
        let span = self.tree.span(item);
        (span.contains(&at) || (at..=line_end).contains(&span.start)).then_some(item)
    }

    /// The path to the innermost node of the item that holds the offset; `None` if that is the item itself.
    fn field_at(&self, item: NodeId, at: usize) -> Option<String> {
        let mut path = Path::default();
        let mut node = item;
        while let Some((step, child)) = step_to(&self.tree, node, at) {
            path.0.push(step);
            node = child;
        }
        let path = path.to_string();
        (!path.is_empty()).then_some(path)
    }
}

fn step_to(tree: &Tree<'_>, node: NodeId, at: usize) -> Option<(Step, NodeId)> {
    let is_in = |node: NodeId| tree.span(node).contains(&at);
    if tree.kind(node).is_mapping() {
        let (key, value) = tree
            .entries(node)
            .find(|&(key, value)| is_in(key) || is_in(value))?;
        return Some((Step::Key(tree.scalar(key)?.to_owned()), value));
    }
    let mut children = tree.children(node).enumerate();
    children
        .find(|&(_, child)| is_in(child))
        .map(|(index, child)| (Step::Index(index), child))
}
