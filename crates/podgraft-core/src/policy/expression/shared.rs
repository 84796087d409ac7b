//! Reference-counted CEL values: many expressions read a value that is made once.

use cel::common::traits::{
    Adder, Comparer, Container, Divider, Indexer, Iterable, Modder, Multiplier, Negator, Sizer,
    Subtractor, Zeroer,
};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelOptional, CelString,
    DYN_TYPE, Kind, Type,
};
use cel::common::value::{Builtin, BuiltinRef, CowVal, Val};
use cel::{ExecutionError, Value as Cel};
use serde_json::{Number, Value};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use super::ExpressionResult;

/// A reference-counted value that delegates every operation and is cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SharedValue(Arc<dyn Val>);

impl Deref for SharedValue {
    type Target = dyn Val;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl From<Box<dyn Val>> for SharedValue {
    fn from(value: Box<dyn Val>) -> Self {
        SharedValue(Arc::from(value))
    }
}

/// Defines methods that return the operations of the wrapped value.
macro_rules! handed_on {
    ($($function:ident: $able:ident),*) => {
        $(fn $function<'b, 'v>(&'b self) -> Option<&'b (dyn $able + 'v)>
        where
            Self: 'v,
        {
            self.0.$function()
        })*
    };
}

impl Val for SharedValue {
    handed_on!(
        as_adder: Adder,
        as_divider: Divider,
        as_indexer: Indexer,
        as_iterable: Iterable,
        as_modder: Modder,
        as_multiplier: Multiplier,
        as_negator: Negator,
        as_subtractor: Subtractor
    );

    fn get_type(&self) -> &Type {
        self.0.get_type()
    }

    fn cel_type() -> &'static Type {
        &DYN_TYPE
    }

    fn as_comparer(&self) -> Option<&dyn Comparer> {
        self.0.as_comparer()
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.0.as_container()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.0.as_sizer()
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.0.as_zeroer()
    }

    fn into_indexer<'v>(self: Box<Self>) -> Option<Box<dyn Indexer + 'v>>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        self.0.equals(other)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.0.as_any()
    }

    fn as_builtin<'b, 'v>(&'b self) -> BuiltinRef<'b, 'v>
    where
        Self: 'v,
    {
        self.0.as_builtin()
    }

    fn into_builtin<'v>(self: Box<Self>) -> Option<Builtin<'v>>
    where
        Self: 'v,
    {
        self.0.clone_as_boxed().into_builtin()
    }
}

impl Indexer for SharedValue {
    fn get<'b, 'v>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let able = self.0.as_indexer();
        able.ok_or_else(|| ExecutionError::function_error("_[_]", "expected a list or a map"))?
            .get(index)
    }

    fn steal<'v>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(index).map(CowVal::into_owned)
    }
}

/// A CEL map with string keys.
pub(super) fn map_of(entries: impl Iterator<Item = (String, Box<dyn Val>)>) -> CelMap<'static> {
    let entries: HashMap<CelMapKey<'static>, Box<dyn Val>> = entries
        .map(|(key, value)| (CelMapKey::from(key), value))
        .collect();
    CelMap::from(entries)
}

/// The CEL value of a JSON value.
pub(super) fn from_json(value: Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(flag) => Box::new(CelBool::from(flag)),
        // Always signed: Kubernetes has no unsigned numbers, and CEL does not mix both in arithmetic.
        Value::Number(number) => match number.as_i64() {
            Some(number) => Box::new(CelInt::from(number)),
            None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(text) => Box::new(CelString::from(text)),
        Value::Array(entries) => {
            let entries: Vec<Box<dyn Val>> = entries.into_iter().map(from_json).collect();
            Box::new(SharedValue(Arc::new(CelList::from(entries))))
        }
        Value::Object(map) => {
            let entries = map.into_iter().map(|(key, value)| (key, from_json(value)));
            Box::new(SharedValue(Arc::new(map_of(entries))))
        }
    }
}

/// The JSON value of a result. `left` limits its size and is reduced by one for each value and by the length of each
/// text.
pub(super) fn to_json(value: &dyn Val, left: &mut usize) -> Result<ExpressionResult, String> {
    if let Some(optional) = value.downcast_ref::<CelOptional>() {
        let inner = optional.option();
        return inner.map_or(Ok(ExpressionResult::Absent), |inner| to_json(inner, left));
    }
    let text = value.downcast_ref::<CelString>().map(CelString::inner);
    let cost = text.map_or(0, str::len) + 1;
    *left = left
        .checked_sub(cost)
        .ok_or_else(|| "the value is too large".to_owned())?;
    if let Some(text) = text {
        return Ok(ExpressionResult::Value(Value::String(text.to_owned())));
    }
    let json = if let Some(list) = value.downcast_ref::<CelList>() {
        let entries = list.inner().iter();
        let entries = entries.map(|entry| inner_json(entry.as_ref(), left));
        Value::Array(entries.collect::<Result<_, String>>()?)
    } else if let Some(map) = value.downcast_ref::<CelMap>() {
        let mut sorted = BTreeMap::new();
        // Sorted, because the order of a hash map differs between runs.
        for (key, value) in map.inner() {
            let CelMapKey::String(key) = key else {
                return Err("a map key is not a string".to_owned());
            };
            sorted.insert(key.inner(), inner_json(value.as_ref(), left)?);
        }
        let entries = sorted.into_iter();
        Value::Object(
            entries
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        )
    } else {
        scalar(value)?
    };
    Ok(ExpressionResult::Value(json))
}

fn inner_json(value: &dyn Val, left: &mut usize) -> Result<Value, String> {
    match to_json(value, left)? {
        ExpressionResult::Value(value) => Ok(value),
        ExpressionResult::Absent => Err("the value contains an empty optional".to_owned()),
    }
}

fn scalar(value: &dyn Val) -> Result<Value, String> {
    match Cel::try_from(value) {
        Ok(Cel::Null) => Ok(Value::Null),
        Ok(Cel::Bool(flag)) => Ok(Value::Bool(flag)),
        Ok(Cel::Int(number)) => Ok(Value::from(number)),
        Ok(Cel::UInt(number)) => Ok(Value::from(number)),
        Ok(Cel::Float(number)) => {
            let number = Number::from_f64(number).map(Value::Number);
            number.ok_or_else(|| "the number is not finite".to_owned())
        }
        // Types such as a URL have no JSON form; only their methods have.
        _ if value.get_type().kind() == Kind::Unspecified => Err(format!(
            "{} cannot be used as a value: read one of its parts",
            value.get_type().name()
        )),
        _ => Err("values of this type are not supported".to_owned()),
    }
}
