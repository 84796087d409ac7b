//! Workloads whose marker lacks a policy: of two branches that each add one, the merge kept one side of that line.

use std::fs;

use super::{
    DEPLOYMENT, apply, commit_applied, empty_repository, git, policy, repository, succeeded,
};
use crate::program::Place;

const FILE: &str = "apps/orders.yaml";

/// A workload with two policies, of which the marker names the one that is kept.
fn merged(kept: &str) -> (Place, String) {
    let place = empty_repository();
    place.write(FILE, DEPLOYMENT);
    place.write("policies/agent.yaml", policy("agent", 1));
    place.write("policies/tracer.yaml", policy("tracer", 1));
    apply(&place);
    let injected = place.read(FILE);
    let mark = "podgraft.dev/applied: \"agent,tracer\"\n";
    assert!(injected.contains(mark), "{injected}");
    place.write(
        FILE,
        injected.replace(mark, &format!("podgraft.dev/applied: \"{kept}\"\n")),
    );
    (place, injected)
}

#[test]
fn the_policy_is_named_again() {
    for kept in ["agent", "tracer"] {
        let (place, injected) = merged(kept);
        let lock = place.read("podgraft.lock");
        let check = place.run(&["check", "-p", "policies", "apps"]);
        assert_eq!(check.status.code(), Some(1), "the marker is not right");
        apply(&place);
        assert_eq!(place.read(FILE), injected);
        assert_eq!(place.read("podgraft.lock"), lock);
    }
}

#[test]
fn a_new_version_takes_the_place_of_the_old_one() {
    for (kept, lost) in [("agent", "tracer"), ("tracer", "agent")] {
        let (place, injected) = merged(kept);
        place.write(format!("policies/{lost}.yaml"), policy(lost, 2));
        apply(&place);
        let replaced = injected.replace(&format!("{lost}:1"), &format!("{lost}:2"));
        let replaced = replaced.replace(&format!("{lost}-1"), &format!("{lost}-2"));
        assert_eq!(place.read(FILE), replaced);
    }
}

#[test]
fn undo_takes_both_out() {
    for kept in ["agent", "tracer"] {
        let (place, _) = merged(kept);
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read(FILE), DEPLOYMENT);
        assert!(!place.path("podgraft.lock").exists());
    }
}

#[test]
fn a_line_that_a_merge_brought_back_is_dropped() {
    let (place, _) = merged("agent");
    let lock = place.read("podgraft.lock");
    fs::remove_file(place.path("policies/tracer.yaml")).expect("it is there");
    succeeded(&place, &["undo", "-i", "--only", "tracer", "apps"]);
    let text = place.read(FILE);
    assert!(!text.contains("tracer"), "{text}");
    place.write("podgraft.lock", lock);
    apply(&place);
    assert_eq!(place.read(FILE), text);
    assert!(
        !place.read("podgraft.lock").contains(
            "[\"workload\",\"apps/orders.yaml\",\"Deployment\",\"\",\"orders\",\"tracer\""
        )
    );
}

/// Each branch adds a policy, and where both changed a line git keeps that of one side: the marker, and the value of the
/// variable to which both join a text.
#[test]
fn a_merge_of_git_may_prefer_either_side() {
    for side in ["ours", "theirs"] {
        let place = repository(1);
        git(&place, &["checkout", "-qb", "other"]);
        place.write("policies/before.yaml", policy("before", 1));
        commit_applied(&place);
        git(&place, &["checkout", "-q", "main"]);
        place.write("policies/tracer.yaml", policy("tracer", 1));
        commit_applied(&place);
        git(&place, &["merge", "-q", "--no-edit", "-X", side, "other"]);
        for name in ["before", "tracer"] {
            place.write(format!("policies/{name}.yaml"), policy(name, 2));
        }
        apply(&place);
        let text = place.read("apps/app-0.yaml");
        for name in ["before", "tracer"] {
            let count = |text: &str, part: String| text.matches(&part).count();
            assert_eq!(count(&text, format!("/{name}-2.jar")), 1, "{text}");
            assert_eq!(count(&text, format!("/{name}-1.jar")), 0, "{text}");
            assert_eq!(count(&text, format!("/{name}:2")), 1, "{text}");
        }
        succeeded(&place, &["undo", "-i", "apps"]);
        let app = DEPLOYMENT.replace("orders", "app-0");
        assert_eq!(place.read("apps/app-0.yaml"), app);
    }
}
