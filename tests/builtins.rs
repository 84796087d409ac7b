//! Every ready-made policy: what it makes of one input (`testdata/builtins/NAME.expected.yaml`), and that what it puts
//! into a pod starts in a namespace of the Pod Security level "restricted".
//!
//! `BLESS=1 cargo test --test integration builtins::` writes what comes out; review the change.

use podgraft_core::graft::{Options, graft};
use podgraft_core::policy::builtin::{BUILTINS, Builtin, Group};
use podgraft_core::policy::params::ParamSetting;
use podgraft_core::policy::read::read;
use podgraft_core::policy::schema::{POD_TEMPLATE, TemplateMode};
use podgraft_core::policy::{Injection, Policy};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;
use serde_json::{Value, json};
use std::fs;

const FOLDER: &str = "testdata/builtins";

/// What a user must give.
const REQUIRED: &[(&str, &str, &str)] = &[(
    "rookout-java",
    "image",
    "registry.example.com/rookout-agent:1.2.3",
)];

fn policy(builtin: &Builtin) -> Policy {
    let required = REQUIRED
        .iter()
        .filter(|(policy, ..)| *policy == builtin.name);
    let params: Vec<ParamSetting> = required
        .map(|(_, name, value)| ParamSetting {
            policy: None,
            name: (*name).to_owned(),
            value: (*value).to_owned(),
            at: None,
        })
        .collect();
    let (mut policies, problems) = read(vec![builtin.file()], &params);
    assert!(
        problems.is_empty() && policies.len() == 1,
        "{}: {problems:?}",
        builtin.name
    );
    policies.remove(0)
}

/// Those of the project's own choice; the others follow a webhook, and `policies/tests` has their cases.
fn agents() -> impl Iterator<Item = &'static Builtin> {
    BUILTINS
        .iter()
        .filter(|builtin| builtin.group == Group::Agents)
}

#[test]
fn each_gives_its_output_and_a_second_run_changes_nothing() {
    let input = fs::read(format!("{FOLDER}/input.yaml")).expect("the input is there");
    for builtin in agents() {
        let policies = [policy(builtin)];
        let report = graft(&"input.yaml".into(), &input, &policies, &Options::default());
        assert!(
            report.diagnostics.iter().all(|problem| !problem.is_error()),
            "{}: {:?}",
            builtin.name,
            report.diagnostics
        );
        let output = splice(&input, &report.edits);
        let path = format!("{FOLDER}/{}.expected.yaml", builtin.name);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &output).expect("the folder is writable");
        }
        let expected = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(
            String::from_utf8_lossy(&output),
            String::from_utf8_lossy(&expected),
            "{}",
            builtin.name
        );
        assert!(
            graft(
                &"input.yaml".into(),
                &output,
                &policies,
                &Options::default()
            )
            .edits
            .is_empty(),
            "{}",
            builtin.name
        );
        assert_strict(builtin.name, &output);
    }
}

/// All policies in one run: one variable with all agents, nothing twice.
#[test]
fn all_together_share_one_workload() {
    let input = fs::read(format!("{FOLDER}/input.yaml")).expect("the input is there");
    let policies: Vec<Policy> = agents()
        .filter(|builtin| builtin.name != "prometheus-scrape")
        .map(policy)
        .collect();
    let report = graft(&"input.yaml".into(), &input, &policies, &Options::default());
    assert!(
        report.diagnostics.iter().all(|problem| !problem.is_error()),
        "{:?}",
        report.diagnostics
    );
    let output = String::from_utf8(splice(&input, &report.edits)).expect("text");
    assert_eq!(output.matches("name: JAVA_TOOL_OPTIONS").count(), 1);
    assert_eq!(output.matches("-javaagent:").count(), 3);
    assert!(
        graft(
            &"input.yaml".into(),
            output.as_bytes(),
            &policies,
            &Options::default()
        )
        .edits
        .is_empty()
    );
}

/// The pod templates decode strictly: no unknown field, no wrong type.
fn assert_strict(name: &str, output: &[u8]) {
    let text = std::str::from_utf8(output).expect("text");
    let tree = parse(text).expect("YAML");
    for &root in tree.roots() {
        let value = to_value(&tree, root).expect("a value");
        let problems = POD_TEMPLATE.check(&value["spec"]["template"], TemplateMode::Filled);
        assert!(problems.is_empty(), "{name}: {problems:?}");
    }
}

fn containers(inject: &Injection) -> Vec<&Value> {
    let init = inject.init_containers.iter().map(|(item, _)| &*item.value);
    init.chain(inject.sidecars.iter().map(|(item, ..)| &*item.value))
        .collect()
}

/// <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>
fn assert_restricted(container: &Value, name: &str) {
    let security = &container["securityContext"];
    let user = security["runAsUser"].as_u64();
    assert!(user.is_some_and(|user| user > 0), "{name}");
    for (field, wanted) in [
        ("runAsNonRoot", json!(true)),
        ("allowPrivilegeEscalation", json!(false)),
        ("capabilities", json!({"drop": ["ALL"]})),
        ("seccompProfile", json!({"type": "RuntimeDefault"})),
    ] {
        assert_eq!(security[field], wanted, "{name}: {field}");
    }
}

fn assert_has_requests_and_limits(container: &Value, name: &str) {
    for kind in ["requests", "limits"] {
        for resource in ["cpu", "memory"] {
            assert!(
                container["resources"][kind][resource].is_string(),
                "{name}: {kind}.{resource}"
            );
        }
    }
}

fn assert_has_version(container: &Value, name: &str) {
    let image = container["image"]
        .as_str()
        .expect("a container has an image");
    let tag = image
        .rsplit('/')
        .next()
        .and_then(|image| image.split_once(':'))
        .map(|(_, tag)| tag);
    assert!(tag.is_some_and(|tag| tag != "latest"), "{name}: {image}");
}

#[test]
fn every_container_starts_in_a_hardened_namespace() {
    for builtin in agents() {
        for rule in &policy(builtin).rules {
            for container in containers(&rule.inject) {
                assert_restricted(container, builtin.name);
                assert_has_requests_and_limits(container, builtin.name);
                assert_has_version(container, builtin.name);
            }
            let mut volumes = rule
                .inject
                .volumes
                .iter()
                .filter_map(|(item, _)| item.value.get("emptyDir"));
            assert!(
                volumes.all(|volume| volume.get("sizeLimit").is_some()),
                "{}: emptyDir",
                builtin.name
            );
        }
    }
}

/// Applies all policies of the catalogue to the Deployment.
const APPLY_CATALOGUE: [&str; 15] = [
    "apply",
    "-q",
    "-i",
    "--context",
    "testdata/catalogue/context.yaml",
    "--param",
    "aws-pod-identity:serviceAccount=orders",
    "--param",
    "tenantId=8f7d0000-1111-2222-3333-444455556666",
    "--param",
    "dapr:trustAnchors=-----BEGIN CERTIFICATE-----",
    "--param",
    "linkerd:trustAnchors=-----BEGIN CERTIFICATE-----",
    "--param",
    "linkerd:version=edge-26.8.3",
];

/// The policies that follow a webhook, in one run over one Deployment that asks for each: applied, applied again without a
/// change, and taken out one by one.
#[test]
fn the_catalogue_shares_one_deployment_and_each_is_undone() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("deployment.yaml");
    fs::copy("testdata/catalogue/deployment.yaml", &file).expect("the folder is writable");
    let original = fs::read(&file).expect("it is there");
    let run = |args: &[String]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_podgraft"))
            .args(args)
            .arg(&file)
            .output()
            .expect("the program runs");
        assert!(
            output.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        fs::read(&file).expect("it is there")
    };
    let mut names: Vec<&str> = BUILTINS
        .iter()
        .filter(|builtin| builtin.group != Group::Agents && builtin.source.is_none())
        .map(|builtin| builtin.name)
        .collect();
    let mut apply: Vec<String> = APPLY_CATALOGUE.map(str::to_owned).into();
    apply.extend(names.iter().map(|name| format!("-pbuiltin:{name}")));
    apply.push("-ptestdata/catalogue/database.yaml".to_owned());
    names.push("AuthProxyWorkload/shop/db");
    assert_eq!(names.len(), 12, "{names:?}");
    let applied = run(&apply);
    assert_eq!(run(&apply), applied, "a second run changes nothing");
    let marker = String::from_utf8(applied).expect("text");
    let marker = marker
        .lines()
        .find(|line| line.contains("podgraft.dev/applied"))
        .expect("it has a marker");
    for name in &names {
        assert!(marker.contains(name), "{name}: {marker}");
    }
    let mut left = Vec::new();
    for name in names.iter().rev() {
        left = run(&["undo", "-q", "-i", "--only", name].map(str::to_owned));
    }
    assert_eq!(left, original, "all is taken out");
}
