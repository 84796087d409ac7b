//! `policy convert`: what a resource of another operator becomes does what the resource does.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{Place, stderr_of, stdout_of};

/// The areas of `testdata/cases` whose policies are such resources.
const AREAS: [&str; 5] = [
    "rookout",
    "jmx-exporter",
    "podbuggertool",
    "config-monitor",
    "formats",
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
        |(mut of_resources, mut rest), pair| {
            if FOR_RESOURCES.contains(&pair[0].as_str()) {
                of_resources.extend(pair)
            } else {
                rest.extend(pair)
            }
            (of_resources, rest)
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
        let (of_resources, rest) = flags(&case);
        let converted = convert(&case, &of_resources);
        let manifests = fs::read_to_string(case.join("input.yaml")).expect("it is there");
        fs::write(&policy, &converted).expect("the folder is writable");
        fs::write(&input, without_kinds(&manifests)).expect("the folder is writable");
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let output = podgraft(
            &case,
            &[&["apply", "-q", "-p", &policy], &rest[..], &[&input]].concat(),
        );
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

/// What an operator would inject all the same.
#[test]
fn what_no_policy_may_say_is_not_converted() {
    let place = Place::new();
    let resource = "apiVersion: opentelemetry.io/v1alpha1
kind: Instrumentation
metadata: {name: agents}
spec: {java: {resources: {limits: {cpu: 10m}}}}
";
    place.write("instrumentation.yaml", resource);
    let output = place.run(&["policy", "convert", "-p", "instrumentation.yaml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    let said = stderr_of(&output);
    assert!(said.contains("the converted policy:"), "{said}");
    assert!(said.contains("requests more cpu than its limit"), "{said}");
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

/// What the pod of a workload has, without what the operator writes in its own way: its path for Java, the space in front
/// of options, and attributes that only it knows.
fn injected(text: &str, language: &str) -> BTreeMap<String, Value> {
    let found: Value = serde_yaml::from_str(text).expect("it is YAML");
    let spec = &found["spec"]["template"]["spec"];
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let app = &spec["containers"][0];
    let mut parts = BTreeMap::new();
    for (part, items) in [
        ("volume", list(spec, "volumes")),
        ("init container", list(spec, "initContainers")),
        ("env", list(app, "env")),
    ] {
        for item in items {
            let name = item["name"].as_str().expect("it has a name");
            parts.insert(format!("{part} {name}"), item.clone());
        }
    }
    let mounts = list(app, "volumeMounts");
    parts.insert("mounts".to_owned(), mounts.len().into());
    for (name, item) in &mut parts {
        let text = item["value"].as_str().unwrap_or_default();
        let text = text.trim_start().replace("-java-app/", "-java/");
        if name.ends_with("OTEL_RESOURCE_ATTRIBUTES") {
            for pair in [
                "k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME)",
                "k8s.node.name=$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME)",
                "team=shop",
            ] {
                assert!(text.contains(pair), "{language}: {text}");
            }
            *item = Value::Null;
        } else if !text.is_empty() {
            item["value"] = text.into();
        }
    }
    parts
}

#[test]
fn an_instrumentation_becomes_what_rules_can_say_of_it() {
    let place = Place::new();
    let resource = "\
apiVersion: opentelemetry.io/v1alpha1
kind: Instrumentation
metadata: {name: agents, namespace: shop}
spec:
  exporter: {endpoint: 'http://collector:4318', tls: {secretName: certs}}
  propagators: [tracecontext, baggage]
  sampler: {type: traceidratio, argument: '0.5'}
  env: [{name: NOTE, value: 'costs ${money}'}]
  resource: {addK8sUIDAttributes: true, resourceAttributes: {team: shop, list: 'a,b'}}
  imagePullPolicy: Always
  java: {env: [{name: OF_JAVA, value: '1'}], resources: {limits: {cpu: '2'}}}
  python: {volumeLimitSize: 1Gi}
  dotnet: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
";
    place.write("instrumentation.yaml", resource);
    let converted = place.run(&["policy", "convert", "-p", "instrumentation.yaml"]);
    let (text, messages) = (stdout_of(&converted), stderr_of(&converted));
    assert_eq!(converted.status.code(), Some(0), "{messages}");
    let head = text.replace("\n#  ", "");
    for word in [
        "Go, Apache HTTPD, and nginx are left out",
        "UIDs (`addK8sUIDAttributes`), the files of `exporter.tls`.",
        "The attribute `list` is left out",
    ] {
        assert!(head.contains(word), "{head}");
    }
    place.write("converted.yaml", &text);
    // The files of TLS are what no rule says.
    let plain = resource.replace(", tls: {secretName: certs}", "");
    place.write(
        "plain.yaml",
        plain.replace("addK8sUIDAttributes: true", "addK8sUIDAttributes: false"),
    );
    for language in ["java", "nodejs", "python", "dotnet", "sdk"] {
        let input = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: orders, namespace: shop}}\nspec:\n  template:\n    \
             metadata:\n      annotations: {{instrumentation.opentelemetry.io/inject-{language}: 'true'}}\n    spec:\n      \
             containers:\n      - {{name: app, image: app}}\n"
        );
        place.write("input.yaml", input);
        let apply = |policy: &str| {
            let output = place.run(&["apply", "-q", "--no-marker", "-p", policy, "input.yaml"]);
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            injected(&stdout_of(&output), language)
        };
        let (wanted, found) = (apply("plain.yaml"), apply("converted.yaml"));
        assert!(wanted.len() > 10, "{language}: {wanted:?}");
        assert_eq!(found, wanted, "{language}");
    }
}

#[test]
fn the_command_that_a_message_names_quotes_the_path() {
    let case = Path::new("testdata/cases/podbuggertool/a-sidecar-in-a-job-is-refused");
    let read = |name: &str| fs::read(case.join(name)).expect("the case is there");
    let place = Place::new();
    place.write("a b/p.yaml", read("policy.yaml"));
    place.write("job.yaml", read("input.yaml"));
    let args = [
        "apply",
        "--debug-mode",
        "sidecar",
        "-p",
        "a b/p.yaml",
        "job.yaml",
    ];
    let said = stderr_of(&place.run(&args));
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("`podgraft policy convert 'a b/p.yaml'`"),
        "{said}"
    );
}
