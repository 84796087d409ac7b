//! `podgraft debug`: case folders with a `debug.yaml`, and where pods serve metrics.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("testdata is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            found.extend(folders(&path));
        } else if path.file_name().is_some_and(|name| name == "debug.yaml") {
            found.push(folder.to_owned());
        }
    }
    found
}

fn podgraft(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    command
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the program runs")
}

#[test]
fn a_case_gives_its_ephemeral_containers() {
    let folders = folders(Path::new("testdata/cases"));
    assert!(
        folders.len() > 2,
        "only {} folders were found",
        folders.len()
    );
    for folder in folders {
        let output = podgraft(&folder, &["debug", "-q", "-p", "policy.yaml", "input.yaml"]);
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}: {messages}",
            folder.display()
        );
        let expected = fs::read_to_string(folder.join("debug.yaml")).expect("it is there");
        let printed = String::from_utf8(output.stdout).expect("YAML is text");
        if std::env::var_os("BLESS").is_some() {
            fs::write(folder.join("debug.yaml"), &printed).expect("the folder is writable");
        } else {
            assert_eq!(printed, expected, "{}", folder.display());
        }
    }
}

#[test]
fn the_other_forms_say_the_same() {
    let folder = Path::new("testdata/cases/podbuggertool/by-default-the-workload-stays-as-it-is");
    let line = "kubectl -n shop debug -it POD --image=busybox:1.36 --container=ephemeral-busybox --target=app -- sh";
    let lines = podgraft(
        folder,
        &[
            "debug",
            "-q",
            "-p",
            "policy.yaml",
            "-o",
            "kubectl",
            "input.yaml",
        ],
    );
    assert_eq!(
        String::from_utf8_lossy(&lines.stdout),
        format!("# Deployment shop/payment\n{line}\n")
    );
    let json = podgraft(
        folder,
        &[
            "debug",
            "-q",
            "-p",
            "policy.yaml",
            "-o",
            "json",
            "input.yaml",
        ],
    );
    let json: Value = serde_json::from_slice(&json.stdout).expect("it is JSON");
    assert_eq!(json[0]["kubectl"][0], line);
    assert_eq!(
        json[0]["patch"]["spec"]["ephemeralContainers"][0]["targetContainerName"],
        "app"
    );
}

#[test]
fn a_sidecar_is_nothing_for_debug() {
    let folder = Path::new("testdata/cases/podbuggertool/by-default-the-workload-stays-as-it-is");
    let output = podgraft(
        folder,
        &[
            "debug",
            "-p",
            "policy.yaml",
            "--debug-mode",
            "sidecar",
            "input.yaml",
        ],
    );
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no ephemeral containers"));
}

#[test]
fn what_an_api_server_would_refuse_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let policy = "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: a}\nspec: {inject: \
                  {ephemeralContainers: [{name: app, image: a:1}, {name: b, image: a:1, targetContainerName: web}]}}\n";
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: app, image: a:1}]}\n";
    fs::write(folder.path().join("policy.yaml"), policy).expect("the folder is writable");
    fs::write(folder.path().join("pod.yaml"), pod).expect("the folder is writable");
    let output = podgraft(folder.path(), &["debug", "-p", "policy.yaml", "pod.yaml"]);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(
        messages.contains("already has a container `app`")
            && messages.contains("has no container `web`"),
        "{messages}"
    );
}

#[test]
fn the_report_says_where_pods_serve_metrics() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let report = folder.path().join("report.json");
    let case = Path::new("testdata/cases/jmx-exporter/an-image-that-carries-the-agent");
    let report_flag = report.to_string_lossy().into_owned();
    let image = "image=registry.example.com/jmx-agent:1.6.0";
    podgraft(
        case,
        &[
            "apply",
            "-q",
            "-p",
            "policy.yaml",
            "--param",
            image,
            "--report",
            &report_flag,
            "input.yaml",
        ],
    );
    let report: Value =
        serde_json::from_slice(&fs::read(report).expect("it was written")).expect("it is JSON");
    assert_eq!(
        report["metricsEndpoints"],
        serde_json::json!([{"workload": "Deployment/shop/orders", "port": 9404}])
    );
}
