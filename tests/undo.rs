//! What is injected with a record can be taken out again, to the byte: every golden case, and real manifests by the
//! hundred where they are there.

use podgraft::diagnostic::Code;
use podgraft::graft::{Options, graft};
use podgraft::options::TakeOut;
use podgraft::policy::Policy;
use podgraft::policy::read::{PolicyFile, read};
use podgraft::report::{FileReport, splice};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(root).expect("the folder is readable").map(|entry| entry.expect("it is readable").path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is readable");
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.expect("it is readable").path()) {
        let is_manifest = path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if path.is_dir() {
            found.extend(files(&path));
        } else if is_manifest {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn policies(path: &Path) -> Vec<Policy> {
    let text = fs::read_to_string(path).expect("the policy is there");
    read(vec![PolicyFile { name: "policy.yaml".into(), text }], &[]).0
}

fn recording() -> Options {
    Options { record: true, ..Options::default() }
}

fn undoing() -> Options {
    Options { take_out: TakeOut::All, ..Options::default() }
}

fn has_error(report: &FileReport) -> bool {
    report.diagnostics.iter().any(podgraft::diagnostic::Diagnostic::is_error)
}

/// Something was injected that cannot be recorded, which is said.
fn has_gap(report: &FileReport) -> bool {
    report.diagnostics.iter().any(|problem| problem.code == Code::NoRecord)
}

/// Injects with a record, again, and takes it out. Whether anything was injected.
fn round_trip(name: &str, input: &[u8], policies: &[Policy], options: &Options) -> bool {
    let name: Arc<str> = name.into();
    let report = graft(&name, input, policies, options);
    let internal = report.diagnostics.iter().find(|problem| problem.code == Code::Internal);
    assert!(internal.is_none(), "{name}: {internal:?}");
    if has_error(&report) || has_gap(&report) || report.edits.is_empty() {
        return false;
    }
    let injected = splice(input, &report.edits);
    let again = graft(&name, &injected, policies, options);
    let text = String::from_utf8_lossy(&injected);
    assert!(again.edits.is_empty() && !has_error(&again), "{name}: {:?} {:?}\n{text}", again.edits, again.diagnostics);
    let undone = graft(&name, &injected, &[], &undoing());
    assert!(!has_error(&undone), "{name}: {:?}\n{text}", undone.diagnostics);
    let output = splice(&injected, &undone.edits);
    assert_eq!(String::from_utf8_lossy(&output), String::from_utf8_lossy(input), "{name}: from\n{text}");
    true
}

#[test]
fn every_golden_case_can_be_undone() {
    let mut undone = 0;
    for folder in folders(Path::new("testdata/cases")).iter().flat_map(|area| folders(area)) {
        let input = ["input.yaml", "input.json"].into_iter().map(|name| folder.join(name)).find(|path| path.exists());
        let input = fs::read(input.expect("a case has an input")).expect("it is readable");
        // What has a record already is not what it was before.
        if folder.join("command").exists() || input.windows(19).any(|bytes| bytes == b"podgraft.dev/record") {
            continue;
        }
        let policies = policies(&folder.join("policy.yaml"));
        let name = folder.display().to_string();
        // Objects generated beside JSON, or at the end of a list without a last line end, go; their brackets and that line
        // end stay.
        let is_generate = folder.starts_with("testdata/cases/generate");
        if is_generate && (input.starts_with(b"{") || input.starts_with(b"[") || !input.ends_with(b"\n")) {
            continue;
        }
        undone += usize::from(round_trip(&name, &input, &policies, &recording()));
        if let Ok(text) = std::str::from_utf8(&input)
            && !text.contains('\r')
        {
            let is_list = is_generate && text.contains("kind: List");
            let (unended, windows) = (text.trim_end(), text.replace('\n', "\r\n"));
            if !is_list {
                round_trip(&format!("{name} without a last line end"), unended.as_bytes(), &policies, &recording());
            }
            round_trip(&format!("{name} with Windows line ends"), windows.as_bytes(), &policies, &recording());
        }
    }
    assert!(undone > 80, "only {undone} cases were undone");
}

#[test]
fn real_manifests_can_be_undone() {
    let folder = Path::new("../shared/corpus");
    if !folder.exists() {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    }
    let policies = policies(Path::new("testdata/corpus/policy.yaml"));
    let mut undone = 0;
    for path in files(folder) {
        let input = fs::read(&path).expect("the file is readable");
        undone += usize::from(round_trip(&path.display().to_string(), &input, &policies, &recording()));
    }
    assert!(undone > 350, "only {undone} files were undone");
}

const APPENDS: &str = "
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: appends}
spec:
  inject:
    volumes: [{name: appends, emptyDir: {}}]
    env:
    - {name: JAVA_TOOL_OPTIONS, op: Append, value: -Dappends=1}
    podAnnotations: {example.com/appends: x}
";

/// Any of several policies goes by itself; what is left goes afterwards, and the bytes are back.
#[test]
fn one_of_three_policies_can_be_taken_out() {
    let appends = read(vec![PolicyFile { name: "appends.yaml".into(), text: APPENDS.to_owned() }], &[]).0;
    let files = ["testdata/corpus/policy.yaml", "testdata/mutation/policy.yaml"].map(|path| policies(Path::new(path)));
    let three = [files.concat(), appends].concat();
    let mut undone = 0;
    for folder in folders(Path::new("testdata/cases")).iter().flat_map(|area| folders(area)) {
        let input = ["input.yaml", "input.json"].into_iter().map(|name| folder.join(name)).find(|path| path.exists());
        let input = fs::read(input.expect("a case has an input")).expect("it is readable");
        let name: Arc<str> = folder.display().to_string().into();
        let report = graft(&name, &input, &three, &recording());
        let is_marked = input.windows(13).any(|bytes| bytes == b"podgraft.dev/");
        if has_error(&report) || has_gap(&report) || report.edits.is_empty() || is_marked {
            continue;
        }
        let injected = splice(&input, &report.edits);
        for policy in &three {
            let only = Options { take_out: TakeOut::Only(vec![policy.identity.clone()]), ..Options::default() };
            let report = graft(&name, &injected, &[], &only);
            assert!(!has_error(&report), "{name} without {}: {:?}", policy.identity, report.diagnostics);
            let two = splice(&injected, &report.edits);
            let report = graft(&name, &two, &[], &undoing());
            assert!(!has_error(&report), "{name}: {:?}", report.diagnostics);
            let output = splice(&two, &report.edits);
            assert_eq!(
                String::from_utf8_lossy(&output),
                String::from_utf8_lossy(&input),
                "{name}: {}",
                policy.identity
            );
            undone += 1;
        }
    }
    assert!(undone > 150, "only {undone} were undone");
}

#[test]
fn several_agents_with_what_they_generate_can_be_undone() {
    let folder = Path::new("../shared/cases/native");
    if !folder.exists() {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    }
    let given = ["1-rookout-java", "2-jmx-exporter", "3-opentelemetry-java", "5-config-checksum", "6-vault-agent"];
    let policies = given.map(|name| policies(&folder.join(format!("{name}.policy.yaml")))).concat();
    let input = fs::read(folder.join("input.yaml")).expect("it is readable");
    assert!(round_trip("all", &input, &policies, &recording()));
    let injected = splice(&input, &graft(&"all".into(), &input, &policies, &recording()).edits);
    for policy in &policies {
        let only = Options { take_out: TakeOut::Only(vec![policy.identity.clone()]), ..Options::default() };
        let rest = graft(&"all".into(), &injected, &[], &only);
        assert!(!has_error(&rest) && !rest.edits.is_empty(), "{}: {:?}", policy.identity, rest.diagnostics);
        let rest = splice(&injected, &rest.edits);
        let undone = graft(&"all".into(), &rest, &[], &undoing());
        assert!(!has_error(&undone), "{}: {:?}", policy.identity, undone.diagnostics);
        let output = splice(&rest, &undone.edits);
        assert_eq!(String::from_utf8_lossy(&output), String::from_utf8_lossy(&input), "{}", policy.identity);
    }
}
