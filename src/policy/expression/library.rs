//! The functions that expressions can call: those of the CEL crate, and our own in the crate's form.

use cel::common::ast::operators;
use cel::common::types::{
    CelList, CelMap, CelMapKey, CelOptional, CelString, DYN_TYPE, INT_TYPE, LIST_TYPE, STRING_TYPE,
    Type,
};
use cel::common::value::{CowVal, Val};
use cel::objects::Key;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use std::sync::{Arc, LazyLock};

use super::addresses;
use super::cost::{spend, spend_on, spend_on_text};
use super::formats;
use super::kubernetes;
use super::lookups::{self, LookupKey};
use super::macros;
use super::values;
use crate::manifest::workload::group_of;
use crate::policy::functions;

/// The maximal number of entries of a walked list.
const MAX_ENTRIES: i64 = 1024;

pub(super) type CallArgs<'b, 'v> = Vec<CowVal<'b, 'v>>;
pub(super) type CallResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// Our `replace`. The result of the crate's has no limit.
pub(super) const REPLACE: &str = "@replace";
/// Our `join`. The result of the crate's has no limit.
pub(super) const JOIN: &str = "@join";
/// Wraps what a comprehension walks: a list of limited length, or a map, which becomes its sorted keys. The second
/// argument is the number of nodes that are evaluated for each entry.
pub(super) const WALKED: &str = "@walked";
/// Returns its argument and charges for reading or copying it.
pub(super) const CHARGED: &str = "@charged";
/// Returns its text and charges for every byte: for functions that may make a value of each.
pub(super) const CHARGED_EACH: &str = "@charged_each";

/// Whether a call costs no more than its own node: it passes on an argument, or a part of one.
pub(super) fn is_free(function: &str) -> bool {
    const FREE: [&str; 9] = [
        operators::CONDITIONAL,
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        operators::NOT_STRICTLY_FALSE,
        operators::NEGATE,
        operators::INDEX,
        operators::OPT_INDEX,
        operators::OPT_SELECT,
    ];
    FREE.contains(&function)
}

/// The functions of Kubernetes' CEL that the crate has, and our own.
pub(super) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    let added = cel::extensions::strings(&mut env)
        .and_then(|()| add_functions(&mut env))
        .and_then(|()| add_charged(&mut env))
        .and_then(|()| kubernetes::add(&mut env))
        .and_then(|()| values::add(&mut env))
        .and_then(|()| addresses::add(&mut env))
        .and_then(|()| formats::add(&mut env))
        .and_then(|()| macros::add(&mut env));
    added.expect("no function of ours is one of the crate's");
    Arc::new(env)
});

/// A function: name, overload id, argument types, implementation.
pub(super) type Overload = (
    &'static str,
    &'static str,
    Vec<Type>,
    for<'b, 'v> fn(CallArgs<'b, 'v>) -> CallResult<'b, 'v>,
);

/// Adds overloads of functions.
pub(super) fn add_all(
    env: &mut Env,
    overloads: impl IntoIterator<Item = Overload>,
) -> Result<(), DeclarationError> {
    let mut overloads = overloads.into_iter();
    overloads.try_for_each(|(name, id, takes, call)| env.add_overload(name, id, takes, call))
}

/// Adds overloads of methods of a type.
pub(super) fn add_members(
    env: &mut Env,
    of: fn() -> Type,
    overloads: impl IntoIterator<Item = Overload>,
) -> Result<(), DeclarationError> {
    let mut overloads = overloads.into_iter();
    overloads.try_for_each(|(name, id, takes, call)| {
        env.add_member_overload(name, id, of(), takes, call)
    })
}

fn add_functions(env: &mut Env) -> Result<(), DeclarationError> {
    let text = || vec![STRING_TYPE];
    let two = || vec![DYN_TYPE, DYN_TYPE];
    let functions: [Overload; 6] = [
        ("imageTag", "podgraft_image_tag", text(), |args| {
            text_function("imageTag", &args, |text| Ok(functions::image_tag(text)))
        }),
        ("imageName", "podgraft_image_name", text(), |args| {
            text_function("imageName", &args, |text| Ok(functions::image_name(text)))
        }),
        ("dnsLabel", "podgraft_dns_label", text(), |args| {
            text_function("dnsLabel", &args, functions::dns_label)
        }),
        ("sha1", "podgraft_sha1", text(), |args| {
            text_function("sha1", &args, |text| Ok(functions::sha1(text)))
        }),
        ("sha256", "podgraft_sha256", text(), |args| {
            text_function("sha256", &args, |text| Ok(functions::sha256(text)))
        }),
        ("firstPort", "podgraft_first_port", two(), first_port),
    ];
    add_all(env, functions)?;
    for count in [3, 4] {
        let id = format!("podgraft_lookup_{count}");
        env.add_overload("lookup", &id, texts(count), lookup)?;
    }
    Ok(())
}

/// Adds the functions that the check inserts into expressions, and text functions with a cost of their own.
fn add_charged(env: &mut Env) -> Result<(), DeclarationError> {
    let any = || vec![DYN_TYPE];
    let walks = vec![DYN_TYPE, INT_TYPE];
    let functions: [Overload; 4] = [
        (WALKED, "podgraft_walked", walks, walked),
        (CHARGED, "podgraft_charged", any(), charged),
        (CHARGED_EACH, "podgraft_charged_each", any(), charged_each),
        ("matches", "podgraft_matches", texts(2), matches),
    ];
    add_all(env, functions)?;
    let of_lists: [Overload; 2] = [
        (JOIN, "podgraft_join", texts(0), join),
        (JOIN, "podgraft_join_separator", texts(1), join),
    ];
    add_members(env, || LIST_TYPE, of_lists)?;
    let one_most = vec![STRING_TYPE, INT_TYPE];
    let two_most = vec![STRING_TYPE, STRING_TYPE, INT_TYPE];
    let of_texts: [Overload; 6] = [
        ("matches", "podgraft_matches_member", texts(1), matches),
        ("find", "podgraft_find", texts(1), find),
        ("findAll", "podgraft_find_all", texts(1), find_all),
        ("findAll", "podgraft_find_all_most", one_most, find_all),
        (REPLACE, "podgraft_replace", texts(2), replace),
        (REPLACE, "podgraft_replace_most", two_most, replace),
    ];
    add_members(env, || STRING_TYPE, of_texts)
}

fn texts(count: usize) -> Vec<Type> {
    (0..count).map(|_| STRING_TYPE).collect()
}

pub(super) fn returned<'b, 'v>(value: impl Into<Cel>) -> CallResult<'b, 'v> {
    let value: Box<dyn Val> = value.into().try_into()?;
    Ok(CowVal::Owned(value))
}

pub(super) fn arg(args: &CallArgs<'_, '_>, at: usize) -> Result<Cel, ExecutionError> {
    args.get(at)
        .map_or(Ok(Cel::Null), |value| Cel::try_from(value.as_ref()))
}

pub(super) fn text_arg(args: &CallArgs<'_, '_>, at: usize) -> Result<String, ExecutionError> {
    let text = args.get(at).and_then(|arg| arg.downcast_ref::<CelString>());
    text.map(|text| text.inner().to_owned())
        .ok_or_else(|| ExecutionError::function_error("a function", "takes a text"))
}

/// The limit argument of a function; `None` for a negative number, which means no limit in Kubernetes' CEL.
fn most_arg(args: &CallArgs<'_, '_>, at: usize) -> Result<Option<usize>, ExecutionError> {
    Ok(match arg(args, at)? {
        Cel::Int(number) => usize::try_from(number).ok(),
        _ => None,
    })
}

fn text_function<'b, 'v>(
    name: &str,
    args: &CallArgs<'b, 'v>,
    function: impl FnOnce(&str) -> Result<String, String>,
) -> CallResult<'b, 'v> {
    let made = function(&text_arg(args, 0)?)
        .map_err(|reason| ExecutionError::function_error(name, reason))?;
    returned(made)
}

fn first_port<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let key = |key: &str| Key::from(key.to_owned());
    if let Cel::Map(container) = arg(&args, 0)?
        && let Some(Cel::List(ports)) = container.map.get(&key("ports"))
        && let Some(Cel::Map(first)) = ports.first()
        && let Some(number) = first.map.get(&key("containerPort"))
    {
        return returned(number.clone());
    }
    returned(arg(&args, 1)?)
}

fn lookup<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let text = |at| text_arg(&args, at);
    let (namespace, name) = match args.len() {
        3 => (None, text(2)?),
        _ => (Some(text(2)?), text(3)?),
    };
    let found = lookups::find(LookupKey {
        group: group_of(&text(0)?).to_owned(),
        kind: text(1)?,
        namespace,
        name,
    });
    let Some(found) = found else {
        return Ok(CowVal::owned(CelOptional::none()));
    };
    spend_on(&*found)?;
    Ok(CowVal::owned(CelOptional::of(Box::new(found))))
}

/// Text and pattern of a search. The worst patterns take a few steps per byte, and compiling one takes thousands.
fn search_args(args: &CallArgs<'_, '_>) -> Result<(String, String), ExecutionError> {
    let (text, pattern) = (text_arg(args, 0)?, text_arg(args, 1)?);
    let compiling = if functions::is_compiled(&pattern) {
        0
    } else {
        5_000
    };
    spend(4 * text.len() + compiling)?;
    Ok((text, pattern))
}

fn matches<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let (text, pattern) = search_args(&args)?;
    let found = functions::matches(&text, &pattern);
    returned(found.map_err(|reason| ExecutionError::function_error("matches", reason))?)
}

fn find<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let (text, pattern) = search_args(&args)?;
    let found = functions::find_all(&text, &pattern, 1, spend);
    let found = found.map_err(|reason| ExecutionError::function_error("find", reason))??;
    returned(found.into_iter().next().unwrap_or_default())
}

fn find_all<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let most = most_arg(&args, 2)?.unwrap_or(usize::MAX);
    let (text, pattern) = search_args(&args)?;
    let weight = functions::weight(&pattern);
    let found = functions::find_all(&text, &pattern, most, |left| {
        spend(1 + left.saturating_mul(weight) / 64)
    });
    returned(found.map_err(|reason| ExecutionError::function_error("findAll", reason))??)
}

fn replace<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let (text, from, to) = (
        text_arg(&args, 0)?,
        text_arg(&args, 1)?,
        text_arg(&args, 2)?,
    );
    let replaced = functions::replace(&text, &from, &to, most_arg(&args, 3)?);
    returned(replaced.map_err(|reason| ExecutionError::function_error("replace", reason))?)
}

fn join<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let failed = |reason: &str| ExecutionError::function_error("join", reason);
    let separator = if args.len() > 1 {
        text_arg(&args, 1)?
    } else {
        String::new()
    };
    let list = args
        .first()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let mut entries = list
        .as_iterable()
        .ok_or_else(|| failed("takes a list"))?
        .iter();
    let mut joined = String::new();
    let mut is_first = true;
    while let Some(entry) = entries.next() {
        let text = entry
            .downcast_ref::<CelString>()
            .ok_or_else(|| failed("takes a list of texts"))?;
        if !std::mem::take(&mut is_first) {
            joined.push_str(&separator);
        }
        joined.push_str(text.inner());
        if joined.len() > functions::MAX_TEXT {
            return Err(failed("the text would be longer than 1 MiB"));
        }
    }
    spend_on_text(&joined)?;
    returned(joined)
}

fn charged<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let value = args
        .into_iter()
        .next()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    spend_on(value.as_ref())?;
    Ok(value)
}

fn charged_each<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let value = args
        .into_iter()
        .next()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    spend(
        value
            .downcast_ref::<CelString>()
            .map_or(1, |text| text.inner().len()),
    )?;
    Ok(value)
}

fn walked<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let nodes = most_arg(&args, 1)?.unwrap_or(1);
    let range = args
        .into_iter()
        .next()
        .ok_or(ExecutionError::MissingArgumentOrTarget)?;
    let is_long = range
        .as_sizer()
        .is_some_and(|sizer| *sizer.size().inner() > MAX_ENTRIES);
    if is_long {
        let reason = format!("the list has more than {MAX_ENTRIES} entries");
        return Err(ExecutionError::function_error(
            "all, exists, map and filter",
            reason,
        ));
    }
    // The crate copies each entry and then evaluates the nodes for it.
    spend_on(range.as_ref())?;
    let entries = range.as_sizer().map_or(0, |sizer| {
        usize::try_from(*sizer.size().inner()).unwrap_or(0)
    });
    spend(entries.saturating_mul(nodes))?;
    let Some(map) = range.downcast_ref::<CelMap>() else {
        return Ok(range);
    };
    let mut keys: Vec<&CelMapKey> = map.inner().keys().collect();
    keys.sort();
    let keys = keys.iter().map(|key| key.inner().clone_as_boxed());
    let keys: Vec<Box<dyn Val + 'v>> = keys.collect();
    Ok(CowVal::owned(CelList::from(keys)))
}
