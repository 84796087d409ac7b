//! `podgraft policy schema` and `podgraft policy crd`.

use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::edit::emit::document;
use podgraft::policy::schema::{did_you_mean, nearest};
use podgraft::publish::crd::{Scope, definition};
use podgraft::publish::schema::{KINDS, find};

use crate::args::tools::CrdScope;
use crate::pages::give;
use crate::run::Exit;

/// `podgraft policy schema [KIND]`.
pub fn schema(kind: &str) -> Exit {
    let printed = |schema| format!("{schema:#}\n").into_bytes();
    give(
        find(kind)
            .map(|published| printed(published.schema()))
            .ok_or_else(|| unknown(kind)),
    )
}

fn unknown(kind: &str) -> Diagnostic {
    let kinds = || KINDS.iter().map(|published| published.kind);
    let help = match nearest(kind, kinds()) {
        Some(near) => did_you_mean(near),
        None => format!("the kinds are {}", kinds().collect::<Vec<_>>().join(", ")),
    };
    Diagnostic::error(
        Code::UnknownKind,
        format!("there is no schema of a kind `{kind}`"),
    )
    .help(help)
}

/// `podgraft policy crd`.
pub fn crd(scope: CrdScope) -> Exit {
    let scope = match scope {
        CrdScope::Namespaced => Scope::Namespaced,
        CrdScope::Cluster => Scope::Cluster,
    };
    give(Ok(document(&definition(scope)).into_bytes()))
}
