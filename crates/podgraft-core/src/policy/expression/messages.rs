//! Messages for failed evaluations. They show no values, which may be secrets.

use cel::{ExecutionError, Value as Cel};

/// Why an evaluation failed. The messages of the crate are not used, because they show values.
pub(super) fn in_words(error: ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => no_such_key(&key.to_string()),
        ExecutionError::FunctionError { function, message } => {
            format!("{}: {message}", function.trim_start_matches('@'))
        }
        ExecutionError::IndexOutOfBounds(_) => "the list is shorter".to_owned(),
        ExecutionError::NoSuchOverload(error) => {
            no_such_overload(error.function(), error.argument_types())
        }
        ExecutionError::UndeclaredReference(name) => format!("`{name}` is not known"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(operator, ..) => {
            let sign = sign(operator);
            format!("`{sign}` comes to a number that is none of 64 bits")
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => {
            let (sign, left, right) = (sign(operator), type_name(&left), type_name(&right));
            format!("`{sign}` does not take ({left}, {right})")
        }
        ExecutionError::ValuesNotComparable(left, right) => {
            let (left, right) = (type_name(&left), type_name(&right));
            format!("{left} and {right} cannot be compared")
        }
        ExecutionError::UnsupportedIndex(key, of) => {
            format!("{} has no entries by {}", type_name(&of), type_name(&key))
        }
        ExecutionError::UnsupportedKeyType(key) => {
            format!("{} is no key of a map", type_name(&key))
        }
        ExecutionError::UnsupportedTargetType { target } => {
            format!("a function does not take {}", type_name(&target))
        }
        ExecutionError::UnexpectedType { got, want } if want.contains("representable") => {
            format!("{got} is no value by itself: ask for a part of it")
        }
        ExecutionError::UnexpectedType { got, want } => format!("it takes {want}, not {got}"),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments, not {actual}")
        }
        ExecutionError::DuplicateKey(_) => "a key of the map stands twice".to_owned(),
        // The name check leaves no call that fails otherwise; if one does, its text could show a value.
        _ => "it cannot be evaluated".to_owned(),
    }
}

fn no_such_overload(function: &str, types: &[String]) -> String {
    match (function.trim_matches(['_', '@']), types) {
        (".", [of, ..]) => format!("a value of type {of} has no fields"),
        (function, types) => format!("`{function}` does not take ({})", types.join(", ")),
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
    format!("there is no `{key}` here (ask with `{ask}`, or read it with `{read}.orValue('')`)")
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
