//! Who decides: what an application's folder, or its Application, tries, and what comes of it.

use super::argocd::Site;
use super::*;

const HEAD: &str = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\n";

fn site(operator: &str) -> Site {
    let site = Site::new();
    site.place.write(
        "op/podgraft.yaml",
        &format!("{HEAD}policies: [../agent.yaml]\n{operator}"),
    );
    site
}

/// In the application's folder, with the operator's configuration.
fn generate(site: &Site, env: &[(&str, &str)]) -> Output {
    let env = [&[("PODGRAFT_CONFIG", "../op/podgraft.yaml")], env].concat();
    site.run(&["generate"], &env)
}

fn is_injected(output: &Output) -> bool {
    succeeded(output).contains("-javaagent:/agent/agent.jar=9404")
}

#[test]
fn a_file_of_settings_in_the_folder_is_not_read() {
    let site = site("");
    for text in [
        "policies: []\n",
        "params: {agent: {image: 'evil:1'}}\n",
        "polices: [\n",
        "exclude: ['*']\n",
    ] {
        site.place
            .write("app/podgraft.yaml", &format!("{HEAD}{text}"));
        fs::create_dir_all(site.place.path().join("app/.git")).unwrap();
        let output = generate(&site, &[]);
        assert!(
            is_injected(&output) && !succeeded(&output).contains("evil"),
            "{text}"
        );
        let env = [("PODGRAFT_POLICY", "../agent.yaml")];
        assert!(is_injected(&site.run(&["generate"], &env)), "{text}");
    }
}

#[test]
fn a_policy_in_the_folder_adds_nothing() {
    let site = site("");
    let evil = POLICY
        .replace("name: agent\nspec", "name: evil\nspec")
        .replace("emptyDir: {}", "hostPath: {path: /}");
    site.place.write("app/evil.yaml", &evil);
    let output = succeeded(&generate(&site, &[]));
    assert!(
        !output.contains("hostPath") && !output.contains("InjectionPolicy"),
        "{output}"
    );
}

#[test]
fn a_policy_of_the_same_name_replaces_nothing() {
    let site = site("");
    site.place.write(
        "app/agent.yaml",
        &POLICY.replace("  match:", "  suspend: true\n  match:"),
    );
    assert!(is_injected(&generate(&site, &[])));
}

#[test]
fn the_environment_of_an_application_has_a_prefix() {
    let site = site("");
    let env = [
        ("ARGOCD_ENV_PODGRAFT_POLICY", "evil.yaml"),
        ("ARGOCD_ENV_PODGRAFT_CONFIG", "podgraft.yaml"),
    ];
    assert!(is_injected(&generate(&site, &env)));
}

#[test]
fn marks_in_a_manifest_switch_nothing_off() {
    let site = site("");
    for annotation in ["podgraft.dev/applied: agent", "podgraft.dev/applied: ''"] {
        let marked = DEPLOYMENT.replace(
            "  name: orders",
            &format!("  annotations: {{{annotation}}}\n  name: orders"),
        );
        site.place.write("app/deployment.yaml", &marked);
        assert!(is_injected(&generate(&site, &[])), "{annotation}");
    }
    let local = "  annotations: {config.kubernetes.io/local-config: 'true'}\n  name: orders";
    site.place.write(
        "app/deployment.yaml",
        &DEPLOYMENT.replace("  name: orders", local),
    );
    assert!(failed(&generate(&site, &[])).contains("local-config"));
    let piped = with_stdin(
        site.place.podgraft(&["post-render", "-p", "agent.yaml"]),
        &site.place.read("app/deployment.yaml"),
    );
    assert!(failed(&piped).contains("local-config"));
}

#[test]
fn parameters_of_the_application_change_no_image_and_choose_no_policy() {
    let site = site("allowApplicationConfig: true\n");
    for (parameters, why) in [
        (
            r#"[{"name": "params", "map": {"agent:image": "evil:1"}}]"#,
            "an application cannot set the parameter",
        ),
        (
            r#"[{"name": "params", "map": {"image": "evil:1"}}]"#,
            "an application cannot set the parameter",
        ),
        (
            r#"[{"name": "policies", "array": ["evil.yaml"]}]"#,
            "does not offer",
        ),
        (
            r#"[{"name": "params", "map": {"port": "80; rm"}}]"#,
            "does not match",
        ),
    ] {
        let messages = failed(&generate(&site, &[("ARGOCD_APP_PARAMETERS", parameters)]));
        assert!(messages.contains(why), "{parameters}: {messages}");
    }
    let strict = r#"[{"name": "strict", "string": "false"}]"#;
    assert!(is_injected(&generate(
        &site,
        &[("ARGOCD_APP_PARAMETERS", strict)]
    )));
}

#[test]
fn an_operator_may_let_applications_set_what_a_policy_marks() {
    let site = site("allowApplicationConfig: true\nparams: {agent: {port: 5}}\n");
    assert!(succeeded(&generate(&site, &[])).contains("agent.jar=5"));
    site.place.write(
        "app/podgraft.yaml",
        &format!("{HEAD}params: {{agent: {{port: 6}}}}\n"),
    );
    assert!(succeeded(&generate(&site, &[])).contains("agent.jar=6"));
    let parameters = [(
        "ARGOCD_APP_PARAMETERS",
        r#"[{"name": "params", "map": {"agent:port": "7"}}]"#,
    )];
    assert!(succeeded(&generate(&site, &parameters)).contains("agent.jar=7"));
    let env = [("PODGRAFT_CONFIG", "../op/podgraft.yaml")];
    let flag = site.run(&["generate", "--param", "port=8"], &env);
    assert!(
        succeeded(&flag).contains("agent.jar=8"),
        "the operator's flag is the last word"
    );
    for (text, why) in [
        (
            "params: {agent: {image: 'evil:1'}}\n",
            "an application cannot set the parameter",
        ),
        ("policies: [evil.yaml]\n", "cannot set `policies`"),
        (
            "imageMirrors: [{name: docker.io/agent, newName: evil/agent}]\n",
            "cannot set `imageMirrors`",
        ),
        ("allowApplicationConfig: true\n", "cannot set"),
        ("exclude: ['*']\n", "cannot set `exclude`"),
    ] {
        site.place
            .write("app/podgraft.yaml", &format!("{HEAD}{text}"));
        let messages = failed(&generate(&site, &[]));
        assert!(messages.contains(why), "{text}: {messages}");
    }
}

#[test]
fn nothing_outside_of_the_applications_folder_is_read_as_manifests() {
    let site = site("");
    let env = [("PODGRAFT_CONFIG", "../op/podgraft.yaml")];
    for path in ["..", "../agent.yaml", "/"] {
        assert!(
            failed(&site.run(&["generate", path], &env)).contains("outside"),
            "{path}"
        );
    }
    site.place
        .write("elsewhere.yaml", &CONFIG_MAP.replace("settings", "stolen"));
    std::os::unix::fs::symlink("../elsewhere.yaml", site.place.path().join("app/link.yaml"))
        .unwrap();
    assert!(!succeeded(&generate(&site, &[])).contains("stolen"));
    assert!(failed(&site.run(&["generate", "link.yaml"], &env)).contains("outside"));
    std::os::unix::fs::symlink(
        "../op/podgraft.yaml",
        site.place.path().join("app/podgraft.yaml"),
    )
    .unwrap();
    assert!(is_injected(&generate(&site, &[])));
}

#[test]
fn kustomize_and_helm_read_no_settings_of_the_folder_either() {
    let place = Place::new();
    place.write(
        "podgraft.yaml",
        &format!("{HEAD}policies: [agent.yaml]\nparams: {{agent: {{image: 'evil:1'}}}}\n"),
    );
    fs::create_dir(place.path().join(".git")).unwrap();
    let list = function::list(&[&DEPLOYMENT.replace("# the shop\n", "")], POLICY);
    for (args, text) in [
        (&["fn"][..], list.as_str()),
        (&["post-render", "-p", "agent.yaml"][..], DEPLOYMENT),
    ] {
        let output = succeeded(&with_stdin(place.podgraft(args), text));
        assert!(
            output.contains("docker.io/agent:1") && !output.contains("evil"),
            "{output}"
        );
    }
}
