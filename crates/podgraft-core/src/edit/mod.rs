//! Turns a draft into replacements of byte ranges. Only this module makes text of manifests, and it decides nothing.

mod block;
pub(crate) mod companion;
pub mod emit;
mod flow;
mod layout;
mod lower;
mod remove;
pub(crate) mod scalar;
mod text_cache;

pub use lower::{EditResult, LoweringError, lower};
pub use text_cache::TextCache;

/// A value as a YAML document in block style, with a line end.
pub fn yaml_document(value: &serde_json::Value) -> String {
    if value.is_object() {
        return emit::document(value);
    }
    emit::block_value(value, 0, emit::DOCUMENT_STYLE)
        .trim_start()
        .to_owned()
        + "\n"
}
