//! Writes values as text: in block style, or in flow style for JSON and inside brackets.

use serde_json::{Map, Value};

use crate::yaml::scalar;

/// How block text is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockStyle {
    /// Columns by which a nested mapping is indented.
    pub step: usize,
    /// Columns by which the dashes of a list are indented from its key; may be 0.
    pub list_offset: usize,
    /// `\n` or `\r\n`.
    pub line_end: &'static str,
}

/// How flow text is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowStyle {
    /// Whether it is JSON, where every key is quoted.
    pub is_json: bool,
    /// Whether a blank follows `:`.
    pub colon_space: bool,
    /// Whether a blank follows `,`.
    pub comma_space: bool,
    /// Whether there are blanks inside `{ }`.
    pub brace_space: bool,
}

/// The initial capacity of a new text, in bytes: enough for most, so that they do not grow.
const ROOM: usize = 256;

/// The maximum width of a line on which a list of scalars is written.
const ONE_LINE: usize = 100;

/// The text of a value behind `key:`, with what separates it from the colon: `" scalar"`, or a line end and lines.
/// `column` is the column of the key.
pub(crate) fn block_value(value: &Value, column: usize, style: BlockStyle) -> String {
    let mut text = String::new();
    write_value(&mut text, value, column, style);
    text
}

/// The fields of a mapping as the lines of a document. The last has no line end.
pub(super) fn block_fields(mapping: &Value, style: BlockStyle) -> String {
    let mut text = String::with_capacity(ROOM);
    if let Some(map) = mapping.as_object() {
        write_map(&mut text, map, 0, style);
    }
    text
}

/// The block style of whole documents that are written anew.
pub(crate) const DOCUMENT_STYLE: BlockStyle = BlockStyle {
    step: 2,
    list_offset: 0,
    line_end: "\n",
};

/// A value as a whole document in block style, with a line end.
pub fn document(value: &Value) -> String {
    block_fields(value, DOCUMENT_STYLE) + "\n"
}

fn write_map(text: &mut String, map: &Map<String, Value>, column: usize, style: BlockStyle) {
    for (index, (key, value)) in map.iter().enumerate() {
        if index > 0 {
            new_line(text, column, style);
        }
        write_plain_or_quoted(text, key);
        text.push(':');
        write_value(text, value, column, style);
    }
}

/// One item of a list from its dash on, without the last line end. `column` is the column of the dash, `width` the
/// number of columns from the dash to the content.
pub(crate) fn block_item(value: &Value, column: usize, width: usize, style: BlockStyle) -> String {
    let mut text = String::with_capacity(ROOM);
    write_item(&mut text, value, column, width, style);
    text
}

fn write_item(text: &mut String, value: &Value, column: usize, width: usize, style: BlockStyle) {
    text.push('-');
    let content = column + width;
    match value {
        Value::Object(map) if !map.is_empty() => {
            push_blanks(text, width - 1);
            write_map(text, map, content, style);
        }
        Value::Array(items) if !items.is_empty() && !fits_on_one_line(items, content) => {
            push_blanks(text, width - 1);
            write_items(text, items, content, 2, style);
        }
        scalar_or_short => {
            let mut tail = String::new();
            // A block scalar is indented from the column of the dash, not from that of the content behind it.
            write_value(&mut tail, scalar_or_short, column, style);
            push_blanks(text, width - 1);
            text.push_str(tail.strip_prefix(' ').unwrap_or(&tail));
        }
    }
}

/// Several items of a list. The first has no indentation, and the last no line end.
pub(crate) fn block_items(
    items: &[Value],
    column: usize,
    width: usize,
    style: BlockStyle,
) -> String {
    let mut text = String::with_capacity(ROOM);
    write_items(&mut text, items, column, width, style);
    text
}

fn write_items(text: &mut String, items: &[Value], column: usize, width: usize, style: BlockStyle) {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            new_line(text, column, style);
        }
        write_item(text, item, column, width, style);
    }
}

fn write_value(text: &mut String, value: &Value, column: usize, style: BlockStyle) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            let inner = column + style.step;
            new_line(text, inner, style);
            write_map(text, map, inner, style);
        }
        Value::Array(items) if !items.is_empty() && !fits_on_one_line(items, column) => {
            let inner = column + style.list_offset;
            new_line(text, inner, style);
            write_items(text, items, inner, 2, style);
        }
        Value::String(string) if scalar::is_literal_safe(string) => {
            write_literal(text, string, column, style)
        }
        Value::String(string) => {
            text.push(' ');
            write_plain_or_quoted(text, string);
        }
        inline => {
            text.push(' ');
            text.push_str(&flow_value(inline, &FlowStyle::in_block()));
        }
    }
}

/// Whether a list is written on one line: only scalars, such as a command, and not too long.
fn fits_on_one_line(items: &[Value], column: usize) -> bool {
    let are_scalars = items
        .iter()
        .all(|item| !item.is_object() && !item.is_array());
    are_scalars && column + flow_items_width(items) <= ONE_LINE && !items.iter().any(has_line_end)
}

/// Whether the text of a value ends in a block scalar whose last line end is part of its value.
pub(crate) fn needs_line_end(value: &Value) -> bool {
    block_at_end(value).is_some_and(|text| text.ends_with('\n'))
}

/// The string that is written as a block scalar at the very end of a value's text; `None` if there is none.
pub(crate) fn block_at_end(value: &Value) -> Option<&str> {
    match value {
        Value::Object(map) => block_at_end(map.values().next_back()?),
        Value::Array(items) => block_at_end(items.last()?),
        Value::String(text) => scalar::is_literal_safe(text).then_some(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn has_line_end(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains('\n'))
}

fn flow_items_width(items: &[Value]) -> usize {
    items
        .iter()
        .map(|item| flow_value(item, &FlowStyle::in_block()).chars().count() + 2)
        .sum()
}

fn write_literal(text: &mut String, string: &str, column: usize, style: BlockStyle) {
    let body = string.trim_end_matches('\n');
    let chomping = match string.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    };
    text.push(' ');
    text.push_str(chomping);
    // The string's last line end is not written here: it is the one that follows the block in the file.
    let lines = if chomping == "|-" {
        string
    } else {
        &string[..string.len() - 1]
    };
    for line in lines.split('\n') {
        text.push_str(style.line_end);
        if !line.is_empty() {
            push_blanks(text, column + style.step.max(2));
            text.push_str(line);
        }
    }
}

fn new_line(text: &mut String, column: usize, style: BlockStyle) {
    text.push_str(style.line_end);
    push_blanks(text, column);
}

/// Appends the indentation of a line.
pub(super) fn push_blanks(text: &mut String, count: usize) {
    const BLANKS: &str = "                                ";
    match BLANKS.get(..count) {
        Some(blanks) => text.push_str(blanks),
        None => text.extend(std::iter::repeat_n(' ', count)),
    }
}

/// A string in block style: plain where every reader takes it for that string, else in quotes.
pub fn plain_or_quoted(string: &str) -> String {
    let mut text = String::new();
    write_plain_or_quoted(&mut text, string);
    text
}

pub(super) fn write_plain_or_quoted(text: &mut String, string: &str) {
    if scalar::is_plain_safe(string) {
        text.push_str(string);
    } else if is_record(string) {
        text.push_str(&format!("'{}'", string.replace('\'', "''")));
    } else {
        text.push_str(&scalar::double_quoted(string));
    }
}

/// Whether a string is a record (`podgraft.dev/record`). It is JSON, which is readable only in single quotes.
fn is_record(string: &str) -> bool {
    string.starts_with("{\"version\":")
        && string.ends_with('}')
        && string.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

impl FlowStyle {
    /// The style of short lists and empty collections within block style.
    pub(crate) fn in_block() -> Self {
        FlowStyle {
            is_json: false,
            colon_space: true,
            comma_space: true,
            brace_space: false,
        }
    }

    fn key(&self, key: &str) -> String {
        if !self.is_json && scalar::is_flow_key_safe(key) {
            key.to_owned()
        } else {
            scalar::double_quoted(key)
        }
    }

    /// `key: text`.
    pub fn field(&self, key: &str, text: &str) -> String {
        format!("{}{}{text}", self.key(key), self.colon())
    }

    fn colon(&self) -> &'static str {
        if self.colon_space { ": " } else { ":" }
    }

    /// The separator of two items on one line.
    pub fn comma(&self) -> &'static str {
        if self.comma_space { ", " } else { "," }
    }
}

/// `key: value` in flow style on one line.
pub(crate) fn flow_field(key: &str, value: &Value, style: &FlowStyle) -> String {
    style.field(key, &flow_value(value, style))
}

/// A value in flow style on one line.
pub(crate) fn flow_value(value: &Value, style: &FlowStyle) -> String {
    let brace = if style.brace_space { " " } else { "" };
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => scalar::double_quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| flow_value(item, style)).collect();
            format!("[{}]", items.join(style.comma()))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(key, value)| flow_field(key, value, style))
                .collect();
            format!("{{{brace}{}{brace}}}", fields.join(style.comma()))
        }
    }
}

/// A value in flow style over several lines, like pretty-printed JSON. `indent` is the indentation of the line on which
/// the value begins, `unit` that of one more level.
pub(crate) fn flow_lines(
    value: &Value,
    indent: &str,
    unit: &str,
    line_end: &str,
    style: &FlowStyle,
) -> String {
    let inner = format!("{indent}{unit}");
    let lines: Vec<String> = match value {
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .map(|item| flow_lines(item, &inner, unit, line_end, style))
            .collect(),
        Value::Object(map) if !map.is_empty() => {
            let lines = |value| flow_lines(value, &inner, unit, line_end, style);
            map.iter()
                .map(|(key, value)| style.field(key, &lines(value)))
                .collect()
        }
        scalar => return flow_value(scalar, style),
    };
    let (open, close) = if value.is_array() {
        ('[', ']')
    } else {
        ('{', '}')
    };
    let separator = format!(",{line_end}{inner}");
    format!(
        "{open}{line_end}{inner}{}{line_end}{indent}{close}",
        lines.join(&separator)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_item_is_written_in_block_style_with_short_lists_on_one_line() {
        let item = json!({"name": "a", "command": ["cp", "/a"], "env": [{"name": "X", "value": "1"}], "e": {}});
        let text = block_item(&item, 2, 2, DOCUMENT_STYLE);
        assert_eq!(
            text,
            "- name: a\n    command: [\"cp\", \"/a\"]\n    env:\n    - name: X\n      value: \"1\"\n    e: {}"
        );
    }

    #[test]
    fn scripts_are_literal_blocks() {
        assert_eq!(
            block_value(&json!("a\n  b\n"), 2, DOCUMENT_STYLE),
            " |\n    a\n      b"
        );
        assert_eq!(
            block_value(&json!("a\nb"), 2, DOCUMENT_STYLE),
            " |-\n    a\n    b"
        );
        assert_eq!(
            block_value(&json!("a\n\n"), 0, DOCUMENT_STYLE),
            " |+\n  a\n"
        );
        assert_eq!(block_value(&json!(" a\n"), 0, DOCUMENT_STYLE), " \" a\\n\"");
    }

    #[test]
    fn json_over_several_lines() {
        let style = FlowStyle {
            is_json: true,
            colon_space: true,
            comma_space: true,
            brace_space: false,
        };
        let text = flow_lines(&json!({"a": [1], "b": {}}), "  ", "  ", "\n", &style);
        assert_eq!(text, "{\n    \"a\": [\n      1\n    ],\n    \"b\": {}\n  }");
    }
}
