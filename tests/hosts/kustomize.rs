//! The examples of `hosts/kustomize`, each built by the real kustomize, in the oldest version that kubectl still has and
//! in a new one.

use super::*;

const VERSIONS: [&str; 2] = ["kustomize", "kustomize-5.5"];
const FUNCTIONS: [&str; 2] = ["--enable-alpha-plugins", "--enable-exec"];

/// The examples in a folder of their own.
fn examples() -> Place {
    let place = Place::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("hosts/kustomize");
    for entry in walkdir::WalkDir::new(&from) {
        let entry = entry.unwrap();
        let to = place.path().join(entry.path().strip_prefix(&from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(&to).unwrap();
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
    place
}

fn build(place: &Place, kustomize: &Path, flags: &[&str], folder: &str) -> Output {
    place
        .command(kustomize, &[&["build"], flags, &[folder]].concat())
        .output()
        .unwrap()
}

/// What `podgraft apply` makes of a build without functions.
fn applied(place: &Place, plain: &Output, policy: &str, args: &[&str]) -> Vec<Value> {
    let command = place.podgraft(&[&["apply", "-q", "-p", policy], args].concat());
    objects(&succeeded(&with_stdin(command, &succeeded(plain))))
}

fn for_each_version(test: impl Fn(&Place, &Path)) {
    for kustomize in VERSIONS.iter().filter_map(|version| host(version)) {
        test(&examples(), &kustomize);
    }
}

#[test]
fn a_function_gives_the_values_that_apply_gives() {
    for_each_version(|place, kustomize| {
        let plain = build(place, kustomize, &[], "app");
        let agent = applied(place, &plain, "in-path/agent.yaml", &[]);
        for folder in ["in-path", "consumer", "validated", "gate", "no-function"] {
            let built = build(place, kustomize, &FUNCTIONS, folder);
            assert_eq!(objects(&succeeded(&built)), agent, "{folder}");
        }
        place.write(
            "podgraft.yaml",
            "apiVersion: podgraft.dev/v1alpha1\nkind: Config\nimageMirrors:\n- {name: docker.io/curlimages/curl, newName: \
             registry.example.com/curl}\n",
        );
        let param = r#"config={"rules": [{"pattern": "java.lang.*"}]}"#;
        let args = ["--config", "podgraft.yaml", "--param", param];
        let jmx = applied(place, &plain, "builtin:jmx-exporter", &args);
        assert!(
            jmx[1].to_string().contains("registry.example.com/curl:"),
            "{}",
            jmx[1]
        );
        assert_eq!(
            objects(&succeeded(&build(place, kustomize, &FUNCTIONS, "file"))),
            jmx
        );
    });
}

#[test]
fn the_component_of_the_example_is_what_podgraft_makes_and_needs_no_function() {
    for_each_version(|place, kustomize| {
        let kustomization = place.read("no-function/agents/kustomization.yaml");
        let args = [
            "apply",
            "-q",
            "-p",
            "in-path/agent.yaml",
            "-o",
            "kustomize",
            "--output-dir",
            "no-function/agents",
        ];
        succeeded(&with_stdin(
            place.podgraft(&args),
            &succeeded(&build(place, kustomize, &[], "app")),
        ));
        assert_eq!(
            place.read("no-function/agents/kustomization.yaml"),
            kustomization
        );
        let built = objects(&succeeded(&build(place, kustomize, &[], "no-function")));
        assert_eq!(
            built,
            objects(&succeeded(&build(place, kustomize, &FUNCTIONS, "in-path")))
        );
    });
}

#[test]
fn an_overlay_adds_its_policy_to_that_of_its_base() {
    for_each_version(|place, kustomize| {
        let built = objects(&succeeded(&build(place, kustomize, &FUNCTIONS, "nested")));
        let deployment = built
            .iter()
            .find(|object| object["kind"] == "Deployment")
            .unwrap();
        assert_eq!(deployment["metadata"]["name"], "eu-orders");
        assert_eq!(
            deployment["metadata"]["annotations"]["podgraft.dev/applied"],
            "agent,scrape"
        );
        assert_eq!(
            deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/scrape"],
            "true"
        );
        let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"];
        assert_eq!(env, "-XX:MaxRAMPercentage=75 -javaagent:/agent/agent.jar");
    });
}

#[test]
fn a_second_injection_changes_nothing() {
    for_each_version(|place, kustomize| {
        let once = succeeded(&build(place, kustomize, &FUNCTIONS, "in-path"));
        place.write("again/built.yaml", &once);
        place.write(
            "again/kustomization.yaml",
            "resources: [built.yaml]\ntransformers: [../shared]\n",
        );
        let twice = build(place, kustomize, &FUNCTIONS, "again");
        assert_eq!(objects(&succeeded(&twice)), objects(&once));
        assert!(
            stderr_of(&twice).contains("0 injected") || stderr_of(&twice).contains("1 unchanged"),
            "{}",
            stderr_of(&twice)
        );
    });
}

#[test]
fn a_problem_fails_the_build_with_our_message() {
    for_each_version(|place, kustomize| {
        let agent = place.read("in-path/agent.yaml");
        place.write("in-path/agent.yaml", &agent.replace("emptyDir", "emtyDir"));
        let messages = failed(&build(place, kustomize, &FUNCTIONS, "in-path"));
        assert!(messages.contains("did you mean `emptyDir`?"), "{messages}");
        let with_volume = agent.replace(
            "    initContainers:",
            "    ports:\n    - {name: http, containerPort: 80}\n    initContainers:",
        );
        place.write("in-path/agent.yaml", &with_volume);
        let ports = "        ports:\n        - {name: http, containerPort: 8080}\n";
        let app = place
            .read("app/deployment.yaml")
            .replace("        env:\n", &format!("{ports}        env:\n"));
        place.write("app/deployment.yaml", &app);
        let messages = failed(&build(place, kustomize, &FUNCTIONS, "in-path"));
        assert!(
            messages.contains("conflict") && messages.contains("functionConfig:"),
            "{messages}"
        );
    });
}

#[test]
fn the_validator_fails_the_build_of_what_is_not_injected() {
    for_each_version(|place, kustomize| {
        succeeded(&build(place, kustomize, &FUNCTIONS, "validated"));
        place.write(
            "validated/kustomization.yaml",
            "resources: [../app]\nvalidators: [check.yaml]\n",
        );
        let messages = failed(&build(place, kustomize, &FUNCTIONS, "validated"));
        assert!(
            messages.contains("out-of-date")
                && messages.contains("Deployment shop/orders is not up to date"),
            "{messages}"
        );
        place.write(
            "checked/check.yaml",
            &place
                .read("validated/check.yaml")
                .replace("./check.sh", "podgraft-fn"),
        );
        place.write(
            "checked/kustomization.yaml",
            "resources: [../in-path]\ntransformers: [check.yaml]\n",
        );
        let last = build(place, kustomize, &FUNCTIONS, "checked");
        assert_eq!(
            succeeded(&last),
            succeeded(&build(place, kustomize, &FUNCTIONS, "in-path")),
            "as a transformer"
        );
    });
}

#[test]
fn the_gate_fails_the_build_where_functions_are_skipped() {
    let is_injected = |output: &Output| stdout_of(output).contains("-javaagent:");
    for_each_version(|place, kustomize| {
        let skipped = build(place, kustomize, &FUNCTIONS[..1], "in-path");
        assert!(
            skipped.status.success() && !is_injected(&skipped),
            "the trap that the gate is for"
        );
        let messages = failed(&build(place, kustomize, &FUNCTIONS[..1], "gate"));
        assert!(
            messages.contains("podgraft.dev/applied")
                && messages.contains("is missing for replacement source"),
            "{messages}"
        );
        assert!(is_injected(&build(place, kustomize, &FUNCTIONS, "gate")));
    });
}

#[test]
fn the_container_differs_from_the_program_in_nothing_but_how_it_is_started() {
    let place = examples();
    let (container, program) = (
        place.read("container/agent.yaml"),
        place.read("in-path/agent.yaml"),
    );
    let without_function = |text: &str| -> Vec<Value> {
        let mut policy = objects(text);
        policy[0]["metadata"]["annotations"].take();
        policy
    };
    assert_eq!(without_function(&container), without_function(&program));
    assert!(container.contains("container:\n        image:"));
    assert_eq!(place.read("shared/agent.yaml"), program);
}
