//! The URL library of Kubernetes' CEL.

use cel::common::types::{STRING_TYPE, Type};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::objects::{Key, Map};
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};
use core::net::Ipv6Addr;
use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use super::library::{CallArgs, Overload, add_all, add_members, failed, returned};
use super::values::{checked_text, opaque, opaque_arg, reading};

/// Adds the functions.
pub(super) fn add(env: &mut Env) -> Result<(), DeclarationError> {
    add_all(env, reading!("url", "isURL", Url))?;
    add_members(env, &URL, OF_URLS)
}

/// Whether a text is an absolute URI or an absolute path.
pub(super) fn is_url(text: &str) -> bool {
    Url::read(text).is_some()
}

/// An absolute URI, or an absolute path without scheme and host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

opaque!(Url, URL, "kubernetes.URL");

impl Url {
    /// Reads a text as Go's `net/url` does, which is what Kubernetes uses.
    fn read(text: &str) -> Option<Self> {
        if text.contains(|char: char| char.is_ascii_control()) {
            return None;
        }
        let (text, _) = split(text, '#');
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
            _ if text.starts_with('/') => (String::new(), text),
            _ => return None,
        };
        let (rest, query) = split(rest, '?');
        let query = query.unwrap_or_default().to_owned();
        // A path that does not begin with `/`, as in `mailto:a@b`, is no path of a server.
        if !rest.starts_with('/') {
            return Some(Url {
                scheme,
                query,
                ..Url::default()
            });
        }
        let is_path = scheme.is_empty() && rest.starts_with("///");
        let (authority, path) = match rest.strip_prefix("//").filter(|_| !is_path) {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let is_valid = has_only(user, USER_MARKS) && is_host(host);
        Some(Url {
            scheme,
            host: decoded(host).filter(|_| is_valid)?,
            path: escaped(path)?,
            query,
        })
    }

    /// The query as a map from each key to its list of values.
    fn query_values(&self) -> Cel {
        let mut query: HashMap<Key, Vec<Cel>> = HashMap::new();
        let is_pair = |pair: &&str| !pair.is_empty() && !pair.contains(';');
        for pair in self.query.split('&').filter(is_pair) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = |part: &str| decoded(&part.replace('+', " "));
            if let (Some(key), Some(value)) = (text(key), text(value)) {
                let value = Cel::String(Arc::new(value));
                query.entry(Key::from(key)).or_default().push(value);
            }
        }
        let lists = query
            .into_iter()
            .map(|(key, values)| (key, Cel::List(Arc::new(values))));
        let map = Arc::new(lists.collect());
        Cel::Map(Map { map })
    }

    /// The host name without brackets, and the port, which may be empty.
    fn host_and_port(&self) -> (&str, &str) {
        let of_name = |host: &'_ str| host.rfind(':').filter(|&at| !host[at..].contains(']'));
        let (name, port) = match of_name(&self.host) {
            Some(at) => (&self.host[..at], &self.host[at + 1..]),
            None => (self.host.as_str(), ""),
        };
        (name.trim_start_matches('[').trim_end_matches(']'), port)
    }
}

fn is_scheme(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The punctuation that may stand in user information, in a host, and in a path that needs no escapes.
const USER_MARKS: &str = "-._:~!$&'()*+,;=%@";
const HOST_MARKS: &str = "-._~!$&'()*+,;=:<>\"]%";
const PATH_MARKS: &str = "-._~!$&'()*+,;=:@[]%/";
/// What is escaped neither, if a path has something that must be.
const ESCAPED_PATH_MARKS: &str = "-._~$&+,;=:@/";

/// The first hexadecimal digits of bytes that are not ASCII.
const NON_ASCII_DIGITS: [char; 14] = [
    '8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 'A', 'B', 'C', 'D', 'E', 'F',
];

fn is_any(byte: u8, marks: &str) -> bool {
    byte.is_ascii_alphanumeric() || marks.as_bytes().contains(&byte)
}

fn has_only(text: &str, marks: &str) -> bool {
    text.bytes().all(|byte| is_any(byte, marks))
}

fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) if name.parse::<Ipv6Addr>().is_ok() => ("", port),
            _ => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port = port
        .strip_prefix(':')
        .or_else(|| port.is_empty().then_some(""));
    // A host has escapes of non-ASCII bytes and of `%` only.
    let is_escape = |rest: &str| rest.starts_with("25") || rest.starts_with(NON_ASCII_DIGITS);
    port.is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
        && name.split('%').skip(1).all(is_escape)
        && name
            .bytes()
            .all(|byte| !byte.is_ascii() || is_any(byte, HOST_MARKS))
}

/// The path with its escapes, and with all that is needed if it lacks one.
fn escaped(path: &str) -> Option<String> {
    let bytes = percent_decoded(path)?;
    if has_only(path, PATH_MARKS) {
        return Some(path.to_owned());
    }
    let escape = |byte: u8| match is_any(byte, ESCAPED_PATH_MARKS) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    Some(bytes.into_iter().map(escape).collect())
}

/// The decoded text; `None` if it is not UTF-8.
fn decoded(text: &str) -> Option<String> {
    String::from_utf8(percent_decoded(text)?).ok()
}

/// The decoded bytes; `None` if a `%` lacks its two hexadecimal digits.
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        bytes.push(match byte {
            b'%' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                rest = &rest[2..];
                u8::from_str_radix(digits, 16).ok().filter(|_| is_hex)?
            }
            other => other,
        });
    }
    Some(bytes)
}

const OF_URLS: &[Overload] = &[
    ("getScheme", &[], |args| returned(url(&args)?.scheme)),
    ("getHost", &[], |args| returned(url(&args)?.host)),
    ("getHostname", &[], |args| {
        returned(url(&args)?.host_and_port().0.to_owned())
    }),
    ("getPort", &[], |args| {
        returned(url(&args)?.host_and_port().1.to_owned())
    }),
    ("getEscapedPath", &[], |args| returned(url(&args)?.path)),
    ("getQuery", &[], |args| returned(url(&args)?.query_values())),
];

fn url(args: &CallArgs<'_, '_>) -> Result<Url, ExecutionError> {
    opaque_arg(args, 0)
}

fn split(text: &str, mark: char) -> (&str, Option<&str>) {
    match text.split_once(mark) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}
