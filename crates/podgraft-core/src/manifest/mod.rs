//! Reads Kubernetes objects from a tree: which nodes are objects, and which of them have a pod template, and where.

pub mod object;
pub mod pod;
pub mod prefilter;
mod root_lines;
pub(crate) mod view;
pub mod workload;
