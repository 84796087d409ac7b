//! `podgraft argocd` as Argo CD's plugin server calls it: in the application's folder, with its environment. The server
//! itself is in `plugin_server.rs`.

use super::*;

/// An operator's folder and an application's.
pub struct Site {
    pub place: Place,
}

impl Site {
    pub fn new() -> Self {
        let place = Place::new();
        place.write("app/deployment.yaml", DEPLOYMENT);
        place.write("app/settings.yaml", CONFIG_MAP);
        Site { place }
    }

    pub fn run(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        self.command(args, env).output().unwrap()
    }

    pub fn command(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = self.place.podgraft(&[&["argocd"], args].concat());
        set_env(&mut command, env).current_dir(self.place.path().join("app"));
        command
    }

    pub fn generate(&self, env: &[(&str, &str)]) -> Output {
        self.run(&["generate", "-p", "../agent.yaml"], env)
    }
}

#[test]
fn generate_prints_what_apply_prints() {
    let site = Site::new();
    let wanted = site
        .place
        .podgraft(&["apply", "-q", "-p", "agent.yaml", "app"])
        .output()
        .unwrap();
    for parameters in [None, Some("null"), Some(""), Some("[]")] {
        let env: Vec<(&str, &str)> = parameters
            .map(|text| ("ARGOCD_APP_PARAMETERS", text))
            .into_iter()
            .collect();
        assert_eq!(
            succeeded(&site.generate(&env)),
            succeeded(&wanted),
            "{parameters:?}"
        );
    }
    let piped = with_stdin(
        site.command(&["generate", "-p", "../agent.yaml", "-"], &[]),
        DEPLOYMENT,
    );
    assert_eq!(succeeded(&piped), site.place.applied(DEPLOYMENT));
}

#[test]
fn the_namespace_and_the_version_are_argo_cds() {
    let site = Site::new();
    let namespaced = POLICY.replace("  match:\n", "  match:\n    namespaces: [shop]\n");
    site.place.write(
        "namespaced.yaml",
        &namespaced.replace(
            "    initContainers:\n    - {",
            "    sidecars:\n    - {type: Native, ",
        ),
    );
    let args = ["generate", "-p", "../namespaced.yaml"];
    let shop = [
        ("ARGOCD_APP_NAMESPACE", "shop"),
        ("KUBE_VERSION", "v1.33.1-eks-1"),
    ];
    assert!(succeeded(&site.run(&args, &shop)).contains("restartPolicy: Always"));
    assert!(
        !succeeded(&site.run(&args, &[("ARGOCD_APP_NAMESPACE", "bank")])).contains("restartPolicy")
    );
    let old = [("ARGOCD_APP_NAMESPACE", "shop"), ("KUBE_VERSION", "1.28")];
    assert!(failed(&site.run(&args, &old)).contains("1.29"));
    assert!(failed(&site.run(&args, &[("KUBE_VERSION", "two")])).contains("KUBE_VERSION"));
}

#[test]
fn it_never_prints_nothing_with_success() {
    let site = Site::new();
    for text in ["", "# nothing\n", "---\n", "replicas: 1\n"] {
        let output = with_stdin(
            site.command(&["generate", "-p", "../agent.yaml", "-"], &[]),
            text,
        );
        assert!(
            !output.status.success() && stdout_of(&output).is_empty(),
            "{text:?}: {}",
            stderr_of(&output)
        );
    }
    fs::remove_file(site.place.path().join("app/deployment.yaml")).unwrap();
    fs::remove_file(site.place.path().join("app/settings.yaml")).unwrap();
    assert!(failed(&site.generate(&[])).contains("no-manifests"));
}

#[test]
fn errors_are_short_and_show_no_line_of_a_manifest() {
    let site = Site::new();
    site.place.write(
        "app/deployment.yaml",
        &DEPLOYMENT.replace(
            "labels: {app: orders, r",
            "annotations: {prometheus.io/port: hunter2}\n      labels: {app: orders, r",
        ),
    );
    site.place.write(
        "app/secret.yaml",
        "apiVersion: v1\nkind: Secret\nstringData: {a: hunter2, a: 'hunter2}\n",
    );
    site.place.write(
        "app/pod.yaml",
        "apiVersion: v1\nkind: Pod\nspec: {runtime: java, a: hunter2, a: 'hunter2}\n",
    );
    let messages = failed(&site.generate(&[]));
    assert!(
        messages.contains("error[conflict]: ") && messages.contains("deployment.yaml:"),
        "{messages}"
    );
    assert!(messages.contains("error[not-yaml]: "), "{messages}");
    assert!(!messages.contains("hunter2"), "{messages}");
}

#[test]
fn parameters_of_the_application_are_read_strictly() {
    let site = Site::new();
    for (parameters, why) in [
        ("{", "ARGOCD_APP_PARAMETERS"),
        (
            r#"[{"name": "polices", "string": "x"}]"#,
            "did you mean `policies`",
        ),
        (
            r#"[{"name": "policies", "array": ["other"]}]"#,
            "does not offer",
        ),
        (
            r#"[{"name": "params", "map": {"port": "1"}}]"#,
            "allowApplicationConfig",
        ),
        ("{}", "it is not a JSON list"),
        ("[1]", "an entry has no `name`"),
        (
            r#"[{"name": "strict", "string": "yes"}]"#,
            "must be `true` or `false`",
        ),
        (r#"[{"name": "params", "array": ["a"]}]"#, "must be a map"),
        (r#"[{"name": "policies", "map": {}}]"#, "must be a list"),
    ] {
        let messages = failed(&site.generate(&[("ARGOCD_APP_PARAMETERS", parameters)]));
        assert!(messages.contains(why), "{parameters}: {messages}");
    }
}

#[test]
fn what_the_user_interface_sends_for_an_empty_list_is_none() {
    let site = Site::new();
    for empty in [
        r#"[{"name": "policies"}]"#,
        r#"[{"name": "policies", "array": [""]}]"#,
    ] {
        succeeded(&site.generate(&[("ARGOCD_APP_PARAMETERS", empty)]));
    }
}

#[test]
fn an_application_asks_for_strictness_and_leaves_parameters_to_others() {
    let site = Site::new();
    let strict = [(
        "ARGOCD_APP_PARAMETERS",
        r#"[{"name": "strict", "string": "true"}]"#,
    )];
    let namespaced = POLICY.replace("  match:\n", "  match:\n    namespaces: [shop]\n");
    site.place.write("agent.yaml", &namespaced);
    assert!(site.generate(&[]).status.success());
    assert!(failed(&site.generate(&strict)).contains("unknown-namespace"));
    let known = site.run(
        &[
            "generate",
            "-p",
            "../agent.yaml",
            "--other-parameter",
            "values",
        ],
        &[(
            "ARGOCD_APP_PARAMETERS",
            r#"[{"name": "values", "array": ["a"]}]"#,
        )],
    );
    succeeded(&known);
}

#[test]
fn an_application_chooses_among_the_offered_policies() {
    let site = Site::new();
    site.place.write(
        "other.yaml",
        &POLICY
            .replace("name: agent\nspec", "name: other\nspec")
            .replace("prometheus.io/port", "other"),
    );
    let offers = [
        "generate",
        "--offer",
        "../agent.yaml",
        "--offer",
        "builtin:rookout-java",
    ];
    let choose = |names: &str| {
        let text = format!(r#"[{{"name": "policies", "array": [{names}]}}]"#);
        site.run(&offers, &[("ARGOCD_APP_PARAMETERS", &text)])
    };
    assert!(succeeded(&choose(r#""agent""#)).contains("agent.jar"));
    assert!(
        !succeeded(&choose("")).contains("agent.jar"),
        "nothing chosen is nothing injected"
    );
    assert!(failed(&choose(r#""other""#)).contains("the operator offers agent, rookout-java"));
    assert!(failed(&choose(r#""../other.yaml""#)).contains("does not offer"));
}

#[test]
fn discovery_tells_the_sorts_of_folders_apart() {
    let site = Site::new();
    let found = |sort: &str| succeeded(&site.run(&["discover", sort], &[]));
    assert_eq!(
        (found("plain").trim(), found("kustomize"), found("helm")),
        ("./deployment.yaml", String::new(), String::new())
    );
    site.place
        .write("app/kustomization.yaml", "resources: [deployment.yaml]\n");
    assert_eq!(
        (found("plain"), found("kustomize").trim()),
        (String::new(), "kustomization.yaml")
    );
    fs::remove_file(site.place.path().join("app/kustomization.yaml")).unwrap();
    site.place.write("app/Chart.yaml", "name: a\n");
    assert_eq!(
        (found("plain"), found("helm").trim()),
        (String::new(), "Chart.yaml")
    );
    fs::remove_dir_all(site.place.path().join("app")).unwrap();
    site.place.write("app/values.txt", "");
    assert_eq!(found("plain"), "");
}

#[test]
fn announced_are_offered_policies_and_parameters_that_an_application_may_set() {
    let site = Site::new();
    let announced = |args: &[&str], env: &[(&str, &str)]| -> Value {
        serde_json::from_str(&succeeded(
            &site.run(&[&["parameters"], args].concat(), env),
        ))
        .unwrap()
    };
    assert_eq!(
        announced(&["-p", "../agent.yaml"], &[]),
        serde_json::json!([])
    );
    let offered = announced(&["--offer", "../agent.yaml"], &[]);
    assert_eq!(
        (&offered[0]["name"], &offered[0]["collectionType"]),
        (&"policies".into(), &"array".into())
    );
    // Chosen are the resources of a policy with `source`.
    let source = "  source: {apiVersion: example.com/v1, kind: Agent}\n  match:\n";
    let source = POLICY.replace("  match:\n", source);
    site.place.write("source.yaml", &source);
    let offers = ["--offer", "../agent.yaml", "--offer", "../source.yaml"];
    site.place
        .write("agent.yaml", &POLICY.replace("agent\nspec", "plain\nspec"));
    let tooltip = announced(&offers, &[])[0]["tooltip"].clone();
    assert!(
        tooltip
            .as_str()
            .unwrap()
            .starts_with("Which of plain to apply"),
        "{tooltip}"
    );
    site.place.write("agent.yaml", POLICY);
    site.place.write(
        "op.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [agent.yaml]\nallowApplicationConfig: true\n",
    );
    let params = announced(&[], &[("PODGRAFT_CONFIG", "../op.yaml")]);
    assert_eq!(
        (&params[0]["name"], &params[0]["collectionType"]),
        (&"params".into(), &"map".into())
    );
    let tooltip = params[0]["tooltip"].as_str().unwrap();
    assert!(
        tooltip.contains("agent:port") && !tooltip.contains("image"),
        "{tooltip}"
    );
}
