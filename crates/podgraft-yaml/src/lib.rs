#![doc = include_str!("../README.md")]

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
