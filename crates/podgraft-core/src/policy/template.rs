//! Texts with `${...}`. The expressions are compiled when the policy is read, and their values replace them later.
//! `$${` stands for the text `${`.

use std::ops::Range;

use serde_json::Value;
use std::collections::BTreeMap;

use super::PolicyFile;
use super::document::KEY_LIMIT;
use super::expression::{Evaluator, Expression, ExpressionResult};
use super::replacement::put_all;
use super::vocabulary::{ExpressionUses, Vocabulary};
use crate::diagnostic::{Code, Diagnostic, unless};
use crate::yaml::value::Path;

/// The values of a policy's parameters; `None` for one without a value.
pub(crate) type ParamValues = BTreeMap<String, Option<String>>;

/// An error in a template or an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The path of the text in the policy.
    pub path: Path,
    /// The error. Its labels are places in manifests.
    pub problem: Box<Diagnostic>,
    /// The byte range of the variable that failed, if the error is in a variable. The diagnostic points there instead
    /// of at the text that reads it.
    pub variable: Option<Range<usize>>,
}

/// The value of a template or an expression, or why it has none.
pub(crate) type Evaluated<T> = Result<T, TemplateError>;

impl From<Diagnostic> for TemplateError {
    fn from(problem: Diagnostic) -> Self {
        TemplateError {
            path: Path::default(),
            problem: Box::new(problem),
            variable: None,
        }
    }
}

impl TemplateError {
    /// An error whose path is not known yet.
    pub fn new(code: Code, message: impl Into<String>, help: impl Into<String>) -> Self {
        Diagnostic::error(code, message).help(help).into()
    }

    /// The error with its places: the variable that failed, else the given range of the policy's file, and those in
    /// manifests.
    pub(crate) fn into_diagnostic(
        self,
        file: &PolicyFile,
        (at, label): (Range<usize>, &str),
    ) -> Diagnostic {
        let (at, label) = match self.variable {
            Some(at) => (at, "this variable"),
            None => (at, label),
        };
        let mut problem = self.problem.at(file.place(at), label);
        problem.labels.rotate_right(1);
        problem
    }

    /// The error at a path.
    pub fn at(self, path: &Path) -> Self {
        TemplateError {
            path: path.clone(),
            ..self
        }
    }
}

/// Whether a text is one `${...}` and nothing else.
pub(crate) fn is_whole_expression(text: &str) -> bool {
    whole_expression(text).is_some()
}

/// The expression of a text that is one `${...}` and nothing else.
pub(crate) fn whole_expression(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("${")?;
    let end = inner.len().wrapping_sub(1);
    (closing_brace(inner) == Some(end)).then(|| &inner[..end])
}

/// Whether a text contains `${`, escaped or not.
pub(crate) fn has_expression(text: &str) -> bool {
    text.contains("${")
}

/// Replaces each expression of a text by another. Escaped `$${` is left alone.
pub(crate) fn map_expressions(text: &str, mut replace: impl FnMut(&str) -> String) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let inner = &rest[at + 2..];
        made.push_str(&rest[..at + 2]);
        rest = inner;
        if made.ends_with("$${") {
            continue;
        }
        if let Some(end) = closing_brace(inner) {
            made.push_str(&replace(&inner[..end]));
            rest = &inner[end..];
        }
    }
    made + rest
}

/// A compiled text with expressions.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<TemplatePart>,
    /// It is one `${...}` and nothing else, so its value keeps its type.
    is_whole: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Text(String),
    Expression(Box<Expression>),
}

impl Template {
    /// Compiles a text.
    ///
    /// # Errors
    /// All problems of its expressions.
    pub fn parse(text: &str, vocabulary: &Vocabulary) -> Result<Self, Vec<TemplateError>> {
        let mut template = Template {
            parts: Vec::new(),
            is_whole: is_whole_expression(text),
        };
        let mut faults = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            template.add_text(&rest[..at]);
            let inner = &rest[at + 2..];
            // `$${` is escaped: the `$` is in the text already, so only the brace is added.
            if rest[..at].ends_with('$') {
                template.add_text("{");
                rest = inner;
                continue;
            }
            let Some(end) = closing_brace(inner) else {
                faults.push(unclosed());
                break;
            };
            match plain_param(&inner[..end], vocabulary)
                .map_or_else(|| compile(&inner[..end], vocabulary), Ok)
            {
                Ok(TemplatePart::Text(value)) => template.add_text(&value),
                Ok(expression) => template.parts.push(expression),
                Err(found) => faults.extend(found),
            }
            rest = &inner[end + 1..];
        }
        template.add_text(rest);
        unless(faults, template)
    }

    fn add_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(TemplatePart::Text(last)) => last.push_str(text),
            _ => self.parts.push(TemplatePart::Text(text.to_owned())),
        }
    }

    /// Whether it is one `${...}` and nothing else.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// What its expressions depend on.
    pub fn uses(&self) -> ExpressionUses {
        self.parts
            .iter()
            .fold(ExpressionUses::default(), |total, part| match part {
                TemplatePart::Text(_) => total,
                TemplatePart::Expression(expression) => total.and(expression.uses),
            })
    }

    /// Evaluates the template.
    ///
    /// # Errors
    /// The error of the first expression that has no value.
    pub(crate) fn evaluate(&self, evaluator: &Evaluator<'_>) -> Evaluated<ExpressionResult> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                TemplatePart::Text(literal) => text.push_str(literal),
                TemplatePart::Expression(expression) => {
                    match (evaluator.evaluate(expression)?, self.is_whole) {
                        (ExpressionResult::Value(Value::Null), _) => {
                            return Err(is_null(expression));
                        }
                        (ExpressionResult::Value(value), true)
                            if Path::of_long_key(&value).is_some() =>
                        {
                            return Err(unfit(expression, "has a key that is too long", KEY_LIMIT));
                        }
                        (outcome, true) => return Ok(outcome),
                        (ExpressionResult::Value(value), false) => {
                            text.push_str(&as_text(&value).ok_or_else(|| no_text(expression))?)
                        }
                        (ExpressionResult::Absent, false) => return Err(is_absent(expression)),
                    }
                }
            }
        }
        Ok(ExpressionResult::Value(Value::String(text)))
    }
}

/// A JSON value with templates in its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueTemplate {
    value: Value,
    texts: Vec<(Path, Template)>,
}

impl ValueTemplate {
    /// A value with templates at paths in it.
    pub fn new(value: Value, texts: Vec<(Path, Template)>) -> Self {
        ValueTemplate { value, texts }
    }

    /// Compiles the texts of a value.
    ///
    /// # Errors
    /// All problems of its texts, with their paths in the value.
    pub fn parse(value: &Value, vocabulary: &Vocabulary) -> Result<Self, Vec<TemplateError>> {
        let (mut read, mut faults) = (Vec::new(), Vec::new());
        for (path, text) in texts(value, &Path::default()) {
            match Template::parse(&text, vocabulary) {
                Ok(template) => read.push((path, template)),
                Err(found) => faults.extend(found.into_iter().map(|fault| fault.at(&path))),
            }
        }
        unless(faults, ())?;
        let value = value.clone();
        Ok(ValueTemplate { value, texts: read })
    }

    /// The value as written, with its templates unevaluated.
    pub fn written(&self) -> &Value {
        &self.value
    }

    /// What its expressions depend on.
    pub fn uses(&self) -> ExpressionUses {
        let uses = self.texts.iter().map(|(_, template)| template.uses());
        uses.fold(ExpressionUses::default(), ExpressionUses::and)
    }

    /// Evaluates all templates and returns the filled value.
    ///
    /// # Errors
    /// The error of the first template that has no value.
    pub(crate) fn evaluate(&self, evaluator: &Evaluator<'_>) -> Evaluated<Value> {
        let evaluated = evaluate_all(&self.texts, |template| template.evaluate(evaluator));
        let outcomes = evaluated.map_err(|mut faults| faults.remove(0))?;
        let mut value = self.value.clone();
        put_all(&mut value, outcomes);
        Ok(value)
    }
}

/// The results of templates, each with its path.
///
/// # Errors
/// The errors of all templates that have no value, with their paths.
pub(crate) fn evaluate_all(
    templates: &[(Path, Template)],
    evaluate: impl Fn(&Template) -> Evaluated<ExpressionResult>,
) -> Result<Vec<(Path, ExpressionResult)>, Vec<TemplateError>> {
    let (mut outcomes, mut faults) = (Vec::new(), Vec::new());
    for (path, template) in templates {
        match evaluate(template) {
            Ok(outcome) => outcomes.push((path.clone(), outcome)),
            Err(fault) => faults.push(fault.at(path)),
        }
    }
    unless(faults, outcomes)
}

/// A scalar as a string, as Kubernetes writes it; `None` for other values.
pub(crate) fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The path and text of each string in a value that contains `${`.
pub(crate) fn texts(value: &Value, path: &Path) -> Vec<(Path, String)> {
    match value {
        Value::String(text) if has_expression(text) => vec![(path.clone(), text.clone())],
        Value::Array(entries) => entries
            .iter()
            .enumerate()
            .flat_map(|(at, entry)| texts(entry, &path.index(at)))
            .collect(),
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, entry)| texts(entry, &path.key(key)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// The value of `params.NAME`, the most common expression. CEL is not needed for it.
fn plain_param(text: &str, vocabulary: &Vocabulary) -> Option<TemplatePart> {
    let name = text.trim().strip_prefix("params.")?;
    vocabulary.params.get(name)?.clone().map(TemplatePart::Text)
}

fn compile(text: &str, vocabulary: &Vocabulary) -> Result<TemplatePart, Vec<TemplateError>> {
    let compiled = Expression::compile(text.trim(), vocabulary);
    compiled
        .map(|expression| TemplatePart::Expression(Box::new(expression)))
        .map_err(|faults| {
            let faults = faults.into_iter();
            faults.map(|fault| with_hint(fault, text)).collect()
        })
}

/// Adds to the fault of an expression how its text is written literally.
fn with_hint(mut fault: TemplateError, text: &str) -> TemplateError {
    if fault.problem.code == Code::BadExpression {
        let literal = format!("to write this text literally, use `$${{{text}}}`");
        fault.problem.help = Some(match fault.problem.help {
            Some(help) => format!("{help} ({literal})"),
            None => literal,
        });
    }
    fault
}

fn unfit(expression: &Expression, fault: &str, help: &str) -> TemplateError {
    let message = format!("`${{{}}}` {fault}", expression.text());
    TemplateError::new(Code::BadExpression, message, help)
}

fn is_null(expression: &Expression) -> TemplateError {
    let help = "to omit the key, use an optional: `${a.?b}`";
    unfit(expression, "is null", help)
}

fn is_absent(expression: &Expression) -> TemplateError {
    let fault = "is an empty optional inside a string";
    unfit(expression, fault, "add a fallback value: `.orValue('')`")
}

fn no_text(expression: &Expression) -> TemplateError {
    let fault = "is a list or a mapping inside a string";
    unfit(
        expression,
        fault,
        "convert it to a string, for example with `.join(',')`",
    )
}

fn unclosed() -> TemplateError {
    let help = "close it with `}`, or use `$${` to write `${` literally";
    TemplateError::new(Code::BadExpression, "`${` is not closed", help)
}

/// The offset of the `}` that closes an expression. Braces of CEL maps are counted, braces in string literals are not.
fn closing_brace(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote: Option<u8> = None;
    let mut bytes = inner.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth == 0 => return Some(at),
            (None, b'}') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}
