//! What podgraft says where something cannot be done: the real reason, and advice that works.

use crate::program::{Place, failed, stderr_of, stdout_of, succeeded, with_stdin};

const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec: {inject: {env: [{name: J, value: abc}]}}
";
const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, namespace: shop}
spec:
  template:
    spec:
      containers:
      - name: app
        image: x/y:1
";

fn place() -> Place {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    place.write("r/a.yaml", DEPLOYMENT);
    place
}

#[test]
fn undo_names_the_key_that_stands_twice_and_not_a_lost_record() {
    let place = place();
    let apply = ["apply", "--no-config", "-i", "-p", "policy.yaml", "r"];
    succeeded(&place.run(&apply));
    let twice = place
        .read("r/a.yaml")
        .replace("image: x/y:1", "image: x/y:1\n        env: []");
    place.write("r/a.yaml", twice);
    let text = failed(&place.run(&["undo", "--no-config", "-i", "r"]));
    assert!(text.contains("the key `env` is defined twice"), "{text}");
    assert!(!text.contains("no-record"), "{text}");
}

#[test]
fn a_post_renderer_is_not_advised_to_take_a_path() {
    let place = place();
    let template = DEPLOYMENT.replace("name: a,", "name: {{ .Values.name }},");
    let command = place.command(&["post-render", "-p", "policy.yaml", "--diagnostics", "short"]);
    let text = failed(&with_stdin(command, &template));
    let advice =
        "helm template RELEASE CHART | podgraft post-render -p policy.yaml --diagnostics short\n";
    assert!(text.contains(advice), "{text}");
}

#[test]
fn undo_is_not_advised_to_render_a_chart() {
    let place = place();
    succeeded(&place.run(&["apply", "--no-config", "-i", "-p", "policy.yaml", "r"]));
    place.write("r/template.yaml", "{{- if .Values.on }}\n{{- end }}\n");
    let undo = ["undo", "--no-config", "-i", "r"];
    let text = failed(&place.run(&undo));
    assert!(
        text.contains("leave them out with --exclude") && !text.contains("helm template"),
        "{text}"
    );
    succeeded(&place.run(&[&undo[..], &["--exclude", "template.yaml"]].concat()));
    assert_eq!(place.read("r/a.yaml"), DEPLOYMENT);
}

#[test]
fn the_command_that_renders_a_chart_keeps_the_values_of_flags() {
    let place = place();
    place.write("shop/Chart.yaml", "name: shop\n");
    let template = DEPLOYMENT.replace("x/y:1", "{{ .Values.image }}");
    place.write("shop/templates/a.yaml", template);
    for (typed, advised) in [
        (
            "diff shop -p policy.yaml -n shop",
            "diff -p policy.yaml -n shop -",
        ),
        (
            "diff -p policy.yaml -n shop shop r",
            "diff -p policy.yaml -n shop r -",
        ),
    ] {
        let output = place.run(&typed.split(' ').collect::<Vec<_>>());
        let advice = format!("helm template shop shop | podgraft {advised}");
        let text = stderr_of(&output).replace("\n        ", " ");
        assert!(text.contains(&advice), "{text}");
    }
}

#[test]
fn a_requirement_for_a_policy_that_is_not_given_names_the_one_that_is() {
    let place = place();
    let output = place.run(&["check", "--require", "agnt=1", "-p", "policy.yaml", "r"]);
    assert_eq!(output.status.code(), Some(1));
    let shown = stdout_of(&output);
    assert!(
        shown.contains("no given policy has this name")
            && shown.contains("did you mean `agent`?")
            && !shown.contains("podgraft explain"),
        "{shown}"
    );
}

const GENERATES: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: maker}
spec:
  inject: {podLabels: {maker: 'yes'}}
  generate:
  - resource:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: shared, namespace: shop}
      data: {k: v}
";

#[test]
fn a_generated_object_that_somebody_changed_is_shown_at_its_line() {
    let place = place();
    place.write("maker.yaml", GENERATES);
    place.write("r/b.yaml", DEPLOYMENT.replace("name: a,", "name: b,"));
    let apply = ["apply", "--no-config", "-i", "-p", "maker.yaml", "r"];
    succeeded(&place.run(&apply));
    let changed = place.read("r/a.yaml").replace("k: v", "k: other");
    place.write("r/a.yaml", changed);
    let text = failed(&place.run(&apply));
    assert_eq!(text.matches("r/a.yaml:17:9").count(), 2, "{text}");
}

#[test]
fn a_template_beside_a_policy_that_generates_objects_is_passed_over() {
    let place = place();
    place.write("maker.yaml", GENERATES);
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  a: {{ .Values.a }}\n";
    place.write("r/c.yaml", template);
    for p in ["policy.yaml", "maker.yaml"] {
        succeeded(&place.run(&["apply", "--no-config", "-i", "-p", p, "r"]));
    }
    assert_eq!(place.read("r/c.yaml"), template);
    // A policy that reads ConfigMaps cannot do without it.
    let reads = GENERATES.replace(
        "podLabels: {maker: 'yes'}",
        "checksums: [{annotation: checksum/c, configMaps: [c]}]",
    );
    place.write("maker.yaml", reads);
    let context = ["apply", "--no-config", "-p", "maker.yaml"];
    let text = failed(&place.run(&[&context[..], &["--context", "r/c.yaml", "r/a.yaml"]].concat()));
    assert!(
        text.contains("not-rendered") && text.contains("r/c.yaml:5:6"),
        "{text}"
    );
}

#[test]
fn a_function_config_that_is_wrong_is_shown_at_its_place() {
    let place = place();
    for (config, at, message) in [
        ("abc", "4:17", "must be an object"),
        ("{kind: A}", "4:17", "missing field `apiVersion`"),
        (
            "{apiVersion: v1, kind: ConfigMap, data: {polic: 'builtin:debug-tools'}}",
            "4:58",
            "did you mean `policy`?",
        ),
        (
            "{apiVersion: v1, kind: ConfigMap, data: {policy: 'builtin:debug-tools', imag: a}}",
            "4:89",
            "did you mean `image`?",
        ),
    ] {
        let list = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n";
        let list = format!("{list}functionConfig: {config}\n");
        let text = failed(&with_stdin(place.command(&["fn"]), &list));
        assert!(
            text.contains(&format!("<stdin>:{at}")) && text.contains(message),
            "{config}: {text}"
        );
    }
}

#[test]
fn the_manual_page_refers_to_its_own_sections() {
    let page = succeeded(&place().run(&["man"]));
    assert!(
        page.contains("\npodgraft post\\-render\n") && page.contains("\npodgraft policy crd\n")
    );
    assert!(!page.contains("(1)"), "{page}");
}

#[test]
fn no_secret_is_shown_beside_a_fault_in_json_on_one_line() {
    let place = place();
    place.write(
        "hides.yaml",
        POLICY.replace("value: abc", "op: Append, value: -Da=b"),
    );
    for length in [1, 200] {
        let secret = "leak".repeat(length);
        let secret = format!(
            r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"s"}},"stringData":{{"k":"{secret}"}}}}"#
        );
        let workload = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"x:1"}]}}}}"#;
        let list = format!(
            r#"{{"apiVersion":"v1","kind":"List","items":[{secret},{workload},{secret}]}}"#
        );
        place.write("list.json", list);
        let run = [
            "diff",
            "-o",
            "stat",
            "--no-config",
            "-p",
            "hides.yaml",
            "list.json",
        ];
        let text = stderr_of(&place.run(&run));
        assert!(!text.contains("leak"), "{text}");
        assert!(text.contains(r#"{"name":"app","image":"x:1"}"#), "{text}");
    }
}

#[test]
fn a_gate_without_a_policy_is_refused() {
    let place = place();
    let given = ["--no-config", "-p", "policy.yaml", "r", "--skip", "agent"];
    for command in ["check", "apply", "diff"] {
        let text = failed(&place.run(&[&[command], &given[..]].concat()));
        assert!(
            text.contains("no-match") && text.contains("`--skip` excludes all given policies"),
            "{text}"
        );
    }
    let both = [&["check"], &given[..], &["--only", "agent"]].concat();
    let text = failed(&place.run(&both));
    assert!(text.contains("`--only` and `--skip` exclude"), "{text}");
    // Compared with nothing, all that the new policy does is new.
    place.write("new.yaml", POLICY.replace("name: agent", "name: new"));
    let against = [&["diff", "--against-policy", "policy.yaml"], &given[..]].concat();
    let shown = stdout_of(&place.run(&[&against[..], &["-p", "new.yaml"]].concat()));
    assert!(shown.contains("+        - name: J"), "{shown}");
}

#[test]
fn an_offered_policy_that_is_wrong_is_refused_before_it_is_chosen() {
    let place = place();
    place.write("off.yaml", POLICY.replace("name: agent", "name: off"));
    for command in [
        &["argocd", "parameters"][..],
        &["argocd", "generate", "-p", "policy.yaml", "r"],
    ] {
        let output = place.run(&[command, &["--offer", "off.yaml"]].concat());
        let text = failed(&output);
        assert_eq!(output.status.code(), Some(2));
        assert!(text.contains("`name` must be a string"), "{text}");
    }
}

#[test]
fn the_command_in_a_first_policy_works_in_the_folder_of_the_configuration() {
    let place = place();
    succeeded(&place.run(&["init", "--sidecar", "shipper", "--image", "shipper:1"]));
    let text = place.read("podgraft/shipper.yaml");
    assert!(
        text.contains("podgraft diff -p podgraft/shipper.yaml MANIFESTS;"),
        "{text}"
    );
    succeeded(&place.run(&["diff", "-p", "podgraft/shipper.yaml", "r"]));
}

#[test]
fn a_lock_of_a_later_version_is_for_that_podgraft() {
    let place = place();
    succeeded(&place.run(&["apply", "--no-config", "-i", "-p", "policy.yaml", "r"]));
    place.write("r/podgraft.lock", "[\"version\",2]\n");
    let output = place.run(&["apply", "--no-config", "-i", "-p", "policy.yaml", "r"]);
    failed(&output);
    assert!(
        stderr_of(&output).contains("help: upgrade podgraft"),
        "{}",
        stderr_of(&output)
    );
}

#[test]
fn a_type_that_no_schema_has_is_a_mistake_of_the_policy() {
    let place = place();
    let policy = |kind: &str| {
        format!(
            "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {{name: agents}}
spec:
  source:
    apiVersion: example.com/v1
    kind: Agent
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object, properties: {{type: {{type: {kind}, default: d}}}}}}
  inject: {{podLabels: {{hit: set}}}}
"
        )
    };
    place.write("agents.yaml", policy("strng"));
    let output = place.run(&["policy", "lint", "agents.yaml"]);
    failed(&output);
    let messages = stderr_of(&output) + &stdout_of(&output);
    assert!(
        messages.contains("unknown schema type `strng`"),
        "{messages}"
    );
    assert!(
        messages.contains("integer, number, object, string"),
        "{messages}"
    );
    // A field of this name is no type.
    place.write("agents.yaml", policy("string"));
    succeeded(&place.run(&["policy", "lint", "agents.yaml"]));
}

#[test]
fn the_commands_that_adopt_names_can_be_typed() {
    let place = place();
    let text = failed(&place.run(&["adopt", "--no-config", "-p", "policy.yaml", "r"]));
    for command in ["explain", "diff"] {
        let typed = format!("{command} -p policy.yaml --no-config r");
        let text = text.replace("\n        ", " ");
        assert!(text.contains(&format!("`podgraft {typed}`")), "{text}");
        let output = place.run(&typed.split(' ').collect::<Vec<_>>());
        assert!(
            stdout_of(&output).contains("agent"),
            "{}",
            stderr_of(&output)
        );
    }
    let param = POLICY.replace("spec: {", "spec: {params: [{name: team, required: true}], ");
    place.write("param.yaml", param);
    let given = ["-p", "param.yaml", "--param", "agent:team=a b", "r"];
    let text = failed(&place.run(&[&["adopt", "--no-config"], &given[..]].concat()));
    let typed = "`podgraft diff -p param.yaml --param 'agent:team=a b' --no-config r`";
    assert!(text.replace("\n        ", " ").contains(typed), "{text}");
    let text = failed(&place.run(&["adopt", "-p", "policy.yaml", "-"]));
    assert!(text.contains("adopt needs files or folders"), "{text}");
    assert!(!text.contains("--in-place"), "{text}");
}
