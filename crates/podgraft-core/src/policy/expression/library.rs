//! The functions that expressions can call: those of the CEL crate, and our own in the crate's form.

use cel::common::ast::operators;
use cel::common::functions::Function;
use cel::common::types::{
    CelList, CelMap, CelMapKey, CelOptional, CelString, DYN_TYPE, INT_TYPE, STRING_TYPE, Type,
};
use cel::common::value::{CowVal, Val};
use cel::objects::Key;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use std::sync::{Arc, LazyLock};

use super::cost::{spend, spend_on};
use super::lookups::{self, LookupKey};
use super::{addresses, formats, kubernetes, macros, replacements, urls, values};
use crate::manifest::workload::group_of;
use crate::policy::functions;

/// The maximal number of entries of a walked list.
const MAX_ENTRIES: i64 = 1024;

pub(super) type CallArgs<'b, 'v> = Vec<CowVal<'b, 'v>>;
pub(super) type CallResult<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

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
        .and_then(|()| add_all(&mut env, FUNCTIONS))
        .and_then(|()| add_members(&mut env, &STRING_TYPE, OF_TEXTS))
        .and_then(|()| replacements::add(&mut env))
        .and_then(|()| kubernetes::add(&mut env))
        .and_then(|()| values::add(&mut env))
        .and_then(|()| urls::add(&mut env))
        .and_then(|()| addresses::add(&mut env))
        .and_then(|()| formats::add(&mut env))
        .and_then(|()| macros::add(&mut env));
    added.expect("no function of ours is one of the crate's");
    Arc::new(env)
});

/// A function: name, argument types, implementation.
pub(super) type Overload = (&'static str, &'static [Type], Function);

/// Adds overloads of functions.
pub(super) fn add_all(env: &mut Env, overloads: &[Overload]) -> Result<(), DeclarationError> {
    let mut overloads = overloads.iter();
    overloads.try_for_each(|(name, takes, call)| {
        env.add_overload(name, &id(name, takes), owned(takes), *call)
    })
}

/// Adds overloads of methods of a type.
pub(super) fn add_members(
    env: &mut Env,
    of: &Type,
    overloads: &[Overload],
) -> Result<(), DeclarationError> {
    let mut overloads = overloads.iter();
    overloads.try_for_each(|(name, takes, call)| {
        let id = format!("{}.{}", of.name(), id(name, takes));
        env.add_member_overload(name, &id, of.to_owned(), owned(takes), *call)
    })
}

fn owned(types: &[Type]) -> Vec<Type> {
    types.iter().map(Type::to_owned).collect()
}

/// The name of an overload, which no message shows.
fn id(name: &str, takes: &[Type]) -> String {
    let types: Vec<&str> = takes.iter().map(Type::name).collect();
    format!("podgraft {name}({})", types.join(","))
}

const FUNCTIONS: &[Overload] = &[
    ("imageTag", &[STRING_TYPE], |args| {
        text_function("imageTag", &args, |text| Ok(functions::image_tag(text)))
    }),
    ("imageName", &[STRING_TYPE], |args| {
        text_function("imageName", &args, |text| Ok(functions::image_name(text)))
    }),
    ("dnsLabel", &[STRING_TYPE], |args| {
        text_function("dnsLabel", &args, functions::dns_label)
    }),
    ("sha1", &[STRING_TYPE], |args| {
        text_function("sha1", &args, |text| Ok(functions::sha1(text)))
    }),
    ("sha256", &[STRING_TYPE], |args| {
        text_function("sha256", &args, |text| Ok(functions::sha256(text)))
    }),
    ("firstPort", &[DYN_TYPE, DYN_TYPE], first_port),
    ("lookup", &[STRING_TYPE, STRING_TYPE, STRING_TYPE], lookup),
    (
        "lookup",
        &[STRING_TYPE, STRING_TYPE, STRING_TYPE, STRING_TYPE],
        lookup,
    ),
    // The check inserts these three.
    (WALKED, &[DYN_TYPE, INT_TYPE], walked),
    (CHARGED, &[DYN_TYPE], charged),
    (CHARGED_EACH, &[DYN_TYPE], charged_each),
    ("matches", &[STRING_TYPE, STRING_TYPE], matches),
];

const OF_TEXTS: &[Overload] = &[
    ("matches", &[STRING_TYPE], matches),
    ("find", &[STRING_TYPE], find),
    ("findAll", &[STRING_TYPE], find_all),
    ("findAll", &[STRING_TYPE, INT_TYPE], find_all),
];

pub(super) fn failed(function: &str, reason: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, reason)
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
        .ok_or_else(|| failed("argument", "expected a string"))
}

/// The limit argument of a function; `None` for a negative number, which means no limit in Kubernetes' CEL.
pub(super) fn most_arg(
    args: &CallArgs<'_, '_>,
    at: usize,
) -> Result<Option<usize>, ExecutionError> {
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
    let made = function(&text_arg(args, 0)?);
    returned(made.map_err(|reason| failed(name, reason))?)
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
    let compiling = match functions::is_compiled(&pattern) {
        true => 0,
        false => 5_000,
    };
    spend(4 * text.len() + compiling)?;
    Ok((text, pattern))
}

fn matches<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let (text, pattern) = search_args(&args)?;
    let found = functions::matches(&text, &pattern);
    returned(found.map_err(|reason| failed("matches", reason))?)
}

fn find<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let (text, pattern) = search_args(&args)?;
    let found = functions::find_all(&text, &pattern, 1, spend);
    let found = found.map_err(|reason| failed("find", reason))??;
    returned(found.into_iter().next().unwrap_or_default())
}

fn find_all<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let most = most_arg(&args, 2)?.unwrap_or(usize::MAX);
    let (text, pattern) = search_args(&args)?;
    let weight = functions::weight(&pattern);
    let found = functions::find_all(&text, &pattern, most, |left| {
        spend(1 + left.saturating_mul(weight) / 64)
    });
    returned(found.map_err(|reason| failed("findAll", reason))??)
}

fn first<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let first = args.into_iter().next();
    first.ok_or(ExecutionError::MissingArgumentOrTarget)
}

fn charged<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let value = first(args)?;
    spend_on(value.as_ref())?;
    Ok(value)
}

fn charged_each<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let value = first(args)?;
    let text = value.downcast_ref::<CelString>();
    spend(text.map_or(1, |text| text.inner().len()))?;
    Ok(value)
}

fn walked<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let nodes = most_arg(&args, 1)?.unwrap_or(1);
    let range = first(args)?;
    let entries = range.as_sizer().map_or(0, |sizer| *sizer.size().inner());
    if entries > MAX_ENTRIES {
        let reason = format!("the list has more than {MAX_ENTRIES} entries");
        return Err(failed("all, exists, map, and filter", reason));
    }
    // The crate copies each entry and then evaluates the nodes for it.
    spend_on(range.as_ref())?;
    let entries = usize::try_from(entries).unwrap_or(0);
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
