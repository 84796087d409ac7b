//! Evaluates `${...}` when a policy is read. Texts that depend on parameters alone are filled in; those that depend on
//! a workload are returned as pending templates.

use serde_json::Value;
use std::sync::Arc;

use super::generate::{filter_paths, names_of_containers, template_roots};
use super::{SCHEMA, rules};
use crate::diagnostic::{Code, Diagnostic, unless};
use crate::policy::document::Document;
use crate::policy::expression::{Evaluator, ExpressionResult, NoFacts, PolicyVariable};
use crate::policy::replacement::ItemMoves;
use crate::policy::schema::{SchemaProblem, SchemaProblemKind, TemplateMode};
use crate::policy::template::{self, Template, TemplateError};
use crate::policy::vocabulary::Vocabulary;
use crate::yaml::value::{Path, Step};

const TEXT_ONLY: &str = "parameters are strings: use `${int(params.NAME)}` for a number, \
                         `${bool(params.NAME)}` for a boolean";

const WRITE_OUT: &str = "write the value itself: only `names`, `excludeNames`, and values under \
                         `inject` and `generate` can contain `${...}`";

/// The templates of a policy after reading: pending ones, and the paths of those already filled in.
#[derive(Debug, Default)]
pub(super) struct PendingTemplates {
    /// Templates that wait for a workload.
    pub templates: Vec<(Path, Template)>,
    /// Annotation keys of checksums that also wait for each hashed object.
    pub of_each: Vec<(Path, Arc<Template>)>,
    /// The paths of values that were filled in when the policy was read.
    pub evaluated: Vec<Path>,
    /// The paths of lists that had items and are empty, since every item evaluated to nothing.
    pub emptied: Vec<Path>,
}

impl PendingTemplates {
    /// Updates the paths after items before them were spliced in or left out.
    pub(super) fn move_by(&mut self, moves: &ItemMoves) {
        let templates = self.templates.iter_mut().map(|(path, _)| path);
        let of_each = self.of_each.iter_mut().map(|(path, _)| path);
        for path in templates.chain(of_each).filter(|_| !moves.is_empty()) {
            // A pending template is still one text, so it has exactly one new path.
            *path = moves.new_paths(path).remove(0);
        }
    }
}

/// Fills in all `${...}` that need no workload, and validates the result. Returns the templates that wait.
pub(super) fn fill_in(
    document: &mut Document<'_>,
    vocabulary: &Vocabulary,
    variables: &[PolicyVariable],
    problems: &mut Vec<Diagnostic>,
) -> PendingTemplates {
    let mut unfilled = PendingTemplates::default();
    let outcomes = match evaluate(document, vocabulary, variables, &mut unfilled) {
        Ok(outcomes) => outcomes,
        Err(faults) => {
            problems.extend(faults.into_iter().map(|fault| document.fault(fault)));
            return unfilled;
        }
    };
    let filled: Vec<Path> = outcomes.iter().map(|(path, _)| path.clone()).collect();
    let moves = document.put_all(outcomes);
    unfilled.evaluated = moves.all_new_paths(&filled);
    unfilled.emptied = emptied_lists(&document.value, &filled);
    unfilled.move_by(&moves);
    let found = SCHEMA.check(&document.value, TemplateMode::Filled);
    write_as_text(&mut document.value, &found, &unfilled.evaluated);
    problems.extend(check_filled(document, &unfilled));
    unfilled
}

/// The lists that are empty after their items, or the whole list, were filled in.
fn emptied_lists(value: &Value, filled: &[Path]) -> Vec<Path> {
    let list_of = |path: &Path| match path.0.split_last() {
        Some((Step::Index(_), list)) => Path(list.to_vec()),
        _ => path.clone(),
    };
    let is_empty = |path: &Path| {
        let list = path.get(value).and_then(Value::as_array);
        list.is_some_and(Vec::is_empty)
    };
    filled.iter().map(list_of).filter(is_empty).collect()
}

/// Every text with an expression, once.
fn texts_in(document: &Document<'_>) -> Vec<(Path, String)> {
    let holders = template_roots(document);
    let values = holders
        .iter()
        .filter(|path| {
            // Texts of a nested holder are already found in the outer one.
            let is_within = |other: &&Path| *other != *path && path.starts_with(other);
            !holders.iter().any(|other| is_within(&other))
        })
        .filter_map(|path| Some((path, path.get(&document.value)?)));
    values
        .flat_map(|(path, value)| template::texts(value, path))
        .collect()
}

/// Evaluates the texts that depend on no workload, and records the pending ones in `unfilled`.
fn evaluate(
    document: &Document<'_>,
    vocabulary: &Vocabulary,
    variables: &[PolicyVariable],
    unfilled: &mut PendingTemplates,
) -> Result<Vec<(Path, ExpressionResult)>, Vec<TemplateError>> {
    let evaluator = Evaluator::new(&vocabulary.params, variables, &NoFacts);
    let injects = rules::injects(document);
    let (choosing, names) = (filter_paths(document), names_of_containers(document));
    let (mut outcomes, mut faults) = (Vec::new(), Vec::new());
    for (path, text) in texts_in(document) {
        let template = match Template::parse(&text, vocabulary) {
            Ok(template) => template,
            Err(found) => {
                faults.extend(found.into_iter().map(|fault| fault.at(&path)));
                continue;
            }
        };
        // A filter decides about workloads, so it cannot depend on one. Names of containers can.
        let chooses = is_within(&path, &choosing) && !is_within(&path, &names);
        let fault = match template.uses() {
            uses if uses.reference && is_checksum_key(&path, &injects) => {
                unfilled.of_each.push((path, Arc::new(template)));
                continue;
            }
            uses if uses.reference => no_reference(),
            uses if uses.workload && chooses && !vocabulary.is_open() => chosen_by_workload(),
            uses if uses.workload || uses.broken => {
                unfilled.templates.push((path, template));
                continue;
            }
            _ => match template.evaluate(&evaluator) {
                Err(fault) => fault,
                Ok(outcome) => {
                    outcomes.push((path, outcome));
                    continue;
                }
            },
        };
        faults.push(fault.at(&path));
    }
    unless(faults, outcomes)
}

fn is_within(path: &Path, holders: &[Path]) -> bool {
    holders.iter().any(|holder| path.starts_with(holder))
}

fn chosen_by_workload() -> TemplateError {
    let message = "fields that select workloads cannot depend on the workload";
    let help = "use `matchConditions` instead";
    TemplateError::new(Code::BadExpression, message, help)
}

/// Schema problems of the document after filling in. Values that wait for a workload as a whole are left to a later
/// check.
fn check_filled(document: &Document<'_>, unfilled: &PendingTemplates) -> Vec<Diagnostic> {
    let waits = |problem: &SchemaProblem| {
        let mut waiting = unfilled.templates.iter();
        waiting.any(|(path, template)| template.is_whole() && problem.path.starts_with(path))
    };
    let found = SCHEMA
        .check(&document.value, TemplateMode::Filled)
        .into_iter();
    found
        .filter(|problem| !waits(problem))
        .map(|problem| filled_problem(document, &problem))
        .collect()
}

/// The error for a problem of a filled value, with help where an expression made the value.
fn filled_problem(document: &Document<'_>, problem: &SchemaProblem) -> Diagnostic {
    let text = problem.path.get(&document.value).and_then(Value::as_str);
    let is_computed = document
        .written(&problem.path)
        .is_some_and(template::has_expression);
    let diagnostic = document.problem(problem);
    match (text.filter(|_| is_computed), &problem.kind) {
        // This text is outside of the fields where `${...}` is evaluated.
        (Some(text), _) if template::has_expression(text) => diagnostic.help(WRITE_OUT),
        (Some(_), SchemaProblemKind::WrongType) => diagnostic.help(TEXT_ONLY),
        _ => diagnostic,
    }
}

/// Whether a path is `inject.checksums[N].annotation`.
fn is_checksum_key(path: &Path, injects: &[Path]) -> bool {
    injects
        .iter()
        .filter(|inject| path.starts_with(inject))
        .any(|inject| {
            matches!(&path.0[inject.0.len()..], [Step::Key(list), Step::Index(_), Step::Key(key)]
            if list == "checksums" && key == "annotation")
        })
}

/// The error for `ref` where no object is being hashed.
pub(super) fn no_reference() -> TemplateError {
    let help =
        "use `ref` only in `annotation` of `checksums`: it is an object that `references` finds";
    TemplateError::new(Code::BadExpression, "`ref` is not available here", help)
}

/// Writes evaluated numbers and booleans as strings where the schema wants a string.
pub(super) fn write_as_text(value: &mut Value, problems: &[SchemaProblem], evaluated: &[Path]) {
    let unquoted = problems
        .iter()
        .filter(|problem| problem.kind == SchemaProblemKind::Unquoted);
    for problem in
        unquoted.filter(|problem| evaluated.iter().any(|path| problem.path.starts_with(path)))
    {
        if let Some(scalar) = problem.path.get_mut(value)
            && let Some(text) = template::as_text(scalar)
        {
            *scalar = Value::String(text);
        }
    }
}
