//! `podgraft policy lint` and `policy images`: what is said of a policy without any manifest.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const HEAD: &str =
    "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: agent}\nspec:\n";

/// Nothing to find: pinned, restricted, everything used.
const CLEAN: &str = "  params: [{name: port, default: \"80\"}]
  variables: [{name: owner, expression: 'workload.name'}]
  match: {selector: {matchLabels: {runtime: java}}}
  inject:
    initContainers:
    - {name: a, image: 'a:1@sha256:00', securityContext: {runAsNonRoot: true}}
    env: [{name: OWNER, value: '${variables.owner}:${params.port}'}]
";

fn run(args: &[&str], policy: &str) -> Output {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("p.yaml"), format!("{HEAD}{policy}"))
        .expect("the folder is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    command
        .current_dir(folder.path())
        .args(["policy"])
        .args(args)
        .args(["-p", "p.yaml"]);
    command
        .env("NO_COLOR", "1")
        .output()
        .expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The codes of the findings, and the exit status.
fn lint(policy: &str) -> (Vec<String>, Option<i32>) {
    let output = run(&["lint", "-o", "json"], policy);
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
    let findings = result["findings"]
        .as_array()
        .expect("it lists findings")
        .iter();
    (
        findings
            .map(|finding| finding["code"].as_str().unwrap_or_default().to_owned())
            .collect(),
        output.status.code(),
    )
}

fn assert_found(code: &str, spec: &str) {
    let (codes, status) = lint(spec);
    assert!(
        codes.iter().any(|found| found == code),
        "{code} is not among {codes:?} of\n{spec}"
    );
    assert_eq!(
        status,
        Some(if code == "no-digest" { 0 } else { 1 }),
        "{codes:?} of\n{spec}"
    );
}

#[test]
fn a_clean_policy_has_no_findings() {
    assert_eq!(lint(CLEAN), (vec![], Some(0)));
    let output = run(&["lint"], CLEAN);
    assert_eq!(
        stdout(&output),
        "agent needs from the cluster\n  images           a:1@sha256:00\n  privileges       none\n"
    );
}

#[test]
fn what_nothing_reads_is_unused() {
    assert_found(
        "unused",
        "  params: [{name: port}]\n  inject: {podLabels: {a: b}}\n",
    );
    assert_found(
        "unused",
        "  variables: [{name: v, expression: '1'}]\n  inject: {podLabels: {a: b}}\n",
    );
    for used in [
        "${params.port}",
        "${params['port']}",
        "${params.?port.orValue('1')}",
        "${string(size(params))}",
    ] {
        let spec = format!(
            "  params: [{{name: port, default: '1'}}]\n  inject: {{podLabels: {{a: \"{used}\"}}}}\n"
        );
        assert_eq!(lint(&spec).0, Vec::<String>::new(), "{used}");
    }
}

#[test]
fn power_beyond_the_pod_is_named() {
    for inject in [
        "initContainers: [{name: a, image: 'a@sha256:00', securityContext: {privileged: true}}]",
        "volumes: [{name: a, hostPath: {path: /}}]",
        "podSpec: {shareProcessNamespace: true}",
        "defaults: {securityContext: {capabilities: {add: [SYS_PTRACE]}}}",
        "ports: [{containerPort: 80, hostPort: 80}]",
        "patches: [{patchType: JSONPatch, scope: PodTemplate, patch: [{op: add, path: /spec/hostNetwork, value: true}]}]",
    ] {
        assert_found("privilege", &format!("  inject: {{{inject}}}\n"));
    }
}

#[test]
fn images_and_secrets_are_judged() {
    assert_found(
        "latest-image",
        "  inject: {initContainers: [{name: a, image: 'a:latest'}]}\n",
    );
    assert_found(
        "no-digest",
        "  inject: {initContainers: [{name: a, image: 'a:1'}]}\n",
    );
    assert_found(
        "clear-secret",
        "  inject: {env: [{name: API_TOKEN, value: abc}]}\n",
    );
    let referred =
        "  inject: {env: [{name: API_TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]}\n";
    assert_eq!(lint(referred), (vec![], Some(0)));
}

#[test]
fn what_contradicts_itself_never_matches() {
    let selector = |requirements: &str| {
        format!(
            "  match: {{selector: {{matchExpressions: [{requirements}]}}}}\n  inject: {{podLabels: {{a: b}}}}\n"
        )
    };
    for requirements in [
        "{key: a, operator: In, values: [x]}, {key: a, operator: DoesNotExist}",
        "{key: a, operator: In, values: [x]}, {key: a, operator: In, values: [z]}",
        "{key: a, operator: NotIn, values: [x, z]}, {key: a, operator: In, values: [z]}",
    ] {
        assert_found("never-matches", &selector(requirements));
    }
    for fine in [
        "{key: a, operator: In, values: [x, z]}, {key: a, operator: NotIn, values: [z]}",
        "{key: a, operator: Exists}, {key: b, operator: DoesNotExist}",
    ] {
        assert_eq!(lint(&selector(fine)), (vec![], Some(0)), "{fine}");
    }
    let inject = "  inject: {podLabels: {a: b}}\n";
    assert_found(
        "never-matches",
        &format!("  matchConditions: [{{name: never, expression: '1 > 2'}}]\n{inject}"),
    );
    assert_found(
        "never-matches",
        &format!("  match: {{sample: {{percent: 0}}}}\n{inject}"),
    );
    assert_found(
        "never-matches",
        "  applyRules: One\n  rules:\n  - {name: all, inject: {env: [{name: A, value: x}]}}\n  \
         - {name: late, containers: {names: [app]}, inject: {env: [{name: B, value: x}]}}\n",
    );
}

#[test]
fn containers_that_are_listed_and_excluded_never_match() {
    let policy = |containers: &str| {
        format!("  containers: {{{containers}}}\n  inject: {{env: [{{name: A, value: x}}]}}\n")
    };
    for containers in [
        "names: [app, web], excludeNames: [web, app]",
        "images: ['*/java:*'], excludeImages: ['*']",
        "withEnv: [A, B], withoutEnv: [B]",
    ] {
        assert_found("never-matches", &policy(containers));
    }
    for fine in [
        "names: [app, web], excludeNames: [web]",
        "images: ['*'], excludeImages: ['*/java:*']",
        "withEnv: [A], withoutEnv: [B]",
    ] {
        assert_eq!(lint(&policy(fine)), (vec![], Some(0)), "{fine}");
    }
}

#[test]
fn a_rule_behind_one_with_a_condition_can_match() {
    for (of_workload, of_containers) in [
        ("namespaceSelector: {matchLabels: {a: b}}", ""),
        (
            "",
            "matchConditions: [{name: j, expression: \"container.image.contains('java')\"}]",
        ),
        ("", "names: ['${workload.name}']"),
        ("", "excludeNames: ['${workload.name}']"),
    ] {
        let (codes, status) = lint(&format!(
            "  applyRules: One\n  rules:\n  - {{name: first, match: {{{of_workload}}}, containers: {{{of_containers}}}, \
             inject: {{env: [{{name: A, value: x}}]}}}}\n  - {{name: late, inject: {{env: [{{name: B, value: x}}]}}}}\n"
        ));
        assert_eq!(
            (codes, status),
            (vec![], Some(0)),
            "{of_workload} {of_containers}"
        );
    }
}

#[test]
fn a_patch_that_repeats_itself_is_named() {
    let patch = |operations: &str| {
        format!(
            "  inject: {{patches: [{{patchType: JSONPatch, scope: Workload, patch: [{operations}]}}]}}\n"
        )
    };
    assert_found(
        "patch-without-test",
        &patch("{op: add, path: /spec/x/-, value: 1}"),
    );
    assert_found(
        "patch-without-test",
        &patch("{op: remove, path: /spec/replicas}"),
    );
    let tested =
        patch("{op: test, path: /spec/x, value: null}, {op: add, path: /spec/x/-, value: 1}");
    assert_eq!(lint(&tested), (vec![], Some(0)));
}

#[test]
fn needs_are_listed_with_their_names() {
    let spec = "  inject:
    initContainers: [{name: a, image: 'a@sha256:00', envFrom: [{configMapRef: {name: settings}}]}]
    volumes:
    - {name: v, secret: {secretName: certs}}
    - {name: p, projected: {sources: [{configMap: {name: ca}}, {secret: {name: key}}]}}
    - {name: c, persistentVolumeClaim: {claimName: disk}}
    env: [{name: T, valueFrom: {secretKeyRef: {name: token, key: t}}}]
    imagePullSecrets: [{name: registry}]
    podSpec: {serviceAccountName: agent}
";
    let output = run(&["lint", "-o", "json"], spec);
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
    let policy = &result["policies"][0];
    assert_eq!(policy["images"], serde_json::json!(["a@sha256:00"]));
    assert_eq!(
        policy["secrets"],
        serde_json::json!(["certs", "key", "registry", "token"])
    );
    assert_eq!(policy["configMaps"], serde_json::json!(["ca", "settings"]));
    assert_eq!(
        policy["persistentVolumeClaims"],
        serde_json::json!(["disk"])
    );
    assert_eq!(policy["serviceAccounts"], serde_json::json!(["agent"]));
    assert_eq!(policy["privileges"], serde_json::json!([]));
}

#[test]
fn what_a_policy_always_generates_is_no_need() {
    let spec = "  inject:
    volumes:
    - {name: a, configMap: {name: \"${workload.name}-always\"}}
    - {name: b, configMap: {name: \"${workload.name}-sometimes\"}}
    - {name: c, secret: {secretName: \"${workload.name}-always\"}}
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${workload.name}-always\"}, data: {a: b}}
  - when: workload.name != 'a'
    resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: \"${workload.name}-sometimes\"}, data: {a: b}}
";
    let output = run(&["lint", "-o", "json"], spec);
    let result: Value = serde_json::from_slice(&output.stdout).expect("the result is JSON");
    let policy = &result["policies"][0];
    assert_eq!(
        policy["configMaps"],
        serde_json::json!(["${workload.name}-sometimes"])
    );
    assert_eq!(
        policy["secrets"],
        serde_json::json!(["${workload.name}-always"])
    );
}

#[test]
fn images_are_listed_once_and_those_of_a_workload_named() {
    let spec = "  inject:
    initContainers: [{name: a, image: 'b:2'}, {name: b, image: 'a:1'}, {name: c, image: 'b:2'}]
    sidecars: [{name: d, type: Native, image: \"agent:${workload.labels['version']}\"}]
    volumes: [{name: v, image: {reference: 'c:3'}}]
";
    let output = run(&["images"], spec);
    assert_eq!(stdout(&output), "a:1\nb:2\nc:3\n");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("agent:${workload"),
        "{output:?}"
    );
}

/// A required parameter without a value, read as a text, within one and as a number.
const OPEN: &str =
    "  params: [{name: image, required: true}, {name: port, required: true, pattern: '[0-9]+'}]
  matchConditions: [{name: not-80, expression: \"params.port != '80'\"}]
  inject:
    initContainers: [{name: a, image: '${params.image}'}]
    ports: [{containerPort: '${int(params.port)}'}]
    podAnnotations: {port: 'number ${params.port}'}
";

#[test]
fn a_parameter_without_a_value_is_a_need_and_no_fault() {
    let output = run(&["lint"], OPEN);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let expected = "agent needs from the cluster\n  parameters       image, port (from you, with --param)\n  \
                    images           ${params.image}\n  privileges       none\n";
    assert_eq!(
        (stdout(&output).as_str(), &*output.stderr),
        (expected, &b""[..])
    );
    let output = run(
        &["lint", "--param", "port=80", "--param", "image=a@sha256:00"],
        OPEN,
    );
    assert_eq!(
        output.status.code(),
        Some(1),
        "the condition is false for every workload: {output:?}"
    );
    let wrong = run(&["lint", "--param", "port=http"], OPEN);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

#[test]
fn images_ask_for_the_parameters_that_they_depend_on() {
    let output = run(&["images"], OPEN);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(2), "")
    );
    assert!(
        messages.contains("--param image=VALUE") && !messages.contains("port"),
        "{messages}"
    );
    let output = run(&["images", "--param", "image=b:2"], OPEN);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "b:2\n")
    );
}

#[test]
fn images_ask_for_no_parameter_whose_name_another_begins_with() {
    let spec = "  params: [{name: tag, required: true}, {name: tagSuffix, default: x}]\n  inject:\n    \
         podAnnotations: {tag: '${params.tag}'}\n    \
         initContainers: [{name: a, image: 'reg/${workload.name}:${params.tagSuffix + workload.name}'}]\n";
    let output = run(&["images"], spec);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = run(
        &["images"],
        &spec.replace("params.tagSuffix +", "params.tag +"),
    );
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn what_is_forbidden_is_an_error() {
    let spec = "  inject: {volumes: [{name: a, hostPath: {path: /}}]}\n";
    let output = run(&["lint", "--forbid", "host-path"], spec);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("`host-path` is forbidden"),
        "{output:?}"
    );
}

#[test]
fn a_policy_that_is_refused_exits_2() {
    let output = run(&["lint"], "  wieght: 1\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `weight`?"));
}

#[test]
fn a_word_that_forbid_does_not_know_is_wrong_usage() {
    let output = run(&["lint", "--forbid", "privilegd"], CLEAN);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `privileged`?"));
}
