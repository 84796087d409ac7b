//! Caches written texts. A policy injects the same values into thousands of workloads, mostly at the same indentation,
//! so their text is made once.

use serde_json::Value;
use std::sync::Arc;

use super::emit::{BlockStyle, FieldContent, block_fields, block_items, needs_line_end};

/// The maximum number of cached texts. It is more than a run with many policies needs, and limits memory when each
/// workload gets values of its own.
const MOST: usize = 64;

/// Lines to insert into a text.
#[derive(Debug, Clone, Copy)]
pub(super) enum InsertedLines<'l> {
    /// `key: value` lines.
    Fields(&'l [(&'l str, NewValue)]),
    /// Items of a list; the number is the columns from a dash to its content.
    Items(&'l [Arc<Value>], usize),
}

/// A value that is not in the input.
#[derive(Debug, Clone)]
pub(super) enum NewValue {
    /// One value.
    Value(Arc<Value>),
    /// A list with mappings or lists in it.
    Items(Vec<Arc<Value>>),
}

/// The line ends and the indentation around inserted lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineFrame {
    /// Between whole lines: indentation, lines, line end.
    Whole,
    /// Behind a last line without a line end: line end, indentation, lines.
    Behind,
    /// Before content whose indentation is already written: lines, line end, indentation.
    Before,
}

/// Where and in which style lines are inserted.
#[derive(Debug, Clone, Copy)]
pub(super) struct InsertionSite {
    pub column: usize,
    pub style: BlockStyle,
    pub frame: LineFrame,
    pub line_end: &'static str,
}

/// A cache of the texts that one thread has written.
#[derive(Debug, Default)]
pub struct TextCache {
    known: Vec<CachedText>,
    /// The cache key of the current text. A field, so that its memory is reused.
    recipe: Vec<u8>,
}

#[derive(Debug)]
struct CachedText {
    recipe: Box<[u8]>,
    /// The values whose addresses are in the recipe. Held, so that no other value can get these addresses.
    _values: Vec<Arc<Value>>,
    text: Arc<str>,
}

impl TextCache {
    /// Returns the text of inserted lines, from the cache if possible.
    pub(super) fn text(&mut self, lines: InsertedLines<'_>, site: InsertionSite) -> Arc<str> {
        // A value that nobody else holds was made for this workload alone, and caching it would be of no use.
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
            self.known.push(CachedText {
                recipe: self.recipe.as_slice().into(),
                _values: values,
                text: Arc::clone(&text),
            });
        }
        text
    }
}

impl InsertedLines<'_> {
    fn values(&self) -> impl Iterator<Item = &Arc<Value>> {
        let (fields, items) = match self {
            InsertedLines::Fields(fields) => (*fields, &[][..]),
            InsertedLines::Items(items, _) => (&[][..], *items),
        };
        fields
            .iter()
            .flat_map(|(_, fresh)| fresh.values())
            .chain(items)
    }
}

impl<'l> InsertedLines<'l> {
    /// The last value.
    pub(super) fn last(self) -> Option<&'l Value> {
        let last = match self {
            InsertedLines::Fields(fields) => {
                fields.last().and_then(|(_, fresh)| fresh.values().last())
            }
            InsertedLines::Items(items, _) => items.last(),
        };
        last.map(Arc::as_ref)
    }
}

impl NewValue {
    fn values(&self) -> &[Arc<Value>] {
        match self {
            NewValue::Value(value) => std::slice::from_ref(value),
            NewValue::Items(items) => items,
        }
    }

    fn entry(&self) -> FieldContent<'_> {
        match self {
            NewValue::Value(value) => FieldContent::Value(value),
            NewValue::Items(items) => FieldContent::Items(items),
        }
    }
}

/// Appends all that the text depends on to a cache key. It is unambiguous: texts and lists are preceded by their
/// length, and values are represented by their addresses.
fn add_recipe(recipe: &mut Vec<u8>, lines: InsertedLines<'_>, site: InsertionSite) {
    let width = match lines {
        InsertedLines::Fields(_) => 0,
        InsertedLines::Items(_, width) => width,
    };
    let InsertionSite {
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
        InsertedLines::Fields(fields) => {
            for (key, fresh) in fields {
                add_number(recipe, key.len());
                recipe.extend_from_slice(key.as_bytes());
                add_values(recipe, fresh.values());
                recipe.push(u8::from(matches!(fresh, NewValue::Items(_))));
            }
        }
        InsertedLines::Items(items, _) => add_values(recipe, items),
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

fn write(lines: InsertedLines<'_>, site: InsertionSite) -> String {
    let InsertionSite {
        column,
        style,
        frame,
        line_end,
    } = site;
    let body = match lines {
        InsertedLines::Fields(fields) => block_fields(
            fields.iter().map(|(key, fresh)| (*key, fresh.entry())),
            column,
            style,
        ),
        InsertedLines::Items(items, width) => block_items(items, column, width, style),
    };
    let pad = " ".repeat(column);
    match frame {
        LineFrame::Whole => [&pad, &body, line_end].concat(),
        LineFrame::Behind => {
            let last = if lines.last().is_some_and(needs_line_end) {
                style.line_end
            } else {
                ""
            };
            [line_end, &pad, &body, last].concat()
        }
        LineFrame::Before => [&body, line_end, &pad].concat(),
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
    const SITE: InsertionSite = InsertionSite {
        column: 2,
        style: STYLE,
        frame: LineFrame::Whole,
        line_end: "\n",
    };

    fn shared(value: Value) -> [Arc<Value>; 2] {
        let value = Arc::new(value);
        [Arc::clone(&value), value]
    }

    #[test]
    fn a_text_is_made_once_for_each_place_that_looks_alike() {
        let mut written = TextCache::default();
        let [value, _policys] = shared(json!({"name": "a"}));
        let items = [value];
        let lines = InsertedLines::Items(&items, 2);
        let first = written.text(lines, SITE);
        assert_eq!(&*first, "  - name: a\n");
        assert!(Arc::ptr_eq(&first, &written.text(lines, SITE)));
        assert_eq!(
            &*written.text(lines, InsertionSite { column: 0, ..SITE }),
            "- name: a\n"
        );
        assert_eq!(
            &*written.text(
                lines,
                InsertionSite {
                    line_end: "\r\n",
                    ..SITE
                }
            ),
            "  - name: a\r\n"
        );
        assert_eq!(
            &*written.text(
                lines,
                InsertionSite {
                    frame: LineFrame::Behind,
                    ..SITE
                }
            ),
            "\n  - name: a"
        );
        assert_eq!(
            &*written.text(
                lines,
                InsertionSite {
                    frame: LineFrame::Before,
                    ..SITE
                }
            ),
            "- name: a\n  "
        );
        assert_eq!(
            &*written.text(InsertedLines::Items(&items, 4), SITE),
            "  -   name: a\n"
        );
    }

    #[test]
    fn keys_and_values_make_a_difference() {
        let mut written = TextCache::default();
        let ([first, _first], [second, _second]) = (shared(json!("1")), shared(json!("2")));
        let mut text = |key, value: &Arc<Value>| {
            written
                .text(
                    InsertedLines::Fields(&[(key, NewValue::Value(Arc::clone(value)))]),
                    SITE,
                )
                .to_string()
        };
        assert_eq!(text("a", &first), "  a: \"1\"\n");
        assert_eq!(text("a", &second), "  a: \"2\"\n");
        assert_eq!(text("b", &first), "  b: \"1\"\n");
        assert_eq!(text("a", &first), "  a: \"1\"\n");
    }

    #[test]
    fn what_one_workload_alone_gets_is_not_kept() {
        let mut written = TextCache::default();
        written.text(InsertedLines::Items(&[Arc::new(json!("own"))], 2), SITE);
        assert!(written.known.is_empty());
    }
}
