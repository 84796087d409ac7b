//! podgraft injects agents, sidecars and settings into Kubernetes manifests before they reach a cluster.
//!
//! Data flows through the modules in this order: a [`source`] is parsed ([`yaml`]), viewed as Kubernetes objects
//! ([`manifest`]), selected by policies ([`policy`], [`select`]), planned ([`plan`]) with what other objects of the run
//! say ([`inventory`]), edited ([`edit`]) and checked ([`verify`]). [`graft`] is the pipeline, with one call for each
//! stage. Its findings are data ([`outcome`]), which is rendered last ([`report`]).
//!
//! The library is text in, text out. Files, environment, terminal and exit codes belong to the program
//! (the crate `podgraft`).

#![warn(unreachable_pub)]

pub mod change;
pub mod config;
pub mod convert;
pub mod dangers;
pub mod debug;
pub mod diagnostic;
pub mod edit;
pub mod excerpt;
pub mod glob;
pub mod graft;
pub mod inventory;
pub mod krm;
pub mod lint;
pub mod manifest;
pub mod mask;
pub mod options;
pub mod outcome;
pub mod ownership;
pub mod patches;
pub mod plan;
pub mod policy;
pub mod policytest;
pub mod publish;
pub mod record;
pub mod report;
pub mod select;
pub mod source;
pub mod suggest;
pub mod threads;
mod undo;
pub mod verify;
pub mod wording;

pub use podgraft_yaml as yaml;
