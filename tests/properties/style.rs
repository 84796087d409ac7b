//! Values as YAML, in the many ways in which people and programs write it.

use serde_json::{Map, Value};

/// Takes its decisions from bytes, over and over; fewer and smaller bytes give plainer texts.
pub struct Style<'s> {
    choices: &'s [u8],
    at: usize,
    dash_indent: usize,
    step: usize,
    /// The block scalar that was written last, whose content must not go on.
    block: Option<Chomping>,
}

#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl<'s> Style<'s> {
    pub fn new(choices: &'s [u8]) -> Self {
        let mut style = Style {
            choices,
            at: 0,
            dash_indent: 0,
            step: 2,
            block: None,
        };
        style.dash_indent = [0, 2, 0, 4][style.below(4)];
        style.step = [2, 4, 2, 3][style.below(4)];
        style
    }

    fn below(&mut self, end: usize) -> usize {
        // Bytes that are used again must not give the same decisions again.
        let (byte, round) = (
            self.choices[self.at % self.choices.len()],
            self.at / self.choices.len(),
        );
        self.at += 1;
        (usize::from(byte) + round * 7) % end
    }

    /// One time in so many.
    fn rarely(&mut self, in_many: usize) -> bool {
        self.below(in_many) == in_many - 1
    }

    /// Documents, kept apart.
    pub fn stream(&mut self, values: &[Value]) -> String {
        let mut text = String::new();
        for (number, value) in values.iter().enumerate() {
            if number > 0 || self.rarely(2) {
                text += [
                    "---\n",
                    "--- \n",
                    "---\n\n",
                    "--- # next\n",
                    "---\n# Source: a/b.yaml\n",
                ][self.below(5)];
            }
            text += &self.document(value);
        }
        if self.block.is_none() && self.rarely(4) {
            text.pop();
        }
        text
    }

    /// One document.
    pub fn document(&mut self, value: &Value) -> String {
        let mut text = String::new();
        match value {
            Value::Object(fields) if !fields.is_empty() => self.mapping(fields, 0, &mut text),
            other => text += &(self.flow(other) + "\n"),
        }
        text
    }

    fn mapping(&mut self, fields: &Map<String, Value>, indent: usize, text: &mut String) {
        for (number, (key, value)) in fields.iter().enumerate() {
            // The first key may stand behind a dash.
            if number > 0 {
                self.before_line(indent, text);
                *text += &" ".repeat(indent);
            }
            *text += &self.scalar_text(key);
            *text += ":";
            self.value(value, indent, text);
        }
    }

    fn before_line(&mut self, indent: usize, text: &mut String) {
        let pad = " ".repeat(indent);
        match self.below(28) {
            20 if self.block != Some(Chomping::Keep) => *text += "\n",
            21 => *text += &format!("{pad}# why\n"),
            22 => *text += "# at the edge\n",
            23 if self.block.is_none() => *text += &format!("{pad}      \n"),
            24 if self.block.is_none() => *text += &format!("{pad}    # deeper\n"),
            25 if self.block != Some(Chomping::Keep) => *text += "\n \n",
            _ => {}
        }
    }

    /// What stands behind `key:`, with the line's end.
    fn value(&mut self, value: &Value, indent: usize, text: &mut String) {
        match value {
            Value::Object(fields) if !fields.is_empty() && !self.rarely(10) => {
                self.end_line(text);
                let inner = indent + self.step;
                *text += &" ".repeat(inner);
                self.mapping(fields, inner, text);
            }
            Value::Array(items) if !items.is_empty() && !self.rarely(10) => {
                self.end_line(text);
                self.sequence(items, indent + self.dash_indent, text);
            }
            Value::String(lines) if is_literal(lines) && self.rarely(2) => {
                self.literal(lines, indent, text);
            }
            other => {
                *text += " ";
                *text += &self.flow(other);
                self.end_line(text);
            }
        }
    }

    fn literal(&mut self, lines: &str, indent: usize, text: &mut String) {
        let (header, chomping) = match lines.len() - lines.trim_end_matches('\n').len() {
            0 => (" |-\n", Chomping::Strip),
            1 => (" |\n", Chomping::Clip),
            _ => (" |+\n", Chomping::Keep),
        };
        *text += header;
        let inner = " ".repeat(indent + self.step);
        for line in lines.lines() {
            let pad = if line.is_empty() { "" } else { &inner };
            *text += &format!("{pad}{line}\n");
        }
        self.block = Some(chomping);
    }

    fn sequence(&mut self, items: &[Value], indent: usize, text: &mut String) {
        for item in items {
            self.before_line(indent, text);
            let gap = [1, 1, 1, 3][self.below(4)];
            *text += &format!("{}-{}", " ".repeat(indent), " ".repeat(gap));
            match item {
                Value::Object(fields) if !fields.is_empty() && !self.rarely(8) => {
                    self.mapping(fields, indent + 1 + gap, text);
                }
                Value::String(lines) if is_literal(lines) && self.rarely(2) => {
                    text.truncate(text.len() - gap);
                    self.literal(lines, indent, text);
                }
                other => {
                    *text += &self.flow(other);
                    self.end_line(text);
                }
            }
        }
    }

    fn end_line(&mut self, text: &mut String) {
        self.block = None;
        *text += ["\n", "\n", "\n", "\n", "\n", " # said here\n", "  \n"][self.below(7)];
    }

    /// In one line.
    fn flow(&mut self, value: &Value) -> String {
        let space = ["", " "][self.below(2)];
        match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| self.flow(item)).collect();
                format!("[{space}{}{space}]", items.join(", "))
            }
            Value::Object(fields) => {
                let pair = |(key, value): (&String, &Value)| {
                    format!("{}: {}", self.scalar_text(key), self.flow(value))
                };
                let pairs: Vec<String> = fields.iter().map(pair).collect();
                format!("{{{space}{}{space}}}", pairs.join(", "))
            }
            Value::String(text) => self.scalar_text(text),
            other => other.to_string(),
        }
    }

    fn scalar_text(&mut self, text: &str) -> String {
        let single = || format!("'{}'", text.replace('\'', "''"));
        let double = || serde_json::to_string(text).expect("a text is JSON");
        let is_one_line = !text.chars().any(char::is_control);
        match self.below(4) {
            0 | 1 if is_plain(text) => text.to_owned(),
            2 if is_one_line => single(),
            _ => double(),
        }
    }
}

/// Text to every reader without quotes.
fn is_plain(text: &str) -> bool {
    let is_word = |char: char| char.is_ascii_alphanumeric() || "-./_".contains(char);
    let is_typed = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"]
        .contains(&text.to_lowercase().as_str());
    text.starts_with(|char: char| char.is_ascii_alphabetic())
        && text.chars().all(is_word)
        && !is_typed
}

fn is_literal(text: &str) -> bool {
    let is_simple =
        |line: &str| !line.starts_with([' ', '\t']) && !line.chars().any(char::is_control);
    text.contains('\n') && !text.starts_with('\n') && text.lines().all(is_simple)
}
