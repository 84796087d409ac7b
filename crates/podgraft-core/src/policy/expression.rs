//! CEL expressions: compiled when the policy is read, with all names checked, and evaluated for each workload. Only
//! this module and its submodules use the CEL crate.
//!
//! The crate has no cost limit, so the cost is bounded by limits on the text (length, nesting, nested comprehensions),
//! on the lists that are walked, and on the number of steps (`cost`).

mod addresses;
mod check;
mod cost;
mod evaluator;
mod formats;
mod kubernetes;
mod library;
mod lookups;
mod macros;
mod memo;
mod messages;
mod order;
mod replacements;
mod shared;
mod urls;
mod values;

use cel::ParseErrors;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::template::{Evaluated, TemplateError, ValueTemplate};
use super::vocabulary::{ExpressionUses, Vocabulary, fields_of};
use crate::diagnostic::Code;
use check::{ExpressionChecker, ParsedExpression};
pub(crate) use evaluator::{EvaluationCache, Evaluator};
use library::ENV;
pub(crate) use lookups::LookupKey;

/// Characters of an expression's text.
const MAX_LENGTH: usize = 16_384;
/// Recursion depth of the CEL parser.
const MAX_NESTING: u16 = 64;
/// Nesting of brackets, checked before the text is parsed.
const MAX_BRACKETS: usize = 40;
/// Depth of the parsed tree.
const MAX_DEPTH: usize = 40;
/// The stack that the parser needs for the longest and deepest accepted text, in a debug build.
#[cfg(not(target_family = "wasm"))]
const PARSER_STACK: usize = 256 << 20;
/// Nesting of walks over lists.
const MAX_WALKS: usize = 2;
/// Names that are bound as one value, not field by field.
const WHOLE: [&str; 4] = ["object", "namespaceObject", "source", "sources"];
/// The internal variable for the resource of `source`. `@` is not valid in the name of a policy's own variable.
pub(crate) const SOURCE: &str = "@source";
/// The internal variable for all resources of the kind.
pub(crate) const SOURCES: &str = "@sources";

/// Names with the fields that an expression reads. `None` means the whole value.
type FieldReferences = BTreeSet<(String, Option<String>)>;

/// Groups and kinds of objects that expressions look up.
pub(crate) type ObjectKinds = BTreeSet<(String, String)>;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Arc<str>,
    parsed: Arc<ParsedExpression>,
    /// What the expression depends on.
    pub uses: ExpressionUses,
}

impl Expression {
    /// Whether it reads parameters, which can differ between runs.
    pub(crate) fn reads_params(&self) -> bool {
        let mut references = self.parsed.references.iter();
        references.any(|(root, _)| root == "params")
    }
}

/// Equal texts are equal expressions, because both are of the same policy.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A compiled entry of `variables`.
#[derive(Debug, Clone)]
pub struct PolicyVariable {
    /// The name in `variables.NAME`.
    pub name: String,
    /// What it is computed from.
    pub body: VariableBody,
    /// The byte range in the policy's file.
    pub at: Range<usize>,
}

/// The body of a variable.
#[derive(Debug, Clone)]
pub enum VariableBody {
    /// From `expression`.
    Expression(Expression),
    /// From `value`, with `${...}` in it.
    Value(ValueTemplate),
    /// A value that is known when the policy is read.
    Constant(Arc<Value>),
}

impl VariableBody {
    /// The value as written; `None` for an expression.
    fn written(&self) -> Option<&Value> {
        match self {
            VariableBody::Expression(_) => None,
            VariableBody::Value(value) => Some(value.written()),
            VariableBody::Constant(value) => Some(value),
        }
    }

    /// What the body depends on.
    pub fn uses(&self) -> ExpressionUses {
        match self {
            VariableBody::Expression(expression) => expression.uses,
            VariableBody::Value(value) => value.uses(),
            VariableBody::Constant(_) => ExpressionUses::default(),
        }
    }
}

/// The result of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExpressionResult {
    /// A value.
    Value(Value),
    /// An empty optional.
    Absent,
}

/// The facts about a workload that expressions can read.
pub trait Facts {
    /// A field of `workload`, `pod`, `container` or `containers`, or the whole `object`; `None` if it is absent.
    ///
    /// # Errors
    /// The fact cannot be known in this run.
    fn fact(&self, root: &str, field: &str) -> Evaluated<Option<Value>>;

    /// Another object; `None` if there is none.
    ///
    /// # Errors
    /// The object cannot be known in this run.
    fn lookup(&self, _: &LookupKey) -> Evaluated<Option<Value>> {
        Err(not_known("lookup"))
    }
}

/// Facts for expressions that read parameters alone: every other fact is an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoFacts;

impl Facts for NoFacts {
    fn fact(&self, root: &str, _: &str) -> Evaluated<Option<Value>> {
        Err(not_known(root))
    }
}

fn not_known(name: &str) -> TemplateError {
    let help = "only parameters are available before a workload is known";
    TemplateError::new(
        Code::BadExpression,
        format!("`{name}` is not available here"),
        help,
    )
}

impl Expression {
    /// Compiles a text. Every name in it must be known.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn compile(text: &str, vocabulary: &Vocabulary) -> Result<Self, Vec<TemplateError>> {
        if text.chars().count() > MAX_LENGTH {
            let fault = format!("is longer than {MAX_LENGTH} characters");
            return Err(vec![too_large(&fault)]);
        }
        // The parser recurses for each bracket, so a deep text is refused before it is parsed.
        if brackets(text) > MAX_BRACKETS {
            return Err(vec![too_deep()]);
        }
        let parsed = Self::parse_on_deep_stack(text, vocabulary)?;
        let mut uses = ExpressionUses::default();
        for (root, field) in &parsed.references {
            uses = uses.and(vocabulary.uses(root, field.as_deref()));
            if root == "namespaceObject" {
                vocabulary.note_kinds([(String::new(), "Namespace".to_owned())]);
            }
        }
        uses.workload |= parsed.looks_up();
        vocabulary.note_kinds(parsed.kinds.iter().cloned());
        Ok(Expression {
            text: text.into(),
            parsed: Arc::new(parsed),
            uses,
        })
    }

    /// Parses on a thread with a large stack: the parser is recursive, and a policy must not overflow the stack.
    #[cfg(not(target_family = "wasm"))]
    fn parse_on_deep_stack(
        text: &str,
        vocabulary: &Vocabulary,
    ) -> Result<ParsedExpression, Vec<TemplateError>> {
        std::thread::scope(|scope| {
            let parse = || Self::parse(text, vocabulary);
            let thread = std::thread::Builder::new()
                .stack_size(PARSER_STACK)
                .spawn_scoped(scope, parse)
                .map_err(|error| vec![no_stack(text, &error)])?;
            let parsed = thread.join();
            parsed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// WebAssembly has no threads. The stack size of the module is set by the linker (`.cargo/config.toml`).
    #[cfg(target_family = "wasm")]
    fn parse_on_deep_stack(
        text: &str,
        vocabulary: &Vocabulary,
    ) -> Result<ParsedExpression, Vec<TemplateError>> {
        Self::parse(text, vocabulary)
    }

    fn parse(text: &str, vocabulary: &Vocabulary) -> Result<ParsedExpression, Vec<TemplateError>> {
        let parsed = ENV.parser().max_recursion_depth(MAX_NESTING).parse(text);
        let tree = parsed.map_err(|errors| vec![syntax_error(text, &errors)])?;
        ExpressionChecker::new(vocabulary).checked(tree)
    }

    /// Whether it names more than parameters, variables and the resource.
    pub(crate) fn names_workload(&self) -> bool {
        let known = ["params", "variables", "source", "sources"];
        let mut roots = self.parsed.references.iter().map(|(root, _)| root.as_str());
        self.parsed.looks_up()
            || roots.any(|root| fields_of(root).len() > 1 || !known.contains(&root))
    }

    /// The text that was compiled.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The error for a system that refuses the parser its thread, usually by a limit of memory.
#[cfg(not(target_family = "wasm"))]
fn no_stack(text: &str, error: &std::io::Error) -> TemplateError {
    let size = PARSER_STACK >> 20;
    let message = format!(
        "cannot parse `{text}`: the system refused a thread with a {size} MiB stack: {error}"
    );
    let help = "allow more address space (`ulimit -v`) or more threads (`ulimit -u`)";
    TemplateError::new(Code::TooLong, message, help)
}

fn syntax_error(text: &str, errors: &ParseErrors) -> TemplateError {
    let first = errors.errors.first();
    let words = first.map_or("unknown", |error| error.msg.as_str());
    let words = words.strip_prefix("Syntax error: ").unwrap_or(words);
    // The parser's error goes on with a list of all tokens that it expects.
    let words = words.split(" expecting ").next().unwrap_or(words);
    let words = match words.contains("'<EOF>'") {
        true => "unexpected end",
        false => words,
    };
    let message = format!("`{text}` is not a valid expression: {words}");
    let help =
        "expressions are written in CEL: https://kubernetes.io/docs/reference/using-api/cel/";
    TemplateError::new(Code::BadExpression, message, help)
}

/// The nesting depth of brackets. Brackets in string literals count too, which only makes the limit stricter.
fn brackets(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

fn too_deep() -> TemplateError {
    too_large(&format!("is nested more than {MAX_DEPTH} levels deep"))
}

fn too_large(fault: &str) -> TemplateError {
    let help = "split it into several `variables`";
    TemplateError::new(Code::BadExpression, format!("the expression {fault}"), help)
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
