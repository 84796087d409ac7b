//! YAML only, no Kubernetes word in here: text to documents, documents to trees of nodes with byte spans, and scalars
//! from text to value and back.

pub mod doubt;
mod fast;
mod granit;
pub mod parse;
pub mod resolve;
pub mod scalar;
pub mod splice;
pub mod stream;
pub mod tree;
pub mod value;
