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
                    failed($function, concat!("the text is not a valid ", $function))
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
    found.ok_or_else(|| failed(T::cel_type().name(), "the argument has a different type"))
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
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Version(semver::Version);

opaque!(Version, VERSION, "kubernetes.Semver");

impl Version {
    fn read(text: &str) -> Option<Self> {
        let mut version = semver::Version::parse(text).ok()?;
        version.build = semver::BuildMetadata::EMPTY;
        Some(Version(version))
    }
}

const OF_VERSIONS: &[Overload] = &[
    ("major", &[], |args| part(&args, |version| version.major)),
    ("minor", &[], |args| part(&args, |version| version.minor)),
    ("patch", &[], |args| part(&args, |version| version.patch)),
];

fn part<'b, 'v>(
    args: &CallArgs<'b, 'v>,
    part: impl FnOnce(semver::Version) -> u64,
) -> CallResult<'b, 'v> {
    let Version(version) = opaque_arg(args, 0)?;
    returned(i64::try_from(part(version)).unwrap_or(i64::MAX))
}
