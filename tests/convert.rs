//! `policy convert`: what a resource of another operator becomes does what the resource does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The areas of `testdata/cases` whose policies are such resources.
const AREAS: [&str; 5] = [
    "rookout",
    "jmx-exporter",
    "podbuggertool",
    "config-monitor",
    "formats",
];

/// What an InjectionPolicy has no word for: the cases, and the remark that says so.
const BEYOND: [(&str, &str); 3] = [
    (
        "a-pod-that-the-operator-marked-verified-is-left-alone",
        "are not left alone by this policy",
    ),
    (
        "a-pod-that-the-operator-marked-verified-failed-is-left-alone",
        "are not left alone by this policy",
    ),
    (
        "another-mark-is-not-the-operators",
        "are not left alone by this policy",
    ),
];

/// Flags that the resource's own parameters take; the rest is for the run.
const FOR_RESOURCES: [&str; 2] = ["--param", "--debug-mode"];

fn podgraft(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    command
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the program runs")
}

/// Cases that are not refused.
fn cases() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for area in AREAS {
        for entry in
            fs::read_dir(Path::new("testdata/cases").join(area)).expect("testdata is readable")
        {
            let path = entry.expect("the entry is readable").path();
            found.extend(Some(path).filter(|path| path.join("expected.yaml").exists()));
        }
    }
    assert!(found.len() > 30, "only {} cases were found", found.len());
    found.sort();
    found
}

/// The flags of a case: for its resources, and for the run.
fn flags(case: &Path) -> (Vec<String>, Vec<String>) {
    let args = fs::read_to_string(case.join("args")).unwrap_or_default();
    let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    args.chunks(2).map(<[String]>::to_vec).fold(
        (Vec::new(), Vec::new()),
        |(mut own, mut rest), pair| {
            if FOR_RESOURCES.contains(&pair[0].as_str()) {
                own.extend(pair)
            } else {
                rest.extend(pair)
            }
            (own, rest)
        },
    )
}

fn convert(case: &Path, flags: &[String]) -> String {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let output = podgraft(
        case,
        &[&["policy", "convert", "-p", "policy.yaml"], &flags[..]].concat(),
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}: {}",
        case.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("YAML is text")
}

/// The marker names the converted policy without the kind.
fn without_kinds(text: &str) -> String {
    let kinds = [
        "Rookout/",
        "PrometheusJmxExporter/",
        "Podbuggertool/",
        "ConfigMonitor/",
    ];
    kinds
        .iter()
        .fold(text.to_owned(), |text, kind| text.replace(kind, ""))
}

#[test]
fn a_converted_resource_does_the_same() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (policy, input) = (path("converted.yaml"), path("input.yaml"));
    for case in cases() {
        let (own, rest) = flags(&case);
        let converted = convert(&case, &own);
        let manifests = fs::read_to_string(case.join("input.yaml")).expect("it is there");
        fs::write(&policy, &converted).expect("the folder is writable");
        fs::write(&input, without_kinds(&manifests)).expect("the folder is writable");
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let output = podgraft(
            &case,
            &[&["apply", "-q", "-p", &policy], &rest[..], &[&input]].concat(),
        );
        let name = case.file_name().expect("it has a name").to_string_lossy();
        if let Some((_, remark)) = BEYOND.iter().find(|(beyond, _)| *beyond == name) {
            assert!(
                converted.replace("\n#  ", "").contains(remark),
                "{}: {converted}",
                case.display()
            );
            continue;
        }
        let expected = fs::read_to_string(case.join("expected.yaml")).expect("it is there");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed, without_kinds(&expected), "{}", case.display());
    }
}

#[test]
fn a_converted_resource_is_in_order_and_readable() {
    for case in cases() {
        let converted = convert(&case, &flags(&case).0);
        assert!(
            converted.starts_with("# Converted from "),
            "{}",
            case.display()
        );
        assert!(
            !converted.contains("null"),
            "{}: {converted}",
            case.display()
        );
    }
}

#[test]
fn what_is_refused_is_not_converted() {
    let case = Path::new("testdata/cases/rookout/unknown-fields-and-wrong-types-are-refused");
    let output = podgraft(case, &["policy", "convert", "-p", "policy.yaml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `image_pull_policy`?"));
}

#[test]
fn resources_among_the_manifests_are_policies_too() {
    let case = Path::new("testdata/cases/rookout/a-container-without-options-gets-them");
    let folder = tempfile::tempdir().expect("a folder can be made");
    let both = ["policy.yaml", "input.yaml"]
        .map(|file| fs::read_to_string(case.join(file)).expect("it is there"));
    fs::write(folder.path().join("all.yaml"), both.join("---\n")).expect("the folder is writable");
    let output = podgraft(folder.path(), &["apply", "-q", "-p", "@input", "all.yaml"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        printed.starts_with(&both[0]) && printed.contains("-javaagent:/rookout/rook.jar"),
        "{printed}"
    );
}
