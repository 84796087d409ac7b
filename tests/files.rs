//! Files under the real program: killed, raced, refused, out of space. Every file is the old one or the new one, and
//! nothing is left lying about.
//!
//! `KILLS=10000 cargo test --release --test files` kills more often; `SEED=n` at other moments.
#![cfg(unix)]

#[path = "files/common.rs"]
mod common;
#[path = "files/full.rs"]
mod full;
#[path = "files/kills.rs"]
mod kills;
#[path = "files/names.rs"]
mod names;
#[path = "files/refused.rs"]
mod refused;
#[path = "files/signs.rs"]
mod signs;
#[path = "files/streams.rs"]
mod streams;
