//! What holds for whatever text and whatever policies: refused with a place, or edited so that the output reads again,
//! has the values of the plan, keeps every byte between the edits, and a second run finds nothing to do.
//!
//! The tests and the fuzz targets share this file. Values come from the complete parser, and the plan is carried out a
//! second time by the `json-patch` crate, which shares no code with the text editor.

use std::ops::Range;
use std::sync::Arc;

use json_patch::{Patch, PatchOperation};
use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::outcome::{FileReport, WorkloadReport};
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::yaml::parse::parse_with_granit;
use podgraft_core::yaml::splice::{Edit, splice};
use podgraft_core::yaml::tree::{NodeId, Tree};
use podgraft_core::yaml::value::to_value;
use serde_json::Value;

const MARKS: &[u8] = b"podgraft.dev/";

/// What came of a text that kept its promises.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The output; none when the text was refused.
    pub output: Option<Vec<u8>>,
    /// How many edits were made.
    pub edits: usize,
    /// How many documents had their values compared with the patched ones.
    pub compared: usize,
}

/// The policies of a text, or what is wrong with it.
#[allow(
    dead_code,
    reason = "not every program that shares this file reads texts"
)]
pub fn policies(text: &str) -> Result<Vec<Policy>, Vec<Diagnostic>> {
    let (policies, problems) = read(
        vec![PolicyFile {
            name: "policy.yaml".into(),
            text: text.to_owned(),
        }],
        &[],
    );
    if problems.iter().any(Diagnostic::is_error) {
        Err(problems)
    } else {
        Ok(policies)
    }
}

/// One run of the engine.
pub fn run(text: &[u8], policies: &[Policy]) -> FileReport {
    graft(
        &Arc::from("input.yaml"),
        text,
        policies,
        &Options {
            patches: true,
            ..Options::default()
        },
    )
}

/// The errors of a run.
pub fn errors(report: &FileReport) -> Vec<&Diagnostic> {
    report
        .diagnostics
        .iter()
        .filter(|problem| problem.is_error())
        .collect()
}

/// Runs a text and looks at all that is promised.
///
/// # Panics
/// When a promise is broken.
pub fn check(text: &[u8], policies: &[Policy]) -> Kept {
    let report = run(text, policies);
    let refused = errors(&report);
    if text.len() % 4 == 2 {
        check_brief(text, policies, &report);
    }
    let shown = || String::from_utf8_lossy(text);
    assert!(
        refused.iter().all(|problem| problem.code != Code::Internal),
        "{refused:?}\n{}",
        shown()
    );
    assert!(
        refused.iter().all(|problem| !problem.labels.is_empty()),
        "no place: {refused:?}\n{}",
        shown()
    );
    if !refused.is_empty() {
        return Kept::default();
    }
    let output = splice(text, &report.edits);
    check_bytes(text, &output, &report.edits);
    let compared = check_values(text, &report);
    let again = run(&output, policies);
    let is_quiet = again.edits.is_empty() && errors(&again).is_empty();
    assert!(
        is_quiet,
        "second run: {:?} {:?}\n{}",
        again.edits,
        errors(&again),
        shown()
    );
    // A share of the texts is enough, for this takes as long as all before.
    if report.edits.len() % 4 == 1 {
        check_undo(text, policies);
    }
    if text.len() % 4 == 1 {
        check_parse_all(text, policies, &report);
    }
    Kept {
        output: Some(output),
        edits: report.edits.len(),
        compared,
    }
}

/// What a run reports makes no difference for its edits and errors.
fn check_brief(text: &[u8], policies: &[Policy], report: &FileReport) {
    let options = Options {
        brief: true,
        ..Options::default()
    };
    let brief = graft(&Arc::from("input.yaml"), text, policies, &options);
    let shown = || String::from_utf8_lossy(text);
    assert_eq!(errors(&brief), errors(report), "{}", shown());
    assert_eq!(brief.edits, report.edits, "{}", shown());
}

/// What is let through or passed over would have made no difference.
fn check_parse_all(text: &[u8], policies: &[Policy], report: &FileReport) {
    let options = Options {
        patches: true,
        parse_all: true,
        ..Options::default()
    };
    let whole = graft(&Arc::from("input.yaml"), text, policies, &options);
    if !errors(&whole).is_empty() {
        return;
    }
    assert_eq!(
        whole.edits,
        report.edits,
        "{}",
        String::from_utf8_lossy(text)
    );
    let outcomes = |report: &FileReport| {
        let of = |workload: &WorkloadReport| {
            format!(
                "{} {} {:?}",
                workload.kind, workload.name, workload.policies
            )
        };
        report.workloads.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(
        outcomes(&whole),
        outcomes(report),
        "{}",
        String::from_utf8_lossy(text)
    );
}

/// What is injected with a record changes nothing the second time, and undo gives the bytes back.
fn check_undo(text: &[u8], policies: &[Policy]) {
    // What an earlier run recorded is taken out with the rest, and what it did not record is refused.
    if text.windows(MARKS.len()).any(|bytes| bytes == MARKS) {
        return;
    }
    let graft = |text: &[u8], policies: &[Policy], options: Options| {
        let report = graft(&Arc::from("input.yaml"), text, policies, &options);
        assert_eq!(
            errors(&report),
            Vec::<&Diagnostic>::new(),
            "{}",
            String::from_utf8_lossy(text)
        );
        let has_gap = report
            .diagnostics
            .iter()
            .any(|problem| problem.code == Code::NoRecord);
        (splice(text, &report.edits), has_gap)
    };
    let recording = || Options {
        record: true,
        ..Options::default()
    };
    let (output, has_gap) = graft(text, policies, recording());
    // What has no value that readers agree on cannot be recorded, which is said.
    if has_gap || output == text {
        return;
    }
    let (again, _) = graft(&output, policies, recording());
    assert_eq!(
        String::from_utf8_lossy(&again),
        String::from_utf8_lossy(&output),
        "a second run with a record"
    );
    let shown = String::from_utf8_lossy(&output);
    let Some(undone) = undo(&output) else {
        return;
    };
    assert_eq!(
        String::from_utf8_lossy(&undone),
        String::from_utf8_lossy(text),
        "undone from\n{shown}"
    );
}

/// The text without what was injected. None if a mount of the text itself uses a volume of a policy, which undo refuses to
/// take out.
fn undo(text: &[u8]) -> Option<Vec<u8>> {
    let options = Options {
        take_out: RemovalSelection::All,
        ..Options::default()
    };
    let report = graft(&Arc::from("input.yaml"), text, &[], &options);
    let refusals = errors(&report);
    if refusals
        .iter()
        .any(|refusal| refusal.message.ends_with("which would be removed"))
    {
        return None;
    }
    let shown = String::from_utf8_lossy(text);
    assert_eq!(refusals, Vec::<&Diagnostic>::new(), "{shown}");
    Some(splice(text, &report.edits))
}

/// The edits stand in order and apart; between them stand the input's bytes.
fn check_bytes(text: &[u8], output: &[u8], edits: &[Edit]) {
    let (mut read, mut written) = (0, 0);
    for edit in edits {
        assert!(
            read <= edit.at.start && edit.at.start <= edit.at.end,
            "edits overlap: {edits:?}"
        );
        let kept = &text[read..edit.at.start];
        assert_eq!(kept, &output[written..written + kept.len()]);
        written += kept.len();
        assert_eq!(
            edit.text.as_bytes(),
            &output[written..written + edit.text.len()]
        );
        written += edit.text.len();
        read = edit.at.end;
    }
    assert_eq!(&text[read..], &output[written..]);
}

/// The edits of a document's workloads, as those of a text of its own.
fn edits_within(
    document: &Range<usize>,
    report: &FileReport,
    workloads: &[&WorkloadReport],
) -> Vec<Edit> {
    let within = |edit: &&Edit| document.start <= edit.at.start && edit.at.end <= document.end;
    workloads
        .iter()
        .flat_map(|workload| &report.edits[workload.edits.clone()])
        .filter(within)
        .map(|edit| moved(edit, document.start))
        .collect()
}

/// Each document that was edited reads again, and has the values of the input with the plan's patches. Returns how many
/// have values: aliases that expand to too much, say, have none.
fn check_values(text: &[u8], report: &FileReport) -> usize {
    let edited = report
        .workloads
        .iter()
        .filter(|workload| workload.is_changed());
    let mut documents: Vec<_> = edited.map(|workload| workload.document.clone()).collect();
    documents.dedup();
    let mut compared = 0;
    for document in documents {
        let twins: Vec<_> = report
            .workloads
            .iter()
            .filter(|workload| workload.document == document)
            .collect();
        let edits = edits_within(&document, report, &twins);
        // A document that goes as a whole has no values to compare.
        if twins
            .iter()
            .any(|twin| twin.patch.as_ref().is_some_and(is_removal))
        {
            continue;
        }
        let before = std::str::from_utf8(&text[document.clone()]).expect("what is edited is UTF-8");
        let after =
            String::from_utf8(splice(before.as_bytes(), &edits)).expect("text in text is UTF-8");
        let output = parse_with_granit(&after)
            .unwrap_or_else(|error| panic!("it does not read: {error:?}\n{after}"));
        let input = parse_with_granit(before).expect("what is edited was read");
        let Some(mut wanted) = values(&input) else {
            continue;
        };
        let first_line = 1 + text[..document.start]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        apply_patches(&mut wanted, &input, first_line, &twins);
        let found =
            values(&output).unwrap_or_else(|| panic!("the output has no values any more\n{after}"));
        let companions: Vec<&Value> = report
            .companions
            .iter()
            .map(|placed| &*placed.companion.object)
            .collect();
        let found = without_companions(found, &companions, &wanted);
        assert_eq!(found, wanted, "the values differ\n{before}\n=>\n{after}");
        compared += 1;
    }
    compared
}

/// What policies generate is no part of the plan's patches: it is taken out of documents and lists, and a List that was
/// made around one object is opened.
fn without_companions(
    mut found: Vec<Value>,
    companions: &[&Value],
    wanted: &[Value],
) -> Vec<Value> {
    for companion in companions {
        match found.iter().rposition(|value| value == *companion) {
            Some(at) => drop(found.remove(at)),
            None => found
                .iter_mut()
                .for_each(|value| take_out(value, companion)),
        }
    }
    match (found.as_slice(), wanted) {
        ([list], [single]) if list["kind"] == "List" && single["kind"] != "List" => {
            list["items"].as_array().cloned().unwrap_or_default()
        }
        _ => found,
    }
}

fn take_out(list: &mut Value, companion: &Value) {
    let Some(items) = list.get_mut("items").and_then(Value::as_array_mut) else {
        return;
    };
    match items.iter().rposition(|item| item == companion) {
        Some(at) => drop(items.remove(at)),
        None => items.iter_mut().for_each(|item| take_out(item, companion)),
    }
}

fn is_removal(patch: &Patch) -> bool {
    matches!(patch.0.as_slice(), [PatchOperation::Remove(gone)] if gone.path.is_root())
}

fn moved(edit: &Edit, by: usize) -> Edit {
    Edit {
        at: edit.at.start - by..edit.at.end - by,
        text: edit.text.clone(),
    }
}

fn values(tree: &Tree<'_>) -> Option<Vec<Value>> {
    tree.roots()
        .iter()
        .map(|&root: &NodeId| to_value(tree, root).ok())
        .collect()
}

/// Workloads, changed or not, stand in the report in the order of the text, so each is the next object of its kind that
/// begins on its line. A name would not do: an object before it may have none, or the same.
fn apply_patches(
    values: &mut [Value],
    input: &Tree<'_>,
    first_line: usize,
    workloads: &[&WorkloadReport],
) {
    let roots = input.roots().iter().zip(values.iter_mut());
    let mut objects: Vec<(usize, &mut Value)> = roots
        .flat_map(|(&root, value)| objects_of(input, root, value))
        .collect();
    let mut from = 0;
    for workload in workloads {
        let is_it = |(at, object): &(usize, &mut Value)| {
            let lines = input.text()[..*at].matches('\n').count();
            first_line + lines == workload.line
                && object["kind"] == *workload.kind
                && object["apiVersion"] == *workload.api_version
        };
        let Some(at) = objects[from..].iter().position(is_it) else {
            assert!(!workload.is_changed(), "the workload is not in the input");
            continue;
        };
        let at = at + from;
        from = at + 1;
        // What is only generated for a workload does not change it.
        let Some(patch) = &workload.patch else {
            continue;
        };
        json_patch::patch(objects[at].1, patch)
            .unwrap_or_else(|error| panic!("{error} in {patch:?}"));
    }
}

/// The object, or the items of a list of objects, with the places where they begin.
fn objects_of<'v>(
    tree: &Tree<'_>,
    node: NodeId,
    value: &'v mut Value,
) -> Vec<(usize, &'v mut Value)> {
    let is_list = value["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    let items = tree
        .entries(node)
        .find(|&(key, _)| tree.scalar(key) == Some("items"))
        .map(|(_, items)| items);
    match (is_list, items, value) {
        (true, Some(items), value) if value["items"].is_array() => {
            let values = value["items"].as_array_mut().into_iter().flatten();
            tree.children(items)
                .zip(values)
                .flat_map(|(item, value)| objects_of(tree, item, value))
                .collect()
        }
        (_, _, value) => vec![(tree.span(node).start, value)],
    }
}
