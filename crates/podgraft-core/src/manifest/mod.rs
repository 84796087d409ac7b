//! Reads Kubernetes objects from a tree: which nodes are objects, and which of them have a pod template, and where.

pub mod object;
pub mod pod;
pub mod prefilter;
pub(crate) mod references;
mod root_lines;
pub(crate) mod view;
pub mod workload;
