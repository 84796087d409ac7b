//! CEL: a text compiled when the policy is read, every name in it checked, and evaluated over what a workload offers.
//! With the files of `expression/` the only one that knows the CEL crate.
//!
//! The crate has no limit of cost, so what an expression may cost is bounded by its form: its length, the depth of its
//! nesting, and of lists within lists that it walks; by the length of these lists; and by the steps of `cost`.

mod cost;
mod library;
mod lookups;
mod words;

use cel::common::ast::operators::{INDEX, OPT_INDEX, OPT_SELECT};
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, SelectExpr,
};
use cel::objects::{Key, Map, OptionalValue};
use cel::{Context, Value as Cel};
use serde_json::{Number, Value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::functions::MAX_TEXT;
use super::template::{Fault, Params, ValueTemplate};
use super::vocabulary::{Asked, Uses, Vocabulary, check_function, fields_of};
use crate::diagnostic::Code;
use crate::manifest::workload::group_of;
use library::{CHARGED, CHARGED_EACH, ENV, JOIN, REPLACE, WALKED, is_free};
use lookups::Known;
pub use lookups::Wanted;
use words::{in_words, shortened};

const MAX_LENGTH: usize = 4096;
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
const WHOLE: [&str; 2] = ["object", "namespaceObject"];

/// Names and the fields of them; without a field a name is wanted whole.
type Wants = BTreeSet<(String, Option<String>)>;

/// Groups and kinds of objects.
pub type ObjectKinds = BTreeSet<(String, String)>;

/// The tree of an expression, what it wants, and the kinds of objects that it looks up.
type Parsed = (IdedExpr, Wants, ObjectKinds);

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
}

impl Body {
    /// What it uses.
    pub fn uses(&self) -> Uses {
        match self {
            Body::Expression(expression) => expression.uses,
            Body::Value(value) => value.uses(),
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
pub struct NoFacts;

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
        let (tree, wants, kinds) = Self::parse_on_deep_stack(text, vocabulary)?;
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
        let mut tree = parsed.map_err(|errors| {
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
        let mut check = Check {
            vocabulary,
            bound: Vec::new(),
            walks: 0,
            depth: 0,
            wants: Wants::new(),
            kinds: ObjectKinds::new(),
            tested: BTreeSet::new(),
            faults: Vec::new(),
        };
        check.expression(&mut tree);
        if check.faults.is_empty() {
            Ok((tree, check.wants, check.kinds))
        } else {
            Err(check.faults)
        }
    }

    /// The text that it was compiled from.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Looks at every name of an expression, and puts our own functions where the crate's would not do.
struct Check<'c> {
    vocabulary: &'c Vocabulary,
    /// Names that comprehensions bring in.
    bound: Vec<String>,
    /// How many lists are being walked here.
    walks: usize,
    depth: usize,
    wants: Wants,
    kinds: ObjectKinds,
    /// Fields of which it was asked whether they are there.
    tested: BTreeSet<(String, String)>,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn expression(&mut self, tree: &mut IdedExpr) {
        self.depth += 1;
        if self.depth == MAX_DEPTH + 1 {
            self.faults.push(too_deep());
        }
        match &mut tree.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::List(list) => list
                .elements
                .iter_mut()
                .for_each(|entry| self.charged(entry, CHARGED)),
            Expr::Map(map) => map
                .entries
                .iter_mut()
                .for_each(|entry| self.entry(&mut entry.expr)),
            Expr::Struct(message) => {
                let help = "write a map instead: `{'key': value}`";
                let text = format!("expressions know no type `{}`", message.type_name);
                self.faults
                    .push(Fault::new(Code::BadExpression, text, help));
            }
        }
        self.depth -= 1;
    }

    fn entry(&mut self, entry: &mut EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.expression(&mut field.value),
            EntryExpr::MapEntry(entry) => {
                self.expression(&mut entry.key);
                self.charged(&mut entry.value, CHARGED);
            }
        }
    }

    fn name(&mut self, name: &str) {
        if self.is_bound(name) {
            return;
        }
        match self.vocabulary.check_root(name) {
            Ok(()) => {
                // Those above alone: a variable that wants them all is not one of them.
                let above = self
                    .vocabulary
                    .variables
                    .keys()
                    .filter(|_| name == "variables");
                self.wants
                    .extend(above.map(|variable| (name.to_owned(), Some(variable.clone()))));
                self.wants.insert((name.to_owned(), None));
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    fn is_bound(&self, name: &str) -> bool {
        name.starts_with('@') || self.bound.iter().any(|own| own == name)
    }

    fn select(&mut self, select: &mut SelectExpr) {
        let asked = if select.test {
            Asked::Perhaps
        } else {
            Asked::Plainly
        };
        match free_name(&select.operand)
            .filter(|name| !self.is_bound(name))
            .map(str::to_owned)
        {
            Some(root) => self.field(&root, &select.field, asked),
            None => {
                if let Expr::Select(inner) = &select.operand.expr
                    && free_name(&inner.operand) == Some("containers")
                    && !self.is_bound("containers")
                    && let Err(fault) =
                        self.vocabulary
                            .check_field("container", &select.field, asked)
                {
                    self.faults.push(fault);
                }
                self.expression(&mut select.operand);
            }
        }
    }

    fn field(&mut self, root: &str, field: &str, asked: Asked) {
        // `has(params.a) ? params.a : ...` reads it only where it is there.
        let is_tested = !self.tested.insert((root.to_owned(), field.to_owned()));
        let asked = match asked {
            Asked::Plainly if !is_tested => {
                self.tested.remove(&(root.to_owned(), field.to_owned()));
                Asked::Plainly
            }
            Asked::Plainly | Asked::Perhaps => Asked::Perhaps,
        };
        let checked = self
            .vocabulary
            .check_root(root)
            .and_then(|()| self.vocabulary.check_field(root, field, asked));
        match checked {
            Ok(()) => {
                self.wants.insert((root.to_owned(), Some(field.to_owned())));
            }
            Err(fault) => self.faults.push(fault),
        }
    }

    fn call(&mut self, call: &mut CallExpr) {
        if let (INDEX | OPT_INDEX | OPT_SELECT, [of, key]) =
            (call.func_name.as_str(), call.args.as_slice())
            && let Expr::Literal(LiteralValue::String(field)) = &key.expr
            && let Some(root) = free_name(of).filter(|root| !self.is_bound(root))
        {
            let asked = if call.func_name == INDEX {
                Asked::Plainly
            } else {
                Asked::Perhaps
            };
            let (root, field) = (root.to_owned(), field.inner().to_owned());
            return self.field(&root, &field, asked);
        }
        let is_operator = !call
            .func_name
            .starts_with(|char: char| char.is_ascii_alphabetic());
        let of_optional = call
            .target
            .as_ref()
            .is_some_and(|target| free_name(target) == Some("optional"));
        let name = if of_optional {
            format!("optional.{}", call.func_name)
        } else {
            call.func_name.clone()
        };
        if !is_operator && let Err(fault) = check_function(&name) {
            self.faults.push(fault);
        }
        if name == "lookup" {
            self.lookup(call);
        }
        let is_free = is_free(&call.func_name);
        if let Some(target) = call.target.as_mut().filter(|_| !of_optional) {
            self.charged(
                target,
                if call.func_name == "split" {
                    CHARGED_EACH
                } else {
                    CHARGED
                },
            );
        }
        for arg in &mut call.args {
            if is_free {
                self.expression(arg)
            } else {
                self.charged(arg, CHARGED)
            }
        }
        match call.func_name.as_str() {
            "replace" => call.func_name = REPLACE.to_owned(),
            "join" => call.func_name = JOIN.to_owned(),
            _ => {}
        }
    }

    /// Only objects of kinds that stand in a policy are read.
    fn lookup(&mut self, call: &CallExpr) {
        let text = |at: usize| match &call.args.get(at)?.expr {
            Expr::Literal(LiteralValue::String(text)) => Some(text.inner().to_owned()),
            _ => None,
        };
        match (text(0), text(1)) {
            (Some(api_version), Some(kind)) => {
                let group = group_of(&api_version).to_owned();
                self.kinds.insert((group, kind));
            }
            _ => {
                let message = "`lookup` needs its apiVersion and its kind written out";
                let help = "write `lookup('v1', 'ServiceAccount', name)`: only the name and the namespace may be computed";
                self.faults
                    .push(Fault::new(Code::BadExpression, message, help));
            }
        }
    }

    /// An expression whose value is looked at as a whole, or copied: that has its cost.
    fn charged(&mut self, tree: &mut IdedExpr, charge: &str) {
        self.expression(tree);
        let is_accumulator = free_name(tree).is_some_and(|name| name.starts_with('@'));
        if is_accumulator || matches!(tree.expr, Expr::Literal(_)) && charge == CHARGED {
            return;
        }
        let inner = std::mem::take(tree);
        tree.expr = Expr::Call(CallExpr {
            func_name: charge.to_owned(),
            target: None,
            args: vec![inner],
        });
    }

    fn comprehension(&mut self, walk: &mut ComprehensionExpr) {
        self.expression(&mut walk.iter_range);
        self.expression(&mut walk.accu_init);
        let before = self.bound.len();
        self.bound
            .extend([walk.iter_var.clone(), walk.accu_var.clone()]);
        self.bound.extend(walk.iter_var2.clone());
        self.walks += 1;
        if self.walks == MAX_WALKS + 1 {
            let help = "take the inner one out into `variables`";
            let message =
                format!("the expression walks lists within lists more than {MAX_WALKS} deep");
            self.faults
                .push(Fault::new(Code::BadExpression, message, help));
        }
        for part in [&mut walk.loop_cond, &mut walk.loop_step, &mut walk.result] {
            self.expression(part);
        }
        self.walks -= 1;
        self.bound.truncate(before);
        let nodes = cost::of_an_entry(walk);
        let nodes = IdedExpr {
            id: 0,
            expr: Expr::Literal(LiteralValue::Int(nodes.into())),
        };
        let range = std::mem::take(&mut walk.iter_range);
        let call = CallExpr {
            func_name: WALKED.to_owned(),
            target: None,
            args: vec![range, nodes],
        };
        walk.iter_range = IdedExpr {
            id: 0,
            expr: Expr::Call(call),
        };
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

fn free_name(tree: &IdedExpr) -> Option<&str> {
    match &tree.expr {
        Expr::Ident(name) => Some(name),
        _ => None,
    }
}

/// Evaluates a policy's expressions over one workload, and one of its containers. What was looked up is kept.
pub struct Evaluator<'e> {
    params: &'e Params,
    variables: &'e [Variable],
    facts: &'e dyn Facts,
    found: RefCell<BTreeMap<(String, String), Option<Cel>>>,
    objects: RefCell<Known>,
    steps_left: Cell<usize>,
}

impl<'e> Evaluator<'e> {
    /// Evaluates with these names.
    pub fn new(params: &'e Params, variables: &'e [Variable], facts: &'e dyn Facts) -> Self {
        Evaluator {
            params,
            variables,
            facts,
            found: RefCell::default(),
            objects: RefCell::default(),
            steps_left: Cell::new(cost::MOST),
        }
    }

    /// The value of an expression.
    ///
    /// # Errors
    /// Why it has none.
    pub fn evaluate(&self, expression: &Expression) -> Result<Outcome, Fault> {
        let value = self.cel_value(expression)?;
        let mut left = MAX_TEXT;
        to_json(&value, &mut left).map_err(|why| failed(expression, &why))
    }

    fn cel_value(&self, expression: &Expression) -> Result<Cel, Fault> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        for (root, fields) in self.bindings(expression)? {
            context.add_variable_from_value(
                root,
                Cel::Map(Map {
                    map: Arc::new(fields),
                }),
            );
        }
        for root in WHOLE {
            if expression.wants.iter().any(|(wanted, _)| wanted == root) {
                let object = self.find(root, "")?.unwrap_or(Cel::Null);
                context.add_variable_from_value(root, object);
            }
        }
        let evaluate = || {
            cost::within(&self.steps_left, || {
                Cel::resolve(&expression.tree, &context)
            })
        };
        let resolved = if expression.looks_up {
            self.with_objects(expression, evaluate)?
        } else {
            evaluate()
        };
        resolved.map_err(|error| failed(expression, &in_words(error)))
    }

    /// Evaluates until nothing is asked for that was not looked up.
    fn with_objects<T>(
        &self,
        expression: &Expression,
        evaluate: impl Fn() -> T,
    ) -> Result<T, Fault> {
        for _ in 0..MAX_ROUNDS {
            let (evaluated, asked) = lookups::within(&mut self.objects.borrow_mut(), &evaluate);
            if asked.is_empty() {
                return Ok(evaluated);
            }
            for wanted in asked {
                let found = self.facts.lookup(&wanted)?.map(from_json);
                self.objects.borrow_mut().insert(wanted, found);
            }
        }
        let why = format!("what it looks up depends on other objects more than {MAX_ROUNDS} deep");
        Err(failed(expression, &why))
    }

    /// The maps that stand for the names of an expression, with the fields that it asks for.
    fn bindings(
        &self,
        expression: &Expression,
    ) -> Result<BTreeMap<String, HashMap<Key, Cel>>, Fault> {
        let mut bindings: BTreeMap<String, HashMap<Key, Cel>> = BTreeMap::new();
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
                if let Some(value) = self.find(root, &field)? {
                    bound.insert(Key::from(field), value);
                }
            }
        }
        Ok(bindings)
    }

    fn find(&self, root: &str, field: &str) -> Result<Option<Cel>, Fault> {
        let key = (root.to_owned(), field.to_owned());
        if let Some(found) = self.found.borrow().get(&key) {
            return Ok(found.clone());
        }
        let found = match root {
            "params" => self
                .params
                .get(field)
                .cloned()
                .flatten()
                .map(|text| Cel::String(Arc::new(text))),
            "variables" => match self
                .variables
                .iter()
                .find(|variable| variable.name == field)
            {
                Some(variable) => Some(match &variable.body {
                    Body::Expression(expression) => self.cel_value(expression)?,
                    Body::Value(value) => from_json(value.evaluate(self)?),
                }),
                None => None,
            },
            _ => self.facts.fact(root, field)?.map(from_json),
        };
        self.found.borrow_mut().insert(key, found.clone());
        Ok(found)
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

fn from_json(value: Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(flag),
        // Kubernetes has no unsigned numbers, and CEL does not add signed and unsigned ones.
        Value::Number(number) => match number.as_i64() {
            Some(number) => Cel::Int(number),
            None => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text)),
        Value::Array(entries) => Cel::List(Arc::new(entries.into_iter().map(from_json).collect())),
        Value::Object(map) => {
            let entries = map
                .into_iter()
                .map(|(key, value)| (Key::from(key), from_json(value)));
            Cel::Map(Map {
                map: Arc::new(entries.collect()),
            })
        }
    }
}

/// `left` is what may still come: one for each value, and the lengths of texts.
fn to_json(value: &Cel, left: &mut usize) -> Result<Outcome, String> {
    if let Cel::Opaque(_) = value {
        let optional = <&OptionalValue>::try_from(value)
            .map_err(|_| "its type is none of Kubernetes'".to_owned())?;
        return optional
            .value()
            .map_or(Ok(Outcome::Absent), |value| to_json(value, left));
    }
    let cost = if let Cel::String(text) = value {
        text.len() + 1
    } else {
        1
    };
    *left = left
        .checked_sub(cost)
        .ok_or_else(|| "the value is too large".to_owned())?;
    let mut inner = |value: &Cel| match to_json(value, left)? {
        Outcome::Value(value) => Ok(value),
        Outcome::Absent => Err("an optional with nothing in it stands within a value".to_owned()),
    };
    let json = match value {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => Value::Bool(*flag),
        Cel::Int(number) => Value::from(*number),
        Cel::UInt(number) => Value::from(*number),
        Cel::Float(number) => Number::from_f64(*number)
            .map(Value::Number)
            .ok_or("the number is not finite")?,
        Cel::String(text) => Value::String(text.to_string()),
        Cel::List(entries) => {
            Value::Array(entries.iter().map(inner).collect::<Result<_, String>>()?)
        }
        Cel::Map(map) => {
            let mut sorted = BTreeMap::new();
            for (key, value) in map.map.iter() {
                let Key::String(key) = key else {
                    return Err("a key of the map is no text".to_owned());
                };
                sorted.insert(key.to_string(), inner(value)?);
            }
            Value::Object(sorted.into_iter().collect())
        }
        _ => return Err("its type is none of Kubernetes'".to_owned()),
    };
    Ok(Outcome::Value(json))
}

#[cfg(test)]
#[path = "expression_tests.rs"]
mod tests;
