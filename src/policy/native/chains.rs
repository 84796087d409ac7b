//! Names in expressions with the fields that are asked of them, such as `source.spec.?port`, found in the text: which fields
//! of a resource a value reads, and a name in the place of another.

use std::ops::Range;

use crate::policy::template::map_expressions;
use crate::yaml::value::{Path, Step};

/// What expressions call the resource that a policy is for.
pub(super) const SOURCE: &str = "source";
/// And all of its kind.
pub(super) const SOURCES: &str = "sources";

/// A name and the fields selected from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldChain<'e> {
    /// The bytes of the name.
    at: Range<usize>,
    /// The name.
    pub root: &'e str,
    /// The fields and entries, as far as they are written out.
    pub path: Path,
}

/// All of an expression, in their order.
pub(super) fn chains(expression: &str) -> Vec<FieldChain<'_>> {
    let mut found = Vec::new();
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
                // A prefix of a text, such as that of `r'...'`.
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

/// Behind the text that begins with a quote.
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

/// The fields that are asked for from here on, and where they end. What is called is no field.
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

/// The expression with another text in the place of a name.
pub(super) fn replace(expression: &str, name: &str, with: &str) -> String {
    let mut replaced = expression.to_owned();
    let of_name = chains(expression).into_iter().rev();
    for chain in of_name.filter(|chain| chain.root == name) {
        replaced.replace_range(chain.at, with);
    }
    replaced
}

/// A text with `${...}` in which a name stands for another text.
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
