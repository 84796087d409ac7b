#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]

pub mod ambiguity;
mod fast;
mod granit;
pub mod parse;
mod path;
pub mod resolve;
pub mod scalar;
pub mod splice;
pub mod stream;
pub mod tree;
pub mod value;
pub mod view;
