//! Caches the texts of new values. A policy injects the same values into thousands of workloads, mostly at the same
//! indentation, so their text is made once.

use foldhash::HashMap;
use serde_json::Value;
use std::sync::Arc;

use super::emit::{BlockStyle, block_item, block_value};

/// The maximum number of cached texts. It is more than a run with many policies needs, and limits memory when each
/// workload gets values of its own.
const MOST: usize = 256;

/// Where a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ValuePosition {
    /// Behind a key in this column.
    Field(usize),
    /// Behind the dash of a list item.
    Item {
        /// The column of the dash.
        column: usize,
        /// The columns from the dash to the content.
        width: usize,
    },
}

/// A cache of the texts that one thread has written.
#[derive(Debug, Default)]
pub struct TextCache {
    /// By the address of the value. The value is held, so that no other one can get this address.
    known: HashMap<(usize, ValuePosition, BlockStyle), (Arc<Value>, String)>,
}

impl TextCache {
    /// Appends a value to a text: with its key's colon before it, or from its dash on.
    pub(super) fn write(
        &mut self,
        text: &mut String,
        value: &Arc<Value>,
        position: ValuePosition,
        style: BlockStyle,
    ) {
        let key = (Arc::as_ptr(value).addr(), position, style);
        if let Some((_, known)) = self.known.get(&key) {
            return text.push_str(known);
        }
        let written = match position {
            ValuePosition::Field(column) => block_value(value, column, style),
            ValuePosition::Item { column, width } => block_item(value, column, width, style),
        };
        text.push_str(&written);
        // A value that nobody else holds was made for this workload alone, and caching it would be of no use.
        if Arc::strong_count(value) > 1 && self.known.len() < MOST {
            self.known.insert(key, (Arc::clone(value), written));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::emit::DOCUMENT_STYLE;
    use serde_json::json;

    #[test]
    fn a_text_depends_on_the_value_and_on_all_that_is_around_it() {
        let (mut texts, value) = (TextCache::default(), Arc::new(json!([{"a": "1"}])));
        let _policys = Arc::clone(&value);
        let wide = BlockStyle {
            list_offset: 2,
            ..DOCUMENT_STYLE
        };
        let item = |column, width| ValuePosition::Item { column, width };
        // Twice, so that each text is also taken from the cache.
        for _ in 0..2 {
            let mut text = |position, style| {
                let mut text = String::new();
                texts.write(&mut text, &value, position, style);
                text
            };
            let field = ValuePosition::Field;
            assert_eq!(text(field(0), DOCUMENT_STYLE), "\n- a: \"1\"");
            assert_eq!(text(field(2), DOCUMENT_STYLE), "\n  - a: \"1\"");
            assert_eq!(text(field(0), wide), "\n  - a: \"1\"");
            assert_eq!(text(item(0, 2), DOCUMENT_STYLE), "- - a: \"1\"");
            assert_eq!(text(item(0, 4), DOCUMENT_STYLE), "-   - a: \"1\"");
        }
        assert_eq!(texts.known.len(), 5);
    }

    #[test]
    fn what_one_workload_alone_gets_is_not_kept() {
        let mut texts = TextCache::default();
        let (value, position) = (Arc::new(json!("own")), ValuePosition::Field(0));
        texts.write(&mut String::new(), &value, position, DOCUMENT_STYLE);
        assert!(texts.known.is_empty());
    }
}
