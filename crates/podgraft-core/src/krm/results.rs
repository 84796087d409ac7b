//! The `results` of a ResourceList: findings and changes, with the item, its file and the field.

use serde::Serialize;
use serde_json::Value;

use super::{INDEX, PATH, ResourceList};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::outcome::{PolicyReport, WorkloadReport};
use crate::source::{LineFinder, Place};
use crate::wording;
use crate::yaml::parse::parse;
use crate::yaml::splice::{Edit, splice};
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, Step};

/// An entry of `results`. Its severity is always written, because orchestrators take a missing one for `error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionResult<'l> {
    message: String,
    severity: &'static str,
    #[serde(rename = "resourceRef", skip_serializing_if = "Option::is_none")]
    resource: Option<ItemReference<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<ItemField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<ItemFile<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<ResultTags>,
}

/// The object that a result is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ItemReference<'l> {
    api_version: &'l str,
    kind: &'l str,
    name: &'l str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'l str,
}

/// The path of a field in its item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ItemField {
    path: String,
}

/// The file of an item, and its index there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ItemFile<'l> {
    path: &'l str,
    index: usize,
}

/// The code of a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct ResultTags {
    code: &'static str,
}

/// Converts a diagnostic to a result. The item is the one that holds the first place in the list.
pub fn of_diagnostic<'l>(
    list: &'l ResourceList<'_>,
    diagnostic: &Diagnostic,
) -> FunctionResult<'l> {
    let mut places = diagnostic.labels.iter().map(|label| &label.place);
    let mut others = places.clone();
    let place = places.find(|place| place.source == list.source.name);
    let at = place.map(|place| list.offset(place));
    let item = at.and_then(|at| list.item_at(at));
    let mut message = diagnostic.message.clone();
    if let Some(place) = others.find(|place| place.source != list.source.name) {
        message.extend([" (", &place.link(), ")"]);
    }
    if let Some(help) = &diagnostic.help {
        message.extend(["; ", help]);
    }
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "info",
    };
    let field = item.zip(at).and_then(|(item, at)| list.field_at(item, at));
    let code = diagnostic.code.name();
    FunctionResult {
        field: field.map(|path| ItemField { path }),
        tags: Some(ResultTags { code }),
        ..list.result(message, severity, item)
    }
}

/// One result for each policy that changed a workload.
pub fn of_workloads<'l>(
    list: &'l ResourceList<'_>,
    workloads: &[WorkloadReport],
) -> Vec<FunctionResult<'l>> {
    let mut results = Vec::with_capacity(workloads.len());
    // A fleet has many workloads that a policy changes alike.
    let mut last: Option<(&PolicyReport, Option<String>)> = None;
    for workload in workloads {
        let item = list.item_at(workload.extent.start);
        for report in &workload.policies {
            if last.as_ref().is_none_or(|(known, _)| *known != report) {
                last = Some((report, report.words("injected by ")));
            }
            let words = last.as_ref().and_then(|(_, words)| words.clone());
            results.extend(words.map(|message| list.result(message, "info", item)));
        }
    }
    results
}

impl ResourceList<'_> {
    /// The list with other edits and with the results.
    ///
    /// # Errors
    /// If it is written so that they cannot be added to it, or if it has results that cannot be read.
    pub fn with_results(
        &self,
        mut edits: Vec<Edit>,
        results: &[FunctionResult<'_>],
    ) -> Result<Vec<u8>, Diagnostic> {
        if results.is_empty() {
            return Ok(splice(self.source.text.as_bytes(), &edits));
        }
        let known = self.earlier_results()?;
        let earlier = known.as_deref().unwrap_or_default();
        edits.extend(self.results_edit(earlier, results));
        edits.sort_by_key(|edit| edit.at.start);
        let output = splice(self.source.text.as_bytes(), &edits);
        // Where no other way of writing a mapping is possible, the edit is right.
        if known.is_none() && self.tree.is_plain() {
            return Ok(output);
        }
        let text = String::from_utf8_lossy(&output);
        let count = |tree: &Tree<'_>, key: &str| {
            let list = tree.get(*tree.roots().first()?, key)?;
            Some(tree.items(list).count())
        };
        let is_right = parse(&text).is_ok_and(|tree| {
            count(&tree, "results") == Some(earlier.len() + results.len())
                && count(&tree, "items").is_some() == count(&self.tree, "items").is_some()
        });
        match is_right {
            true => Ok(output),
            false => Err(self.no_results()),
        }
    }

    /// The results of functions that ran before. `None` if the list has no such field.
    fn earlier_results(&self) -> Result<Option<Vec<Value>>, Diagnostic> {
        let Some((_, results)) = self.entry("results") else {
            return Ok(None);
        };
        match self.value(results) {
            Some(Value::Null) => Ok(Some(Vec::new())),
            Some(Value::Array(earlier)) => Ok(Some(earlier)),
            _ => Err(self.no_results()),
        }
    }

    fn entry(&self, key: &str) -> Option<(NodeId, NodeId)> {
        let mut entries = self.tree.entries(self.root);
        entries.find(|(name, _)| self.tree.scalar(*name) == Some(key))
    }

    fn no_results(&self) -> Diagnostic {
        let message = "results cannot be added to this list";
        let root = self.source.place(self.tree.span(self.root));
        let problem = Diagnostic::error(Code::BadResourceList, message).at(root, "here");
        problem.help("write `items:` and `results:` as plain keys, and `results` as a list")
    }

    /// The edit that adds results to the list, behind the earlier ones.
    fn results_edit(&self, earlier: &[Value], results: &[FunctionResult<'_>]) -> Option<Edit> {
        let lines: Vec<String> = results.iter().map(in_one_line).collect();
        if let Some((key, value)) = self.entry("results") {
            let earlier = earlier.iter().map(in_one_line);
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
        let first = self
            .entry("items")
            .or_else(|| self.tree.entries(self.root).next())?;
        let start = self.tree.start_with_properties(first.0);
        let text = match self.tree.kind(self.root).is_flow() {
            // A flow mapping takes JSON only; in a block mapping, each result is an item of a block sequence.
            true => format!("\"results\": [{}], ", lines.join(", ")),
            false => {
                let line_start = self.source.text[..start].rfind('\n').map_or(0, |at| at + 1);
                let indent = self.source.text[line_start..start].trim_start_matches('\u{feff}');
                let entries = lines.iter().flat_map(|line| [indent, "- ", line, "\n"]);
                let words = ["results:\n"].into_iter().chain(entries).chain([indent]);
                words.collect::<Vec<_>>().concat()
            }
        };
        Some(Edit::insertion(start, text))
    }

    fn result<'l>(
        &'l self,
        message: String,
        severity: &'static str,
        item: Option<NodeId>,
    ) -> FunctionResult<'l> {
        FunctionResult {
            message,
            severity,
            resource: item.map(|item| self.reference(item)),
            field: None,
            file: item.and_then(|item| self.file(item)),
            tags: None,
        }
    }

    fn reference(&self, item: NodeId) -> ItemReference<'_> {
        let metadata = self.tree.get(item, "metadata");
        let of_metadata = |key: &str| metadata.map_or("", |metadata| self.word(metadata, key));
        ItemReference {
            api_version: self.word(item, "apiVersion"),
            kind: self.word(item, "kind"),
            name: of_metadata("name"),
            namespace: of_metadata("namespace"),
        }
    }

    /// The file of an item, if the orchestrator notes it.
    fn file(&self, item: NodeId) -> Option<ItemFile<'_>> {
        let path = self.annotation(item, &PATH)?;
        let index = self.annotation(item, &INDEX);
        let index = index.and_then(|index| index.parse().ok()).unwrap_or(0);
        Some(ItemFile { path, index })
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
        let lines = || LineFinder::new(self.source.text.as_bytes());
        self.lines.get_or_init(lines).start(line)
    }

    fn offset(&self, place: &Place) -> usize {
        let start = self.line_start(place.line);
        let chars = self.source.text[start..].chars().take(place.column - 1);
        start + chars.map(char::len_utf8).sum::<usize>()
    }

    /// The item at an offset. The line of its `-` belongs to the item, although the node begins after the `-`.
    fn item_at(&self, at: usize) -> Option<NodeId> {
        let behind = self
            .items
            .partition_point(|&item| self.tree.span(item).start <= at);
        let around = behind.checked_sub(1).map(|before| self.items[before]);
        let around = around.filter(|&item| self.tree.span(item).contains(&at));
        if around.is_some() {
            return around;
        }
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

/// A result of this run or of another function.
fn in_one_line(result: &impl Serialize) -> String {
    wording::json(serde_json::to_string(result).expect("results are always JSON"))
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
