//! Versions of Kubernetes' CEL libraries, and macros for all types that are parsed from texts.

use cel::common::functions::Function;
use cel::common::types::{STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use std::any::Any;
use std::cmp::Ordering;

use super::cost::spend_on_text;
use super::library::{
    CallArgs, CallResult, Overload, add_all, add_members, failed, returned, text_arg,
};

/// Implements an opaque CEL type, which only functions can look into.
macro_rules! opaque {
    ($rust:ident, $kind:ident, $name:literal) => {
        const $kind: Type = Type::new_unspecified_type($name);

        impl Val for $rust {
            fn get_type(&self) -> &Type {
                Self::cel_type()
            }

            fn cel_type() -> &'static Type {
                static KIND: Type = $kind;
                &KIND
            }

            fn equals(&self, other: &dyn Val) -> bool {
                other.downcast_ref::<$rust>() == Some(self)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn Any> {
                Some(self)
            }
        }

        impl StaticVal for $rust {}
    };
}

/// A function that parses a text, and one that returns whether it can be parsed.
macro_rules! reading {
    ($function:literal, $is:literal, $rust:ident) => {{
        const READING: &[Overload] = &[
            ($function, &[STRING_TYPE], |args| {
                let read = $rust::read(&checked_text(&args)?);
                Ok(CowVal::owned(read.ok_or_else(|| {
                    failed($function, concat!("the text is no ", $function))
                })?))
            }),
            ($is, &[STRING_TYPE], |args| {
                returned($rust::read(&checked_text(&args)?).is_some())
            }),
        ];
        READING
    }};
}

pub(super) use {opaque, reading};

/// An argument of an opaque type.
pub(super) fn opaque_arg<T: StaticVal + Clone>(
    args: &CallArgs<'_, '_>,
    at: usize,
) -> Result<T, ExecutionError> {
    let found = args.get(at).and_then(|value| value.downcast_ref::<T>());
    let found = found.cloned();
    found.ok_or_else(|| failed(T::cel_type().name(), "takes another type"))
}

fn compare<T: StaticVal + Clone + Ord>(
    args: &CallArgs<'_, '_>,
) -> Result<Ordering, ExecutionError> {
    Ok(opaque_arg::<T>(args, 0)?.cmp(&opaque_arg(args, 1)?))
}

/// Adds the methods that compare two values of an opaque type.
pub(super) fn add_comparisons<T: StaticVal + Clone + Ord>(
    env: &mut Env,
) -> Result<(), DeclarationError> {
    let comparisons: [(&str, Function); 3] = [
        ("compareTo", |args| returned(compare::<T>(&args)? as i64)),
        ("isLessThan", |args| {
            returned(compare::<T>(&args)? == Ordering::Less)
        }),
        ("isGreaterThan", |args| {
            returned(compare::<T>(&args)? == Ordering::Greater)
        }),
    ];
    comparisons.into_iter().try_for_each(|(name, call)| {
        let (kind, id) = (T::cel_type(), format!("{}.{name}", T::cel_type().name()));
        env.add_member_overload(name, &id, kind.to_owned(), vec![kind.to_owned()], call)
    })
}

/// The first argument as text, charged for parsing it.
pub(super) fn checked_text(args: &CallArgs<'_, '_>) -> Result<String, ExecutionError> {
    let text = text_arg(args, 0)?;
    spend_on_text(&text)?;
    Ok(text)
}

/// Adds the functions.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    add_all(env, reading!("semver", "isSemver", Version))?;
    add_comparisons::<Version>(env)?;
    add_members(env, &VERSION, OF_VERSIONS)
}

/// A version as in <https://semver.org>. The build metadata is checked and ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Version {
    numbers: [u64; 3],
    pre: Vec<Identifier>,
}

opaque!(Version, VERSION, "kubernetes.Semver");

/// An identifier of a pre-release. Numbers sort before texts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Text(String),
}

impl Version {
    fn read(text: &str) -> Option<Self> {
        let (rest, build) = split(text, '+');
        let (core, pre) = split(rest, '-');
        let is_body = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_word = |word: &str| !word.is_empty() && word.bytes().all(is_body);
        if !build.is_none_or(|build| build.split('.').all(is_word)) {
            return None;
        }
        let numbers: Vec<u64> = core.split('.').map(number).collect::<Option<_>>()?;
        let identifier = |word: &str| match word.bytes().all(|byte| byte.is_ascii_digit()) {
            true => number(word).map(Identifier::Number),
            false => is_word(word).then(|| Identifier::Text(word.to_owned())),
        };
        let pre = pre.into_iter().flat_map(|pre| pre.split('.'));
        Some(Version {
            numbers: numbers.try_into().ok()?,
            pre: pre.map(identifier).collect::<Option<_>>()?,
        })
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // A pre-release sorts before its release.
        let released = self.pre.is_empty().cmp(&other.pre.is_empty());
        let numbers = self.numbers.cmp(&other.numbers);
        numbers
            .then(released)
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(super) fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// A number without sign and leading zeros.
pub(super) fn number(text: &str) -> Option<u64> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    is_plain.then(|| text.parse().ok()).flatten()
}

const OF_VERSIONS: &[Overload] = &[
    ("major", &[], |args| part(&args, 0)),
    ("minor", &[], |args| part(&args, 1)),
    ("patch", &[], |args| part(&args, 2)),
];

fn part<'b, 'v>(args: &CallArgs<'b, 'v>, at: usize) -> CallResult<'b, 'v> {
    returned(i64::try_from(opaque_arg::<Version>(args, 0)?.numbers[at]).unwrap_or(i64::MAX))
}
