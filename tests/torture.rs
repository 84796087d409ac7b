//! Small nasty files, each with what it must do. Runs where the set is, and says so where it is not.

use crate::promises;
use podgraft_core::diagnostic::Diagnostic;
use podgraft_core::graft::{Options, graft};
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "../shared/torture";

/// Editable by their class, and refused with a place by this policy, because the edit would change more than one place,
/// or would have to replace a value of another type.
const REFUSED: &[&str] = &[
    "anchor-env.yaml",
    "anchor-container.yaml",
    "merge-key.yaml",
    "env-empty-map.yaml",
];

/// What kubectl may take for a workload is refused even where no policy asks for it.
const REFUSED_BY_PLAIN_APPLY: &[&str] = &[
    "alias-undefined.yaml",
    "dup-keys.yaml",
    "dup-kind.yaml",
    "helm-template.yaml",
    "helm-value.yaml",
    "sep-content.yaml",
    "json-lines.yaml",
    "utf16le.yaml",
    "utf16be-nobom.yaml",
];

/// A file of the set with its class.
struct Nasty {
    name: String,
    class: String,
    text: Vec<u8>,
}

fn set() -> Option<Vec<Nasty>> {
    let folder = Path::new(FOLDER);
    let Ok(table) = fs::read_to_string(folder.join("TORTURE.md")) else {
        eprintln!("skipped: {FOLDER} is not there");
        return None;
    };
    let rows = table
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter(|row| row.contains(".yaml |"));
    let nasty = rows.map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let name = cells.next().expect("a row names a file").to_owned();
        let class = cells.next().expect("a row has a class").to_owned();
        let text = fs::read(folder.join(&name)).expect("the file is there");
        Nasty { name, class, text }
    });
    let set: Vec<Nasty> = nasty.collect();
    assert!(set.len() > 120, "only {} rows were read", set.len());
    Some(set)
}

fn policies() -> Vec<Policy> {
    let text = fs::read_to_string("testdata/corpus/policy.yaml").expect("the policy is there");
    promises::policies(&text).expect("the policy is right")
}

fn run(name: &str, text: &[u8], policies: &[Policy], parse_all: bool) -> FileReport {
    graft(
        &Arc::from(name),
        text,
        policies,
        &Options {
            parse_all,
            ..Options::default()
        },
    )
}

fn errors(report: &FileReport) -> Vec<&Diagnostic> {
    report
        .diagnostics
        .iter()
        .filter(|problem| problem.is_error())
        .collect()
}

fn assert_located(name: &str, report: &FileReport) {
    let errors = errors(report);
    assert!(!errors.is_empty(), "{name} is not refused");
    assert!(
        errors.iter().all(|error| !error.labels.is_empty()),
        "{name}: {errors:?}"
    );
    assert!(
        errors.iter().all(|error| error.code.name() != "internal"),
        "{name}: {errors:?}"
    );
}

#[test]
fn every_file_does_what_its_class_says() {
    let Some(set) = set() else { return };
    let policies = policies();
    for Nasty { name, class, text } in &set {
        let report = run(name, text, &policies, true);
        // Without the strictness of `--parse-all` every promise holds, too, whatever the class.
        promises::check(text, &policies);
        match class.as_str() {
            "ERR" => assert_located(name, &report),
            "EDIT" if REFUSED.contains(&name.as_str()) => assert_located(name, &report),
            "EDIT" => assert_edited(name, text, &report, &policies),
            "RT" | "VAL" => assert!(errors(&report).is_empty(), "{name}: {:?}", errors(&report)),
            // Readers disagree: untouched or refused, never edited.
            "OPQ" if errors(&report).is_empty() => {
                assert!(report.edits.is_empty(), "{name} is edited")
            }
            "OPQ" => assert_located(name, &report),
            other => panic!("{name} is of an unknown class {other}"),
        }
        assert!(
            run(name, text, &[], false).edits.is_empty(),
            "{name} is edited without a policy"
        );
    }
}

#[test]
fn what_may_be_a_workload_is_refused_by_a_plain_apply() {
    let Some(set) = set() else { return };
    let policies = policies();
    for Nasty { name, text, .. } in set
        .iter()
        .filter(|nasty| REFUSED_BY_PLAIN_APPLY.contains(&nasty.name.as_str()))
    {
        assert_located(name, &run(name, text, &policies, false));
    }
}

/// Edited, and all bytes but an empty value's stay, in order; the values are those of the plan; a second run changes
/// nothing.
fn assert_edited(name: &str, text: &[u8], report: &FileReport, policies: &[Policy]) {
    assert!(errors(report).is_empty(), "{name}: {:?}", errors(report));
    assert!(!report.edits.is_empty(), "{name} is not edited");
    for edit in &report.edits {
        let gone = String::from_utf8_lossy(&text[edit.at.clone()]);
        assert!(
            ["", "[]", "{}", "null", "~"].contains(&gone.trim()),
            "{name}: `{gone}` is taken out"
        );
    }
    let kept = promises::check(text, policies);
    assert!(
        kept.edits == report.edits.len() && kept.compared > 0,
        "{name}: {kept:?}"
    );
    let output = String::from_utf8(kept.output.expect("it was not refused")).expect("it is text");
    // One word that the policy adds for each place that it adds to.
    let added = |word: &str| {
        output.matches(word).count() - String::from_utf8_lossy(text).matches(word).count()
    };
    assert!(
        added("PODGRAFT_CORPUS") > 0 && added("/podgraft-corpus/agent.jar") > 0,
        "{name}\n{output}"
    );
}
