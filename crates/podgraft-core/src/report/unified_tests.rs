use super::*;
use crate::change::{Change, ChangeTarget, Operation, PodItem};
use crate::outcome::{FileReport, Outcome, PolicyReport};
use crate::yaml::splice::Edit;

/// Where lines are inserted, and which.
type Insertions<'a> = &'a [(usize, &'a str)];

/// One workload a document, each with its edits.
fn diff(text: &str, documents: &[(Range<usize>, Insertions<'_>)]) -> String {
    let mut report = FileReport::default();
    for (index, (document, insertions)) in documents.iter().enumerate() {
        let from = report.edits.len();
        report
            .edits
            .extend(insertions.iter().map(|&(at, text)| Edit {
                at: at..at,
                text: text.into(),
            }));
        let edits = from..report.edits.len();
        let volume = ChangeTarget::PodItem(PodItem::Volume, "agent".to_owned());
        report.workloads.push(WorkloadReport {
            kind: "Deployment".to_owned(),
            namespace: Some("shop".to_owned()),
            name: format!("w{index}"),
            document: document.clone(),
            extent: document.clone(),
            edits,
            policies: vec![PolicyReport {
                policy: "agent".into(),
                outcome: Outcome::Injected(vec![Change::new(Operation::Add, volume)]),
                rules: Vec::new(),
                is_older: false,
            }],
            ..WorkloadReport::default()
        });
    }
    render(
        DiffAudience::Program,
        &[ReportedFile {
            name: "a.yaml",
            path: b"a.yaml",
            text: text.as_bytes(),
            report: &report,
        }],
        Paint::Plain,
    )
}

#[test]
fn a_heading_names_workload_policy_and_items() {
    let shown = diff("a: 1\nb: 2\n", &[(0..10, &[(5, "x: 1\n")])]);
    let expected = "# Deployment shop/w0: agent (volume agent)\n--- a/a.yaml\n+++ b/a.yaml\n\
                    @@ -1,2 +1,3 @@ Deployment shop/w0: agent\n a: 1\n+x: 1\n b: 2\n";
    assert_eq!(shown, expected);
}

#[test]
fn context_stops_at_the_separator_and_is_cut_alike_before() {
    let text = "---\na: 1\nb: 2\nc: 3\nd: 4\n---\nsecret: 1\n";
    let shown = diff(text, &[(0..24, &[(24, "x: 1\n")])]);
    assert!(
        shown.ends_with("@@ -5,2 +5,3 @@ Deployment shop/w0: agent\n d: 4\n+x: 1\n ---\n"),
        "{shown}"
    );
}

#[test]
fn context_is_whole_where_the_file_ends() {
    let text = "secret: 1\n---\na: 1\nb: 2\nc: 3\nd: 4\n";
    let shown = diff(text, &[(10..34, &[(34, "x: 1\n")])]);
    assert!(
        shown.ends_with("@@ -4,3 +4,4 @@ Deployment shop/w0: agent\n b: 2\n c: 3\n d: 4\n+x: 1\n"),
        "{shown}"
    );
}

#[test]
fn a_separator_with_content_is_never_context() {
    let text = "a: 1\nb: 2\n--- {kind: Secret}\n";
    let shown = diff(text, &[(0..10, &[(10, "x: 1\n")])]);
    assert!(
        shown.ends_with("@@ -2,0 +3 @@ Deployment shop/w0: agent\n+x: 1\n"),
        "{shown}"
    );
}

#[test]
fn hunks_that_meet_at_a_separator_are_one() {
    let text = "a: 1\n---\nb: 2\n";
    let shown = diff(text, &[(0..5, &[(5, "x: 1\n")]), (5..14, &[(9, "y: 1\n")])]);
    let hunk = "@@ -1,3 +1,5 @@ Deployment shop/w0: agent; Deployment shop/w1: agent\n a: 1\n+x: 1\n ---\n+y: 1\n b: 2\n";
    assert!(shown.ends_with(hunk), "{shown}");
}

#[test]
fn far_changes_of_one_document_are_two_hunks() {
    let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n";
    let shown = diff(text, &[(0..20, &[(2, "x\n")]), (0..20, &[(18, "y\n")])]);
    assert!(
        shown.contains("@@ -1,4 +1,5 @@ Deployment shop/w0: agent\n"),
        "{shown}"
    );
    assert!(
        shown.contains("@@ -7,4 +8,5 @@ Deployment shop/w1: agent\n"),
        "{shown}"
    );
}

#[test]
fn a_missing_last_line_end_is_said() {
    let shown = diff("a: 1", &[(0..4, &[(4, "\nx: 1")])]);
    let no_end = "\\ No newline at end of file\n";
    assert!(
        shown.ends_with(&format!(
            "@@ -1 +1,2 @@ Deployment shop/w0: agent\n-a: 1\n{no_end}+a: 1\n+x: 1\n{no_end}"
        )),
        "{shown}"
    );
}

#[test]
fn names_are_written_as_git_writes_them() {
    assert_eq!(header_name(b"a/", b"/tmp//x.yaml"), "a/tmp//x.yaml");
    assert_eq!(header_name(b"a/", b"././x.yaml"), "a/x.yaml");
    assert_eq!(header_name(b"a/", b"my file.yaml"), "a/my file.yaml\t");
    assert_eq!(header_name(b"a/", "ü.yaml".as_bytes()), "a/ü.yaml");
    assert_eq!(
        header_name(b"a/", b"new\nline\xff.yaml"),
        "\"a/new\\nline\\377.yaml\""
    );
}
