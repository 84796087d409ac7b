//! The whole way of a manifest: refused with a place, or edited so that the output reads again, all other bytes stay,
//! and a second run finds nothing to do.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podgraft::diagnostic::{Code, Diagnostic};
use podgraft::graft::{Options, graft};
use podgraft::policy::Policy;
use podgraft::policy::read::{PolicyFile, read};
use podgraft::report::{Edit, FileReport, splice};
use podgraft::yaml::parse::parse_with_granit;
use std::sync::{Arc, LazyLock};

const POLICY: &str = include_str!("../../testdata/mutation/policy.yaml");

static POLICIES: LazyLock<Vec<Policy>> = LazyLock::new(|| {
    let (policies, problems) = read(vec![PolicyFile { name: "policy.yaml".into(), text: POLICY.to_owned() }], &[]);
    assert!(problems.is_empty(), "{problems:?}");
    policies
});

fn run(text: &[u8]) -> FileReport {
    graft(&Arc::from("fuzzed"), text, &POLICIES, &Options::default())
}

fn errors(report: &FileReport) -> Vec<&Diagnostic> {
    report.diagnostics.iter().filter(|problem| problem.is_error()).collect()
}

fuzz_target!(|text: &[u8]| {
    let report = run(text);
    let refused = errors(&report);
    assert!(refused.iter().all(|problem| problem.code != Code::Internal), "{refused:?}");
    assert!(refused.iter().all(|problem| !problem.labels.is_empty()), "no place: {refused:?}");
    if !refused.is_empty() || report.edits.is_empty() {
        return;
    }
    let output = splice(text, &report.edits);
    check_bytes(text, &output, &report);
    check_reads(text, &report);
    let again = run(&output);
    assert!(again.edits.is_empty() && errors(&again).is_empty(), "second run: {again:?}");
});

/// The edits stand in order and apart; between them stand the input's bytes.
fn check_bytes(text: &[u8], output: &[u8], report: &FileReport) {
    let mut edits: Vec<_> = report.edits.iter().collect();
    edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    let (mut read, mut written) = (0, 0);
    for edit in edits {
        assert!(read <= edit.at.start && edit.at.start <= edit.at.end, "edits overlap: {:?}", report.edits);
        let kept = &text[read..edit.at.start];
        assert_eq!(kept, &output[written..written + kept.len()]);
        written += kept.len();
        assert_eq!(edit.text.as_bytes(), &output[written..written + edit.text.len()]);
        written += edit.text.len();
        read = edit.at.end;
    }
    assert_eq!(&text[read..], &output[written..]);
}

/// Each document that was edited; another one may be no YAML, where no policy can concern it.
fn check_reads(text: &[u8], report: &FileReport) {
    for edited in report.workloads.iter().filter(|workload| !workload.edits.is_empty()) {
        let document = &edited.document;
        let twins = report.workloads.iter().filter(|other| other.document == *document);
        let edits = twins.flat_map(|twin| &report.edits[twin.edits.clone()]);
        let mut edits: Vec<Edit> = edits.map(|edit| moved(edit, document.start)).collect();
        edits.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
        let output = String::from_utf8(splice(&text[document.clone()], &edits)).expect("what is edited is UTF-8");
        assert!(parse_with_granit(&output).is_ok(), "the output does not read: {output}");
    }
}

fn moved(edit: &Edit, by: usize) -> Edit {
    Edit { at: edit.at.start - by..edit.at.end - by, text: edit.text.clone() }
}
