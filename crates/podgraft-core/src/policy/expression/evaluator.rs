//! Evaluates expressions over one workload: binds the names that they read to facts, parameters and variables, and
//! caches the results.

use cel::common::value::{CowVal, Val};
use cel::{Context, ExecutionError, Value as Cel};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use super::library::ENV;
use super::lookups::{self, LookupCache};
use super::memo::MemoEntry;
use super::messages::{in_words, shortened};
use super::shared::{SharedValue, from_json, map_of, to_json};
use super::{
    Expression, ExpressionResult, Facts, PolicyVariable, SOURCE, SOURCES, VariableBody, WHOLE,
    cost, order,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::functions::MAX_TEXT;
use crate::policy::template::{Evaluated, ParamValues, TemplateError};
use crate::policy::vocabulary::fields_of;

/// Rounds of lookups: an object may be looked up by what another looked-up object contains.
const MAX_ROUNDS: usize = 8;

/// The fields of a name and their values.
pub(super) type FieldValues = Vec<(String, SharedValue)>;

/// The fields that are bound to each name of an expression.
pub(super) type Bindings = BTreeMap<String, FieldValues>;

/// The value of an expression, and its entry in the memo if it has one.
pub(super) struct Evaluation {
    value: SharedValue,
    pub(super) remembered: Option<Arc<MemoEntry>>,
}

/// Values by name and field; `None` if a field is absent.
type FieldCache = RefCell<BTreeMap<(String, String), Option<SharedValue>>>;

/// A cache of the values of names over one workload, shared by all evaluators of a policy.
#[derive(Debug, Clone, Default)]
pub struct EvaluationCache {
    of_workload: Rc<FieldCache>,
    of_container: Rc<FieldCache>,
    objects: Rc<RefCell<LookupCache>>,
}

impl EvaluationCache {
    /// The cache for another container of the same workload.
    pub(crate) fn of_another_container(&self) -> Self {
        EvaluationCache {
            of_container: Rc::default(),
            ..self.clone()
        }
    }
}

/// Evaluates the expressions of a policy over one workload and, if given, one of its containers. Caches looked-up
/// objects.
pub struct Evaluator<'e> {
    params: &'e ParamValues,
    variables: &'e [PolicyVariable],
    facts: &'e dyn Facts,
    memory: EvaluationCache,
    pub(super) steps_left: Cell<usize>,
}

impl<'e> Evaluator<'e> {
    /// An evaluator with an empty cache and the full number of steps.
    pub fn new(
        params: &'e ParamValues,
        variables: &'e [PolicyVariable],
        facts: &'e dyn Facts,
    ) -> Self {
        Evaluator {
            params,
            variables,
            facts,
            memory: EvaluationCache::default(),
            steps_left: Cell::new(cost::MAX_STEPS),
        }
    }

    /// Uses the cache of other evaluators over the same facts.
    pub(crate) fn with_memory(self, memory: EvaluationCache) -> Self {
        Evaluator { memory, ..self }
    }

    /// The value of an expression as JSON.
    ///
    /// # Errors
    /// Why the expression has no value.
    pub(crate) fn evaluate(&self, expression: &Expression) -> Evaluated<ExpressionResult> {
        let found = self.found(expression)?;
        // The key order of the JSON depends on the policy's variables, so they are a part of the key, by their address.
        let arranged = std::ptr::from_ref(self.variables).addr();
        let known = found
            .remembered
            .as_ref()
            .and_then(|found| found.outcome.get());
        if let Some((_, known)) = known.filter(|(key, _)| *key == arranged) {
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

    fn in_json(&self, expression: &Expression, value: &SharedValue) -> Evaluated<ExpressionResult> {
        let mut left = MAX_TEXT;
        let mut outcome =
            to_json(&**value, &mut left).map_err(|reason| failed(expression, &reason))?;
        // CEL maps have no order. Restore the order in which the policy or the resource writes the keys.
        if let ExpressionResult::Value(value @ (Value::Object(_) | Value::Array(_))) = &mut outcome
        {
            let variables = self
                .variables
                .iter()
                .filter(|variable| variable.name != SOURCES);
            let written = variables.filter_map(|variable| variable.body.written());
            let written: Vec<&Value> = written.collect();
            if !written.is_empty() {
                order::arrange(value, &written);
            }
        }
        Ok(outcome)
    }

    pub(super) fn found(&self, expression: &Expression) -> Evaluated<Evaluation> {
        let mut late = BTreeMap::new();
        let bound = self.bindings(expression, &mut late)?;
        let memo = expression.parsed.memo.as_ref().filter(|_| late.is_empty());
        if let Some(found) = memo.and_then(|memo| memo.find(&bound))
            // A cached value costs the same steps, so that the limit does not depend on what ran before.
            && let Some(left) = self.steps_left.get().checked_sub(found.steps)
        {
            self.steps_left.set(left);
            return Ok(Evaluation {
                value: found.value.clone(),
                remembered: Some(found),
            });
        }
        let before = self.steps_left.get();
        let value = self.resolve(expression, &bound, late)?;
        let steps = before - self.steps_left.get();
        let remembered = memo.map(|memo| memo.remember(&bound, &value, steps));
        Ok(Evaluation { value, remembered })
    }

    fn resolve(
        &self,
        expression: &Expression,
        bound: &Bindings,
        mut late: BTreeMap<String, TemplateError>,
    ) -> Evaluated<SharedValue> {
        let mut context = Context::with_env(Arc::clone(&ENV));
        for (root, fields) in bound {
            let fields = fields.iter().map(|(field, value)| {
                let value: Box<dyn Val> = Box::new(value.clone());
                (field.clone(), value)
            });
            context.add_variable_as_val(root, Box::new(map_of(fields)));
        }
        for root in WHOLE {
            let mut references = expression.parsed.references.iter();
            if references.any(|(wanted, _)| wanted == root) {
                let object = self.find(root, "")?;
                let object = object.unwrap_or_else(|| shared(Value::Null));
                context.add_variable_as_val(root, Box::new(object));
            }
        }
        let resolve =
            || Cel::resolve_val(&expression.parsed.tree, &context).map(CowVal::into_owned);
        let evaluate = || cost::with_budget(&self.steps_left, resolve);
        let resolved = if expression.parsed.looks_up() {
            self.with_objects(expression, evaluate)?
        } else {
            evaluate()
        };
        resolved.map(SharedValue::from).map_err(|error| {
            // The evaluation read a field that was left out: report why the field has no value.
            let left_out = match &error {
                ExecutionError::NoSuchKey(key) => late.remove(key.as_str()),
                _ => None,
            };
            left_out.unwrap_or_else(|| failed(expression, &in_words(error)))
        })
    }

    /// Evaluates again until every object that the expression looks up is cached.
    fn with_objects<T>(&self, expression: &Expression, evaluate: impl Fn() -> T) -> Evaluated<T> {
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
        let reason = format!("its lookups depend on each other more than {MAX_ROUNDS} levels deep");
        Err(failed(expression, &reason))
    }

    /// The values to bind to each name, for the fields that the expression reads. A field that has an error and is
    /// perhaps never read is left out; the error goes to `late` and is reported if the evaluation misses the field.
    fn bindings(
        &self,
        expression: &Expression,
        late: &mut BTreeMap<String, TemplateError>,
    ) -> Evaluated<Bindings> {
        let mut bindings = Bindings::new();
        let fields = |(root, _): &&(String, Option<String>)| !WHOLE.contains(&root.as_str());
        for (root, field) in expression.parsed.references.iter().filter(fields) {
            let fields: Vec<String> = match (root.as_str(), field) {
                (_, Some(field)) => vec![field.clone()],
                ("params", None) => self.params.keys().cloned().collect(),
                ("variables", None) => Vec::new(),
                // The name of a type.
                (root, None) if fields_of(root).is_empty() => continue,
                (root, None) => fields_of(root).iter().map(ToString::to_string).collect(),
            };
            let bound = bindings.entry(root.clone()).or_default();
            for field in fields {
                let tested = expression.parsed.tested.as_ref();
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

    fn variable(&self, name: &str) -> Evaluated<Option<SharedValue>> {
        let Some(variable) = self.variables.iter().find(|variable| variable.name == name) else {
            return Ok(None);
        };
        let value = match &variable.body {
            VariableBody::Expression(expression) => self.found(expression).map(|found| found.value),
            VariableBody::Value(value) => value.evaluate(self).map(shared),
            VariableBody::Constant(value) => Ok(shared((**value).clone())),
        };
        value.map(Some).map_err(|fault| TemplateError {
            variable: fault.variable.or_else(|| Some(variable.at.clone())),
            ..fault
        })
    }

    fn find(&self, root: &str, field: &str) -> Evaluated<Option<SharedValue>> {
        let key = (root.to_owned(), field.to_owned());
        let values = match self.depends_on_container(root, field) {
            true => &self.memory.of_container,
            false => &self.memory.of_workload,
        };
        if let Some(found) = values.borrow().get(&key) {
            return Ok(found.clone());
        }
        let found = match root {
            "params" => {
                let value = self.params.get(field).cloned().flatten();
                value.map(|text| shared(Value::String(text)))
            }
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

fn failed(expression: &Expression, why: &str) -> TemplateError {
    let message = format!(
        "`{}` cannot be evaluated: {why}",
        shortened(&expression.text)
    );
    Diagnostic::error(Code::BadExpression, message).into()
}

fn shared(value: Value) -> SharedValue {
    SharedValue::from(from_json(value))
}
