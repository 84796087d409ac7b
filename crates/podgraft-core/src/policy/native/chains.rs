//! Finds field chains in the text of expressions, such as `source.spec.?port`: a root name and the fields selected from
//! it. They tell which fields of a resource an expression reads, and let a root name be replaced by another expression.

use std::ops::Range;

use crate::policy::template::map_expressions;
use crate::yaml::value::{Path, Step};

/// The name of the resource that a policy is applied for.
pub(super) const SOURCE: &str = "source";
/// The name of all resources of that kind.
pub(super) const SOURCES: &str = "sources";

/// A root name and the fields selected from it, such as `source.spec.?port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldChain<'e> {
    /// The byte range of the root name, without the fields.
    at: Range<usize>,
    /// The root name.
    pub root: &'e str,
    /// The selected fields and entries. It ends before the first call or computed index.
    pub path: Path,
}

/// Returns all field chains of an expression, in textual order.
pub(super) fn chains(expression: &str) -> Vec<FieldChain<'_>> {
    let mut found = Vec::new();
    // Whether the next word follows a `.` and so is a field, not a root name.
    let mut at = 0;
    let mut is_field = false;
    while let Some(first) = expression[at..].chars().next() {
        match first {
            '\'' | '"' => {
                at = end_of_text(expression, at);
                is_field = false;
            }
            _ if is_word(first) && !first.is_ascii_digit() => {
                let end = end_of_word(expression, at);
                // A word before a quote is the prefix of a string literal, such as the `r` of `r'...'`.
                if expression[end..].starts_with(['\'', '"']) || is_field {
                    at = end;
                } else {
                    let (path, next) = fields(expression, end);
                    found.push(FieldChain {
                        at: at..end,
                        root: &expression[at..end],
                        path,
                    });
                    at = next;
                }
                is_field = false;
            }
            _ => {
                is_field = first == '.' || is_field && (first == '?' || first.is_whitespace());
                at += first.len_utf8();
            }
        }
    }
    found
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

fn end_of_word(text: &str, at: usize) -> usize {
    text[at..]
        .find(|char| !is_word(char))
        .map_or(text.len(), |length| at + length)
}

/// The offset behind the string literal whose opening quote is at `at`.
fn end_of_text(text: &str, at: usize) -> usize {
    let quote = text.as_bytes()[at];
    let mut bytes = text.bytes().enumerate().skip(at + 1);
    while let Some((at, byte)) = bytes.next() {
        if byte == b'\\' {
            bytes.next();
        } else if byte == quote {
            return at + 1;
        }
    }
    text.len()
}

/// The selected fields from an offset on, and the offset behind them. The name of a called method is not a field.
fn fields(text: &str, mut at: usize) -> (Path, usize) {
    let mut path = Path::default();
    while let Some((step, end)) = field(text, at) {
        path.0.push(step);
        at = end;
    }
    (path, at)
}

fn field(text: &str, at: usize) -> Option<(Step, usize)> {
    let rest = &text[at..];
    if let Some(rest) = rest.strip_prefix('.') {
        let start = text.len() - rest.strip_prefix('?').unwrap_or(rest).len();
        let end = end_of_word(text, start);
        let is_called = text[end..].starts_with('(');
        return (end > start && !is_called).then(|| (Step::Key(text[start..end].to_owned()), end));
    }
    let inner = rest.strip_prefix('[')?;
    let inner = &inner[..inner.find(']')?];
    let end = at + inner.len() + 2;
    if let Ok(index) = inner.parse() {
        return Some((Step::Index(index), end));
    }
    let key = inner.strip_prefix(['\'', '"'])?.strip_suffix(['\'', '"'])?;
    Some((Step::Key(key.to_owned()), end))
}

/// Replaces each root name `name` in an expression by another expression.
pub(super) fn replace(expression: &str, name: &str, with: &str) -> String {
    // From the last chain to the first, so that the remaining byte ranges stay valid.
    let mut replaced = expression.to_owned();
    let of_name = chains(expression).into_iter().rev();
    for chain in of_name.filter(|chain| chain.root == name) {
        replaced.replace_range(chain.at, with);
    }
    replaced
}

/// Replaces a root name in every `${...}` of a text.
pub(super) fn replace_within(text: &str, name: &str, with: &str) -> String {
    map_expressions(text, |expression| replace(expression, name, with))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_with_their_fields() {
        let found = |text| -> Vec<String> {
            let chain = |chain: FieldChain<'_>| format!("{}:{}", chain.root, chain.path);
            chains(text).into_iter().map(chain).collect()
        };
        assert_eq!(
            found("source.spec.?port.orValue(source.spec.list[2]['a b'])"),
            ["source:spec.port", "source:spec.list[2].a b"]
        );
        assert_eq!(
            found("'source.a' + \"it\\\"source.b\" + r'source.c'"),
            Vec::<String>::new()
        );
        assert_eq!(
            found("x.source.a + f(source) ? 1 : 2"),
            ["x:source.a", "f:", "source:"]
        );
        assert_eq!(
            found("a .b + ü.source"),
            ["a:", "b:"].map(str::to_owned)[..1]
        );
    }

    #[test]
    fn a_name_is_replaced_where_it_is_one() {
        assert_eq!(
            replace("item.a + 'item' + x.item + [item]", "item", "list[0]"),
            "list[0].a + 'item' + x.item + [list[0]]"
        );
        assert_eq!(
            replace_within(
                "$${item} ${item.a}-${[1].map(e, e + item)[0]} item",
                "item",
                "x"
            ),
            "$${item} ${x.a}-${[1].map(e, e + x)[0]} item"
        );
    }
}
