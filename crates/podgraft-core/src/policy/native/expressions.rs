//! Reads `variables` and `matchConditions`: CEL without `${}`.

use super::evaluate::{PendingTemplates, no_reference};
use super::types::{self, NamedExpression};
use super::{PolicyReader, rules};
use crate::diagnostic::{Code, Diagnosed, Diagnostic};
use crate::policy::MatchCondition;
use crate::policy::document::Document;
use crate::policy::expression::{Expression, PolicyVariable, VariableBody};
use crate::policy::params::is_name;
use crate::policy::template::{self, TemplateError, ValueTemplate};
use crate::policy::vocabulary::{ExpressionUses, Vocabulary};
use crate::yaml::value::Path;

/// A bound, because each variable may depend on the one before it.
const MAX_VARIABLES: usize = 64;

/// What a condition decides about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConditionSubject {
    Workload,
    Container,
}

/// Reads the variables in order. Each is known to the variables after it.
pub(super) fn read_variables(
    document: &Document<'_>,
    vocabulary: &mut Vocabulary,
    problems: &mut Vec<Diagnostic>,
) -> Vec<PolicyVariable> {
    let list = Path::of(&["spec", "variables"]);
    let entries: Vec<types::Variable> = match list
        .get(&document.value)
        .map(|value| serde_json::from_value(value.clone()))
    {
        Some(Ok(entries)) => entries,
        Some(Err(_)) | None => Vec::new(),
    };
    if entries.len() > MAX_VARIABLES {
        let message = format!("there are more than {MAX_VARIABLES} variables");
        problems.push(document.error(Code::BadPolicy, &list, message));
        return Vec::new();
    }
    let mut variables = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let at = list.index(index);
        let name = &entry.name;
        if !is_name(name) {
            let message =
                format!("the variable name `{name}` must contain only letters, digits, and `_`");
            problems.push(document.error(Code::BadPolicy, &at.key("name"), message));
        }
        if vocabulary.variables.contains_key(name) {
            let message = format!("the variable `{name}` is defined twice");
            problems.push(document.error(Code::BadPolicy, &at.key("name"), message));
        }
        let (at, body) = body(document, &entry, vocabulary, &at);
        match body {
            Ok(body) => {
                vocabulary.variables.insert(entry.name.clone(), body.uses());
                variables.push(PolicyVariable {
                    name: entry.name,
                    body,
                    at: document.span(&at),
                });
            }
            Err(found) => {
                problems.extend(found);
                // The name stays known, so that its uses are not reported as well.
                let uses = ExpressionUses {
                    broken: true,
                    ..ExpressionUses::default()
                };
                vocabulary.variables.insert(entry.name, uses);
            }
        }
    }
    variables
}

/// The body of a variable and its path.
fn body(
    document: &Document<'_>,
    entry: &types::Variable,
    vocabulary: &Vocabulary,
    at: &Path,
) -> (Path, Diagnosed<VariableBody>) {
    let has_value = at.key("value").get(&document.value).is_some();
    if has_value == entry.expression.is_some() {
        let message = format!(
            "the variable `{}` must have either `expression` or `value`",
            entry.name
        );
        let help = "use `expression` for CEL, or `value` for any value that contains `${...}`";
        let problem = document.error(Code::BadPolicy, at, message).help(help);
        return (at.clone(), Err(vec![problem]));
    }
    if let Some(text) = &entry.expression {
        let at = at.key("expression");
        let compiled = compile(document, text, vocabulary, &at).map(VariableBody::Expression);
        return (at, compiled);
    }
    let at = at.key("value");
    let value = entry.value.clone().unwrap_or_default();
    // `${...}` alone is read as an expression, because only an expression may evaluate to an absent optional.
    if let Some(text) = value.as_str().and_then(template::whole_expression) {
        let compiled = compile(document, text, vocabulary, &at).map(VariableBody::Expression);
        return (at, compiled);
    }
    let read =
        ValueTemplate::parse(&value, vocabulary).and_then(|value| match value.uses().reference {
            true => Err(vec![no_reference()]),
            false => Ok(VariableBody::Value(value)),
        });
    let in_place = |fault: TemplateError| {
        let path = at.join(&fault.path);
        document.fault(fault.at(&path))
    };
    let read = read.map_err(|faults| faults.into_iter().map(in_place).collect());
    (at, read)
}

pub(super) fn compile(
    document: &Document<'_>,
    text: &str,
    vocabulary: &Vocabulary,
    at: &Path,
) -> Diagnosed<Expression> {
    let compiled = Expression::compile(text.trim(), vocabulary);
    let compiled = compiled.and_then(|expression| match expression.uses.reference {
        true => Err(vec![no_reference()]),
        false => Ok(expression),
    });
    compiled.map_err(|faults| document.faults_at(faults, at))
}

/// Reports problems of the conditions early, together with those of the other parts of the policy.
pub(super) fn check_conditions(
    document: &Document<'_>,
    vocabulary: &Vocabulary,
    problems: &mut Vec<Diagnostic>,
) {
    let mut reader = PolicyReader::of(document, vocabulary.clone(), PendingTemplates::default());
    for list in rules::holders(document)
        .iter()
        .map(|holder| holder.key("matchConditions"))
    {
        if let Some(value) = list.get(&document.value)
            && let Ok(conditions) = serde_json::from_value(value.clone())
        {
            reader.conditions(conditions, ConditionSubject::Workload, &list);
        }
    }
    problems.extend(reader.problems);
}

impl PolicyReader<'_, '_> {
    /// Reads conditions that are evaluated once for a workload or for each of its containers.
    pub(super) fn conditions(
        &mut self,
        conditions: Vec<NamedExpression>,
        subject: ConditionSubject,
        at: &Path,
    ) -> Vec<MatchCondition> {
        let mut read = Vec::new();
        for (index, condition) in conditions.into_iter().enumerate() {
            let at = at.index(index).key("expression");
            match compile(self.document, &condition.expression, &self.vocabulary, &at) {
                Ok(expression)
                    if expression.uses.container && subject == ConditionSubject::Workload =>
                {
                    let message =
                        format!("the condition `{}` cannot use `container`", condition.name);
                    self.report_error(
                        &at,
                        message,
                        "use `pod.spec.containers` instead: a condition is evaluated once per \
                         workload",
                    );
                }
                Ok(expression) => {
                    read.push(MatchCondition {
                        name: condition.name,
                        expression,
                        at: self.document.span(&at),
                    });
                }
                Err(found) => self.problems.extend(found),
            }
        }
        read
    }
}
