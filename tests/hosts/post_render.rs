//! `podgraft post-render` without Helm.

use super::*;

fn post_render(place: &Place, env: &[(&str, &str)], args: &[&str], text: &str) -> Output {
    let mut command = place.podgraft(&[&["post-render"], args].concat());
    set_env(&mut command, env);
    with_stdin(command, text)
}

#[test]
fn policies_come_from_flags_else_the_environment_else_the_named_file() {
    let place = Place::new();
    place.write(
        "op/podgraft.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [../agent.yaml]\nparams: {agent: {port: 3}}\n",
    );
    place.write(
        "podgraft.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [agent.yaml]\n",
    );
    fs::create_dir(place.path().join(".git")).unwrap();
    let wanted = place.applied(DEPLOYMENT);
    assert_eq!(
        succeeded(&post_render(&place, &[], &["-p", "agent.yaml"], DEPLOYMENT)),
        wanted
    );
    assert_eq!(
        succeeded(&post_render(
            &place,
            &[("PODGRAFT_POLICY", "agent.yaml")],
            &[],
            DEPLOYMENT
        )),
        wanted
    );
    let config = [("PODGRAFT_CONFIG", "op/podgraft.yaml")];
    assert!(succeeded(&post_render(&place, &config, &[], DEPLOYMENT)).contains("agent.jar=3"));
    let output = post_render(&place, &[], &[], DEPLOYMENT);
    assert!(
        failed(&output).contains("no policy is given"),
        "the podgraft.yaml that lies here is not read"
    );
    assert_eq!(stdout_of(&output), "");
}

#[test]
fn nothing_in_is_nothing_out_and_no_error() {
    let place = Place::new();
    for text in ["", "\n", "---\n# Source: chart/templates/empty.yaml\n"] {
        assert_eq!(
            succeeded(&post_render(&place, &[], &["-p", "agent.yaml"], text)),
            text
        );
    }
}

#[test]
fn the_log_file_gets_what_stderr_gets() {
    let place = Place::new();
    let env = [("PODGRAFT_LOG_FILE", "log")];
    let good = post_render(&place, &env, &["-p", "agent.yaml"], DEPLOYMENT);
    let bad = post_render(&place, &env, &["-p", "nowhere.yaml"], DEPLOYMENT);
    succeeded(&good);
    assert_eq!(place.read("log"), stderr_of(&good) + &failed(&bad));
    let env = [("PODGRAFT_LOG_FILE", "no/such/folder/log")];
    let output = post_render(&place, &env, &["-p", "agent.yaml"], DEPLOYMENT);
    succeeded(&output);
    assert!(stderr_of(&output).contains("PODGRAFT_LOG_FILE"));
}

#[test]
fn hooks_are_left_alone_unless_the_policy_asks_for_them() {
    let place = Place::new();
    let hook = DEPLOYMENT.replace(
        "  name: orders",
        "  annotations: {helm.sh/hook: pre-install}\n  name: orders",
    );
    assert_eq!(
        succeeded(&post_render(&place, &[], &["-p", "agent.yaml"], &hook)),
        hook
    );
    place.write(
        "hooks.yaml",
        &POLICY.replace("    selector:", "    hooks: Include\n    selector:"),
    );
    assert!(
        succeeded(&post_render(&place, &[], &["-p", "hooks.yaml"], &hook)).contains("agent.jar")
    );
}
