//! CEL: a text compiled when the policy is read, every name in it checked, and evaluated over what a workload offers.
//! With the files of `expression/` the only one that knows the CEL crate.
//!
//! The crate has no limit of cost, so what an expression may cost is bounded by its form: its length, the depth of its
//! nesting, and of lists within lists that it walks; by the length of these lists; and by the steps of `cost`.

mod check;
mod cost;
mod formats;
mod kubernetes;
mod library;
mod lookups;
mod macros;
mod memo;
mod order;
mod shared;
mod values;
mod words;

use cel::common::ast::IdedExpr;
use cel::common::types::{CelNull, CelString};
use cel::common::value::{CowVal, Val};
use cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use super::functions::MAX_TEXT;
use super::template::{Fault, Params, ValueTemplate};
use super::vocabulary::{Uses, Vocabulary, fields_of};
use crate::diagnostic::Code;
use check::{Check, Parsed};
use library::ENV;
use lookups::Known;
pub(crate) use lookups::Wanted;
use memo::{Memo, Remembered};
use shared::{Shared, from_json, map_of, to_json};
use words::{in_words, shortened};

const MAX_LENGTH: usize = 16_384;
const MAX_NESTING: u16 = 64;
const MAX_BRACKETS: usize = 40;
const MAX_DEPTH: usize = 40;
/// What the crate's parser needs for the longest and deepest text that is let through, in a debug build.
#[cfg(not(target_family = "wasm"))]
const PARSER_STACK: usize = 256 << 20;
const MAX_WALKS: usize = 2;
/// Objects that are looked up by what other looked-up objects say.
const MAX_ROUNDS: usize = 8;
/// Names that stand for one value, not for a set of fields.
const WHOLE: [&str; 4] = ["object", "namespaceObject", "source", "sources"];
/// The variable that holds the resource of `source`; no policy can name one so.
pub(crate) const SOURCE: &str = "@source";
/// The one that holds all resources of the kind.
pub(crate) const SOURCES: &str = "@sources";

/// Names and the fields of them; without a field a name is wanted whole.
type Wants = BTreeSet<(String, Option<String>)>;

/// Groups and kinds of objects.
pub(crate) type ObjectKinds = BTreeSet<(String, String)>;

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Arc<str>,
    tree: Arc<IdedExpr>,
    /// The names and fields to bind; a name without a field is wanted whole.
    wants: Wants,
    /// What it uses.
    pub uses: Uses,
    /// It calls `lookup`.
    looks_up: bool,
    /// Fields of which it asks whether they are there; `None` where it always needs all that it names.
    tested: Option<Wants>,
    /// What it came to before.
    memo: Option<Arc<Memo>>,
}

impl Expression {
    /// Whether it names parameters, which another run may set.
    pub fn reads_params(&self) -> bool {
        self.wants.iter().any(|(root, _)| root == "params")
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
pub struct Variable {
    /// Read as `variables.NAME`.
    pub name: String,
    /// Its value.
    pub body: Body,
    /// Where it stands in the policy's file.
    pub at: Range<usize>,
}

/// What a variable is made of.
#[derive(Debug, Clone)]
pub enum Body {
    /// `expression`.
    Expression(Expression),
    /// `value`.
    Value(ValueTemplate),
    /// What is known when the policy is read.
    Constant(Arc<Value>),
}

impl Body {
    /// Its value as it is written, where it is one.
    fn written(&self) -> Option<&Value> {
        match self {
            Body::Expression(_) => None,
            Body::Value(value) => Some(value.written()),
            Body::Constant(value) => Some(value),
        }
    }

    /// What it uses.
    pub fn uses(&self) -> Uses {
        match self {
            Body::Expression(expression) => expression.uses,
            Body::Value(value) => value.uses(),
            Body::Constant(_) => Uses::default(),
        }
    }
}

/// What an expression comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A value.
    Value(Value),
    /// An optional with nothing in it.
    Absent,
}

/// What a workload offers to expressions.
pub trait Facts {
    /// A field of `workload`, `pod`, `container` or `containers`, or the whole `object`; `None` when it is not there.
    ///
    /// # Errors
    /// What cannot be known.
    fn fact(&self, root: &str, field: &str) -> Result<Option<Value>, Fault>;

    /// Another object; `None` when it is not there.
    ///
    /// # Errors
    /// What cannot be known.
    fn lookup(&self, _: &Wanted) -> Result<Option<Value>, Fault> {
        let help = "only parameters are known before a workload is";
        let message = "`lookup` is not known here";
        Err(Fault::new(Code::BadExpression, message, help))
    }
}

/// Offers nothing: for expressions of parameters alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoFacts;

impl Facts for NoFacts {
    fn fact(&self, root: &str, _: &str) -> Result<Option<Value>, Fault> {
        let help = "only parameters are known before a workload is";
        Err(Fault::new(
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
    pub fn compile(text: &str, vocabulary: &Vocabulary) -> Result<Self, Vec<Fault>> {
        if text.len() > MAX_LENGTH {
            let help = "split it into several `variables`";
            let message = format!("the expression is longer than {MAX_LENGTH} characters");
            return Err(vec![Fault::new(Code::BadExpression, message, help)]);
        }
        if brackets(text) > MAX_BRACKETS {
            return Err(vec![too_deep()]);
        }
        let Parsed {
            tree,
            wants,
            kinds,
            tested,
            memo,
        } = Self::parse_on_deep_stack(text, vocabulary)?;
        let uses =
            |(root, field): &(String, Option<String>)| vocabulary.uses(root, field.as_deref());
        let mut uses = wants.iter().map(uses).fold(Uses::default(), Uses::and);
        let looks_up = !kinds.is_empty();
        uses.workload |= looks_up;
        vocabulary.note_kinds(kinds);
        if wants.iter().any(|(root, _)| root == "namespaceObject") {
            vocabulary.note_kinds([(String::new(), "Namespace".to_owned())]);
        }
        Ok(Expression {
            text: text.into(),
            tree: Arc::new(tree),
            wants,
            uses,
            looks_up,
            tested,
            memo: memo.filter(|_| !looks_up).map(Arc::new),
        })
    }

    /// The parser calls itself for every level, and a policy must not be able to end the program.
    #[cfg(not(target_family = "wasm"))]
    fn parse_on_deep_stack(text: &str, vocabulary: &Vocabulary) -> Result<Parsed, Vec<Fault>> {
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
    fn parse_on_deep_stack(text: &str, vocabulary: &Vocabulary) -> Result<Parsed, Vec<Fault>> {
        Self::parse(text, vocabulary)
    }

    fn parse(text: &str, vocabulary: &Vocabulary) -> Result<Parsed, Vec<Fault>> {
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
            vec![Fault::new(
                Code::BadExpression,
                format!("`{text}` is no expression: {words}"),
                help,
            )]
        })?;
        Check::new(vocabulary).checked(tree)
    }

    /// Whether it names more than the parameters, the variables and the resource.
    pub fn names_workload(&self) -> bool {
        let known = ["params", "variables", "source", "sources"];
        let mut roots = self.wants.iter().map(|(root, _)| root.as_str());
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

fn too_deep() -> Fault {
    let help = "split it into several `variables`";
    Fault::new(
        Code::BadExpression,
        format!("the expression nests more than {MAX_DEPTH} deep"),
        help,
    )
}

/// Fields of a name, and their values.
type Fields = Vec<(String, Shared)>;

/// What stands for the names of an expression.
type Bound = BTreeMap<String, Fields>;

/// What an expression came to, and where that is kept.
struct Found {
    value: Shared,
    remembered: Option<Arc<Remembered>>,
}

/// Values of names and fields.
type Values = RefCell<BTreeMap<(String, String), Option<Shared>>>;

/// What the names in a policy's expressions stand for over one workload, for all that evaluate some of them.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    of_workload: Rc<Values>,
    of_container: Rc<Values>,
    objects: Rc<RefCell<Known>>,
}

impl Memory {
    /// The same for another container.
    pub fn of_another_container(&self) -> Self {
        Memory {
            of_container: Rc::default(),
            ..self.clone()
        }
    }
}

/// Evaluates a policy's expressions over one workload, and one of its containers. What was looked up is kept.
pub struct Evaluator<'e> {
    params: &'e Params,
    variables: &'e [Variable],
    facts: &'e dyn Facts,
    memory: Memory,
    steps_left: Cell<usize>,
}

impl<'e> Evaluator<'e> {
    /// Evaluates with these names.
    pub fn new(params: &'e Params, variables: &'e [Variable], facts: &'e dyn Facts) -> Self {
        Evaluator {
            params,
            variables,
            facts,
            memory: Memory::default(),
            steps_left: Cell::new(cost::MOST),
        }
    }

    /// With what others found that evaluate over the same facts.
    pub fn with_memory(self, memory: Memory) -> Self {
        Evaluator { memory, ..self }
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// Why it has none.
    pub fn evaluate(&self, expression: &Expression) -> Result<Outcome, Fault> {
        let found = self.found(expression)?;
        let arranged = std::ptr::from_ref(self.variables).addr();
        let known = found
            .remembered
            .as_ref()
            .and_then(|found| found.outcome.get());
        if let Some((_, known)) = known.filter(|(own, _)| *own == arranged) {
            return Ok(known.clone());
        }
        let outcome = self.in_json(expression, &found.value)?;
        if let Some(remembered) = &found.remembered {
            remembered
                .outcome
                .get_or_init(|| (arranged, outcome.clone()));
        }
        Ok(outcome)
    }

    fn in_json(&self, expression: &Expression, value: &Shared) -> Result<Outcome, Fault> {
        let mut left = MAX_TEXT;
        let mut outcome = to_json(&**value, &mut left).map_err(|why| failed(expression, &why))?;
        if let Outcome::Value(value @ (Value::Object(_) | Value::Array(_))) = &mut outcome {
            let own = self.variables.iter().filter(|one| one.name != SOURCES);
            let written = own.filter_map(|one| one.body.written());
            let written: Vec<&Value> = written.collect();
            if !written.is_empty() {
                order::arrange(value, &written);
            }
        }
        Ok(outcome)
    }

    fn found(&self, expression: &Expression) -> Result<Found, Fault> {
        let mut late = BTreeMap::new();
        let bound = self.bindings(expression, &mut late)?;
        let memo = expression.memo.as_ref().filter(|_| late.is_empty());
        if let Some(found) = memo.and_then(|memo| memo.find(&bound))
            && let Some(left) = self.steps_left.get().checked_sub(found.steps)
        {
            self.steps_left.set(left);
            return Ok(Found {
                value: found.value.clone(),
                remembered: Some(found),
            });
        }
        let before = self.steps_left.get();
        let value = self.resolve(expression, &bound, late)?;
        let steps = before - self.steps_left.get();
        let remembered = memo.map(|memo| memo.keep(&bound, &value, steps));
        Ok(Found { value, remembered })
    }

    fn resolve(
        &self,
        expression: &Expression,
        bound: &Bound,
        mut late: BTreeMap<String, Fault>,
    ) -> Result<Shared, Fault> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        for (root, fields) in bound {
            let fields = fields.iter().map(|(field, value)| {
                let value: Box<dyn Val> = Box::new(value.clone());
                (field.clone(), value)
            });
            context.add_variable_as_val(root, Box::new(map_of(fields)));
        }
        for root in WHOLE {
            if expression.wants.iter().any(|(wanted, _)| wanted == root) {
                let object = self.find(root, "")?;
                let object =
                    object.unwrap_or_else(|| Shared::from(Box::new(CelNull) as Box<dyn Val>));
                context.add_variable_as_val(root, Box::new(object));
            }
        }
        let evaluate = || {
            cost::within(&self.steps_left, || {
                Cel::resolve_val(&expression.tree, &context).map(CowVal::into_owned)
            })
        };
        let resolved = if expression.looks_up {
            self.with_objects(expression, evaluate)?
        } else {
            evaluate()
        };
        resolved.map(Shared::from).map_err(|error| match &error {
            ExecutionError::NoSuchKey(key) => match late.remove(key.as_str()) {
                Some(fault) => fault,
                None => failed(expression, &in_words(error)),
            },
            _ => failed(expression, &in_words(error)),
        })
    }

    /// Evaluates until nothing is asked for that was not looked up.
    fn with_objects<T>(
        &self,
        expression: &Expression,
        evaluate: impl Fn() -> T,
    ) -> Result<T, Fault> {
        for _ in 0..MAX_ROUNDS {
            let objects = &self.memory.objects;
            let (evaluated, asked) = lookups::within(&mut objects.borrow_mut(), &evaluate);
            if asked.is_empty() {
                return Ok(evaluated);
            }
            for wanted in asked {
                let found = self.facts.lookup(&wanted)?.map(shared);
                objects.borrow_mut().insert(wanted, found);
            }
        }
        let why = format!("what it looks up depends on other objects more than {MAX_ROUNDS} deep");
        Err(failed(expression, &why))
    }

    /// The maps that stand for the names of an expression, with the fields that it asks for. What has no value, and is
    /// perhaps not needed, is left out: `late` says why.
    fn bindings(
        &self,
        expression: &Expression,
        late: &mut BTreeMap<String, Fault>,
    ) -> Result<Bound, Fault> {
        let mut bindings = Bound::new();
        let fields = |(root, _): &&(String, Option<String>)| !WHOLE.contains(&root.as_str());
        for (root, field) in expression.wants.iter().filter(fields) {
            let fields: Vec<String> = match (root.as_str(), field) {
                (_, Some(field)) => vec![field.clone()],
                ("params", None) => self.params.keys().cloned().collect(),
                ("variables", None) => Vec::new(),
                (root, None) => fields_of(root)
                    .iter()
                    .map(|&field| field.to_owned())
                    .collect(),
            };
            if fields.is_empty()
                && fields_of(root).is_empty()
                && !matches!(root.as_str(), "params" | "variables")
            {
                continue; // the name of a type
            }
            let bound = bindings.entry(root.clone()).or_default();
            for field in fields {
                let tested = expression.tested.as_ref();
                let may_wait = tested
                    .is_some_and(|tested| !tested.contains(&(root.clone(), Some(field.clone()))));
                match self.find(root, &field) {
                    Ok(Some(value)) => bound.push((field, value)),
                    Ok(None) => {}
                    Err(fault) if may_wait => drop(late.insert(field, fault)),
                    Err(fault) => return Err(fault),
                }
            }
        }
        Ok(bindings)
    }

    fn variable(&self, name: &str) -> Result<Option<Shared>, Fault> {
        let Some(variable) = self.variables.iter().find(|one| one.name == name) else {
            return Ok(None);
        };
        let value = match &variable.body {
            Body::Expression(expression) => self.found(expression).map(|found| found.value),
            Body::Value(value) => value.evaluate(self).map(shared),
            Body::Constant(value) => Ok(shared((**value).clone())),
        };
        value.map(Some).map_err(|fault| Fault {
            variable: fault.variable.or_else(|| Some(variable.at.clone())),
            ..fault
        })
    }

    fn find(&self, root: &str, field: &str) -> Result<Option<Shared>, Fault> {
        let key = (root.to_owned(), field.to_owned());
        let values = match self.depends_on_container(root, field) {
            true => &self.memory.of_container,
            false => &self.memory.of_workload,
        };
        if let Some(found) = values.borrow().get(&key) {
            return Ok(found.clone());
        }
        let found = match root {
            "params" => self
                .params
                .get(field)
                .cloned()
                .flatten()
                .map(|text| Shared::from(Box::new(CelString::from(text)) as Box<dyn Val>)),
            "variables" => self.variable(field)?,
            "source" => self.variable(SOURCE)?,
            "sources" => self.variable(SOURCES)?,
            _ => self.facts.fact(root, field)?.map(shared),
        };
        values.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    fn depends_on_container(&self, root: &str, field: &str) -> bool {
        match root {
            "variables" => {
                let mut variables = self.variables.iter();
                let variable = variables.find(|variable| variable.name == field);
                variable.is_some_and(|variable| variable.body.uses().container)
            }
            _ => root == "container",
        }
    }
}

fn failed(expression: &Expression, why: &str) -> Fault {
    Fault {
        help: None,
        ..Fault::new(
            Code::BadExpression,
            format!("`{}` has no value: {why}", shortened(&expression.text)),
            String::new(),
        )
    }
}

fn shared(value: Value) -> Shared {
    Shared::from(from_json(value))
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
