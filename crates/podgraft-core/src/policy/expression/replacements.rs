//! Functions whose results in the CEL crate have no limit or differ from those in Kubernetes.

use cel::common::types::{
    CelDouble, CelString, DOUBLE_TYPE, DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE,
};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::cost::spend_on_text;
use super::library::{
    CallArgs, CallResult, ENV, Overload, add_all, add_members, arg, failed, most_arg, returned,
    text_arg,
};
use crate::policy::functions;

const BOOL: &str = "@bool";
const INDEX_OF: &str = "@indexOf";
const JOIN: &str = "@join";
const LAST_INDEX_OF: &str = "@lastIndexOf";
const REPLACE: &str = "@replace";
const STRING: &str = "@string";

/// The name of our function for a call of the crate's with this number of arguments. The check writes it into the call.
pub(super) fn name_for(function: &str, arguments: usize) -> Option<&'static str> {
    match (function, arguments) {
        ("bool", 1) => Some(BOOL),
        ("indexOf", 2) => Some(INDEX_OF),
        ("join", _) => Some(JOIN),
        ("lastIndexOf", 2) => Some(LAST_INDEX_OF),
        ("replace", _) => Some(REPLACE),
        ("string", 1) => Some(STRING),
        _ => None,
    }
}

/// Adds the functions.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    add_all(env, FUNCTIONS)?;
    add_members(env, &LIST_TYPE, OF_LISTS)?;
    add_members(env, &STRING_TYPE, OF_TEXTS)
}

const FUNCTIONS: &[Overload] = &[
    (BOOL, &[STRING_TYPE], bool_of),
    (BOOL, &[DYN_TYPE], |args| crates("bool", args)),
    (STRING, &[DOUBLE_TYPE], string_of_double),
    (STRING, &[DYN_TYPE], |args| crates("string", args)),
];

const OF_LISTS: &[Overload] = &[(JOIN, &[], join), (JOIN, &[STRING_TYPE], join)];

const OF_TEXTS: &[Overload] = &[
    (INDEX_OF, &[STRING_TYPE, INT_TYPE], |args| {
        index_from("indexOf", &args, |text, part, from| {
            let from = text.char_indices().nth(from)?.0;
            text[from..].find(part).map(|at| from + at)
        })
    }),
    (LAST_INDEX_OF, &[STRING_TYPE, INT_TYPE], |args| {
        index_from("lastIndexOf", &args, |text, part, from| {
            let (from, _) = text.char_indices().nth(from)?;
            text[..text.floor_char_boundary(from + part.len())].rfind(part)
        })
    }),
    (REPLACE, &[STRING_TYPE, STRING_TYPE], replace),
    (REPLACE, &[STRING_TYPE, STRING_TYPE, INT_TYPE], replace),
];

/// Calls the crate's function.
fn crates<'b, 'v>(function: &str, args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let call = ENV.find_overload(function, &args);
    let of_type = args.first().map(|value| value.get_type().name());
    let unknown = || {
        failed(
            function,
            format!("does not accept {}", of_type.unwrap_or_default()),
        )
    };
    call.ok_or_else(unknown)?(args)
}

/// The words of Go's `strconv.ParseBool`.
fn bool_of<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    match text_arg(&args, 0)?.as_str() {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => returned(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => returned(false),
        _ => Err(failed("bool", "the text must be true or false")),
    }
}

/// Writes a number as Go's `%g` does: with an exponent if it is below 0.0001, or a million or more.
fn string_of_double<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let number = args.first().and_then(|arg| arg.downcast_ref::<CelDouble>());
    let number = number.map_or(0.0, |number| *number.inner());
    let scientific = format!("{number:e}");
    let parts = scientific.split_once('e');
    let Some((digits, Ok(exponent))) = parts.map(|(digits, power)| (digits, power.parse::<i32>()))
    else {
        let text = number.to_string();
        return returned(match number == f64::INFINITY {
            true => "+Inf".to_owned(),
            false => text.replace("inf", "Inf"),
        });
    };
    returned(match (-4..6).contains(&exponent) || number == 0.0 {
        true => number.to_string(),
        false => format!("{digits}e{exponent:+03}"),
    })
}

/// The index of a part, in characters, where the search begins at the index of the third argument; -1 if there is none.
fn index_from<'b, 'v>(
    function: &str,
    args: &CallArgs<'b, 'v>,
    find: impl FnOnce(&str, &str, usize) -> Option<usize>,
) -> CallResult<'b, 'v> {
    let (text, part) = (text_arg(args, 0)?, text_arg(args, 1)?);
    let Cel::Int(from) = arg(args, 2)? else {
        return Err(failed(function, "expected an index"));
    };
    if part.is_empty() {
        return returned(from);
    }
    let begin = usize::try_from(from);
    let begin = begin.map_err(|_| failed(function, format!("index out of range: {from}")))?;
    let index = find(&text, &part, begin).map(|at| text[..at].chars().count());
    returned(
        index
            .and_then(|index| i64::try_from(index).ok())
            .unwrap_or(-1),
    )
}

fn replace<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let (text, from, to) = (
        text_arg(&args, 0)?,
        text_arg(&args, 1)?,
        text_arg(&args, 2)?,
    );
    let replaced = functions::replace(&text, &from, &to, most_arg(&args, 3)?);
    returned(replaced.map_err(|reason| failed("replace", reason))?)
}

fn join<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let separator = match args.len() {
        1 => String::new(),
        _ => text_arg(&args, 1)?,
    };
    let list = args
        .first()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let mut entries = list
        .as_iterable()
        .ok_or_else(|| failed("join", "expected a list"))?
        .iter();
    let mut joined = String::new();
    let mut is_first = true;
    while let Some(entry) = entries.next() {
        let text = entry
            .downcast_ref::<CelString>()
            .ok_or_else(|| failed("join", "expected a list of strings"))?;
        if !std::mem::take(&mut is_first) {
            joined.push_str(&separator);
        }
        joined.push_str(text.inner());
        if joined.len() > functions::MAX_TEXT {
            return Err(failed("join", "the result would be longer than 1 MiB"));
        }
    }
    spend_on_text(&joined)?;
    returned(joined)
}
