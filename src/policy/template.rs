//! Text with `${params.NAME}`: the values of parameters are put in, `$${` becomes `${`. Anything else between the braces
//! is refused, never left as it stands.

use serde_json::Value;
use std::collections::BTreeMap;

use super::schema::{did_you_mean, nearest};
use crate::diagnostic::Code;
use crate::yaml::value::Path;

/// The values of a policy's parameters; `None` where there is none.
pub type Params = BTreeMap<String, Option<String>>;

/// What is wrong with a text, and where in the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The value that holds the text.
    pub path: Path,
    /// Its code.
    pub code: Code,
    /// What is wrong.
    pub message: String,
    /// What to do next.
    pub help: Option<String>,
}

/// What an expression may begin with (POLICY.md, Values).
const SCOPE: [&str; 8] = ["params", "variables", "workload", "pod", "container", "containers", "object", "ref"];

/// Whether a text is one `${...}` and nothing else.
pub fn is_whole_expression(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("${") else { return false };
    closing_brace(inner) == Some(inner.len().wrapping_sub(1))
}

/// Whether a text has something to fill in.
pub fn has_expression(text: &str) -> bool {
    text.contains("${")
}

/// Fills in every string of a value, keys left alone.
pub fn fill(value: &mut Value, path: &Path, params: &Params, faults: &mut Vec<Fault>) {
    match value {
        Value::String(text) if has_expression(text) => match fill_text(text, params) {
            Ok(filled) => *text = filled,
            Err(found) => faults.extend(found.into_iter().map(|fault| Fault { path: path.clone(), ..fault })),
        },
        Value::Array(entries) => {
            for (at, entry) in entries.iter_mut().enumerate() {
                fill(entry, &path.index(at), params, faults);
            }
        }
        Value::Object(map) => {
            for (key, entry) in map {
                fill(entry, &path.key(key), params, faults);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Fills in one text.
pub fn fill_text(text: &str, params: &Params) -> Result<String, Vec<Fault>> {
    let mut filled = String::with_capacity(text.len());
    let mut faults = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        filled.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        if rest[..at].ends_with('$') {
            filled.push('{');
            rest = inner;
            continue;
        }
        let Some(end) = closing_brace(inner) else {
            faults.push(unclosed());
            break;
        };
        match value_of(&inner[..end], params) {
            Ok(value) => filled.push_str(value),
            Err(fault) => faults.push(fault),
        }
        rest = &inner[end + 1..];
    }
    filled.push_str(rest);
    if faults.is_empty() { Ok(filled) } else { Err(faults) }
}

fn value_of<'p>(expression: &str, params: &'p Params) -> Result<&'p str, Fault> {
    let trimmed = expression.trim();
    let root: String = trimmed.chars().take_while(|&char| is_word(char)).collect();
    let rest = &trimmed[root.len()..];
    if let Some(name) = rest.strip_prefix('.').filter(|name| root == "params" && name.chars().all(is_word)) {
        return param(name, expression, params);
    }
    let is_name = root.starts_with(|char: char| !char.is_ascii_digit()) && !rest.trim_start().starts_with('(');
    let is_literal = matches!(root.as_str(), "true" | "false" | "null");
    if trimmed.is_empty() || (is_name && !is_literal && !SCOPE.contains(&root.as_str())) {
        return Err(unknown_name(&root, expression));
    }
    Err(fault(
        Code::NotSupported,
        format!("`${{{expression}}}`: expressions other than `params.NAME` come with a later version"),
        Some(format!("write the value itself, or `$${{{expression}}}` for this very text")),
    ))
}

fn param<'p>(name: &str, expression: &str, params: &'p Params) -> Result<&'p str, Fault> {
    match params.get(name) {
        Some(Some(value)) => Ok(value),
        Some(None) => Err(fault(
            Code::BadParam,
            format!("the parameter `{name}` has no value"),
            Some(format!("give it with `--param {name}=VALUE`, or give it a default")),
        )),
        None => {
            let near = nearest(name, params.keys().map(String::as_str)).map(did_you_mean);
            let hint = near.unwrap_or_else(|| "declare it under `params`".to_owned());
            Err(fault(
                Code::BadExpression,
                format!("the policy has no parameter `{name}`"),
                Some(format!("{hint}; {}", literal_hint(expression))),
            ))
        }
    }
}

fn unknown_name(root: &str, expression: &str) -> Fault {
    let near = nearest(root, SCOPE.into_iter()).map(|near| format!("{}; ", did_you_mean(near)));
    fault(
        Code::BadExpression,
        format!("`${{{expression}}}` names nothing that a policy knows"),
        Some(format!("{}{}", near.unwrap_or_default(), literal_hint(expression))),
    )
}

fn literal_hint(expression: &str) -> String {
    format!("for this very text write `$${{{expression}}}`")
}

fn unclosed() -> Fault {
    let help = "close it with `}`, or write `$${` for the text `${`".to_owned();
    fault(Code::BadExpression, "`${` is not closed".to_owned(), Some(help))
}

fn fault(code: Code, message: String, help: Option<String>) -> Fault {
    Fault { path: Path::default(), code, message, help }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// The `}` that ends an expression: braces of CEL maps nest, and those in its strings do not count.
fn closing_brace(inner: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote: Option<u8> = None;
    let mut bytes = inner.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth == 0 => return Some(at),
            (None, b'}') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params() -> Params {
        let given = [("port", Some("9404")), ("image", Some("a/b:1")), ("empty", None)];
        given.into_iter().map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).collect()
    }

    fn fault_of(text: &str) -> (Code, String, String) {
        let fault = fill_text(text, &params()).unwrap_err().remove(0);
        (fault.code, fault.message, fault.help.unwrap_or_default())
    }

    #[test]
    fn parameters_are_put_in() {
        assert_eq!(fill_text("${params.image}", &params()).unwrap(), "a/b:1");
        assert_eq!(fill_text("-x=${params.port}:${ params.port }/c", &params()).unwrap(), "-x=9404:9404/c");
    }

    #[test]
    fn a_doubled_dollar_writes_the_literal_text() {
        assert_eq!(fill_text("$${HOME}/${params.port}", &params()).unwrap(), "${HOME}/9404");
        assert_eq!(fill_text("$(VAR) {{ x }} $${a", &params()).unwrap(), "$(VAR) {{ x }} ${a");
    }

    #[test]
    fn a_value_that_ends_in_a_dollar_escapes_nothing() {
        let params: Params = [("a".to_owned(), Some("x$".to_owned()))].into();
        assert_eq!(fill_text("${params.a}${params.a}", &params).unwrap(), "x$x$");
    }

    #[test]
    fn an_unknown_parameter_is_an_error_with_the_near_one() {
        let (code, message, help) = fault_of("${params.prot}");
        assert_eq!((code, message.as_str()), (Code::BadExpression, "the policy has no parameter `prot`"));
        assert!(help.contains("`port`") && help.contains("`$${params.prot}`"), "{help}");
    }

    #[test]
    fn a_name_out_of_scope_shows_the_literal_ready_to_paste() {
        let (code, _, help) = fault_of("${HOME:-/root}");
        assert_eq!(code, Code::BadExpression);
        assert!(help.contains("`$${HOME:-/root}`"), "{help}");
    }

    #[test]
    fn expressions_come_later() {
        for text in ["${int(params.port)}", "${workload.name}", "${container.?securityContext}", "${'}' + \"{\"}"] {
            assert_eq!(fault_of(text).0, Code::NotSupported, "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_is_an_error() {
        assert_eq!(fault_of("${params.port").0, Code::BadExpression);
    }

    #[test]
    fn a_parameter_without_a_value_is_an_error_where_it_is_used() {
        assert_eq!(fault_of("${params.empty}").0, Code::BadParam);
    }

    #[test]
    fn a_whole_expression_is_one_pair_of_braces() {
        assert!(is_whole_expression("${params.x}"));
        assert!(is_whole_expression("${{'a': 1}}"));
        for text in ["${a}${b}", "x${a}", "${a} ", "$${a}", "${a", ""] {
            assert!(!is_whole_expression(text), "{text}");
        }
    }

    #[test]
    fn every_string_of_a_value_is_filled_and_every_fault_has_its_path() {
        let mut value = json!({"a": ["${params.port}", 1], "${params.port}": {"b": "${nope}"}});
        let mut faults = Vec::new();
        fill(&mut value, &Path::of(&["inject"]), &params(), &mut faults);
        assert_eq!(value["a"], json!(["9404", 1]));
        assert_eq!(faults[0].path.to_string(), "inject.${params.port}.b");
    }
}
