//! The pages of this folder that podgraft has built in: `podgraft explain --code NAME` and `podgraft policy functions` print
//! them.

/// The page on expressions, with the table of their functions.
pub const EXPRESSIONS: &str = include_str!("expressions.md");

/// The page of a diagnostic code, `errors/NAME.md`.
pub fn error(name: &str) -> Option<&'static str> {
    let page = ERRORS.iter().find(|(known, _)| *known == name);
    page.map(|(_, page)| *page)
}

macro_rules! errors {
    ($($name:literal,)+) => {
        /// The pages of diagnostic codes, by name.
        const ERRORS: &[(&str, &str)] = &[$(($name, include_str!(concat!("errors/", $name, ".md"))),)+];
    };
}

errors! {
    "applied-before",
    "bad-expression",
    "bad-param",
    "bad-patch",
    "bad-policy",
    "bad-record",
    "bad-resource-list",
    "broad-name",
    "cannot-compose",
    "cannot-edit",
    "changed-since",
    "clear-secret",
    "conflict",
    "digest-mismatch",
    "duplicate-key",
    "duplicate-policy",
    "fetched-at-start",
    "file",
    "forbidden",
    "hidden-env",
    "inexact-undo",
    "internal",
    "invalid",
    "invalid-before",
    "kept",
    "latest-image",
    "left-alone",
    "missing-object",
    "near-miss",
    "never-matches",
    "no-digest",
    "no-manifests",
    "no-match",
    "no-record",
    "not-covered",
    "not-idempotent",
    "not-instrumented",
    "not-rendered",
    "not-supported",
    "not-utf8",
    "not-yaml",
    "nothing-to-do",
    "nothing-to-write",
    "odd-result",
    "operator-release",
    "opted-in",
    "orphaned",
    "out-of-date",
    "part-ignored",
    "patch-not-applied",
    "patch-without-test",
    "pods-restart",
    "privilege",
    "service-name",
    "shared-node",
    "switched-off",
    "too-deep",
    "too-late",
    "too-long",
    "unclear-object",
    "unclear-target",
    "unknown-alias",
    "unknown-code",
    "unknown-container",
    "unknown-field",
    "unknown-kind",
    "unknown-namespace",
    "unknown-param",
    "unknown-policy",
    "unknown-position",
    "unresolved-resource",
    "untyped-items",
    "unused",
    "wrong-name",
    "wrong-type",
}
