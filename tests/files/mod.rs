//! Files under the real program: killed, raced, refused, out of space. Every file is the old one or the new one, and
//! nothing is left lying about.
//!
//! `KILLS=10000 cargo test --release --test integration files::` kills more often; `SEED=n` at other moments.

mod common;
mod folders;
mod full;
mod kills;
mod names;
mod refused;
mod signs;
mod streams;
