//! Finds the name of an object in a document of usual form without parsing it.

/// `metadata.name` and `metadata.namespace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::inventory) struct PlainName<'t> {
    /// `metadata.name`.
    pub name: &'t str,
    /// `metadata.namespace`, if it is stated.
    pub namespace: Option<&'t str>,
}

/// The text behind the line `metadata:` of the root. `None` if there is no such line, or another like it.
fn metadata_block(text: &str) -> Option<&str> {
    let (before, block) = text.split_once("metadata:\n")?;
    let is_only = !block.contains("\nmetadata:") && !block.starts_with("metadata:");
    let is_key = before.is_empty() || before.ends_with('\n');
    (is_only && is_key).then_some(block)
}

/// Returns the name of the object in a document whose root is a block mapping with plain keys. `None` if only the
/// parser can tell: no line of `metadata` may depend on other lines, as in a quoted text of several lines.
pub(in crate::inventory) fn plain_name(document: &[u8]) -> Option<PlainName<'_>> {
    let block = metadata_block(std::str::from_utf8(document).ok()?)?;
    let (mut indent, mut name, mut namespace) = (None, None, None);
    let mut may_go_on = false;
    for line in block.split('\n') {
        let content = line.trim_start_matches(' ');
        if content.is_empty() {
            continue;
        }
        if content.len() == line.len() {
            break;
        }
        let column = line.len() - content.len();
        let indent = *indent.get_or_insert(column);
        if column < indent || !is_of_one_line(content) {
            return None;
        }
        if content.starts_with('#') {
            continue;
        }
        if column > indent {
            // A deeper line continues the plain scalar above it.
            if may_go_on {
                return None;
            }
            continue;
        }
        let (key, value) = content.split_once(':')?;
        if !key.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let field = match key {
            "name" => Some(&mut name),
            "namespace" => Some(&mut namespace),
            _ => None,
        };
        may_go_on = field.is_some();
        let Some(field) = field else { continue };
        if field.replace(word(value)?).is_some() {
            return None;
        }
    }
    Some(PlainName {
        name: name?,
        namespace,
    })
}

/// Whether a line surely does not continue on the next: its quotes are closed, and it has no brackets or escapes.
fn is_of_one_line(content: &str) -> bool {
    let count = |quote: u8| memchr::memchr_iter(quote, content.as_bytes()).count();
    count(b'"') % 2 == 0
        && count(b'\'') % 2 == 0
        && memchr::memchr3(b'\\', b'{', b'[', content.as_bytes()).is_none()
}

/// The value of a line, if it is a plain scalar that every YAML reader takes for the same string.
fn word(value: &str) -> Option<&str> {
    let word = value.strip_prefix(' ')?;
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    let is_name = word.bytes().all(is_plain)
        && word.starts_with(|first: char| first.is_ascii_lowercase())
        && !["null", "true", "false", "yes", "no", "on", "off", "y", "n"].contains(&word);
    is_name.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_depend_on_nothing_else_are_seen() {
        let text = "# c\napiVersion: v1\nmetadata:\n  labels:\n    name: \"x\"\n  # c\n  name: a-1\n\n  namespace: shop\nkind: X\n";
        assert_eq!(
            plain_name(text.as_bytes()),
            Some(PlainName {
                name: "a-1",
                namespace: Some("shop")
            })
        );
    }

    #[test]
    fn whatever_may_mean_another_name_is_left_to_the_parser() {
        for lines in [
            "  name: \"a\"",
            "  name: a # c",
            "  name: a\n    b",
            "  name: a\n  name: b",
            "  name: 1e3",
            "  name: null",
            "  labels: {name: a}\n  name: a",
            "  annotations: \"x\n  name: y\"\n  name: a",
            "  annotations: 'x\n  name: y'\n  name: a",
            "  ? name\n  : b\n  name: a",
            "  <<: *b\n  name: a",
            "  \"name\": b\n  name: a",
            "  name: &x a",
            "  labels: {}",
            "    labels:\n  name: a",
            "  name: a\nmetadata:\n  name: b",
            "  name: a\nmetadata: {name: b}",
        ] {
            let text = format!("apiVersion: v1\nkind: X\nmetadata:\n{lines}\n");
            assert_eq!(plain_name(text.as_bytes()), None, "{lines}");
        }
    }
}
