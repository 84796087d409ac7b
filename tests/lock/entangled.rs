//! Policies that change one value, one after the other: what one of them does is kept while the other changes or goes.

use super::{DEPLOYMENT, empty_repository, succeeded};
use crate::program::{Place, stderr_of};

/// A policy with this `inject`, in a file of its name.
pub(super) fn give(place: &Place, name: &str, inject: &str) {
    let policy = format!(
        "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {{name: {name}}}
spec:
  inject: {inject}
"
    );
    place.write(format!("{name}.yaml"), policy);
}

/// The manifest after the policies of these names were applied to it, each in a run of its own.
pub(super) fn one_by_one(manifest: &str, policies: &[(&str, &str)]) -> Place {
    let place = empty_repository();
    place.write("apps/a.yaml", manifest);
    for (name, inject) in policies {
        give(&place, name, inject);
        succeeded(
            &place,
            &["apply", "-i", "-p", &format!("{name}.yaml"), "apps"],
        );
    }
    place
}

/// The manifest, whose mark keeps its quotes where only one name is left.
pub(super) fn read(place: &Place) -> String {
    place
        .read("apps/a.yaml")
        .replace("applied: \"b\"", "applied: b")
}

/// `a`, a new version of it, and `b`, which is kept.
struct Pair {
    manifest: String,
    a: &'static str,
    a2: &'static str,
    b: &'static str,
}

fn pairs() -> [Pair; 2] {
    let annotated = "labels: {app: orders}\n      annotations: {owners: shop}";
    let appending = |manifest: String| Pair {
        manifest,
        a: "{podAnnotations: [{key: owners, value: team-a, op: Append}]}",
        a2: "{podAnnotations: [{key: owners, value: new-a, op: Append}]}",
        b: "{podAnnotations: [{key: owners, value: team-b, op: Append}]}",
    };
    [
        appending(DEPLOYMENT.replace("labels: {app: orders}", annotated)),
        appending(DEPLOYMENT.to_owned()),
    ]
}

#[test]
fn a_new_version_is_below_what_a_kept_policy_made_of_the_old_one() {
    for Pair { manifest, a, a2, b } in pairs() {
        let place = one_by_one(&manifest, &[("a", a), ("b", b), ("a", a2)]);
        let fresh = one_by_one(&manifest, &[("a", a2), ("b", b)]);
        assert_eq!(read(&place), read(&fresh), "{a}");
        for policies in [["-p", "a.yaml"], ["-p", "b.yaml"]] {
            let args = [&["apply", "-i", "apps"][..], &policies].concat();
            let said = stderr_of(&succeeded(&place, &args));
            assert!(said.contains("1 unchanged"), "{said}");
        }
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read("apps/a.yaml"), manifest);
    }
}

#[test]
fn what_is_taken_out_goes_from_what_a_kept_policy_made_of_it() {
    for Pair { manifest, a, b, .. } in pairs() {
        let place = one_by_one(&manifest, &[("a", a), ("b", b)]);
        let said = succeeded(&place, &["undo", "--only", "a", "-i", "apps"]);
        assert!(!stderr_of(&said).contains("nothing was left"));
        let fresh = one_by_one(&manifest, &[("b", b)]);
        assert_eq!(read(&place), read(&fresh), "{a}");
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read("apps/a.yaml"), manifest);
    }
}

#[test]
fn what_is_not_clear_is_refused() {
    let image = |from: &str, to: &str| {
        format!(
            "{{patches: [{{patchType: JSONPatch, scope: Container, patch: [{{op: test, path: /image, value: {from:?}}}, \
             {{op: replace, path: /image, value: {to:?}}}]}}]}}"
        )
    };
    let original = "registry.example.com/orders:1";
    let (a, b) = (image(original, "x:1"), image("x:1", "x:1.2"));
    let place = one_by_one(DEPLOYMENT, &[("a", &a), ("b", &b)]);
    give(&place, "a", &image(original, "x:2"));
    let before = place.read("apps/a.yaml");
    let runs: [(&[&str], &str); 2] = [
        (
            &["apply", "-i", "-p", "a.yaml", "apps"],
            "pass `b` as well, or remove it",
        ),
        (&["undo", "--only", "a", "-i", "apps"], "remove it as well"),
    ];
    for (args, help) in runs {
        let output = place.run(args);
        let said = stderr_of(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is unclear") && said.contains(help), "{said}");
        assert_eq!(place.read("apps/a.yaml"), before);
    }
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), DEPLOYMENT);
}
