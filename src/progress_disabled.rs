//! The interface of `progress` for targets without threads, which could not draw a bar.

use crate::args;

/// Does nothing.
pub fn start(_bytes: u64, _output: &args::OutputArgs) {}

/// Does nothing.
pub fn add(_bytes: usize) {}

/// Does nothing.
pub fn end() {}
