//! The `results` of a ResourceList: findings and changes, with the item, its file and the field.

use serde::Serialize;
use serde_json::Value;

use super::{INDEX, PATH, ResourceList};
use crate::change::{list, list_removed};
use crate::diagnostic::{Diagnostic, Severity};
use crate::outcome::{Outcome, PolicyReport, WorkloadReport};
use crate::source::Place;
use crate::wording;
use crate::yaml::splice::Edit;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, Step};

/// The `severity` of a result. Always written, because orchestrators take a missing one for `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum KrmSeverity {
    /// The function failed.
    Error,
    /// Somebody should look at it.
    Warning,
    /// A change that was made, or a note.
    Info,
}

/// An entry of `results`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KrmResult {
    /// The message for people.
    pub message: String,
    /// The severity.
    pub severity: KrmSeverity,
    /// The item that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<ResourceRef>,
    /// The field of the item that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<KrmField>,
    /// The file of the item, if the orchestrator notes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<KrmFile>,
    /// The code of the diagnostic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<KrmTags>,
}

/// `resourceRef`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    api_version: String,
    kind: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
}

/// `field`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KrmField {
    path: String,
}

/// `file`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KrmFile {
    path: String,
    index: usize,
}

/// `tags`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KrmTags {
    code: &'static str,
}

/// Converts a diagnostic to a result. The item is the one that holds the first place in the list.
pub fn of_diagnostic(list: &ResourceList<'_>, diagnostic: &Diagnostic) -> KrmResult {
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
        Severity::Error => KrmSeverity::Error,
        Severity::Warning => KrmSeverity::Warning,
        Severity::Note => KrmSeverity::Info,
    };
    let field = item.zip(at).and_then(|(item, at)| list.field_at(item, at));
    let tags = Some(KrmTags {
        code: diagnostic.code.name(),
    });
    KrmResult {
        message,
        severity,
        field,
        tags,
        ..list.result_for(item)
    }
}

/// One result for each policy that changed the workload.
pub fn of_workload(list: &ResourceList<'_>, workload: &WorkloadReport) -> Vec<KrmResult> {
    let item = list.item_at(list.line_start(workload.line));
    let messages = workload.policies.iter().filter_map(change_message);
    messages
        .map(|message| KrmResult {
            message,
            ..list.result_for(item)
        })
        .collect()
}

/// What a policy changed, unless it changed nothing.
fn change_message(report: &PolicyReport) -> Option<String> {
    let policy = &report.policy;
    match &report.outcome {
        Outcome::Injected(changes) => Some(format!("injected by {policy} ({})", list(changes))),
        Outcome::TakenOut(changes) | Outcome::Failed(Some(changes)) => {
            Some(format!("{policy} taken out ({})", list_removed(changes)))
        }
        Outcome::UpToDate | Outcome::Skipped(_) | Outcome::Failed(None) => None,
    }
}

impl ResourceList<'_> {
    /// The edit that adds results to the list; `None` if there are no results.
    pub fn results_edit(&self, results: &[KrmResult]) -> Option<Edit> {
        if results.is_empty() {
            return None;
        }
        let lines: Vec<String> = results.iter().map(as_json).collect();
        let entries = |key: &str| {
            let mut entries = self.tree.entries(self.root);
            entries.find(|(name, _)| self.tree.scalar(*name) == Some(key))
        };
        if let Some((key, value)) = entries("results") {
            let earlier = self.value(value).unwrap_or(Value::Null);
            let earlier = earlier.as_array().into_iter().flatten();
            let earlier = earlier.map(|result| wording::json(result.to_string()));
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

    fn result_for(&self, item: Option<NodeId>) -> KrmResult {
        KrmResult {
            message: String::new(),
            severity: KrmSeverity::Info,
            resource_ref: item.map(|item| self.resource(item)),
            field: None,
            file: item.and_then(|item| self.file(item)),
            tags: None,
        }
    }

    fn resource(&self, item: NodeId) -> ResourceRef {
        let metadata = self.tree.get(item, "metadata");
        let of_metadata = |key: &str| metadata.map_or("", |metadata| self.word(metadata, key));
        ResourceRef {
            api_version: self.word(item, "apiVersion").to_owned(),
            kind: self.word(item, "kind").to_owned(),
            name: of_metadata("name").to_owned(),
            namespace: of_metadata("namespace").to_owned(),
        }
    }

    fn file(&self, item: NodeId) -> Option<KrmFile> {
        let index = self.annotation(item, &INDEX);
        Some(KrmFile {
            path: self.annotation(item, &PATH)?.to_owned(),
            index: index.and_then(|index| index.parse().ok()).unwrap_or(0),
        })
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
    fn field_at(&self, item: NodeId, at: usize) -> Option<KrmField> {
        let mut path = Path::default();
        let mut node = item;
        while let Some((step, child)) = step_to(&self.tree, node, at) {
            path.0.push(step);
            node = child;
        }
        let path = path.to_string();
        (!path.is_empty()).then_some(KrmField { path })
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

fn as_json(result: &KrmResult) -> String {
    wording::json(serde_json::to_string(result).expect("strings and numbers are always JSON"))
}
