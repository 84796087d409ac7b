//! `podgraft fn` on the wire, without a host.

use super::*;

fn indented(text: &str, first: &str, rest: &str) -> String {
    let line = |(at, line): (usize, &str)| match (at, line.is_empty()) {
        (_, true) => "\n".to_owned(),
        (0, false) => format!("{first}{line}\n"),
        (_, false) => format!("{rest}{line}\n"),
    };
    text.lines().enumerate().map(line).collect()
}

/// A list of items, with a functionConfig.
pub fn list(items: &[&str], function_config: &str) -> String {
    let items: String = items
        .iter()
        .map(|item| indented(item, "- ", "  "))
        .collect();
    let head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n";
    let config = if function_config.is_empty() {
        String::new()
    } else {
        indented(function_config, "  ", "  ")
    };
    format!(
        "{head}{items}{}{config}",
        if config.is_empty() {
            ""
        } else {
            "functionConfig:\n"
        }
    )
}

/// Without the comment, which would stand between the dash and the item.
fn deployment() -> String {
    DEPLOYMENT.replace("# the shop\n", "")
}

fn function(place: &Place, list: &str) -> Output {
    with_stdin(place.podgraft(&["fn"]), list)
}

fn results(output: &str) -> Vec<Value> {
    objects(output)[0]["results"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

#[test]
fn the_lists_text_stays_and_its_items_are_what_apply_makes_of_them() {
    let place = Place::new();
    let input = list(&[&deployment(), CONFIG_MAP], POLICY);
    for version in ["v1", "v1beta1", "v1alpha1"] {
        let input = input.replace(
            "config.kubernetes.io/v1\n",
            &format!("config.kubernetes.io/{version}\n"),
        );
        let output = succeeded(&function(&place, &input));
        for line in input.lines().filter(|line| !line.contains("-Xmx1g")) {
            assert!(output.contains(line), "`{line}` is missing in\n{output}");
        }
        let patched = place.applied(&format!("{}---\n{CONFIG_MAP}", deployment()));
        let mut items = objects(&output)[0]["items"].as_array().unwrap().clone();
        items.sort_by_key(|item| item["kind"].to_string());
        assert_eq!(items, objects(&patched));
        let messages = results(&output);
        assert_eq!(
            (messages.len(), &messages[0]["severity"]),
            (1, &Value::from("info"))
        );
        assert_eq!(messages[0]["resourceRef"]["name"], "orders");
    }
}

#[test]
fn a_second_run_changes_nothing() {
    let place = Place::new();
    let once = list(&[&place.applied(&deployment())], POLICY);
    assert_eq!(succeeded(&function(&place, &once)), once);
    let none = list(&[], POLICY).replace("items:\n", "items: []\n");
    assert_eq!(succeeded(&function(&place, &none)), none);
}

#[test]
fn an_error_is_among_the_results_on_stderr_and_in_the_exit_status() {
    let place = Place::new();
    let other = deployment().replace(
        "labels: {app",
        "annotations: {prometheus.io/port: '1'}\n      labels: {app",
    );
    let input = list(&[&other], POLICY);
    let output = function(&place, &input);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr_of(&output).contains("conflict"),
        "{}",
        stderr_of(&output)
    );
    let found = results(&stdout_of(&output));
    assert_eq!(found[0]["severity"], "error");
    assert_eq!(
        found[0]["field"]["path"],
        "spec.template.metadata.annotations.prometheus.io/port"
    );
    let mut list = objects(&stdout_of(&output))[0].clone();
    list.as_object_mut().unwrap().shift_remove("results");
    assert_eq!(vec![list], objects(&input), "nothing else is changed");
}

#[test]
fn what_a_function_says_of_opentelemetry_wins_over_the_operators_file() {
    let place = Place::new();
    place.write(
        "instrumentation.yaml",
        "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\n\
                 metadata: {name: agents, namespace: shop}\nspec: {}\n",
    );
    place.write(
        "operator.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\n\
                 openTelemetry: {enable: [go], images: {java: 'registry.example.com/theirs:1'}}\n",
    );
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: shop\n  annotations:\n    \
               instrumentation.opentelemetry.io/inject-java: 'true'\nspec:\n  containers:\n  - {name: app, image: a}\n";
    let config = "apiVersion: podgraft.dev/v1alpha1\nkind: PodgraftFunction\nmetadata: {name: f}\n\
                  spec:\n  policies: [instrumentation.yaml]\n  \
                  openTelemetry: {images: {java: 'registry.example.com/ours:1'}}\n";
    let mut command = place.podgraft(&["fn"]);
    command.env("PODGRAFT_CONFIG", "operator.yaml");
    let output = succeeded(&with_stdin(command, &list(&[pod], config)));
    assert!(
        output.contains("image: registry.example.com/ours:1"),
        "{output}"
    );
    assert!(
        output.contains("OpenTelemetry Operator 0.158.0, go enabled"),
        "{output}"
    );
}

#[test]
fn a_podgraft_function_names_policies_and_their_parameters() {
    let place = Place::new();
    let config = |spec: &str| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1\nkind: PodgraftFunction\nmetadata: {{name: f}}\nspec: {spec}\n"
        )
    };
    let input = list(
        &[&deployment()],
        &config("{policies: [agent.yaml], params: {agent: {port: 1}}}"),
    );
    assert!(succeeded(&function(&place, &input)).contains("agent.jar=1"));
    let mirrored =
        "{policies: [agent.yaml], imageMirrors: [{name: docker.io/agent, newName: m/agent}]}";
    assert!(
        succeeded(&function(
            &place,
            &list(&[&deployment()], &config(mirrored))
        ))
        .contains("m/agent:1")
    );
    for (spec, why) in [
        ("{polices: [a]}", "did you mean"),
        ("{policies: [x.yaml]}", "x.yaml"),
        ("{}", "no policy is given"),
    ] {
        assert!(
            failed(&function(&place, &list(&[&deployment()], &config(spec)))).contains(why),
            "{spec}"
        );
    }
}

#[test]
fn kpts_config_map_names_policies_and_parameters() {
    let place = Place::new();
    let config = "apiVersion: v1\nkind: ConfigMap\ndata: {policy: agent.yaml, port: '7', 'agent:image': 'a:2'}\n";
    let output = succeeded(&function(&place, &list(&[&deployment()], config)));
    assert!(
        output.contains("agent.jar=7") && output.contains("image: a:2"),
        "{output}"
    );
    let without = deployment().replace("JAVA_TOOL_OPTIONS", "OTHER");
    let warned = stderr_of(&function(&place, &list(&[&without], config)));
    assert!(
        warned.contains("under `imageEnv`") && !warned.contains("--image-env"),
        "{warned}"
    );
    for data in ["", "data: {port: '7'}\n"] {
        let config = format!("apiVersion: v1\nkind: ConfigMap\n{data}");
        let refused = failed(&function(&place, &list(&[&deployment()], &config)));
        assert!(
            refused.contains("no policy is given") && refused.contains("under the key `policy`"),
            "{refused}"
        );
    }
}

#[test]
fn policies_among_the_items_count_only_when_asked_for() {
    let place = Place::new();
    let items = [&deployment(), POLICY];
    let input = list(&items, "");
    assert!(failed(&function(&place, &input)).contains("no policy is given"));
    let asked = with_stdin(place.podgraft(&["fn", "-p", "@input"]), &input);
    let output = succeeded(&asked);
    assert!(output.contains("agent.jar=9404"));
    let policy_in = |text: &str| objects(text)[0]["items"][1].clone();
    assert_eq!(
        policy_in(&output),
        policy_in(&input),
        "the policy itself is not edited"
    );
    let without = list(&[&deployment()], "");
    let output = with_stdin(place.podgraft(&["fn", "-p", "@input"]), &without);
    assert!(failed(&output).contains("there is no policy among the manifests"));
}

#[test]
fn the_resources_of_a_policy_are_found_among_the_items() {
    let place = Place::new();
    let items = [RESOURCE, &deployment()];
    let with_config = list(&items, POLICY_FOR_RESOURCES);
    let output = succeeded(&function(&place, &with_config));
    assert!(output.contains("value: high"), "{output}");
    let asked = with_stdin(place.podgraft(&["fn", "-p", "@input"]), &with_config);
    assert_eq!(succeeded(&asked), output);
    place.write("policy.yaml", POLICY_FOR_RESOURCES);
    let with_policy = &["fn", "-p", "policy.yaml"][..];
    let run = |args: &[&str]| with_stdin(place.podgraft(args), &list(&items, ""));
    assert!(failed(&run(with_policy)).contains("requires a resource"));
    let asked = succeeded(&run(&[with_policy, &["-p", "@input"]].concat()));
    assert!(asked.contains("value: high"), "{asked}");
}

#[test]
fn what_is_not_for_a_cluster_is_never_edited() {
    let place = Place::new();
    let local = deployment().replace(
        "  name: orders",
        "  annotations: {config.kubernetes.io/local-config: 'true'}\n  name: orders",
    );
    let kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: p}\npipeline: {mutators: [{exec: podgraft fn}]}\n";
    let input = list(&[&local, kptfile, POLICY], POLICY);
    assert_eq!(succeeded(&function(&place, &input)), input);
}

#[test]
fn what_is_no_list_is_refused_with_nothing_on_stdout() {
    let place = Place::new();
    for input in [
        DEPLOYMENT,
        "",
        "a: [\n",
        "[]\n",
        "apiVersion: config.kubernetes.io/v2\nkind: ResourceList\n",
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: {}\n",
        "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n---\na: 1\n",
    ] {
        let output = function(&place, input);
        assert!(
            failed(&output).contains("bad-resource-list"),
            "{}",
            stderr_of(&output)
        );
        assert_eq!(stdout_of(&output), "");
    }
    let unknown = list(&[&deployment()], "apiVersion: example.com/v1\nkind: X\n");
    assert!(failed(&function(&place, &unknown)).contains("bad-resource-list"));
}

#[test]
fn annotations_of_orchestrators_pass_through() {
    let place = Place::new();
    let noted = deployment().replace(
        "  name: orders",
        "  annotations:\n    internal.config.kubernetes.io/path: 'a/b.yaml'\n    internal.config.kubernetes.io/index: '0'\n    \
         internal.config.kubernetes.io/seqindent: compact\n    config.k8s.io/id: '1'\n  name: orders",
    );
    let output = succeeded(&function(&place, &list(&[&noted], POLICY)));
    let item = &objects(&output)[0]["items"][0];
    assert_eq!(
        item["metadata"]["annotations"].as_object().unwrap().len(),
        5,
        "with podgraft's own: {item}"
    );
    assert_eq!(results(&output)[0]["file"]["path"], "a/b.yaml");
}

#[test]
fn a_generated_object_is_an_item_and_a_second_run_makes_no_other() {
    let place = Place::new();
    let generate = "  generate:\n  - resource:\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: 'made-${workload.name}'}\n      \
                    data: {a: b}\n";
    let policy = format!("{POLICY}{generate}");
    let once = succeeded(&function(
        &place,
        &list(&[&deployment(), CONFIG_MAP], &policy),
    ));
    let items = objects(&once)[0]["items"].as_array().unwrap().clone();
    let names: Vec<&str> = items
        .iter()
        .filter_map(|item| item["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["orders", "made-orders", "settings"]);
    let (head, rest) = once.split_once("results:\n").unwrap();
    let again = format!(
        "{head}{}",
        rest.split_once("\nitems:")
            .map(|(_, items)| format!("items:{items}"))
            .unwrap()
    );
    assert_eq!(succeeded(&function(&place, &again)), again);
}

#[test]
fn the_policies_of_a_config_map_are_a_string() {
    let place = Place::new();
    for value in ["1", "", "true", "null"] {
        let config = format!("apiVersion: v1\nkind: ConfigMap\ndata:\n  policy: {value}\n");
        let output = function(&place, &list(&[&deployment()], &config));
        let text = failed(&output);
        let wanted = "`policy` must be a string with the names of policies";
        assert!(text.contains(wanted), "{text}");
        assert!(!text.contains("explain no-manifests"), "{text}");
    }
}
