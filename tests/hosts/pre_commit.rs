//! The hooks for pre-commit, run as pre-commit runs them. `tests/packages.sh` runs them with the real one.

use super::*;

/// The hooks of a file of this repository: a list, or a configuration with a list.
fn hooks(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let hooks = objects(&fs::read_to_string(path).unwrap()).remove(0);
    match &hooks["repos"][0]["hooks"] {
        Value::Null => hooks.as_array().unwrap().clone(),
        configured => configured.as_array().unwrap().clone(),
    }
}

/// What pre-commit runs where a commit changes one file.
fn run(place: &Place, hook: &Value, changed: &str) -> Output {
    let entry = hook["entry"].as_str().unwrap();
    let mut words: Vec<&str> = entry.split(' ').collect();
    if hook["pass_filenames"] != false {
        words.push(changed);
    }
    assert_eq!(words.remove(0), "podgraft");
    place.podgraft(&words).output().unwrap()
}

#[test]
fn hooks_find_manifests_that_are_behind_a_policy_that_changed() {
    for file in [
        ".pre-commit-hooks.yaml",
        "hosts/pre-commit/pre-commit-config.yaml",
    ] {
        for hook in hooks(file) {
            let place = Place::new();
            place.write(
                "podgraft.yaml",
                "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [agent.yaml]\n",
            );
            place.write("apps/orders.yaml", DEPLOYMENT);
            succeeded(&place.podgraft(&["apply", "-i", "."]).output().unwrap());
            succeeded(&run(&place, &hook, "agent.yaml"));
            place.write("agent.yaml", &POLICY.replace("agent:1", "agent:2"));
            let output = run(&place, &hook, "agent.yaml");
            // pre-commit fails where a hook changes files, whatever its exit status is.
            let is_up_to_date = place.read("apps/orders.yaml").contains("agent:2");
            let is_found = output.status.code() == Some(1) || is_up_to_date;
            assert!(is_found, "{file}: {}", stdout_of(&output));
        }
    }
}
