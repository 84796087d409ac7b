//! `validations`: what must hold of the resource and the parameters, in words of the policy.

use serde_json::Value;

use super::expressions::compile;
use super::source::Instance;
use super::types::{Severity, Validation};
use crate::diagnostic::{self, Code, Diagnostic};
use crate::policy::document::Document;
use crate::policy::expression::{Evaluator, NoFacts, Outcome, Variable};
use crate::policy::template::{Fault, Template, as_text};
use crate::policy::vocabulary::Vocabulary;
use crate::yaml::value::Path;

/// What does not hold. Without a resource whose policy is for resources, they are only compiled.
pub(super) fn check(
    document: &Document<'_>,
    vocabulary: &Vocabulary,
    variables: &[Variable],
    instance: Option<&Instance<'_, '_>>,
) -> Vec<Diagnostic> {
    let list = Path::of(&["spec", "validations"]);
    let entries: Vec<Validation> = match list.get(&document.value) {
        Some(value) => serde_json::from_value(value.clone()).unwrap_or_default(),
        None => return Vec::new(),
    };
    let mut problems = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let at = list.index(index);
        match broken(document, &entry, &at, vocabulary, variables) {
            Ok(None) => {}
            Ok(Some(message)) => {
                let problem = Diagnostic::error(Code::Invalid, message)
                    .with_severity(severity(entry.severity));
                let problem = match instance {
                    Some(instance) => instance.diagnostic(problem, entry.path.as_deref()),
                    None => problem,
                };
                problems.push(problem.at(document.place(&at), "by this validation"));
            }
            Err(found) => problems.extend(found),
        }
    }
    problems
}

/// The message of a validation that does not hold.
fn broken(
    document: &Document<'_>,
    entry: &Validation,
    at: &Path,
    vocabulary: &Vocabulary,
    variables: &[Variable],
) -> Result<Option<String>, Vec<Diagnostic>> {
    let path = at.key("expression");
    let expression = compile(document, &entry.expression, vocabulary, &path)?;
    let message = Template::parse(&entry.message, vocabulary).map_err(|faults| {
        let in_place = |fault| Fault {
            path: at.key("message"),
            ..fault
        };
        document.faults(faults.into_iter().map(in_place).collect())
    })?;
    if expression.uses.workload || message.uses().workload {
        // What has no value yet, because no resource or no parameter is given, is seen when it has one.
        let is_open = vocabulary.is_open() && !expression.names_workload();
        return match is_open {
            true => Ok(None),
            false => {
                let problem = document.error(
                    Code::BadExpression,
                    &path,
                    "a validation asks of the resource and the parameters only",
                );
                let help = "what depends on the workload is a `matchConditions`";
                Err(vec![problem.help(help)])
            }
        };
    }
    let evaluator = Evaluator::new(&vocabulary.params, variables, &NoFacts);
    let fault = |fault| {
        let path = path.clone();
        vec![document.fault(Fault { path, ..fault })]
    };
    match evaluator.evaluate(&expression).map_err(fault)? {
        Outcome::Value(Value::Bool(true)) => Ok(None),
        Outcome::Value(Value::Bool(false)) => match message.evaluate(&evaluator).map_err(fault)? {
            Outcome::Value(text) => Ok(Some(as_text(&text).unwrap_or_default())),
            Outcome::Absent => Ok(Some(String::new())),
        },
        Outcome::Value(_) | Outcome::Absent => {
            let message = "the validation is neither true nor false";
            let problem = document.error(Code::BadExpression, &path, message);
            Err(vec![problem.help("make it a comparison")])
        }
    }
}

fn severity(word: Severity) -> diagnostic::Severity {
    match word {
        Severity::Error => diagnostic::Severity::Error,
        Severity::Warning => diagnostic::Severity::Warning,
        Severity::Note => diagnostic::Severity::Note,
    }
}
