//! Texts that were written before. A policy puts the same values into thousands of workloads, mostly at the same
//! indentation: their text is made once.

use serde_json::Value;
use std::sync::Arc;

use super::emit::{BlockStyle, Entry, block_fields, block_items, needs_line_end};

/// More different texts than a run with many policies needs; a run in which every workload gets values of its own must
/// not keep them all.
const MOST: usize = 64;

/// Lines to put into a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lines<'l> {
    /// `key: value` lines.
    Fields(&'l [(&'l str, Fresh)]),
    /// Items of a list; the number is the columns from a dash to its content.
    Items(&'l [Arc<Value>], usize),
}

/// A value that the input does not have.
#[derive(Debug, Clone)]
pub(super) enum Fresh {
    /// One value.
    Value(Arc<Value>),
    /// A list with mappings or lists in it.
    Items(Vec<Arc<Value>>),
}

/// What stands around new lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Frame {
    /// Whole lines: indentation, lines, line end.
    Whole,
    /// Behind a last line that has no end: line end, indentation, lines.
    Behind,
    /// In front of what shares their line: lines, line end, indentation.
    Before,
}

/// Where lines go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub column: usize,
    pub style: BlockStyle,
    pub frame: Frame,
    pub line_end: &'static str,
}

/// The texts that one thread has written so far.
#[derive(Debug, Default)]
pub struct Written {
    known: Vec<Known>,
    /// What makes the text that is looked for.
    recipe: Vec<u8>,
}

#[derive(Debug)]
struct Known {
    recipe: Box<[u8]>,
    /// The values whose addresses stand in the recipe: as long as they are here, nothing else has these.
    _values: Vec<Arc<Value>>,
    text: Arc<str>,
}

impl Written {
    /// The text of new lines.
    pub(super) fn text(&mut self, lines: Lines<'_>, site: Site) -> Arc<str> {
        // A value that only this draft has will not come again.
        if !lines.values().all(|value| Arc::strong_count(value) > 1) {
            return write(lines, site).into();
        }
        self.recipe.clear();
        add_recipe(&mut self.recipe, lines, site);
        if let Some(known) = self
            .known
            .iter()
            .find(|known| *known.recipe == *self.recipe)
        {
            return Arc::clone(&known.text);
        }
        let text: Arc<str> = write(lines, site).into();
        if self.known.len() < MOST {
            let values = lines.values().cloned().collect();
            self.known.push(Known {
                recipe: self.recipe.as_slice().into(),
                _values: values,
                text: Arc::clone(&text),
            });
        }
        text
    }
}

impl Lines<'_> {
    fn values(&self) -> impl Iterator<Item = &Arc<Value>> {
        let (fields, items) = match self {
            Lines::Fields(fields) => (*fields, &[][..]),
            Lines::Items(items, _) => (&[][..], *items),
        };
        fields
            .iter()
            .flat_map(|(_, fresh)| fresh.values())
            .chain(items)
    }
}

impl<'l> Lines<'l> {
    /// The value that stands last.
    pub(super) fn last(self) -> Option<&'l Value> {
        let last = match self {
            Lines::Fields(fields) => fields.last().and_then(|(_, fresh)| fresh.values().last()),
            Lines::Items(items, _) => items.last(),
        };
        last.map(Arc::as_ref)
    }
}

impl Fresh {
    fn values(&self) -> &[Arc<Value>] {
        match self {
            Fresh::Value(value) => std::slice::from_ref(value),
            Fresh::Items(items) => items,
        }
    }

    fn entry(&self) -> Entry<'_> {
        match self {
            Fresh::Value(value) => Entry::Value(value),
            Fresh::Items(items) => Entry::Items(items),
        }
    }
}

/// Everything that the text depends on, unambiguously: texts and lists with their lengths, values by their addresses.
fn add_recipe(recipe: &mut Vec<u8>, lines: Lines<'_>, site: Site) {
    let width = match lines {
        Lines::Fields(_) => 0,
        Lines::Items(_, width) => width,
    };
    let Site {
        column,
        style,
        frame,
        line_end,
    } = site;
    let numbers = [
        width,
        column,
        style.step,
        style.list_offset,
        style.line_end.len(),
        frame as usize,
        line_end.len(),
    ];
    numbers
        .into_iter()
        .for_each(|number| add_number(recipe, number));
    match lines {
        Lines::Fields(fields) => {
            for (key, fresh) in fields {
                add_number(recipe, key.len());
                recipe.extend_from_slice(key.as_bytes());
                add_values(recipe, fresh.values());
                recipe.push(u8::from(matches!(fresh, Fresh::Items(_))));
            }
        }
        Lines::Items(items, _) => add_values(recipe, items),
    }
}

fn add_values(recipe: &mut Vec<u8>, values: &[Arc<Value>]) {
    add_number(recipe, values.len());
    values
        .iter()
        .for_each(|value| add_number(recipe, Arc::as_ptr(value).addr()));
}

fn add_number(recipe: &mut Vec<u8>, number: usize) {
    recipe.extend_from_slice(&number.to_ne_bytes());
}

fn write(lines: Lines<'_>, site: Site) -> String {
    let Site {
        column,
        style,
        frame,
        line_end,
    } = site;
    let body = match lines {
        Lines::Fields(fields) => block_fields(
            fields.iter().map(|(key, fresh)| (*key, fresh.entry())),
            column,
            style,
        ),
        Lines::Items(items, width) => block_items(items, column, width, style),
    };
    let pad = " ".repeat(column);
    match frame {
        Frame::Whole => [&pad, &body, line_end].concat(),
        Frame::Behind => {
            let last = if lines.last().is_some_and(needs_line_end) {
                style.line_end
            } else {
                ""
            };
            [line_end, &pad, &body, last].concat()
        }
        Frame::Before => [&body, line_end, &pad].concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const STYLE: BlockStyle = BlockStyle {
        step: 2,
        list_offset: 0,
        line_end: "\n",
    };
    const SITE: Site = Site {
        column: 2,
        style: STYLE,
        frame: Frame::Whole,
        line_end: "\n",
    };

    fn shared(value: Value) -> [Arc<Value>; 2] {
        let value = Arc::new(value);
        [Arc::clone(&value), value]
    }

    #[test]
    fn a_text_is_made_once_for_each_place_that_looks_alike() {
        let mut written = Written::default();
        let [value, _policys] = shared(json!({"name": "a"}));
        let items = [value];
        let lines = Lines::Items(&items, 2);
        let first = written.text(lines, SITE);
        assert_eq!(&*first, "  - name: a\n");
        assert!(Arc::ptr_eq(&first, &written.text(lines, SITE)));
        assert_eq!(
            &*written.text(lines, Site { column: 0, ..SITE }),
            "- name: a\n"
        );
        assert_eq!(
            &*written.text(
                lines,
                Site {
                    line_end: "\r\n",
                    ..SITE
                }
            ),
            "  - name: a\r\n"
        );
        assert_eq!(
            &*written.text(
                lines,
                Site {
                    frame: Frame::Behind,
                    ..SITE
                }
            ),
            "\n  - name: a"
        );
        assert_eq!(
            &*written.text(
                lines,
                Site {
                    frame: Frame::Before,
                    ..SITE
                }
            ),
            "- name: a\n  "
        );
        assert_eq!(
            &*written.text(Lines::Items(&items, 4), SITE),
            "  -   name: a\n"
        );
    }

    #[test]
    fn keys_and_values_make_a_difference() {
        let mut written = Written::default();
        let ([one, _one], [two, _two]) = (shared(json!("1")), shared(json!("2")));
        let mut text = |key, value: &Arc<Value>| {
            written
                .text(
                    Lines::Fields(&[(key, Fresh::Value(Arc::clone(value)))]),
                    SITE,
                )
                .to_string()
        };
        assert_eq!(text("a", &one), "  a: \"1\"\n");
        assert_eq!(text("a", &two), "  a: \"2\"\n");
        assert_eq!(text("b", &one), "  b: \"1\"\n");
        assert_eq!(text("a", &one), "  a: \"1\"\n");
    }

    #[test]
    fn what_one_workload_alone_gets_is_not_kept() {
        let mut written = Written::default();
        written.text(Lines::Items(&[Arc::new(json!("own"))], 2), SITE);
        assert!(written.known.is_empty());
    }
}
