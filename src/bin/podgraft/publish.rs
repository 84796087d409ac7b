//! `podgraft policy schema` and `podgraft policy crd`: print a JSON schema, and the CustomResourceDefinition of
//! policies.

use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::edit::emit::document;
use podgraft::policy::builtin::kinds_of_resources;
use podgraft::policy::schema::{did_you_mean, nearest};
use podgraft::publish::crd::{Scope, definition};
use podgraft::publish::schema::{KINDS, find, of_resources};

use crate::args::tools::CrdScopeArg;
use crate::pages::print_page;
use crate::run::Exit;

/// `podgraft policy schema [KIND]`.
pub fn schema(kind: &str) -> Exit {
    let printed = |schema| format!("{schema:#}\n").into_bytes();
    let schema = find(kind).map(|published| published.schema());
    let schema = schema.or_else(|| of_resources(kind));
    print_page(schema.map(printed).ok_or_else(|| unknown(kind)))
}

fn unknown(kind: &str) -> Diagnostic {
    let mut kinds: Vec<&str> = KINDS.iter().map(|published| published.kind).collect();
    kinds.extend(kinds_of_resources().map(|(_, kind)| kind));
    let help = match nearest(kind, kinds.iter().copied()) {
        Some(near) => did_you_mean(near),
        None => format!("the kinds are {}", kinds.join(", ")),
    };
    Diagnostic::error(
        Code::UnknownKind,
        format!("there is no schema of a kind `{kind}`"),
    )
    .help(help)
}

/// `podgraft policy crd`.
pub fn crd(scope: CrdScopeArg) -> Exit {
    let scope = match scope {
        CrdScopeArg::Namespaced => Scope::Namespaced,
        CrdScopeArg::Cluster => Scope::Cluster,
    };
    print_page(Ok(document(&definition(scope)).into_bytes()))
}
