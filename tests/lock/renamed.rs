//! Workloads of one file that are renamed, where what people wrote is known from the lock file alone; policies that are
//! renamed on a branch.

use std::fs;

use super::{
    DEPLOYMENT, apply, commit_applied, empty_repository, git, policy, repository, succeeded,
};
use crate::program::{Place, stderr_of};

/// The policy wins over what people wrote.
const LEVEL: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: level}
spec:
  onConflict: Replace
  inject: {env: [{name: LEVEL, value: info}]}
";
const FILE: &str = "apps/shop.yaml";

/// A workload with a value of its own.
fn workload(name: &str) -> String {
    let env = format!("        env: [{{name: LEVEL, value: debug-{name}}}]\n");
    let text = DEPLOYMENT.replace("        resources: {}\n", &env);
    text.replace("orders", name)
}

/// A repository with the workloads in a file, after a run.
fn injected(workloads: &[String]) -> Place {
    let place = empty_repository();
    place.write(FILE, workloads.join("---\n"));
    place.write("policies/level.yaml", LEVEL);
    apply(&place);
    assert!(!place.read(FILE).contains("debug"));
    place
}

/// After this edit a run changes nothing, and undo gives back what people wrote, edited.
#[track_caller]
fn is_followed(workloads: &[String], edit: impl Fn(&str) -> String) {
    let place = injected(workloads);
    place.write(FILE, edit(&place.read(FILE)));
    let messages = apply(&place);
    let all = format!("{} unchanged", workloads.len());
    assert!(messages.contains(&all), "{messages}");
    let lines = place.read("podgraft.lock").matches("\"replaced\"").count();
    assert_eq!(lines, workloads.len(), "{}", place.read("podgraft.lock"));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), edit(&workloads.join("---\n")));
}

#[test]
fn one_is_found_beside_others() {
    let rename = |text: &str| text.replacen("  name: orders ", "  name: sales ", 1);
    is_followed(&[workload("orders"), workload("carts")], rename);
    let generated = workload("carts").replace("name: carts ", "generateName: carts- ");
    is_followed(&[workload("orders"), generated], rename);
}

#[test]
fn all_are_found_where_the_old_name_is_a_part_of_the_new_one() {
    let all = ["orders", "carts", "users"].map(workload);
    is_followed(&all, |text| text.replace("\n  name: ", "\n  name: shop-"));
}

#[test]
fn all_are_found_in_another_namespace() {
    let all = ["orders", "carts", "users"].map(workload);
    is_followed(&all, |text| {
        text.replace("\nmetadata:\n", "\nmetadata:\n  namespace: shop\n")
    });
}

#[test]
fn all_are_found_by_what_was_put_into_them() {
    let carts = workload("carts").replace("name: app", "name: web");
    is_followed(&[workload("orders"), carts], |text| {
        let text = text.replacen("  name: orders ", "  name: sales ", 1);
        text.replacen("  name: carts ", "  name: baskets ", 1)
    });
}

#[test]
fn a_copy_has_the_value_of_the_workload_that_was_copied() {
    let carts = workload("carts").replace("name: app", "name: web");
    let place = injected(&[workload("orders"), carts]);
    let text = place.read(FILE);
    let (orders, _) = text.split_once("---\n").expect("there are two");
    let copy = orders.replacen("  name: orders ", "  name: sales ", 1);
    place.write(FILE, [&text, "---\n", &copy].concat());
    assert!(apply(&place).contains("3 unchanged"));
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE).matches("debug-orders").count(), 2);
}

#[test]
fn what_may_be_several_is_refused_and_can_be_kept_as_it_is() {
    let place = injected(&["orders", "carts"].map(workload));
    let text = place.read(FILE);
    let text = text.replacen("  name: orders ", "  name: sales ", 1);
    let text = text.replacen("  name: carts ", "  name: baskets ", 1);
    place.write(FILE, &text);
    for command in [
        ["apply", "-i", "-p", "policies", "apps"].as_slice(),
        &["undo", "-i", "apps"],
    ] {
        let output = place.run(command);
        assert_eq!(output.status.code(), Some(2), "{}", stderr_of(&output));
        let messages = stderr_of(&output);
        let named = ["carts", "orders"].map(|name| format!("Deployment {name} ({FILE})"));
        // Lines are wrapped, and continue behind a bar.
        let words = messages
            .split_whitespace()
            .filter(|word| !["|", "│"].contains(word));
        let messages = words.collect::<Vec<_>>().join(" ");
        assert!(
            messages.contains(&format!("any of: {}", named.join(", "))),
            "{messages}"
        );
        assert_eq!(place.read(FILE), text);
    }
    let lock = place.read("podgraft.lock");
    let lock = lock.replace("\"orders\"", "\"sales\"");
    place.write("podgraft.lock", lock.replace("\"carts\"", "\"baskets\""));
    assert!(apply(&place).contains("2 unchanged"));

    place.write("podgraft.lock", lock.replace("\"sales\"", "\"orders\""));
    succeeded(&place, &["adopt", "-i", "-p", "policies", "apps"]);
    assert!(apply(&place).contains("2 unchanged"));
}

/// One branch changes the policies, the main branch adds a workload with them, and git merges `podgraft.lock`.
#[track_caller]
fn merged_with_a_new_workload(change: impl Fn(&Place)) -> Place {
    let place = repository(1);
    git(&place, &["checkout", "-qb", "other"]);
    change(&place);
    commit_applied(&place);
    git(&place, &["checkout", "-q", "main"]);
    place.write("apps/carts.yaml", DEPLOYMENT.replace("orders", "carts"));
    commit_applied(&place);
    git(&place, &["merge", "-q", "--no-edit", "other"]);
    place
}

#[test]
fn a_branch_may_still_have_a_policy_that_is_renamed_or_gone() {
    let renamed = merged_with_a_new_workload(|place| {
        let text = policy("agent", 1).replacen(
            "name: agent\n",
            "name: tracer\n  annotations: {podgraft.dev/renamed-from: agent}\n",
            1,
        );
        place.write("policies/agent.yaml", text);
    });
    let gone = merged_with_a_new_workload(|place| {
        succeeded(place, &["undo", "-i", "--only", "agent", "apps"]);
        fs::remove_file(place.path("policies/agent.yaml")).expect("it is there");
    });
    apply(&renamed);
    let text = renamed.read("apps/carts.yaml");
    assert!(
        text.contains("applied: \"tracer,proxy,scrape\"\n"),
        "{text}"
    );
    assert!(apply(&gone).contains("orphaned"));
    succeeded(&gone, &["undo", "-i", "--only", "agent", "apps"]);
    let text = gone.read("apps/carts.yaml");
    assert!(text.contains("applied: \"proxy,scrape\"\n"), "{text}");
    for place in [renamed, gone] {
        succeeded(&place, &["undo", "-i", "apps"]);
        let carts = DEPLOYMENT.replace("orders", "carts");
        assert_eq!(place.read("apps/carts.yaml"), carts);
        let app = DEPLOYMENT.replace("orders", "app-0");
        assert_eq!(place.read("apps/app-0.yaml"), app);
        assert!(!place.path("podgraft.lock").exists());
    }
}

/// A policy that puts several things into a container, one of them with the container's name.
const AGENT: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    volumes: [{name: agent, emptyDir: {}}]
    volumeMounts: [{name: agent, mountPath: /agent}]
    env:
    - {name: LEVEL, value: info}
    - {name: JAVA_TOOL_OPTIONS, op: Append, value: \"-javaagent:/agent/a.jar=${container.name}\"}
";

#[test]
fn a_container_is_found_although_somebody_changed_what_was_put_into_it() {
    let place = empty_repository();
    place.write(FILE, DEPLOYMENT);
    place.write("policies/agent.yaml", AGENT);
    apply(&place);
    let rename = |text: &str| text.replace("name: app\n", "name: server\n");
    let edit = |text: &str| rename(text).replace("value: info", "value: debug");
    let edited = edit(&place.read(FILE));
    place.write(FILE, &edited);
    let refused = place.run(&["apply", "-i", "-p", "policies", "apps"]);
    assert_eq!(refused.status.code(), Some(2));
    let messages = stderr_of(&refused);
    let wanted = "server: env LEVEL of Deployment orders was changed after policy `agent` injected";
    assert!(messages.contains(wanted), "{messages}");
    assert_eq!(place.read(FILE), edited);
    // The policy follows the change, and the text of the earlier name goes.
    place.write(
        "policies/agent.yaml",
        AGENT.replace("value: info", "value: debug"),
    );
    apply(&place);
    let text = place.read(FILE);
    assert!(text.contains("=server") && !text.contains("=app"), "{text}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), rename(DEPLOYMENT));
}

/// Two containers, of which the first has its own pull policy.
const TWO_CONTAINERS: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
spec:
  selector:
    matchLabels: {app: shop}
  template:
    metadata:
      labels: {app: shop}
    spec:
      containers:
      - name: shop
        image: nginx:1.16.0
        imagePullPolicy: IfNotPresent
      - name: log
        image: busybox:1
        env:
        - name: ARGS
          value: -v
";
const HOUSE: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: house}
spec:
  inject:
    env:
    - {name: LEVEL, value: info}
    - {name: ARGS, op: Append, value: -Da=1}
    defaults: {imagePullPolicy: IfNotPresent}
";

/// After the edit, with and without a run in between, undo gives back the edited original.
fn is_undone(edit: impl Fn(&str) -> String) {
    for has_run_between in [false, true] {
        let place = empty_repository();
        place.write(FILE, TWO_CONTAINERS);
        place.write("policies/house.yaml", HOUSE);
        apply(&place);
        place.write(FILE, edit(&place.read(FILE)));
        if has_run_between {
            apply(&place);
        }
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read(FILE), edit(TWO_CONTAINERS));
    }
}

#[test]
fn a_container_that_is_still_there_is_not_taken_for_one_that_was_renamed_or_deleted() {
    is_undone(|text| text.replace("name: log\n", "name: logger\n"));
    is_undone(|text| text[..text.find("      - name: log\n").unwrap()].to_owned());
}

#[test]
fn a_container_that_became_a_native_sidecar_is_found() {
    is_undone(|text| {
        let (before, log) = text.split_at(text.find("      - name: log\n").unwrap());
        let image = "        image: busybox:1\n";
        let log = log.replace(image, &format!("{image}        restartPolicy: Always\n"));
        let init = format!("      initContainers:\n{log}      containers:\n");
        before.replace("      containers:\n", &init)
    });
}

/// What no policy changed has its own name, even if it has some of what was injected into a container that is gone.
#[test]
fn an_untouched_container_is_not_taken_for_one_that_is_gone() {
    let backup = "      - name: backup\n        image: backup:1\n        env: [{name: LEVEL, value: info}]\n";
    let original = TWO_CONTAINERS.replace(
        "      containers:\n",
        &format!("      containers:\n{backup}"),
    );
    let more = "    - {name: TZ, value: UTC}\n    - {name: ARGS";
    let house = HOUSE.replace("    - {name: ARGS", more);
    let house = house.replace(
        "  inject:",
        "  containers: {excludeNames: [backup]}\n  inject:",
    );
    let place = empty_repository();
    place.write(FILE, &original);
    place.write("policies/house.yaml", house);
    apply(&place);
    let without_log = |text: &str| text[..text.find("      - name: log\n").unwrap()].to_owned();
    place.write(FILE, without_log(&place.read(FILE)));
    let messages = apply(&place);
    assert!(messages.contains("1 unchanged"), "{messages}");
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read(FILE), without_log(&original));
}

/// A variable that was removed leaves no trace: the only container that is new is the one that was renamed.
#[test]
fn a_copy_with_another_container_name_has_what_was_removed() {
    let original = TWO_CONTAINERS.replace(
        "        imagePullPolicy: IfNotPresent\n",
        "        env: [{name: ARGS, value: -v}]\n",
    );
    let original = original.split("        env:\n").next().unwrap();
    let removing = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: house}
spec: {inject: {env: [{name: ARGS, op: Remove}], podLabels: {agent: v1}}}
";
    let place = empty_repository();
    place.write(FILE, original);
    place.write("policies/house.yaml", removing);
    apply(&place);
    let renamed = |text: &str| text.replace("name: shop\n", "name: cart\n");
    place.write("apps/cart.yaml", renamed(&place.read(FILE)));
    apply(&place);
    succeeded(&place, &["undo", "-i", "apps"]);
    assert_eq!(place.read("apps/cart.yaml"), renamed(original));
}

/// A policy that joins a text to a variable.
fn joining(text: &str) -> String {
    let env =
        format!("[{{name: LEVEL, value: info}}, {{name: OPTIONS, op: Append, value: \"{text}\"}}]");
    format!(
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {{name: agent}}\nspec:\n  \
         inject: {{env: {env}}}\n"
    )
}

/// A workload with options of its own, in two containers.
fn with_options(name: &str) -> String {
    let env = "        env:\n        - name: OPTIONS\n          value: -Xmx1g\n";
    let text = DEPLOYMENT.replace("        resources: {}\n", env);
    let beside = format!("      - name: beside\n        image: beside:1\n{env}");
    text.replace("orders", name) + &beside
}

/// After the edit of one workload, undo gives back what people wrote, edited, and a run with another version of the policy
/// does so after it, too.
#[track_caller]
fn keeps_no_text(versions: &[&str], edit: impl Fn(&str) -> String) {
    let names = ["orders", "carts", "stock"];
    let all = |edited: &str| {
        let workloads = names.map(|name| match name == edited {
            true => edit(&with_options(name)),
            false => with_options(name),
        });
        workloads.join("---\n")
    };
    for edited in names {
        let place = empty_repository();
        place.write(FILE, all(""));
        for version in versions {
            place.write("policies/agent.yaml", joining(version));
            apply(&place);
        }
        let text = place.read(FILE);
        let workloads =
            text.split("---\n")
                .map(|text| match text.contains(&format!("  name: {edited} ")) {
                    true => edit(text),
                    false => text.to_owned(),
                });
        place.write(FILE, workloads.collect::<Vec<_>>().join("---\n"));
        let (text, lock) = (place.read(FILE), place.read("podgraft.lock"));
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read(FILE), all(edited));
        place.write(FILE, text);
        place.write("podgraft.lock", lock);
        place.write("policies/agent.yaml", joining("-new"));
        apply(&place);
        let text = place.read(FILE);
        let mut options = text.lines().filter(|line| line.contains("-Xmx1g"));
        assert!(
            options.all(|line| line.ends_with("-Xmx1g") || line.ends_with("-Xmx1g -new")),
            "{text}"
        );
        succeeded(&place, &["undo", "-i", "apps"]);
        assert_eq!(place.read(FILE), all(edited));
    }
}

#[test]
fn a_renamed_container_keeps_its_own_of_many_texts() {
    let rename = |text: &str| text.replace("- name: app\n", "- name: main\n");
    keeps_no_text(&["-Dname=${workload.name}"], rename);
    // Back to the first version.
    keeps_no_text(&["-one", "-two", "-one"], rename);
}

#[test]
fn a_container_that_becomes_a_native_sidecar_keeps_its_own_of_many_texts() {
    let to_sidecar = |text: &str| {
        let (before, beside) = text
            .split_once("      - name: beside\n")
            .expect("a container");
        let sidecar = format!(
            "      initContainers:\n      - name: beside\n{beside}        restartPolicy: Always\n      containers:\n"
        );
        before.replace("      containers:\n", &sidecar)
    };
    keeps_no_text(&["-Dname=${workload.name}"], to_sidecar);
}

#[test]
fn a_copy_with_a_renamed_container_keeps_its_own_of_many_texts() {
    let place = empty_repository();
    let originals = ["orders", "carts", "stock"].map(with_options).join("---\n");
    place.write(FILE, originals.clone());
    place.write("policies/agent.yaml", joining("-Dname=${workload.name}"));
    apply(&place);
    let text = place.read(FILE);
    let copied = text.split("---\n").next().expect("a workload");
    let copied = copied
        .replace("orders", "sales")
        .replace("-Dname=sales", "-Dname=orders");
    let copied = copied.replace("- name: app\n", "- name: main\n");
    place.write(FILE, [&text, "---\n", &copied].concat());
    apply(&place);
    let text = place.read(FILE);
    assert_eq!(text.matches("-Xmx1g -Dname=sales\n").count(), 2, "{text}");
    succeeded(&place, &["undo", "-i", "apps"]);
    let sales = with_options("sales").replace("- name: app\n", "- name: main\n");
    assert_eq!(place.read(FILE), [&originals, "---\n", &sales].concat());
}
