//! The draft and the text in, replacements of bytes out: the only place that makes manifest text. It decides nothing.

pub mod companion;
pub mod emit;
mod flow;
mod layout;
mod lower;
mod remove;
mod scalar;
mod written;

pub use lower::{CannotWrite, lower};
pub use written::Written;
