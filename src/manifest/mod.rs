//! Kubernetes over the tree, read only: which nodes are objects, which of these hold a pod template, and where.

pub mod object;
pub mod pod;
pub mod prefilter;
mod root_lines;
pub(crate) mod view;
pub mod workload;
