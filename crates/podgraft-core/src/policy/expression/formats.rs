//! `format.named` of Kubernetes' CEL libraries: checks of names, labels and other formats.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::common::types::{CelOptional, STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, Value as Cel};
use regex_lite::Regex;
use std::any::Any;
use std::sync::{Arc, LazyLock};

use super::cost::spend_on_text;
use super::library::{CallArgs, CallResult, Overload, add_all, add_members, text_arg};
use super::urls::is_url;
use super::values::{opaque, opaque_arg};
use crate::policy::names::{
    RuleCheck, check_dns_label, check_dns_subdomain, check_label_key, check_label_value, require,
};

type FormatCheck = fn(&str) -> RuleCheck;

/// The format names of Kubernetes, each with its check.
const FORMATS: [(&str, FormatCheck); 13] = [
    ("dns1123Label", check_dns_label),
    ("dns1123Subdomain", check_dns_subdomain),
    ("dns1035Label", check_dns1035_label),
    ("qualifiedName", check_label_key),
    ("dns1123LabelPrefix", |text| check_dns_label(&masked(text))),
    ("dns1123SubdomainPrefix", |text| {
        check_dns_subdomain(&masked(text))
    }),
    ("dns1035LabelPrefix", |text| {
        check_dns1035_label(&masked(text))
    }),
    ("labelValue", check_label_value),
    ("uri", |text| {
        require(is_url(text), "must be an absolute URI or path")
    }),
    ("uuid", |text| {
        require(UUID.is_match(text), "must be a lowercase UUID")
    }),
    ("byte", |text| {
        require(STANDARD.decode(text).is_ok(), "must be base64")
    }),
    ("date", |text| {
        let holds = DATE.is_match(text) && is_date(text);
        require(holds, "must be a date such as 2026-01-31")
    }),
    ("datetime", |text| {
        let holds = DATETIME.is_match(text) && is_date(&text[..10]);
        require(holds, "must be a time such as 2026-01-31T12:00:00Z")
    }),
];

static UUID: LazyLock<Regex> = LazyLock::new(|| form("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"));
static DATE: LazyLock<Regex> = LazyLock::new(|| form(r"\d{4}-\d{2}-\d{2}"));
/// A date and time as in RFC 3339.
static DATETIME: LazyLock<Regex> = LazyLock::new(|| {
    let minutes = r"([01]\d|2[0-3]):[0-5]\d";
    form(&format!(
        r"\d{{4}}-\d{{2}}-\d{{2}}[Tt]{minutes}:([0-5]\d|60)(\.\d+)?([Zz]|[+-]{minutes})"
    ))
});

fn form(pattern: &str) -> Regex {
    Regex::new(&format!("^(?:{pattern})$")).expect("the patterns above are right")
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedFormat(&'static str);

opaque!(NamedFormat, FORMAT, "kubernetes.NamedFormat");

/// Adds `format.named` and `validate`.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    add_all(env, &[NAMED])?;
    add_members(env, &FORMAT, &[VALIDATE])
}

const NAMED: Overload = ("format.named", &[STRING_TYPE], |args| {
    let name = text_arg(&args, 0)?;
    let found = FORMATS.iter().find(|(known, _)| *known == name);
    Ok(CowVal::owned(match found {
        Some((name, _)) => CelOptional::of(Box::new(NamedFormat(name))),
        None => CelOptional::none(),
    }))
});

const VALIDATE: Overload = ("validate", &[STRING_TYPE], validate);

/// `FORMAT.validate(TEXT)`: the reasons why the text has not the format, or nothing.
fn validate<'b, 'v>(args: CallArgs<'b, 'v>) -> CallResult<'b, 'v> {
    let NamedFormat(name) = opaque_arg(&args, 0)?;
    let text = text_arg(&args, 1)?;
    spend_on_text(&text)?;
    let check = FORMATS.iter().find(|(known, _)| *known == name);
    let Some(reason) = check.and_then(|(_, check)| check(&text).err()) else {
        return Ok(CowVal::owned(CelOptional::none()));
    };
    let reasons = Cel::List(Arc::new(vec![Cel::String(Arc::new(reason.to_owned()))]));
    let reasons: Box<dyn Val> = reasons.try_into()?;
    Ok(CowVal::owned(CelOptional::of(reasons)))
}

/// The prefix of a generated name may end in `-`, which is replaced to pass the check for whole names.
fn masked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        Some(_) | None => text.to_owned(),
    }
}

fn check_dns1035_label(text: &str) -> RuleCheck {
    check_dns_label(text)?;
    require(
        text.starts_with(|char: char| char.is_ascii_lowercase()),
        "must start with a lowercase letter",
    )
}

/// Whether the numbers of a text are those of a day.
fn is_date(text: &str) -> bool {
    let numbers = text.split('-').filter_map(|part| part.parse().ok());
    let numbers: Vec<u32> = numbers.collect();
    let [year, month, day] = numbers[..] else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}
