//! All integration tests in one program, so that a change of the library is linked once. The name of a module chooses its
//! tests: `cargo test corpus::`. The golden folders are a program of their own (`cargo test --test golden`).

mod against;
mod api;
mod architecture;
mod builtins;
mod cli;
mod codes;
mod commands;
mod companions;
mod config;
mod convert;
mod corpus;
mod debug;
mod docs;
mod everyday;
#[cfg(unix)]
mod files;
mod formats;
mod hosts;
mod large;
mod limits;
mod lint;
mod lock;
mod mistakes;
mod mutation;
mod opentelemetry;
mod patches;
mod policy_test;
mod program;
mod promises;
mod properties;
mod publish;
mod readers;
mod readme;
mod review;
mod strings;
mod terminal;
mod threads;
mod torture;
mod trust;
mod undo;
mod ways;
mod worlds;
mod yaml_files;
mod yaml_tree;
mod years;
