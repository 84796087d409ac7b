//! `apply -o kustomize`: the Component, built by the real kustomize, gives the values that `apply` gives.

use super::*;

const VERSIONS: [&str; 2] = ["kustomize", "kustomize-5.5"];

fn build(place: &Place, kustomize: &Path, folder: &str) -> Output {
    place
        .command(kustomize, &["build", folder])
        .output()
        .unwrap()
}

/// The build of manifests with a Component, and of what `apply` makes of the manifests.
fn built(place: &Place, kustomize: &Path, input: &str, policy: &str) -> (Output, Output) {
    let args = [
        "apply",
        "-q",
        "-p",
        policy,
        "-o",
        "kustomize",
        "--output-dir",
        "component",
        input,
    ];
    succeeded(&place.podgraft(&args).output().unwrap());
    place.write(
        "with/kustomization.yaml",
        "resources: [../plain]\ncomponents: [../component]\n",
    );
    let applied = succeeded(
        &place
            .podgraft(&["apply", "-q", "-p", policy, input])
            .output()
            .unwrap(),
    );
    place.write("applied/input.yaml", &applied);
    place.write("applied/kustomization.yaml", "resources: [input.yaml]\n");
    (
        build(place, kustomize, "with"),
        build(place, kustomize, "applied"),
    )
}

/// The case folders whose policy needs no flag.
fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases");
    let is_plain = |folder: &Path| {
        let has = |file: &str| folder.join(file).exists();
        has("policy.yaml")
            && has("input.yaml")
            && has("expected.yaml")
            && !has("args")
            && !has("command")
    };
    let entries = walkdir::WalkDir::new(root)
        .min_depth(2)
        .max_depth(2)
        .sort_by_file_name();
    entries
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|folder| is_plain(folder))
        .collect()
}

#[test]
fn every_case_comes_to_the_values_that_apply_writes() {
    // Versions differ in little; the older one gets a sample.
    for (kustomize, step) in VERSIONS
        .iter()
        .zip([1, 8])
        .filter_map(|(version, step)| Some((host(version)?, step)))
    {
        let (mut same, mut changed) = (0, 0);
        for case in cases().into_iter().step_by(step) {
            let place = Place::new();
            // kustomize gives a last line no end where it has none; podgraft and kubectl do.
            let mut input = fs::read_to_string(case.join("input.yaml")).unwrap();
            if !input.ends_with('\n') {
                input.push('\n');
            }
            place.write("plain/input.yaml", &input);
            place.write("plain/kustomization.yaml", "resources: [input.yaml]\n");
            place.write(
                "policy.yaml",
                &fs::read_to_string(case.join("policy.yaml")).unwrap(),
            );
            // kustomize takes less than a cluster does: no object without a name, none twice.
            let plain = build(&place, &kustomize, "plain");
            if !plain.status.success() {
                continue;
            }
            let (with, applied) = built(&place, &kustomize, "plain/input.yaml", "policy.yaml");
            let (with, applied) = (succeeded(&with), succeeded(&applied));
            assert_eq!(objects(&with), objects(&applied), "{}", case.display());
            same += 1;
            changed += usize::from(with != stdout_of(&plain));
        }
        assert!(
            same * step > 200 && changed * step > 150,
            "only {same} cases were built, {changed} of them changed"
        );
    }
}

/// The same name in three places, names with dots, and keys that a JSON Pointer escapes.
const NAMESAKES: &str = "\
apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: orders.v1, annotations: {a: '1'}}
  spec:
    selector: {matchLabels: {app: orders}}
    template:
      metadata: {labels: {app: orders, runtime: java}}
      spec: {containers: [{name: first, image: a}, {name: app, image: a, env: }]}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: orders.v1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders.v1, namespace: shop}
spec:
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders, runtime: java}}
    spec: {containers: [{name: app, image: a, env: [{name: JAVA_TOOL_OPTIONS, value: -Xmx1g}]}], volumes: []}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: orders.v1, namespace: cart}
spec:
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec: {containers: [{name: app, image: a}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ordersxv1, namespace: shop}
spec:
  selector: {matchLabels: {app: orders}}
  template:
    metadata: {labels: {app: orders}}
    spec: {containers: [{name: app, image: a}]}
";

const NAMESAKES_POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  match: {selector: {matchLabels: {runtime: java}}}
  containers: {names: [app]}
  inject:
    env: [{name: JAVA_TOOL_OPTIONS, op: Append, value: '-javaagent:/a.jar'}]
    annotations: {example.com/agent: '1'}
    podAnnotations: {example.com/agent: '1'}
    patches:
    - {patchType: JSONPatch, scope: Workload, patch: [{op: add, path: /metadata/annotations/a~0b~1c~01, value: x}]}
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: '${workload.name}-agent'}, data: {a.b-c: '0444'}}
";

#[test]
fn namesakes_escapes_lists_and_generated_objects_come_out_right() {
    for kustomize in VERSIONS.iter().filter_map(|version| host(version)) {
        let place = Place::new();
        place.write("plain/input.yaml", NAMESAKES);
        place.write("plain/kustomization.yaml", "resources: [input.yaml]\n");
        place.write("policy.yaml", NAMESAKES_POLICY);
        let (with, applied) = built(&place, &kustomize, "plain/input.yaml", "policy.yaml");
        let (with, applied) = (objects(&succeeded(&with)), objects(&succeeded(&applied)));
        assert_eq!(with, applied);
        let injected = with
            .iter()
            .filter(|object| object["metadata"]["annotations"]["a~b/c~1"] == "x")
            .count();
        assert_eq!((injected, with.len()), (2, 6), "{with:#?}");
    }
}

#[test]
fn a_component_of_nothing_is_still_one() {
    for kustomize in VERSIONS.iter().filter_map(|version| host(version)) {
        let place = Place::new();
        place.write("plain/input.yaml", CONFIG_MAP);
        place.write("plain/kustomization.yaml", "resources: [input.yaml]\n");
        let (with, applied) = built(&place, &kustomize, "plain/input.yaml", "agent.yaml");
        assert_eq!(objects(&succeeded(&with)), objects(&succeeded(&applied)));
    }
}

#[test]
fn a_component_that_is_out_of_date_fails_the_build() {
    let Some(kustomize) = host("kustomize") else {
        return;
    };
    for (was, is) in [("-Xmx1g", "-Xmx2g"), ("- name: app", "- name: other")] {
        let place = Place::new();
        place.write("plain/input.yaml", DEPLOYMENT);
        place.write("plain/kustomization.yaml", "resources: [input.yaml]\n");
        succeeded(&built(&place, &kustomize, "plain/input.yaml", "agent.yaml").0);
        place.write("plain/input.yaml", &DEPLOYMENT.replace(was, is));
        let messages = failed(&build(&place, &kustomize, "with"));
        assert!(
            messages.contains("/spec/template/spec/containers/0")
                && messages.contains("test failed"),
            "{messages}"
        );
    }
}

#[test]
fn what_kustomize_cannot_tell_apart_and_what_would_be_read_again_is_refused() {
    let place = Place::new();
    place.write("two/a.yaml", DEPLOYMENT);
    place.write("two/b.yaml", DEPLOYMENT);
    let component = |input: &str, folder: &str| {
        let args = [
            "apply",
            "-p",
            "agent.yaml",
            "-o",
            "kustomize",
            "--output-dir",
            folder,
            input,
        ];
        let output = place.podgraft(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
        assert!(
            !place
                .path()
                .join(folder)
                .join("kustomization.yaml")
                .exists()
        );
        stderr_of(&output)
    };
    let message = component("two", "out");
    assert!(
        message.contains("two objects named Deployment orders")
            && message.contains("two/b.yaml:2:1"),
        "{message}"
    );
    assert!(component("two/a.yaml", "two").contains("is in the folder of the Component"));
    place.write(
        "job.yaml",
        &DEPLOYMENT.replace("name: orders #", "generateName: orders- #"),
    );
    assert!(component("job.yaml", "out").contains("unclear-target"));
    let args = ["apply", "-p", "agent.yaml", "-o", "kustomize", "job.yaml"];
    assert!(failed(&place.podgraft(&args).output().unwrap()).contains("add --output-dir DIR"));
}

#[test]
fn a_component_takes_the_place_of_its_earlier_version_alone() {
    for (name, text) in [
        ("kustomization.yaml", "resources: [../base]\n"),
        ("kustomization.yml", "resources: [../base]\n"),
        ("generated.yaml", "a: b\n"),
    ] {
        let place = Place::new();
        place.write("input.yaml", DEPLOYMENT);
        place.write(&format!("out/{name}"), text);
        let component = || {
            let args = "apply -q -p agent.yaml -o kustomize --output-dir out input.yaml";
            let args: Vec<&str> = args.split(' ').collect();
            place.podgraft(&args).output().unwrap()
        };
        let message = failed(&component());
        let wanted = format!("`out/{name}` was not created by `podgraft apply -o kustomize`");
        assert!(message.contains(&wanted), "{message}");
        let path = place.path().join("out").join(name);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        std::fs::remove_file(path).unwrap();
        succeeded(&component());
        let before = std::fs::read_to_string(place.path().join("out/kustomization.yaml")).unwrap();
        let args = [
            "-o",
            "kustomize",
            "--output-dir",
            "out",
            "input.yaml",
            "--report",
        ];
        let report = format!("./out/{name}");
        let args = [&["apply", "-p", "agent.yaml"], &args[..], &[&report]].concat();
        let refused = failed(&place.podgraft(&args).output().unwrap());
        assert!(
            refused.contains("--report would overwrite a file of the Component"),
            "{refused}"
        );
        let after = std::fs::read_to_string(place.path().join("out/kustomization.yaml")).unwrap();
        assert_eq!(after, before);
        succeeded(&component());
    }
}
