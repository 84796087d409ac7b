//! Functions of Kubernetes' CEL libraries that the CEL crate lacks (lists, sets, quantities), and our own for JSON,
//! YAML and base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::common::types::{DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::objects::{Key, Map};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use std::any::Any;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use super::cost::{spend, spend_on_text};
use super::library::{
    CallArgs, CallResult, Overload, add_all, add_members, arg, failed, returned, text_arg,
};
use super::macros::{KEYS, MAP_OF};
use super::shared::{from_json, to_json};
use super::values::{add_comparisons, checked_text, opaque, opaque_arg, reading};
use crate::policy::expression::ExpressionResult;
use crate::policy::functions::MAX_TEXT;
use crate::policy::quantity;
use crate::yaml::parse::parse;
use crate::yaml::value::to_value;

/// Functions that walk a list, or walk it for each entry. Their lists are limited in length.
pub(super) const ON_LISTS: [&str; 12] = [
    "distinct",
    "flatten",
    "indexOf",
    "isSorted",
    "lastIndexOf",
    "max",
    "min",
    "reverse",
    "slice",
    "sort",
    "sum",
    "@map_of",
];

/// The nodes to charge for each entry of such a list. `distinct` compares each entry with all others.
pub(super) fn nodes_of(function: &str) -> i64 {
    if function == "distinct" { 1024 } else { 16 }
}

/// The first parts of qualified function names, such as `sets` in `sets.contains`.
pub(super) const NAMESPACES: [&str; 7] =
    ["optional", "sets", "json", "yaml", "base64", "ip", "format"];

/// Adds the functions.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    cel::extensions::lists(env)?;
    add_members(env, &LIST_TYPE, OF_LISTS)?;
    add_all(env, FUNCTIONS)?;
    add_all(env, reading!("quantity", "isQuantity", Quantity))?;
    add_comparisons::<Quantity>(env)?;
    add_members(env, &QUANTITY, OF_QUANTITIES)
}

const OF_LISTS: &[Overload] = &[
    ("sum", &[], sum),
    ("min", &[], |args| extreme(args, Ordering::Less)),
    ("max", &[], |args| extreme(args, Ordering::Greater)),
    ("isSorted", &[], is_sorted),
    ("indexOf", &[DYN_TYPE], |args| {
        let (list, wanted) = (list_arg(&args, 0)?, arg(&args, 1)?);
        index(list.iter().position(|entry| *entry == wanted))
    }),
    ("lastIndexOf", &[DYN_TYPE], |args| {
        let (list, wanted) = (list_arg(&args, 0)?, arg(&args, 1)?);
        index(list.iter().rposition(|entry| *entry == wanted))
    }),
];

const FUNCTIONS: &[Overload] = &[
    (KEYS, &[DYN_TYPE], keys),
    (MAP_OF, &[LIST_TYPE], map_of),
    ("sets.contains", &[LIST_TYPE, LIST_TYPE], |args| {
        let (left, right) = two_lists(&args)?;
        returned(is_within(&right, &left))
    }),
    ("sets.intersects", &[LIST_TYPE, LIST_TYPE], |args| {
        let (left, right) = two_lists(&args)?;
        returned(right.iter().any(|entry| left.contains(entry)))
    }),
    ("sets.equivalent", &[LIST_TYPE, LIST_TYPE], |args| {
        let (left, right) = two_lists(&args)?;
        returned(is_within(&left, &right) && is_within(&right, &left))
    }),
    ("json.parse", &[STRING_TYPE], json_parse),
    ("json.text", &[DYN_TYPE], json_text),
    ("yaml.parse", &[STRING_TYPE], yaml_parse),
    ("yaml.text", &[DYN_TYPE], yaml_text),
    ("base64.encode", &[STRING_TYPE], |args| {
        returned(STANDARD.encode(text_arg(&args, 0)?))
    }),
    ("base64.decode", &[STRING_TYPE], decode),
];

fn is_within(list: &[Cel], other: &[Cel]) -> bool {
    list.iter().all(|entry| other.contains(entry))
}

/// The entries of a list.
type CelValues = Arc<Vec<Cel>>;

fn list_arg(args: &CallArgs<'_, '_>, at: usize) -> Result<CelValues, ExecutionError> {
    match arg(args, at)? {
        Cel::List(list) => Ok(list),
        _ => Err(failed("argument", "expected a list")),
    }
}

/// The two lists of a set function, which compares each entry with each.
fn two_lists(args: &CallArgs<'_, '_>) -> Result<(CelValues, CelValues), ExecutionError> {
    let (left, right) = (list_arg(args, 0)?, list_arg(args, 1)?);
    spend(left.len().saturating_mul(right.len()))?;
    Ok((left, right))
}

fn sum<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let list = list_arg(&args, 0)?;
    let (mut whole, mut real, mut is_real) = (0_i64, 0_f64, false);
    for entry in list.iter() {
        match entry {
            Cel::Int(number) => {
                let sum = whole.checked_add(*number);
                whole = sum.ok_or_else(|| failed("sum", "the sum does not fit in 64 bits"))?;
            }
            Cel::Float(number) => {
                real += number;
                is_real = true;
            }
            _ => return Err(failed("sum", "expected a list of numbers")),
        }
    }
    match is_real {
        true if whole != 0 => Err(failed("sum", "all numbers must have the same type")),
        true => returned(real),
        false => returned(whole),
    }
}

fn compared(function: &str, left: &Cel, right: &Cel) -> Result<Ordering, ExecutionError> {
    left.partial_cmp(right)
        .ok_or_else(|| failed(function, "two entries cannot be compared"))
}

fn extreme<'b, 'v>(args: CallArgs<'b, 'v>, wanted: Ordering) -> CallResult<'b, 'v> {
    let list = list_arg(&args, 0)?;
    let mut entries = list.iter();
    let mut found = entries
        .next()
        .ok_or_else(|| failed("min and max", "the list is empty"))?;
    for entry in entries {
        if compared("min and max", entry, found)? == wanted {
            found = entry;
        }
    }
    returned(found.clone())
}

fn is_sorted<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let list = list_arg(&args, 0)?;
    for pair in list.windows(2) {
        if compared("isSorted", &pair[0], &pair[1])? == Ordering::Greater {
            return returned(false);
        }
    }
    returned(true)
}

/// An index in a list; -1 if there is none.
fn index<'b, 'v>(found: Option<usize>) -> CallResult<'b, 'v> {
    returned(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn keys<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    // Sorted, because the order of a map's keys is not stable.
    let keys: Vec<Cel> = match arg(&args, 0)? {
        Cel::List(list) => {
            let count = i64::try_from(list.len()).unwrap_or(i64::MAX);
            (0..count).map(Cel::Int).collect()
        }
        Cel::Map(map) => {
            let mut keys: Vec<Key> = map.map.keys().cloned().collect();
            keys.sort();
            keys.into_iter().map(Cel::from).collect()
        }
        _ => return Err(failed("comprehension", "expected a list or a map")),
    };
    returned(Cel::List(Arc::new(keys)))
}

fn map_of<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let mut map = HashMap::new();
    for pair in list_arg(&args, 0)?.iter() {
        let Cel::List(pair) = pair else { continue };
        if let [key, value] = pair.as_slice() {
            let key = match key {
                Cel::Int(number) => Key::Int(*number),
                Cel::UInt(number) => Key::Uint(*number),
                Cel::Bool(flag) => Key::Bool(*flag),
                Cel::String(text) => Key::String(Arc::clone(text)),
                _ => continue,
            };
            map.insert(key, value.clone());
        }
    }
    let map = Arc::new(map);
    returned(Cel::Map(Map { map }))
}

fn json_of(args: &CallArgs<'_, '_>, function: &str) -> Result<serde_json::Value, ExecutionError> {
    let mut left = MAX_TEXT;
    let value = args
        .first()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    match to_json(value.as_ref(), &mut left) {
        Ok(ExpressionResult::Value(value)) => Ok(value),
        Ok(ExpressionResult::Absent) => Err(failed(function, "the optional is empty")),
        Err(reason) => Err(failed(function, reason)),
    }
}

fn json_text<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let text = json_of(&args, "json.text")?.to_string();
    spend_on_text(&text)?;
    returned(text)
}

fn json_parse<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let text = text_arg(&args, 0)?;
    spend(text.len())?;
    // Read by the YAML parser, which limits nesting; JSON is a subset of YAML. Text that is not JSON is refused first.
    let valid = serde_json::from_str::<serde::de::IgnoredAny>(&text);
    valid.map_err(|_| failed("json.parse", "the text is not valid JSON"))?;
    Ok(CowVal::Owned(from_json(read("json.parse", &text)?)))
}

fn yaml_parse<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let text = text_arg(&args, 0)?;
    spend(text.len())?;
    Ok(CowVal::Owned(from_json(read("yaml.parse", &text)?)))
}

fn read(function: &str, text: &str) -> Result<serde_json::Value, ExecutionError> {
    let tree = parse(text).map_err(|_| failed(function, "the text is not valid YAML"))?;
    let [root] = tree.roots() else {
        return Err(failed(
            function,
            "the text must contain exactly one document",
        ));
    };
    to_value(&tree, *root).map_err(|_| failed(function, "YAML readers disagree about the text"))
}

fn decode<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let bytes = STANDARD
        .decode(text_arg(&args, 0)?)
        .map_err(|_| failed("base64.decode", "the text is not valid base64"))?;
    let text = String::from_utf8(bytes);
    returned(text.map_err(|_| failed("base64.decode", "the decoded bytes are not valid UTF-8"))?)
}

fn yaml_text<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let mut text = String::new();
    write_yaml(&json_of(&args, "yaml.text")?, 0, &mut text);
    spend_on_text(&text)?;
    returned(text)
}

/// Writes block style like Kubernetes' YAML writer. Texts that another YAML reader could resolve to another type are
/// quoted.
fn write_yaml(value: &serde_json::Value, depth: usize, text: &mut String) {
    use serde_json::Value;
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, inner) in map {
                text.push_str(&indent);
                text.push_str(&yaml_scalar(key));
                text.push(':');
                write_below(inner, depth, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                text.push_str(&indent);
                text.push('-');
                let mut inner = String::new();
                write_yaml(item, depth + 1, &mut inner);
                // The first line of the item follows its `-`.
                let inner = inner.trim_start_matches(' ');
                text.push(' ');
                text.push_str(inner);
            }
        }
        Value::String(string) => text.push_str(&format!("{}\n", yaml_scalar(string))),
        other => text.push_str(&format!("{other}\n")),
    }
}

fn write_below(value: &serde_json::Value, depth: usize, text: &mut String) {
    use serde_json::Value;
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            write_yaml(value, depth + 1, text);
        }
        // Items of a list are not indented below their key.
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            write_yaml(value, depth, text);
        }
        scalar => {
            text.push(' ');
            write_yaml(scalar, 0, text);
        }
    }
}

fn yaml_scalar(text: &str) -> String {
    let is_plain = text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '/')
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "_./-".contains(char));
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    if is_plain && !WORDS.contains(&text.to_ascii_lowercase().as_str()) {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// A quantity in nano-units, so that quantities compare by value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Quantity(i128);

opaque!(Quantity, QUANTITY, "kubernetes.Quantity");

const NANO: i128 = 1_000_000_000;

impl Quantity {
    fn read(text: &str) -> Option<Self> {
        quantity::of_text(text).map(Quantity)
    }

    /// The value, if it is a whole number of 64 bits.
    fn as_integer(&self) -> Option<i64> {
        let is_whole = self.0 % NANO == 0;
        i64::try_from(self.0 / NANO).ok().filter(|_| is_whole)
    }
}

const OF_QUANTITIES: &[Overload] = &[
    ("sign", &[], |args| {
        returned(i64::try_from(quantity(&args, 0)?.0.signum()).unwrap_or(0))
    }),
    ("isInteger", &[], |args| {
        returned(quantity(&args, 0)?.as_integer().is_some())
    }),
    ("asInteger", &[], |args| {
        let whole = quantity(&args, 0)?.as_integer();
        returned(whole.ok_or_else(|| failed("asInteger", "the quantity is not an integer"))?)
    }),
    ("add", &[QUANTITY], |args| {
        combined(&args, i128::checked_add)
    }),
    ("add", &[INT_TYPE], |args| {
        combined(&args, i128::checked_add)
    }),
    ("sub", &[QUANTITY], |args| {
        combined(&args, i128::checked_sub)
    }),
    ("sub", &[INT_TYPE], |args| {
        combined(&args, i128::checked_sub)
    }),
];

fn quantity(args: &CallArgs<'_, '_>, at: usize) -> Result<Quantity, ExecutionError> {
    opaque_arg(args, at)
}

fn combined<'b, 'v>(
    args: &CallArgs<'b, 'v>,
    operation: fn(i128, i128) -> Option<i128>,
) -> CallResult<'b, 'v> {
    let operand = match arg(args, 1) {
        Ok(Cel::Int(units)) => i128::from(units) * NANO,
        _ => quantity(args, 1)?.0,
    };
    let made = operation(quantity(args, 0)?.0, operand);
    let made = made.ok_or_else(|| failed("quantity", "the quantity is too large"))?;
    Ok(CowVal::owned(Quantity(made)))
}
