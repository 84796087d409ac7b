//! Policies that put the same there, and what is known of it after `podgraft.lock` was lost.

use std::fs;

use super::entangled::{give, one_by_one, read};
use super::{DEPLOYMENT, succeeded};
use crate::program::{Place, stderr_of};

/// A workload to which `a` and `b` were applied in one run.
fn both(a: &str, b: &str) -> Place {
    let place = one_by_one(DEPLOYMENT, &[]);
    give(&place, "a", a);
    give(&place, "b", b);
    apply_both(&place);
    place
}

fn apply_both(place: &Place) -> String {
    let args = ["apply", "-i", "-p", "a.yaml", "-p", "b.yaml", "apps"];
    stderr_of(&succeeded(place, &args))
}

/// The last of two policies that put the same there keeps it.
#[track_caller]
fn stays_until_the_last_goes(inject: &str) {
    let place = both(inject, inject);
    succeeded(&place, &["undo", "--only", "a", "-i", "apps"]);
    let fresh = one_by_one(DEPLOYMENT, &[("b", inject)]);
    assert_eq!(read(&place), read(&fresh), "{inject}");
    let said = stderr_of(&succeeded(&place, &["apply", "-i", "-p", "b.yaml", "apps"]));
    assert!(said.contains("1 unchanged"), "{said}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), DEPLOYMENT);
}

#[test]
fn labels_and_annotations_of_the_workload_belong_to_all_that_put_them_there() {
    stays_until_the_last_goes("{labels: {team: x}}");
    stays_until_the_last_goes("{annotations: {example.com/team: x}, podLabels: {tier: web}}");
}

#[test]
fn labels_of_the_workload_are_known_without_the_lock_file() {
    let labels = "{labels: {team: x}}";
    let place = one_by_one(DEPLOYMENT, &[("a", labels)]);
    fs::remove_file(place.path("podgraft.lock")).expect("it is there");
    succeeded(&place, &["apply", "-i", "-p", "a.yaml", "apps"]);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), DEPLOYMENT);

    let named = "  name: orders   # the orders of the shop\n";
    let labelled = DEPLOYMENT.replace(named, &format!("{named}  labels: {{team: x}}\n"));
    let place = one_by_one(&labelled, &[]);
    give(&place, "a", labels);
    let output = succeeded(&place, &["adopt", "-i", "-p", "a.yaml", "apps"]);
    assert!(stderr_of(&output).contains("1 adopted"));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/a.yaml"), DEPLOYMENT);
}

#[test]
fn a_text_belongs_to_all_that_join_it_where_there_was_none() {
    stays_until_the_last_goes("{podAnnotations: [{key: owners, value: x, op: Append}]}");
    stays_until_the_last_goes("{annotations: [{key: team, value: x, op: Append}]}");
}
