//! What is injected with a record can be taken out again, to the byte: every golden case, and real manifests by the
//! hundred where they are there.

use podgraft_core::diagnostic::Code;
use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::corpus::files;

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root)
        .expect("the folder is readable")
        .map(|entry| entry.expect("it is readable").path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn policies(path: &Path) -> Vec<Policy> {
    let text = fs::read_to_string(path).expect("the policy is there");
    read(
        vec![PolicyFile {
            name: "policy.yaml".into(),
            text,
        }],
        &[],
    )
    .0
}

fn recording() -> Options {
    Options {
        record: true,
        ..Options::default()
    }
}

fn undoing() -> Options {
    Options {
        take_out: RemovalSelection::All,
        ..Options::default()
    }
}

fn has_error(report: &FileReport) -> bool {
    report
        .diagnostics
        .iter()
        .any(podgraft_core::diagnostic::Diagnostic::is_error)
}

/// Something was injected that cannot be recorded, which is said.
fn has_gap(report: &FileReport) -> bool {
    report
        .diagnostics
        .iter()
        .any(|problem| problem.code == Code::NoRecord)
}

/// Injects with a record, again, and takes it out. Whether anything was injected.
fn round_trip(name: &str, input: &[u8], policies: &[Policy], options: &Options) -> bool {
    let name: Arc<str> = name.into();
    let report = graft(&name, input, policies, options);
    let internal = report
        .diagnostics
        .iter()
        .find(|problem| problem.code == Code::Internal);
    assert!(internal.is_none(), "{name}: {internal:?}");
    if has_error(&report) || has_gap(&report) || report.edits.is_empty() {
        return false;
    }
    let injected = splice(input, &report.edits);
    let again = graft(&name, &injected, policies, options);
    let text = String::from_utf8_lossy(&injected);
    assert!(
        again.edits.is_empty() && !has_error(&again),
        "{name}: {:?} {:?}\n{text}",
        again.edits,
        again.diagnostics
    );
    let undone = graft(&name, &injected, &[], &undoing());
    assert!(
        !has_error(&undone),
        "{name}: {:?}\n{text}",
        undone.diagnostics
    );
    let output = splice(&injected, &undone.edits);
    assert_eq!(
        String::from_utf8_lossy(&output),
        String::from_utf8_lossy(input),
        "{name}: from\n{text}"
    );
    true
}

/// What somebody put behind a file that has records.
const APPENDED: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: appended}\nspec:\n  containers:\n  - name: app\n    \
                        image: app:1\n    command:\n    - |\n      run\n";

/// Injects with a record; what stands behind the file later stays as it is, whoever has an end there.
fn append(name: &str, input: &str, policies: &[Policy]) {
    let is_open = input.trim_end().ends_with("...");
    let name: Arc<str> = name.into();
    let report = graft(&name, input.as_bytes(), policies, &recording());
    if is_open || has_error(&report) || has_gap(&report) || report.edits.is_empty() {
        return;
    }
    let injected = String::from_utf8(splice(input.as_bytes(), &report.edits))
        .expect("what was text stays text");
    let with_more = |text: &str| {
        format!(
            "{text}{}---\n{APPENDED}",
            if text.ends_with('\n') { "" } else { "\n" }
        )
    };
    let appended = with_more(&injected);
    let again = graft(&name, appended.as_bytes(), policies, &recording());
    let internal = again
        .diagnostics
        .iter()
        .find(|problem| problem.code == Code::Internal);
    assert!(internal.is_none(), "{name}: {internal:?}\n{appended}");
    let undone = graft(&name, appended.as_bytes(), &[], &undoing());
    assert!(
        !has_error(&undone),
        "{name}: {:?}\n{appended}",
        undone.diagnostics
    );
    let output = splice(appended.as_bytes(), &undone.edits);
    // A line end behind a block that had none is its value's, so it stays closed.
    if values(input.as_bytes()) == values(format!("{input}\n").as_bytes()) {
        assert_eq!(
            String::from_utf8_lossy(&output),
            with_more(input),
            "{name}: from\n{appended}"
        );
    }
    let wanted = [input, APPENDED]
        .into_iter()
        .map(|text| values(text.as_bytes()));
    let wanted: Option<Vec<Value>> = wanted
        .collect::<Option<Vec<_>>>()
        .map(|values| values.concat());
    assert_eq!(values(&output), wanted, "{name}: from\n{appended}");
}

#[test]
fn every_golden_case_can_be_undone() {
    let mut undone = 0;
    for folder in folders(Path::new("testdata/cases"))
        .iter()
        .flat_map(|area| folders(area))
    {
        let input = ["input.yaml", "input.json"]
            .into_iter()
            .map(|name| folder.join(name))
            .find(|path| path.exists());
        let input = fs::read(input.expect("a case has an input")).expect("it is readable");
        // What has a record already is not what it was before.
        if folder.join("command").exists()
            || input
                .windows(19)
                .any(|bytes| bytes == b"podgraft.dev/record")
        {
            continue;
        }
        let policies = policies(&folder.join("policy.yaml"));
        let name = folder.display().to_string();
        undone += usize::from(round_trip(&name, &input, &policies, &recording()));
        if let Ok(text) = std::str::from_utf8(&input)
            && !text.contains('\r')
        {
            let (unended, windows) = (text.trim_end(), text.replace('\n', "\r\n"));
            round_trip(
                &format!("{name} without a last line end"),
                unended.as_bytes(),
                &policies,
                &recording(),
            );
            round_trip(
                &format!("{name} with Windows line ends"),
                windows.as_bytes(),
                &policies,
                &recording(),
            );
            append(&format!("{name} with more behind it"), text, &policies);
            append(
                &format!("{name} without a last line end, with more behind it"),
                unended,
                &policies,
            );
        }
    }
    assert!(undone > 80, "only {undone} cases were undone");
}

/// Each of two workloads of a List was the last one when it was injected, and ended in a block without a line end.
#[test]
fn only_the_last_workload_of_a_list_gives_its_end_back() {
    let policies = policies(Path::new(
        "testdata/cases/generate/behind-the-last-item-with-a-comment-without-a-line-end/policy.yaml",
    ));
    let item = |name: &str| {
        format!(
            "- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: {name}\n  spec:\n    containers:\n    - name: app\n      \
             image: app:1\n      args:\n      - |\n        run"
        )
    };
    let first = format!("apiVersion: v1\nkind: List\nitems:\n{}", item("one"));
    let report = graft(
        &"list.yaml".into(),
        first.as_bytes(),
        &policies,
        &recording(),
    );
    let injected = String::from_utf8(splice(first.as_bytes(), &report.edits)).expect("it is text")
        + &item("two");
    let report = graft(
        &"list.yaml".into(),
        injected.as_bytes(),
        &policies,
        &recording(),
    );
    assert!(
        !has_error(&report) && !report.edits.is_empty(),
        "{:?}",
        report.diagnostics
    );
    let both = splice(injected.as_bytes(), &report.edits);
    let undone = graft(&"list.yaml".into(), &both, &[], &undoing());
    let output = String::from_utf8(splice(&both, &undone.edits)).expect("it is text");
    assert_eq!(output, format!("{first}\n{}", item("two")));
}

/// A record keeps what was removed, as deep as a document may nest.
#[test]
fn what_nests_deep_comes_back() {
    let policy = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: clean}
spec:
  inject:
    patches:
    - {patchType: JSONPatch, scope: Workload, patch: [
        {op: test, path: /spec/y, value: 1}, {op: remove, path: /spec/x}, {op: remove, path: /spec/y}]}
";
    let (policies, problems) = read(
        vec![PolicyFile {
            name: "policy.yaml".into(),
            text: policy.to_owned(),
        }],
        &[],
    );
    assert!(problems.is_empty(), "{problems:?}");
    for depth in [100, 130, 250] {
        let nested = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let input = format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\nspec:\n  y: 1\n  x: {nested}\n  containers:\n  - name: app\n    \
             image: app:1\n"
        );
        assert!(round_trip(
            &format!("{depth} levels"),
            input.as_bytes(),
            &policies,
            &recording()
        ));
    }
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
        undone += usize::from(round_trip(
            &path.display().to_string(),
            &input,
            &policies,
            &recording(),
        ));
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

/// Takes out one policy, and then the others.
fn check_undone_by_itself(name: &Arc<str>, input: &[u8], injected: &[u8], policy: &str) {
    let only = Options {
        take_out: RemovalSelection::Only(vec![policy.to_owned()]),
        ..Options::default()
    };
    let report = graft(name, injected, &[], &only);
    assert!(
        !has_error(&report),
        "{name} without {policy}: {:?}",
        report.diagnostics
    );
    let others = splice(injected, &report.edits);
    let report = graft(name, &others, &[], &undoing());
    assert!(!has_error(&report), "{name}: {:?}", report.diagnostics);
    let output = splice(&others, &report.edits);
    assert_eq!(
        String::from_utf8_lossy(&output),
        String::from_utf8_lossy(input),
        "{name}: {policy}"
    );
}

/// Any of several policies goes by itself; what is left goes afterwards, and the bytes are back.
#[test]
fn one_of_three_policies_can_be_taken_out() {
    let appends = read(
        vec![PolicyFile {
            name: "appends.yaml".into(),
            text: APPENDS.to_owned(),
        }],
        &[],
    )
    .0;
    let files = [
        "testdata/corpus/policy.yaml",
        "testdata/mutation/policy.yaml",
    ]
    .map(|path| policies(Path::new(path)));
    let three = [files.concat(), appends].concat();
    let mut undone = 0;
    for folder in folders(Path::new("testdata/cases"))
        .iter()
        .flat_map(|area| folders(area))
    {
        let input = ["input.yaml", "input.json"]
            .into_iter()
            .map(|name| folder.join(name))
            .find(|path| path.exists());
        let input = fs::read(input.expect("a case has an input")).expect("it is readable");
        let name: Arc<str> = folder.display().to_string().into();
        let report = graft(&name, &input, &three, &recording());
        let is_marked = input.windows(13).any(|bytes| bytes == b"podgraft.dev/");
        if has_error(&report) || has_gap(&report) || report.edits.is_empty() || is_marked {
            continue;
        }
        let injected = splice(&input, &report.edits);
        for policy in &three {
            check_undone_by_itself(&name, &input, &injected, &policy.identity);
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
    let given = [
        "1-rookout-java",
        "2-jmx-exporter",
        "3-opentelemetry-java",
        "5-config-checksum",
        "6-vault-agent",
    ];
    let policies = given
        .map(|name| policies(&folder.join(format!("{name}.policy.yaml"))))
        .concat();
    let input = fs::read(folder.join("input.yaml")).expect("it is readable");
    assert!(round_trip("all", &input, &policies, &recording()));
    let injected = splice(
        &input,
        &graft(&"all".into(), &input, &policies, &recording()).edits,
    );
    for policy in &policies {
        let only = Options {
            take_out: RemovalSelection::Only(vec![policy.identity.clone()]),
            ..Options::default()
        };
        let rest = graft(&"all".into(), &injected, &[], &only);
        assert!(
            !has_error(&rest) && !rest.edits.is_empty(),
            "{}: {:?}",
            policy.identity,
            rest.diagnostics
        );
        let rest = splice(&injected, &rest.edits);
        let undone = graft(&"all".into(), &rest, &[], &undoing());
        assert!(
            !has_error(&undone),
            "{}: {:?}",
            policy.identity,
            undone.diagnostics
        );
        let output = splice(&rest, &undone.edits);
        assert_eq!(
            String::from_utf8_lossy(&output),
            String::from_utf8_lossy(&input),
            "{}",
            policy.identity
        );
    }
}

const FIRST: &str = "
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    initContainers: [{name: fetch-agent, image: 'agent:1', volumeMounts: [{name: agent-files, mountPath: /agent}]}]
    volumes: [{name: agent-files, emptyDir: {}}]
    volumeMounts: [{name: agent-files, mountPath: /agent-files}]
    env:
    - {name: JAVA_TOOL_OPTIONS, op: Append, value: '-javaagent:/agent-files/agent.jar=9000'}
    - {name: AGENT_MODE, value: first}
    podAnnotations: {example.com/agent: first}
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: '${workload.name}-agent-1'}, data: {level: info}}
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: agent-of-all}, data: {level: info}}
";

/// Changes, drops and adds items; of the objects, one is another and one is gone.
const SECOND: &str = "
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    initContainers: [{name: fetch-agent, image: 'agent:2', command: [cp, /agent.jar, /agent]}]
    env:
    - {name: JAVA_TOOL_OPTIONS, op: Append, value: '-javaagent:/agent-files/agent.jar=9001 -Dmore=1'}
    - {name: AGENT_LEVEL, value: '2'}
    podLabels: {example.com/agent: second}
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: agent-of-all}, data: {level: debug, more: 'yes'}}
";

/// Leaves everything but an annotation out.
const THIRD: &str = "
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject: {podAnnotations: {example.com/agent: third}}
";

fn versions() -> [Vec<Policy>; 3] {
    [FIRST, SECOND, THIRD].map(|text| {
        let (policies, problems) = read(
            vec![PolicyFile {
                name: "agent.yaml".into(),
                text: text.to_owned(),
            }],
            &[],
        );
        assert!(problems.is_empty(), "{problems:?}");
        policies
    })
}

/// From each version to each other one: the same bytes as applying that one afresh, and undo gives the input back.
/// Whether anything was injected.
fn upgrade(name: &str, input: &[u8], versions: &[Vec<Policy>]) -> bool {
    let name: Arc<str> = name.into();
    let apply = |text: &[u8], policies: &[Policy], options: &Options| {
        let report = graft(&name, text, policies, options);
        let internal = report
            .diagnostics
            .iter()
            .find(|problem| problem.code == Code::Internal);
        assert!(
            internal.is_none(),
            "{name}: {internal:?}\n{}",
            String::from_utf8_lossy(text)
        );
        (!has_error(&report)).then(|| splice(text, &report.edits))
    };
    let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let afresh: Vec<_> = versions
        .iter()
        .map(|version| apply(input, version, &recording()))
        .collect();
    for from in afresh.iter().flatten() {
        for (version, wanted) in versions.iter().zip(&afresh) {
            let Some(wanted) = wanted else { continue };
            let upgraded = apply(from, version, &recording())
                .unwrap_or_else(|| panic!("{name}: refused\n{}", shown(from)));
            assert_eq!(
                values(&upgraded),
                values(wanted),
                "{name}: from\n{}\n=>\n{}",
                shown(from),
                shown(&upgraded)
            );
            let again =
                apply(&upgraded, version, &recording()).expect("what was just written is accepted");
            assert_eq!(shown(&again), shown(&upgraded), "{name}: a second run");
            let undone =
                apply(&upgraded, &[], &undoing()).expect("what was just written is accepted");
            assert_eq!(
                shown(&undone),
                shown(input),
                "{name}: from\n{}",
                shown(&upgraded)
            );
        }
    }
    afresh.iter().flatten().any(|output| output != input)
}

/// Records aside: they say where the bytes differ, too. `None` where some document has no value that readers agree on.
fn values(text: &[u8]) -> Option<Vec<Value>> {
    let tree = parse(std::str::from_utf8(text).ok()?).ok()?;
    let values: Option<Vec<Value>> = tree
        .roots()
        .iter()
        .map(|&root| to_value(&tree, root).ok())
        .collect();
    let mut values = values?;
    values.iter_mut().for_each(forget);
    Some(values)
}

fn forget(object: &mut Value) {
    object
        .get_mut("items")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .for_each(forget);
    let annotations = object
        .pointer_mut("/metadata/annotations")
        .and_then(Value::as_object_mut);
    annotations
        .into_iter()
        .for_each(|annotations| drop(annotations.remove("podgraft.dev/record")));
}

#[test]
fn any_version_gives_way_to_any_other_and_undo_gives_the_input_back() {
    let (versions, mut upgraded) = (versions(), 0);
    let areas = ["generate", "text"].map(|area| Path::new("testdata/cases").join(area));
    for folder in areas.iter().flat_map(|area| folders(area)) {
        let input = ["input.yaml", "input.json"]
            .into_iter()
            .map(|name| folder.join(name))
            .find(|path| path.exists());
        let input = fs::read(input.expect("a case has an input")).expect("it is readable");
        if input.windows(13).any(|bytes| bytes == b"podgraft.dev/") {
            continue;
        }
        let name = folder.display().to_string();
        upgraded += usize::from(upgrade(&name, &input, &versions));
        if let (true, Ok(text)) = (folder.starts_with(&areas[0]), std::str::from_utf8(&input)) {
            upgrade(
                &format!("{name} without a last line end"),
                text.trim_end().as_bytes(),
                &versions,
            );
        }
    }
    assert!(upgraded > 60, "only {upgraded} were upgraded");
}

#[test]
fn real_manifests_are_upgraded_and_undone() {
    let folder = Path::new("../shared/corpus");
    if !folder.exists() {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    }
    let (versions, mut upgraded) = (versions(), 0);
    // A share of the files is enough: each is applied and undone 18 times.
    for path in files(folder).into_iter().step_by(20) {
        let input = fs::read(&path).expect("the file is readable");
        upgraded += usize::from(upgrade(&path.display().to_string(), &input, &versions));
    }
    assert!(upgraded > 15, "only {upgraded} files were upgraded");
}
