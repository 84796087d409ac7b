//! CEL: a text compiled when the policy is read, every name in it checked, and evaluated over what a workload offers.
//! With the files of `expression/` the only one that knows the CEL crate.
//!
//! The crate has no limit of cost, so what an expression may cost is bounded by its form: its length, the depth of its
//! nesting, and of lists within lists that it walks; by the length of these lists; and by the steps of `cost`.

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
mod shared;
mod values;

use cel::common::ast::IdedExpr;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::template::{TemplateError, ValueTemplate};
use super::vocabulary::{ExpressionUses, Vocabulary, fields_of};
use crate::diagnostic::Code;
use check::{ExpressionChecker, ParsedExpression};
pub(crate) use evaluator::{EvaluationCache, Evaluator};
use library::ENV;
pub(crate) use lookups::LookupKey;
use memo::Memo;

const MAX_LENGTH: usize = 16_384;
const MAX_NESTING: u16 = 64;
const MAX_BRACKETS: usize = 40;
const MAX_DEPTH: usize = 40;
/// What the crate's parser needs for the longest and deepest text that is let through, in a debug build.
#[cfg(not(target_family = "wasm"))]
const PARSER_STACK: usize = 256 << 20;
const MAX_WALKS: usize = 2;
/// Names that stand for one value, not for a set of fields.
const WHOLE: [&str; 4] = ["object", "namespaceObject", "source", "sources"];
/// The variable that holds the resource of `source`; no policy can name one so.
pub(crate) const SOURCE: &str = "@source";
/// The one that holds all resources of the kind.
pub(crate) const SOURCES: &str = "@sources";

/// The names and fields that an expression refers to. Without a field the whole name is meant.
type FieldReferences = BTreeSet<(String, Option<String>)>;

/// Groups and kinds of objects.
pub(crate) type ObjectKinds = BTreeSet<(String, String)>;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Arc<str>,
    tree: Arc<IdedExpr>,
    /// The names and fields to bind; a name without a field is wanted whole.
    references: FieldReferences,
    /// What it uses.
    pub uses: ExpressionUses,
    /// It calls `lookup`.
    looks_up: bool,
    /// Fields of which it asks whether they are there; `None` where it always needs all that it names.
    tested: Option<FieldReferences>,
    /// What it came to before.
    memo: Option<Arc<Memo>>,
}

impl Expression {
    /// Whether it names parameters, which another run may set.
    pub fn reads_params(&self) -> bool {
        self.references.iter().any(|(root, _)| root == "params")
    }
}

/// The same text; within one policy it is the same expression.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// One of `variables`.
#[derive(Debug, Clone)]
pub struct PolicyVariable {
    /// Read as `variables.NAME`.
    pub name: String,
    /// Its value.
    pub body: VariableBody,
    /// Where it stands in the policy's file.
    pub at: Range<usize>,
}

/// The body of a variable.
#[derive(Debug, Clone)]
pub enum VariableBody {
    /// `expression`.
    Expression(Expression),
    /// `value`.
    Value(ValueTemplate),
    /// What is known when the policy is read.
    Constant(Arc<Value>),
}

impl VariableBody {
    /// Its value as it is written, where it is one.
    fn written(&self) -> Option<&Value> {
        match self {
            VariableBody::Expression(_) => None,
            VariableBody::Value(value) => Some(value.written()),
            VariableBody::Constant(value) => Some(value),
        }
    }

    /// What it uses.
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
    /// An optional with nothing in it.
    Absent,
}

/// The facts of a workload that expressions can read.
pub trait Facts {
    /// A field of `workload`, `pod`, `container` or `containers`, or the whole `object`; `None` when it is not there.
    ///
    /// # Errors
    /// What cannot be known.
    fn fact(&self, root: &str, field: &str) -> Result<Option<Value>, TemplateError>;

    /// Another object; `None` when it is not there.
    ///
    /// # Errors
    /// What cannot be known.
    fn lookup(&self, _: &LookupKey) -> Result<Option<Value>, TemplateError> {
        let help = "only parameters are known before a workload is";
        let message = "`lookup` is not known here";
        Err(TemplateError::new(Code::BadExpression, message, help))
    }
}

/// Offers nothing: for expressions of parameters alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoFacts;

impl Facts for NoFacts {
    fn fact(&self, root: &str, _: &str) -> Result<Option<Value>, TemplateError> {
        let help = "only parameters are known before a workload is";
        Err(TemplateError::new(
            Code::BadExpression,
            format!("`{root}` is not known here"),
            help,
        ))
    }
}

impl Expression {
    /// Compiles a text; every name in it must be known.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn compile(text: &str, vocabulary: &Vocabulary) -> Result<Self, Vec<TemplateError>> {
        if text.len() > MAX_LENGTH {
            let help = "split it into several `variables`";
            let message = format!("the expression is longer than {MAX_LENGTH} characters");
            return Err(vec![TemplateError::new(Code::BadExpression, message, help)]);
        }
        if brackets(text) > MAX_BRACKETS {
            return Err(vec![too_deep()]);
        }
        let ParsedExpression {
            tree,
            references,
            kinds,
            tested,
            memo,
        } = Self::parse_on_deep_stack(text, vocabulary)?;
        let uses =
            |(root, field): &(String, Option<String>)| vocabulary.uses(root, field.as_deref());
        let mut uses = references
            .iter()
            .map(uses)
            .fold(ExpressionUses::default(), ExpressionUses::and);
        let looks_up = !kinds.is_empty();
        uses.workload |= looks_up;
        vocabulary.note_kinds(kinds);
        if references.iter().any(|(root, _)| root == "namespaceObject") {
            vocabulary.note_kinds([(String::new(), "Namespace".to_owned())]);
        }
        Ok(Expression {
            text: text.into(),
            tree: Arc::new(tree),
            references,
            uses,
            looks_up,
            tested,
            memo: memo.filter(|_| !looks_up).map(Arc::new),
        })
    }

    /// The parser calls itself for every level, and a policy must not be able to end the program.
    #[cfg(not(target_family = "wasm"))]
    fn parse_on_deep_stack(
        text: &str,
        vocabulary: &Vocabulary,
    ) -> Result<ParsedExpression, Vec<TemplateError>> {
        std::thread::scope(|scope| {
            let parse = || Self::parse(text, vocabulary);
            let thread = std::thread::Builder::new()
                .stack_size(PARSER_STACK)
                .spawn_scoped(scope, parse);
            let parsed = thread.expect("the system gives a thread").join();
            parsed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// There are no threads; the stack of a WebAssembly module is set where it is linked (`.cargo/config.toml`).
    #[cfg(target_family = "wasm")]
    fn parse_on_deep_stack(
        text: &str,
        vocabulary: &Vocabulary,
    ) -> Result<ParsedExpression, Vec<TemplateError>> {
        Self::parse(text, vocabulary)
    }

    fn parse(text: &str, vocabulary: &Vocabulary) -> Result<ParsedExpression, Vec<TemplateError>> {
        let parsed = ENV.parser().max_recursion_depth(MAX_NESTING).parse(text);
        let tree = parsed.map_err(|errors| {
            let words = errors
                .errors
                .first()
                .map_or("unknown", |error| error.msg.as_str());
            let words = words.strip_prefix("Syntax error: ").unwrap_or(words);
            // What the grammar would take here is a list of all its tokens.
            let words = words.split(" expecting ").next().unwrap_or(words);
            let words = if words.contains("'<EOF>'") {
                "it ends too early"
            } else {
                words
            };
            let help = "expressions are CEL: https://kubernetes.io/docs/reference/using-api/cel/";
            vec![TemplateError::new(
                Code::BadExpression,
                format!("`{text}` is no expression: {words}"),
                help,
            )]
        })?;
        ExpressionChecker::new(vocabulary).checked(tree)
    }

    /// Whether it names more than the parameters, the variables and the resource.
    pub fn names_workload(&self) -> bool {
        let known = ["params", "variables", "source", "sources"];
        let mut roots = self.references.iter().map(|(root, _)| root.as_str());
        self.looks_up || roots.any(|root| fields_of(root).len() > 1 || !known.contains(&root))
    }

    /// The text that it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// How deep brackets nest; those in texts count as well.
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
    let help = "split it into several `variables`";
    TemplateError::new(
        Code::BadExpression,
        format!("the expression nests more than {MAX_DEPTH} deep"),
        help,
    )
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
