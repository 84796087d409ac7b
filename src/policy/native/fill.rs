//! `${...}` under `inject`: what depends on parameters alone is put in when the policy is read; the rest waits for a
//! workload.

use serde_json::Value;
use std::sync::Arc;

use super::{SCHEMA, rules};
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::document::Document;
use crate::policy::expression::{Evaluator, NoFacts, Outcome, Variable};
use crate::policy::schema::{Problem, ProblemKind, Templates};
use crate::policy::template::{self, Fault, Template};
use crate::policy::vocabulary::Vocabulary;
use crate::yaml::value::{Path, Step};

const TEXT_ONLY: &str = "a parameter is text: for a number write `${int(params.NAME)}`, for a boolean `${bool(params.NAME)}`";

/// Texts with expressions.
#[derive(Debug, Default)]
pub(super) struct Unfilled {
    /// Those that wait for a workload.
    pub waiting: Vec<(Path, Template)>,
    /// Keys of checksums that wait for each of the objects that are summed, too.
    pub of_each: Vec<(Path, Arc<Template>)>,
    /// Those that were filled in when the policy was read.
    pub evaluated: Vec<Path>,
}

/// Fills in every `inject` and checks it again, now that the values are known. What waits is returned.
pub(super) fn fill_in(
    document: &mut Document<'_>,
    vocabulary: &Vocabulary,
    variables: &[Variable],
    problems: &mut Vec<Diagnostic>,
) -> Unfilled {
    let evaluator = Evaluator::new(&vocabulary.params, variables, &NoFacts);
    let injects = rules::injects(document);
    let holders = super::generate::holders(document);
    let values = holders
        .iter()
        .filter_map(|path| Some((path, path.get(&document.value)?)));
    let texts: Vec<(Path, String)> = values
        .flat_map(|(path, value)| template::texts(value, path))
        .collect();
    let (mut unfilled, mut filled, mut faults) = (Unfilled::default(), Vec::new(), Vec::new());
    for (path, text) in texts {
        match Template::parse(&text, vocabulary) {
            Ok(template) if template.uses().reference && is_checksum_key(&path, &injects) => {
                unfilled.of_each.push((path, Arc::new(template)));
            }
            Ok(template) if template.uses().reference => faults.push(Fault {
                path,
                ..no_reference()
            }),
            Ok(template) if template.uses().workload => unfilled.waiting.push((path, template)),
            Ok(template) => {
                let outcome = template.evaluate(&evaluator).map_err(|fault| Fault {
                    path: path.clone(),
                    ..fault
                });
                faults.extend(
                    outcome
                        .and_then(|outcome| put(&mut document.value, &path, outcome))
                        .err(),
                );
                filled.push(path);
            }
            Err(found) => faults.extend(found.into_iter().map(|fault| Fault {
                path: path.clone(),
                ..fault
            })),
        }
    }
    if !faults.is_empty() {
        problems.extend(faults.into_iter().map(|fault| document.fault(fault)));
        return unfilled;
    }
    let found = SCHEMA.check(&document.value, Templates::Filled);
    write_as_text(&mut document.value, &found, &filled);
    for problem in SCHEMA.check(&document.value, Templates::Filled) {
        if unfilled
            .waiting
            .iter()
            .any(|(path, template)| template.is_whole() && problem.path.starts_with(path))
        {
            continue;
        }
        let is_text = problem.kind == ProblemKind::WrongType
            && problem
                .path
                .get(&document.value)
                .is_some_and(Value::is_string)
            && document
                .written(&problem.path)
                .is_some_and(template::has_expression);
        let diagnostic = document.problem(&problem);
        problems.push(if is_text {
            diagnostic.help(TEXT_ONLY)
        } else {
            diagnostic
        });
    }
    unfilled.evaluated = filled;
    unfilled
}

/// `inject.checksums[N].annotation`.
fn is_checksum_key(path: &Path, injects: &[Path]) -> bool {
    injects
        .iter()
        .filter(|inject| path.starts_with(inject))
        .any(|inject| {
            matches!(&path.0[inject.0.len()..], [Step::Key(list), Step::Index(_), Step::Key(key)]
            if list == "checksums" && key == "annotation")
        })
}

/// `ref` stands where there is no object that it could be.
pub(super) fn no_reference() -> Fault {
    let help = "it is the ConfigMap or Secret of `references`, in the `annotation` of `checksums`";
    Fault::new(Code::BadExpression, "`ref` is not known here", help)
}

/// Puts what an expression came to in its place.
pub(super) fn put(value: &mut Value, path: &Path, outcome: Outcome) -> Result<(), Fault> {
    match (outcome, path.0.split_last()) {
        (Outcome::Value(new), _) => {
            *path
                .get_mut(value)
                .expect("the path was found by walking the value") = new;
            Ok(())
        }
        (Outcome::Absent, Some((Step::Key(key), parent))) => {
            let parent = Path(parent.to_vec());
            let map = parent.get_mut(value).and_then(Value::as_object_mut);
            map.expect("the path was found by walking the value")
                .shift_remove(key);
            Ok(())
        }
        (Outcome::Absent, _) => {
            let message = format!(
                "`{}` is an optional with nothing in it, and only a key can be left out",
                path.name()
            );
            let fault = Fault::new(
                Code::BadExpression,
                message,
                "say what stands for nothing: `.orValue(...)`",
            );
            Err(Fault {
                path: path.clone(),
                ..fault
            })
        }
    }
}

/// Writes evaluated numbers and booleans as text where Kubernetes wants a string.
pub(super) fn write_as_text(value: &mut Value, problems: &[Problem], evaluated: &[Path]) {
    let unquoted = problems
        .iter()
        .filter(|problem| problem.kind == ProblemKind::Unquoted);
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
