//! What a platform engineer meets in the first week: filters that fit nothing, policies that are gone, settings of a
//! repository.

use crate::program::{AGENT as POLICY, Place, stderr_of, stdout_of, succeeded};

/// A deployment of a namespace with a runtime.
fn deployment(namespace: &str, name: &str, runtime: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  namespace: {namespace}\nspec:\n  \
         template:\n    metadata:\n      labels:\n        runtime: {runtime}\n    spec:\n      containers:\n        \
         - name: app\n          image: docker.io/app:1\n"
    )
}

/// A folder with a policy and two workloads.
fn shop() -> Place {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    place.write("apps/orders.yaml", deployment("shop", "orders", "java"));
    place.write("apps/cart.yml", deployment("shop", "cart", "go"));
    place
}

/// The exit status, and what was said.
#[track_caller]
fn refused(place: &Place, args: &[&str], words: &[&str]) -> String {
    let output = place.run(args);
    let messages = stderr_of(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}\n{messages}");
    assert_eq!(stdout_of(&output), "", "{args:?}");
    for word in words {
        assert!(
            messages.contains(word),
            "{args:?}: {word} is missing in\n{messages}"
        );
    }
    messages
}

#[test]
fn a_workload_that_is_not_there_is_an_error_in_every_command() {
    let place = shop();
    for command in ["apply", "diff", "check", "explain", "debug"] {
        let args = [
            command,
            "-p",
            "policy.yaml",
            "--workload",
            "deploy/*/carts",
            "apps",
        ];
        let messages = refused(&place, &args, &["no-match", "deploy/*/carts"]);
        assert!(!messages.contains("nothing to report"), "{messages}");
    }
    refused(
        &place,
        &["inspect", "--workload", "sts/orders", "apps"],
        &["no-match"],
    );
    refused(
        &place,
        &[
            "check",
            "-p",
            "policy.yaml",
            "--workload",
            "deploy/shop/oders",
            "apps",
        ],
        &["did you mean `--workload 'Deployment shop/orders'`?"],
    );
    // What it offers works.
    let check = [
        "check",
        "-p",
        "policy.yaml",
        "--workload",
        "Deployment shop/orders",
        "apps",
    ];
    let output = place.run(&check);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_of(&output));
    assert!(stdout_of(&output).contains("out-of-date"));
}

#[test]
fn kinds_are_written_as_in_kubectl() {
    let place = shop();
    for pattern in [
        "deploy/orders",
        "deployments/shop/orders",
        "DEPLOYMENT/*/ord*",
        "deployment shop/orders",
    ] {
        let args = [
            "apply",
            "-p",
            "policy.yaml",
            "--workload",
            pattern,
            "apps/orders.yaml",
        ];
        assert!(
            succeeded(&place.run(&args)).contains("agent: \"on\""),
            "{pattern}"
        );
    }
}

#[test]
fn an_include_that_fits_no_file_and_a_folder_without_policies_are_errors() {
    let place = shop();
    let include = [
        "diff",
        "-p",
        "policy.yaml",
        "--include",
        "*.yaml",
        "--include",
        "*.yarn",
        "apps",
    ];
    let warned = stderr_of(&place.run(&include));
    assert!(
        warned.contains("--include *.yarn") && !warned.contains("*.yaml`"),
        "{warned}"
    );
    refused(
        &place,
        &[&include[..], &["--strict"]].concat(),
        &["no-match"],
    );
    let messages = refused(
        &place,
        &["diff", "-p", "policy.yaml", "--include", "x/*", "apps"],
        &["--include x/*"],
    );
    assert_eq!(
        messages.matches("more: podgraft explain").count(),
        1,
        "{messages}"
    );
    place.write("empty/README.md", "");
    place.write(
        "facts/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    );
    for (folder, words) in [
        ("empty", "there is no policy in the folder `empty`"),
        ("facts", "`facts/map.yaml` contains no policy"),
    ] {
        let messages = refused(
            &place,
            &["apply", "-p", "policy.yaml", "-p", folder, "apps"],
            &[words],
        );
        assert!(!messages.contains("--include"), "{messages}");
    }
    // The globs of a repository are for more than this folder.
    let config = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\ninclude: ['*.yaml', other/*]\n";
    place.write("podgraft.yaml", config);
    succeeded(&place.run(&["apply", "-p", "policy.yaml", "apps"]));
}

#[test]
fn what_a_policy_left_that_is_not_given_any_more_is_named_with_the_command_that_takes_it_out() {
    let place = shop();
    place.write("new.yaml", POLICY.replace("name: agent", "name: agent-2"));
    let before = place.read("apps/orders.yaml");
    succeeded(&place.run(&["apply", "-i", "-p", "policy.yaml", "apps"]));
    for command in ["apply", "diff", "check"] {
        let output = place.run(&[command, "-p", "new.yaml", "apps"]);
        let all = stderr_of(&output) + &stdout_of(&output);
        assert!(all.contains("orphaned"), "{command}\n{all}");
    }
    let messages = stderr_of(&place.run(&["diff", "-p", "new.yaml", "apps"]));
    let way_out = "podgraft undo --only agent --in-place apps/orders.yaml";
    let flat = messages.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.replace("│ ", "").contains(way_out), "{messages}");
    let args: Vec<&str> = way_out.split(' ').skip(1).collect();
    succeeded(&place.run(&args));
    assert_eq!(place.read("apps/orders.yaml"), before);
}

#[test]
fn a_policy_of_another_set_is_another_runs() {
    let place = shop();
    place.write("new.yaml", POLICY.replace("name: agent", "name: agent-2"));
    succeeded(&place.run(&[
        "apply",
        "-i",
        "-p",
        "policy.yaml",
        "--policy-set",
        "java",
        "apps",
    ]));
    let other = place.run(&["diff", "-p", "new.yaml", "--policy-set", "web", "apps"]);
    assert!(
        !stderr_of(&other).contains("orphaned"),
        "{}",
        stderr_of(&other)
    );
    let same = place.run(&["diff", "-p", "new.yaml", "--policy-set", "java", "apps"]);
    assert!(
        stderr_of(&same).contains("orphaned"),
        "{}",
        stderr_of(&same)
    );
    let pruned = place.run(&[
        "diff",
        "-p",
        "new.yaml",
        "--policy-set",
        "java",
        "--prune",
        "apps",
    ]);
    assert!(
        !stderr_of(&pruned).contains("orphaned"),
        "{}",
        stderr_of(&pruned)
    );
}

#[test]
fn what_helm_calls_set_is_refused_with_the_way_out() {
    let place = shop();
    for flag in ["--set", "--policy-set"] {
        refused(
            &place,
            &["apply", "-p", "policy.yaml", flag, "version=2.99.0", "apps"],
            &["--param version=2.99.0"],
        );
    }
}

const HEAD: &str = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\n";

/// The shop with a configuration.
fn configured(rest: &str) -> Place {
    let place = shop();
    place.write("podgraft.yaml", format!("{HEAD}{rest}"));
    place
}

/// The exit status of `check` and what it printed.
fn check(place: &Place, args: &[&str]) -> (Option<i32>, String) {
    let output = place.run(&[&["check"], args].concat());
    (
        output.status.code(),
        stdout_of(&output) + &stderr_of(&output),
    )
}

#[test]
fn a_policy_must_be_for_so_many_workloads_or_for_all_that_a_selector_finds() {
    let place = shop();
    place.write("apps/bill.yaml", deployment("shop", "bill", "java"));
    place.write(
        "narrow.yaml",
        POLICY.replace("    selector:", "    names: [orders]\n    selector:"),
    );
    for policy in ["policy.yaml", "narrow.yaml"] {
        succeeded(&place.run(&["apply", "-i", "-p", policy, "apps"]));
    }
    let narrow = ["-p", "narrow.yaml", "apps"];
    assert_eq!(check(&place, &narrow).0, Some(0));
    let with =
        |require: &'static str| check(&place, &[&["--require", require], &narrow[..]].concat());
    assert_eq!(with("agent=1").0, Some(0));
    let (status, shown) = with("agent=2");
    assert_eq!(status, Some(1), "{shown}");
    assert!(
        shown.contains("not-covered") && shown.contains("applies to 1: Deployment shop/orders"),
        "{shown}"
    );
    let (status, shown) = with("agent:runtime=java");
    assert_eq!(status, Some(1), "{shown}");
    assert!(
        shown.contains("does not apply to Deployment shop/bill: "),
        "{shown}"
    );
    assert!(!shown.contains("shop/cart"), "{shown}");
    let (status, shown) = with("agent:runtime=jawa");
    assert!(
        status == Some(1) && shown.contains("there are none"),
        "{shown}"
    );
    refused(
        &place,
        &["check", "--require", "agent", "-p", "policy.yaml", "apps"],
        &["POLICY=NUMBER"],
    );
    let config = "require:\n- policy: agent\n  selector: {matchLabels: {runtime: java}}\n- {policy: agent, atLeast: 1}\n";
    place.write("podgraft.yaml", format!("{HEAD}{config}"));
    let (status, shown) = check(&place, &narrow);
    assert!(
        status == Some(1) && shown.contains("not-covered"),
        "{shown}"
    );
    let (status, shown) = check(
        &place,
        &[&["--workload", "deploy/orders"], &narrow[..]].concat(),
    );
    assert_eq!(status, Some(0), "a part says nothing of the whole\n{shown}");
}

#[test]
fn a_finding_is_acknowledged_with_a_reason() {
    let place = shop();
    let env = "  inject:\n    env: [{name: JAVA_TOOL_OPTIONS, op: Append, value: -Da=b}]\n";
    let policy = POLICY.replace("  inject:\n    podAnnotations: {agent: 'on'}\n", env);
    place.write("policy.yaml", policy);
    succeeded(&place.run(&["apply", "-i", "-p", "policy.yaml", "apps"]));
    // The finding is of the injection itself.
    place.write("apps/orders.yaml", deployment("shop", "orders", "java"));
    let strict = ["apply", "--strict", "-p", "policy.yaml", "apps"];
    refused(&place, &strict, &["hidden-env"]);
    let config = "acknowledge:\n- {code: hidden-env, workload: deploy/shop/orders, reason: the image sets none}\n";
    place.write("podgraft.yaml", format!("{HEAD}{config}"));
    succeeded(&place.run(&strict));
    let other = config.replace("orders", "cart");
    place.write("podgraft.yaml", format!("{HEAD}{other}"));
    refused(&place, &strict, &["hidden-env"]);
    let (_, shown) = check(&place, &["-p", "policy.yaml", "apps"]);
    assert!(
        shown.contains("unused") && shown.contains("podgraft.yaml:4"),
        "{shown}"
    );
    for (wrong, words) in [
        ("{code: hidden-env}", "missing field `reason`"),
        ("{code: hidden-env, reason: ' '}", "must say why"),
        ("{code: hiden-env, reason: x}", "did you mean `hidden-env`?"),
        ("{code: not-yaml, reason: x}", "cannot be accepted"),
        ("{code: conflict, reason: x, workload: a}", "kind/name"),
    ] {
        place.write("podgraft.yaml", format!("{HEAD}acknowledge: [{wrong}]\n"));
        refused(&place, &strict, &[words]);
    }
}

#[test]
fn a_workload_with_an_error_neither_misses_a_requirement_nor_leaves_an_acknowledgement_unused() {
    let place = configured(
        "policies: [policy.yaml]\nrequire:\n- {policy: agent, atLeast: 1}\n- policy: agent\n  selector: {matchLabels: {runtime: java}}\n\
         acknowledge: [{code: hidden-env, workload: deploy/orders, reason: x}]\n",
    );
    let orders = deployment("shop", "orders", "java");
    let orders = orders.replace("    spec:", "      annotations: {agent: 'off'}\n    spec:");
    place.write("apps/orders.yaml", orders);
    let (status, shown) = check(&place, &["apps"]);
    assert_eq!(status, Some(1), "{shown}");
    assert!(
        shown.contains("error[conflict]") && shown.contains(": 1 error\n"),
        "{shown}"
    );
}

#[test]
fn a_finding_of_check_is_acknowledged() {
    let place = configured(
        "policies: [policy.yaml]\nacknowledge: [{code: out-of-date, policy: agent, workload: deploy/orders, reason: x}]\n",
    );
    let (status, shown) = check(&place, &["apps"]);
    // What several policies would do to a workload is of none of them.
    assert!(
        status == Some(1) && shown.contains("out-of-date"),
        "{shown}"
    );
    let place = configured(
        "policies: [policy.yaml]\nacknowledge: [{code: out-of-date, workload: deploy/orders, reason: x}]\n",
    );
    let (status, shown) = check(&place, &["apps"]);
    assert!(
        status == Some(0) && !shown.contains("out-of-date"),
        "{shown}"
    );
}

#[test]
#[cfg(unix)]
fn a_namespace_by_folder_is_found_through_a_link_to_the_repository() {
    let place = configured("policies: [policy.yaml]\nnamespaces: {'apps/*': dev}\n");
    let bare = deployment("x", "a", "java").replace("  namespace: x\n", "");
    place.write("apps/shop/a.yaml", bare);
    let policy = POLICY.replace("    selector:", "    namespaces: [dev]\n    selector:");
    place.write("policy.yaml", policy);
    let elsewhere = Place::new();
    let link = elsewhere.path("link");
    std::os::unix::fs::symlink(place.root(), &link).expect("a link");
    let output = place.run(&["apply".as_ref(), link.join("apps/shop").as_os_str()]);
    assert!(
        succeeded(&output).contains("agent: \"on\""),
        "{}",
        stderr_of(&output)
    );
}

#[test]
fn a_configuration_says_namespaces_by_folder_variables_of_images_and_strictness() {
    let place = configured("namespaces: {apps/prod: prod, 'apps/*': dev}\nnamespace: other\n");
    let bare = deployment("x", "a", "java").replace("  namespace: x\n", "");
    for folder in ["apps/prod/x", "apps/shop", "lib"] {
        place.write(format!("{folder}/a.yaml"), &bare);
    }
    for (namespace, file) in [
        ("prod", "apps/prod/x/a.yaml"),
        ("dev", "apps/shop/a.yaml"),
        ("other", "lib/a.yaml"),
    ] {
        let of = POLICY.replace(
            "    selector:",
            &format!("    namespaces: [{namespace}]\n    selector:"),
        );
        place.write("of.yaml", of);
        let output = place.run(&["apply", "-p", "of.yaml", file]);
        assert!(
            succeeded(&output).contains("agent: \"on\""),
            "{file}\n{}",
            stderr_of(&output)
        );
        let flag = place.run(&["apply", "-n", "elsewhere", "-p", "of.yaml", file]);
        assert!(!stdout_of(&flag).contains("agent: \"on\""), "the flag wins");
    }
    for (wrong, line) in [
        ("namespace: Shop\n", 3),
        ("namespaces:\n  apps/prod: 'a b'\n", 4),
    ] {
        place.write("podgraft.yaml", format!("{HEAD}{wrong}"));
        let words = [
            &*format!("podgraft.yaml:{line}"),
            "a namespace name must contain only lowercase letters",
        ];
        refused(&place, &["apply", "-p", "of.yaml", "lib"], &words);
    }
    place.write(
        "podgraft.yaml",
        format!("{HEAD}strict: true\nimageEnv: ['app:JAVA_TOOL_OPTIONS=-Xmx1g']\n"),
    );
    let env = "  inject:\n    env: [{name: JAVA_TOOL_OPTIONS, op: Append, value: -Da=b}]\n";
    place.write(
        "policy.yaml",
        POLICY.replace("  inject:\n    podAnnotations: {agent: 'on'}\n", env),
    );
    let shown = succeeded(&place.run(&["apply", "-p", "policy.yaml", "apps/orders.yaml"]));
    assert!(shown.contains("-Xmx1g -Da=b"), "{shown}");
    place.write("podgraft.yaml", format!("{HEAD}strict: true\n"));
    refused(
        &place,
        &["apply", "-p", "policy.yaml", "apps/orders.yaml"],
        &["hidden-env", "--strict"],
    );
}

#[test]
fn a_policy_has_other_labels_and_params_in_a_configuration() {
    let place = configured(
        "policies:\n- use: builtin:jmx-exporter\n  params: {image: 'registry.example.com/curl:9'}\n  match: {selector: {matchLabels: {runtime: go}}}\n  \
         containers: {mode: First}\n",
    );
    let shown = succeeded(&place.run(&["apply", "apps"]));
    assert!(shown.contains("registry.example.com/curl:9"), "{shown}");
    let documents: Vec<&str> = shown.split("---\n").collect();
    assert!(
        documents[0].contains("name: cart") && documents[0].contains("jmx-exporter"),
        "{shown}"
    );
    assert!(!documents[1].contains("jmx-exporter"), "{shown}");
    let wrong = "policies:\n- use: builtin:jmx-exporter\n  match: {selektor: {}}\n";
    place.write("podgraft.yaml", format!("{HEAD}{wrong}"));
    refused(
        &place,
        &["apply", "apps"],
        &["podgraft.yaml:5", "did you mean `selector`?"],
    );
    let wrong = "policies:\n- use: builtin:jmx-exporter\n  params: {imag: x}\n";
    place.write("podgraft.yaml", format!("{HEAD}{wrong}"));
    refused(
        &place,
        &["apply", "apps"],
        &["podgraft.yaml:5", "did you mean `image`?"],
    );
}

#[test]
fn another_file_than_the_one_whose_digest_is_named_is_refused_before_the_run() {
    let place = configured("policies: [{use: policy.yaml, sha256: '00'}]\n");
    refused(&place, &["apply", "apps"], &["64 hexadecimal digits"]);
    let zeros = "0".repeat(64);
    place.write(
        "podgraft.yaml",
        format!("{HEAD}policies: [{{use: policy.yaml, sha256: '{zeros}'}}]\n"),
    );
    let messages = refused(
        &place,
        &["apply", "apps"],
        &["digest-mismatch", "policy.yaml"],
    );
    // The digest that it names is the right one.
    let digest = messages
        .split(|char: char| !char.is_ascii_hexdigit())
        .find(|word| word.len() == 64 && **word != zeros)
        .expect("it names the digest")
        .to_owned();
    place.write(
        "podgraft.yaml",
        format!("{HEAD}policies: [{{use: policy.yaml, sha256: '{digest}'}}]\n"),
    );
    succeeded(&place.run(&["apply", "apps"]));
    place.write("policy.yaml", POLICY.replace("'on'", "'off'"));
    refused(&place, &["apply", "apps"], &["digest-mismatch"]);
}

#[test]
fn an_image_env_for_no_container_is_said() {
    let place = shop();
    for (container, is_said) in [("ap", true), ("app", false)] {
        let image_env = format!("{container}:JAVA_TOOL_OPTIONS=-Xmx1g");
        let args = [
            "diff",
            "-p",
            "policy.yaml",
            "--image-env",
            &image_env,
            "apps",
        ];
        let messages = stderr_of(&place.run(&args));
        let words = "`--image-env ap:JAVA_TOOL_OPTIONS=...` matches no container";
        assert_eq!(messages.contains(words), is_said, "{messages}");
    }
    // What stands in podgraft.yaml may be for other folders.
    place.write(
        "podgraft.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [policy.yaml]\nimageEnv: [\"ap:A=b\"]\n",
    );
    let messages = stderr_of(&place.run(&["diff", "apps"]));
    assert!(!messages.contains("no-match"), "{messages}");
}

#[test]
fn the_same_of_many_workloads_is_one_finding_and_json_has_all() {
    let place = Place::new();
    place.write(
        "policy.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: agent}\nspec:\n  inject:\n    \
         env: [{name: JAVA_TOOL_OPTIONS, op: Append, value: -javaagent:/a.jar}]\n",
    );
    for number in 0..9 {
        let name = format!("w{number}");
        place.write(
            format!("apps/{name}.yaml"),
            deployment("shop", &name, "java"),
        );
    }
    let said_once = |text: &str| {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(text.matches("hidden-env").count(), 1, "{text}");
        assert!(flat.contains("the same for 8 more workloads"), "{text}");
    };
    let check = ["check", "-p", "policy.yaml", "apps"];
    said_once(&stdout_of(&place.run(&check)));
    let markdown = ["diff", "-o", "markdown", "-p", "policy.yaml", "apps"];
    said_once(&stdout_of(&place.run(&markdown)));
    let html = ["diff", "-o", "html", "-p", "policy.yaml", "apps"];
    said_once(&stdout_of(&place.run(&html)));
    let json = stdout_of(&place.run(&[&check[..], &["-o", "json"]].concat()));
    assert_eq!(json.matches("\"hidden-env\"").count(), 9, "{json}");
    let lines = stderr_of(&place.run(&[&markdown[..], &["--diagnostics", "json"]].concat()));
    assert_eq!(lines.matches("\"hidden-env\"").count(), 9, "{lines}");
}

#[test]
fn json_lines_of_another_program_in_a_folder_stop_nothing() {
    let place = shop();
    let events = "{\"event\": \"a\"}\n{\"event\": \"b\", \"items\": [1]}\n";
    place.write("apps/events.json", events);
    succeeded(&place.run(&["apply", "-i", "-p", "policy.yaml", "apps"]));
    assert_eq!(place.read("apps/events.json"), events);
    // What is meant for a cluster is not passed over.
    place.write(
        "apps/events.json",
        "{\"kind\": \"Pod\"}\n{\"kind\": \"Pod\"}\n",
    );
    refused(
        &place,
        &["apply", "-i", "-p", "policy.yaml", "apps"],
        &["not-yaml"],
    );
}

#[test]
fn a_file_that_is_named_by_two_paths_is_one_input() {
    let place = shop();
    let once = succeeded(&place.run(&["apply", "-q", "-p", "policy.yaml", "apps/orders.yaml"]));
    let ways: [&[&str]; 3] = [
        &["apps/orders.yaml", "./apps/orders.yaml"],
        &["./apps/../apps/orders.yaml", "apps/orders.yaml"],
        &["apps/orders.yaml", "apps", "--exclude", "cart.yml"],
    ];
    for paths in ways {
        let args = [&["apply", "-q", "-p", "policy.yaml"], paths].concat();
        assert_eq!(succeeded(&place.run(&args)), once, "{paths:?}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("orders.yaml", place.path("apps/link.yaml")).expect("a link");
        let paths = ["apps/link.yaml", "apps/orders.yaml"];
        let args = [&["apply", "-q", "-p", "policy.yaml"], &paths[..]].concat();
        assert_eq!(succeeded(&place.run(&args)), once);
    }
}

#[test]
fn a_list_without_items_is_no_mistake() {
    let place = shop();
    let list = "apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";
    place.write("list.yaml", list);
    let args = ["apply", "--strict", "-p", "policy.yaml", "list.yaml"];
    let output = place.run(&args);
    assert_eq!(stdout_of(&output), list);
    assert!(!stderr_of(&output).contains("no-manifests"));
    succeeded(&output);
}
