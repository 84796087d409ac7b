//! podgraft puts agents, sidecars and settings into Kubernetes manifests before any cluster sees them.
//!
//! The modules stand in the order in which data flows: a [`source`] is cut and parsed ([`yaml`]), seen as Kubernetes
//! objects ([`manifest`]), picked by policies ([`policy`], [`select`]), planned ([`plan`]) with what all sources say
//! together ([`inventory`]), edited ([`edit`]) and checked ([`verify`]). [`graft`] is the pipeline, one line a stage: what
//! it finds is data ([`outcome`]), which is shown last ([`report`]).
//!
//! The library is text in, text out: files, environment, terminal and exit codes are the program's (`src/bin/podgraft`).

#![warn(unreachable_pub)]

pub mod change;
pub mod config;
pub mod convert;
pub mod dangers;
pub mod debug;
pub mod diagnostic;
pub mod edit;
pub mod glob;
pub mod graft;
pub mod inventory;
pub mod krm;
pub mod lint;
pub mod manifest;
mod mask;
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
mod undo;
pub mod verify;
pub mod wording;

pub use podgraft_yaml as yaml;
