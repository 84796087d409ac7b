//! Trees with a folder for each environment: workloads and ConfigMaps of one name, and no namespace.

use super::common::{POLICY, Place};

const CHECKSUM: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    volumes: [{name: agent, configMap: {name: agent-config}}]
    env: [{name: MODE, op: Append, value: '-a'}]
    checksums: [{annotation: checksum/all, configMaps: [settings]}]
";

const GENERATE: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    volumes: [{name: agent, configMap: {name: agent-config}}]
  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: agent-config}, data: {k: v}}
";

fn deployment(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  template:\n    spec:\n      \
         containers:\n      - name: app\n        image: app:1\n        envFrom:\n        - configMapRef: {{name: settings}}\n"
    )
}

fn config_map(name: &str, mode: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  MODE: {mode}\n")
}

fn place(policy: &str) -> Place {
    let place = Place::with_policy(POLICY);
    place.write("policy.yaml", policy);
    for folder in ["dev", "prod"] {
        place.write(format!("apps/{folder}/a.yaml"), deployment("cart"));
        place.write(format!("apps/{folder}/b.yaml"), deployment("orders"));
    }
    place
}

const FILES: [&str; 4] = [
    "apps/dev/a.yaml",
    "apps/dev/b.yaml",
    "apps/prod/a.yaml",
    "apps/prod/b.yaml",
];

fn run(place: &Place, args: &str) -> String {
    let output = place.run(&args.split(' ').collect::<Vec<_>>());
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args}: {messages}");
    messages
}

fn texts(place: &Place) -> [String; 4] {
    FILES.map(|file| place.read(file))
}

#[test]
fn each_folder_gets_what_is_generated_once_and_shards_agree() {
    let (whole, sharded) = (place(GENERATE), place(GENERATE));
    let before = texts(&whole);
    run(&whole, "apply -q -i -p policy.yaml apps");
    let after = texts(&whole);
    let writes = after
        .each_ref()
        .map(|text| text.contains("kind: ConfigMap"));
    assert_eq!(writes, [true, false, true, false], "{after:?}");
    for shard in ["3/3", "1/3", "2/3"] {
        run(
            &sharded,
            &format!("apply -q -i --shard {shard} -p policy.yaml apps"),
        );
    }
    assert_eq!(texts(&sharded), after);
    run(&whole, "check -p policy.yaml apps");
    run(&whole, "apply -q -i -p policy.yaml apps");
    assert_eq!(texts(&whole), after);
    run(&whole, "undo -q -i apps");
    assert_eq!(texts(&whole), before);
}

#[test]
fn an_earlier_version_in_a_file_of_another_shard_stops_a_shard() {
    let place = place(GENERATE);
    run(&place, "apply -q -i -p policy.yaml apps");
    let [first, second, ..] = texts(&place);
    let (workload, object) = first.split_once("---\n").unwrap();
    place.write(FILES[0], workload);
    place.write(FILES[1], format!("{second}---\n{object}"));
    place.write("policy.yaml", GENERATE.replace("k: v", "k: w"));
    let before = texts(&place);
    let args = "apply -q -i --shard 1/4 -p policy.yaml apps";
    let output = place.run(&args.split(' ').collect::<Vec<_>>());
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{messages}");
    assert!(messages.contains("run without --shard"), "{messages}");
    assert_eq!(texts(&place), before);
    run(&place, "apply -q -i -p policy.yaml apps");
    let counts = texts(&place).map(|text| text.matches("kind: ConfigMap").count());
    assert_eq!(counts, [1, 0, 1, 0]);
}

#[test]
fn a_workload_reads_the_objects_of_its_own_folder_first() {
    let place = place(CHECKSUM);
    place.write("apps/dev/settings.yaml", config_map("settings", "dev"));
    place.write("apps/prod/settings.yaml", config_map("settings", "prod"));
    place.write("apps/shared.yaml", config_map("agent-config", "one"));
    run(&place, "apply -q -i -p policy.yaml apps");
    let [dev, _, prod, _] = texts(&place);
    let sum = |text: &str| {
        let line = text.lines().find(|line| line.contains("checksum/all"));
        line.expect("there is a checksum").to_owned()
    };
    assert_ne!(sum(&dev), sum(&prod));
    run(&place, "check -p policy.yaml apps");
}

#[test]
fn of_folders_beside_it_none_is_chosen_where_they_differ() {
    let place = place(CHECKSUM);
    place.write("apps/shared.yaml", config_map("agent-config", "one"));
    place.write("config/a/settings.yaml", config_map("settings", "dev"));
    run(&place, "apply -q -p policy.yaml apps config");
    place.write("config/b/settings.yaml", config_map("settings", "prod"));
    let output = place.run(&["apply", "-q", "-p", "policy.yaml", "apps", "config"]);
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{messages}");
    assert!(messages.contains("unclear-object"), "{messages}");
}

#[test]
fn a_file_with_comments_alone_arrives_in_the_output_folder() {
    let place = place(CHECKSUM);
    place.write("apps/dev/settings.yaml", config_map("settings", "dev"));
    place.write("apps/prod/settings.yaml", config_map("settings", "prod"));
    place.write("apps/agent.yaml", config_map("agent-config", "one"));
    place.write("apps/off.yaml", "# apiVersion: v1\n# kind: ConfigMap\n");
    place.write("apps/empty.yaml", "");
    place.write("apps/values.yml", "replicas: 1\n");
    run(&place, "apply -q -p policy.yaml --output-dir out apps");
    assert_eq!(place.read("out/off.yaml"), place.read("apps/off.yaml"));
    assert_eq!(place.read("out/empty.yaml"), "");
    assert!(place.read("out/dev/a.yaml").contains("checksum/all"));
    assert!(!place.path("out/values.yml").exists());
    let printed = place.run(&["apply", "-q", "-p", "policy.yaml", "apps"]);
    assert!(!String::from_utf8_lossy(&printed.stdout).contains("# kind: ConfigMap"));
}
