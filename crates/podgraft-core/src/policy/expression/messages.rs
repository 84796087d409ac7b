//! Messages for failed evaluations. They show no values, which may be secrets.

use cel::{ExecutionError, Value as Cel};

/// Why an evaluation failed. The messages of the crate are not used, because they show values.
pub(super) fn in_words(error: ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => no_such_key(&key.to_string()),
        ExecutionError::FunctionError { function, message } => {
            format!("{}: {message}", function.trim_start_matches('@'))
        }
        ExecutionError::IndexOutOfBounds(_) => "index out of range".to_owned(),
        ExecutionError::NoSuchOverload(error) => {
            no_such_overload(error.function(), error.argument_types())
        }
        ExecutionError::UndeclaredReference(name) => format!("unknown name `{name}`"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(operator, ..) => {
            let sign = sign(operator);
            format!("the result of `{sign}` does not fit in 64 bits")
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            let (sign, left, right) = (sign(operator), type_name(&left), type_name(&right));
            format!("`{sign}` does not accept ({left}, {right})")
        }
        ExecutionError::ValuesNotComparable(left, right) => {
            let (left, right) = (type_name(&left), type_name(&right));
            format!("{left} and {right} cannot be compared")
        }
        ExecutionError::UnsupportedIndex(key, of) => {
            format!("cannot index {} with {}", type_name(&of), type_name(&key))
        }
        ExecutionError::UnsupportedKeyType(key) => {
            format!("{} cannot be a map key", type_name(&key))
        }
        ExecutionError::UnsupportedTargetType { target } => {
            format!("a function cannot be called on {}", type_name(&target))
        }
        ExecutionError::UnexpectedType { got, want } if want.contains("representable") => {
            format!("{got} cannot be used as a value: read one of its parts")
        }
        ExecutionError::UnexpectedType { got, want } => format!("expected {want}, found {got}"),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("wrong number of arguments: expected {expected}, found {actual}")
        }
        ExecutionError::DuplicateKey(_) => "duplicate key in a map".to_owned(),
        // The name check leaves no call that fails otherwise; if one does, its text could show a value.
        _ => "unsupported operation".to_owned(),
    }
}

fn no_such_overload(function: &str, types: &[String]) -> String {
    match (function.trim_matches(['_', '@']), types) {
        (".", [of, ..]) => format!("a value of type {of} has no fields"),
        (function, types) => format!("`{function}` does not accept ({})", types.join(", ")),
    }
}

fn no_such_key(key: &str) -> String {
    let is_field = !key.is_empty()
        && !key.starts_with(|char: char| char.is_ascii_digit())
        && key
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_');
    let (ask, read) = match is_field {
        true => ("has(...)".to_owned(), format!(".?{key}")),
        false => (format!("'{key}' in ..."), format!("[?'{key}']")),
    };
    format!("there is no `{key}` (check with `{ask}`, or use `{read}.orValue('')`)")
}

/// The symbol of an operator that the crate names by a word.
fn sign(operator: &'static str) -> &'static str {
    match operator {
        "add" => "+",
        "sub" | "negate" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        other => other,
    }
}

fn type_name(value: &Cel) -> &'static str {
    match value {
        Cel::Null => "null",
        Cel::Bool(_) => "bool",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        _ => "another type",
    }
}

/// The beginning of a long expression. The place of the diagnostic shows the rest.
pub(super) fn shortened(text: &str) -> String {
    const MAX_LENGTH: usize = 200;
    if text.chars().count() <= MAX_LENGTH {
        return text.to_owned();
    }
    text.chars().take(MAX_LENGTH).chain("...".chars()).collect()
}
