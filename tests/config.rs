//! `podgraft.yaml` as a user has it in a repository: which file is found, what wins, what is refused.

use std::fs;
use std::process::Output;

use crate::program::{Place, stderr_of, stdout_of};

const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: agent
spec:
  params:
  - {name: port, default: '9000'}
  inject:
    initContainers:
    - {name: agent, image: 'docker.io/agent:1'}
    podAnnotations: {port: '${params.port}'}
";
const OTHER: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: other}
spec:
  inject:
    podAnnotations: {other: 'yes'}
";
const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
spec:
  template:
    spec:
      containers:
        - name: app
          image: docker.io/agent:1
";
const HEAD: &str = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\n";

/// A repository with a policy and a manifest.
struct Repository(Place);

impl Repository {
    fn new(config: &str) -> Self {
        let repository = Repository(Place::new());
        repository.write(".git/HEAD", "");
        repository.write("agents/policy.yaml", POLICY);
        repository.write("agents/other.yaml", OTHER);
        repository.write("apps/shop/deployment.yaml", DEPLOYMENT);
        repository.write("podgraft.yaml", &format!("{HEAD}{config}"));
        repository
    }

    fn write(&self, name: &str, text: &str) {
        self.0.write(name, text);
    }

    fn apply(&self, folder: &str, args: &[&str]) -> Output {
        self.apply_with(folder, args, &[])
    }

    fn apply_with(&self, folder: &str, args: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = self.0.command(&[&["apply"], args].concat());
        command
            .current_dir(self.0.path(folder))
            .envs(env.iter().copied())
            .output()
            .expect("the program runs")
    }
}

fn stdout(output: &Output) -> String {
    crate::program::succeeded(output)
}

fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout_of(output), "");
    stderr_of(output)
}

#[test]
fn the_nearest_file_upward_to_the_repositorys_root_counts_alone() {
    let repository =
        Repository::new("policies: [agents/policy.yaml]\nparams: {agent: {port: 1}}\n");
    let output = repository.apply("apps/shop", &["."]);
    assert!(
        stdout(&output).contains("port: \"1\""),
        "{}",
        stdout(&output)
    );
    assert!(stderr_of(&output).contains("settings of ../../podgraft.yaml"));
    repository.write(
        "apps/podgraft.yaml",
        &format!("{HEAD}policies: [../agents/other.yaml]\n"),
    );
    let nearer = stdout(&repository.apply("apps/shop", &["."]));
    assert!(
        nearer.contains("other: \"yes\"") && !nearer.contains("port:"),
        "{nearer}"
    );
}

#[test]
fn nothing_is_read_from_above_the_repository_or_where_there_is_none() {
    let repository = Repository::new("policies: [agents/policy.yaml]\n");
    fs::create_dir(repository.0.path("apps/.git")).unwrap();
    assert!(refusal(&repository.apply("apps/shop", &["."])).contains("no policy is given"));
    fs::remove_dir(repository.0.path("apps/.git")).unwrap();
    fs::remove_dir_all(repository.0.path(".git")).unwrap();
    assert!(refusal(&repository.apply("apps/shop", &["."])).contains("no policy is given"));
    assert!(stdout(&repository.apply("", &["apps"])).contains("name: agent"));
}

#[test]
fn flags_win_over_the_environment_and_the_environment_over_the_file() {
    let config =
        "policies: [agents/policy.yaml]\nparams: {agent: {port: 1}}\nexclude: ['*.json']\n";
    let repository = Repository::new(config);
    let flag = stdout(&repository.apply("", &["--param", "port=2", "apps"]));
    assert!(flag.contains("port: \"2\""), "{flag}");
    let environment = stdout(&repository.apply_with(
        "",
        &["apps"],
        &[("PODGRAFT_POLICY", " agents/other.yaml ,")],
    ));
    assert!(
        environment.contains("other: \"yes\"") && !environment.contains("port:"),
        "{environment}"
    );
    let as_written = "policies: [agents/policy.yaml]\nparams: {agent: {port: 1.10}}\n";
    let number = stdout(&Repository::new(as_written).apply("", &["apps"]));
    assert!(number.contains("port: \"1.10\""), "{number}");
    let both = &[("PODGRAFT_POLICY", "nowhere.yaml")];
    let flag = stdout(&repository.apply_with("", &["-p", "agents/policy.yaml", "apps"], both));
    assert!(
        flag.contains("port: \"1\""),
        "`-p` replaces the policies alone: {flag}"
    );
    assert!(stdout(&repository.apply("", &["-p", "agents/other.yaml", "apps"])).contains("other"));
    assert!(
        refusal(&repository.apply("", &["--no-config", "apps"])).contains("no policy is given")
    );
    repository.write(
        "elsewhere/c.yaml",
        &format!("{HEAD}policies: [../agents/other.yaml]\n"),
    );
    assert!(
        stdout(&repository.apply("", &["--config", "elsewhere/c.yaml", "apps"])).contains("other")
    );
    let named = &[("PODGRAFT_CONFIG", "elsewhere/c.yaml")];
    assert!(stdout(&repository.apply_with("", &["apps"], named)).contains("other"));
}

/// What a run says about a configuration that it refuses.
fn wrong(config: &str) -> String {
    refusal(&Repository::new(config).apply("", &["apps"]))
}

#[test]
fn mistakes_are_shown_at_their_place_and_nothing_is_written() {
    assert!(wrong("polices: [agents]\n").contains("podgraft.yaml:3:1"));
    let stray = wrong("policies: [agents]\nparams:\n  agnt: {port: 1, path: /}\n");
    assert!(
        stray.contains("podgraft.yaml:5:3]")
            && stray.contains("did you mean `agent`?")
            && stray.contains("1 error"),
        "{stray}"
    );
    let stray = wrong("policies: [agents]\nparams:\n  agent: {prot: 1}\n");
    assert!(stray.contains("did you mean `port`?"), "{stray}");
}

#[track_caller]
fn assert_shown_at(config: &str, place: &str, message: &str) {
    let refused = wrong(&format!("{config}\n"));
    let place = format!("podgraft.yaml:{place}]");
    assert!(
        refused.contains(&place) && refused.contains(message),
        "{config}: {refused}"
    );
}

#[test]
fn each_mistake_is_shown_at_its_entry() {
    for (config, place, message) in [
        (
            "policies: [{{ .Values.policies }}]",
            "3:13",
            "the configuration is a template",
        ),
        ("policies: [nowhere.yaml]", "3:12", "nowhere.yaml"),
        (
            "policies: ['builtin:jmx-exportr']",
            "3:12",
            "`builtin:jmx-exporter`",
        ),
        ("policies: [{use: nowhere.yaml}]", "3:12", "nowhere.yaml"),
        ("policies: [agents]\ncontext: [nowhere]", "4:11", "nowhere"),
        (
            "policies: [agents]\ninclude: ['[a']",
            "4:11",
            "is not a valid glob",
        ),
        (
            "policies: [agents]\nexclude: [b, '[a']",
            "4:14",
            "is not a valid glob",
        ),
        (
            "policies: [agents/other.yaml, {use: agents/other.yaml}]",
            "3:31",
            "`agents/other.yaml` is given twice",
        ),
        (
            "policies: [agents/other.yaml, ./agents/other.yaml]",
            "3:31",
            "`agents/other.yaml` is given twice",
        ),
        (
            "policies: [agents]\n---\n# for the others\nparams: {}",
            "6:1",
            "must contain one document, but it contains 2",
        ),
        (
            "policies: [agents/othre.yaml]",
            "3:12",
            "did you mean `agents/other.yaml`?",
        ),
    ] {
        assert_shown_at(config, place, message);
    }
}

#[test]
fn each_word_of_a_wrong_type_is_shown_at_its_place() {
    for (config, place, message) in [
        ("policies: agents", "3:11", "must be a list"),
        ("policies: [", "3:11", "is not valid YAML"),
        ("kubeVersion: two", "3:14", "expected a version"),
        ("podTemplates: [X=spec]", "3:16", "expected [GROUP/]VERSION"),
        (
            "params: {agent: {port: '${x}'}}",
            "3:24",
            "write the value itself",
        ),
        ("imageMirrors: [{name: a}]", "3:16", "newName"),
        (
            "imageMirrors: [{name: 'a:1', newName: b}]",
            "3:23",
            "write `a`",
        ),
        (
            "imageMirrors: [{name: a, newName: 'r:5/b:1@x'}]",
            "3:35",
            "write `r:5/b`",
        ),
        (
            "require: [{policy: a, selector: {matchExpressions: [{key: app, operator: Inn}]}}]",
            "3:74",
            "valid operators",
        ),
        ("openTelemetry: {operatorRelease: 0.1.0}", "3:34", "0.158.0"),
        (
            "openTelemetry: {enable: [sdk]}",
            "3:26",
            "unknown feature `sdk`",
        ),
        ("openTelemetry: {enable: [nginy]}", "3:26", "`nginx`"),
        (
            "openTelemetry: {images: {sdk: a}}",
            "3:31",
            "no image for `sdk`",
        ),
    ] {
        assert_shown_at(config, place, message);
    }
}

#[test]
fn a_wrong_selector_is_one_error() {
    let config =
        "require: [{policy: a, selector: {matchExpressions: [{key: app, operator: Inn}]}}]";
    let refused = refusal(&Repository::new(config).apply("", &["apps"]));
    assert!(refused.contains("1 error;"), "{refused}");
}

#[test]
fn a_number_of_workloads_below_one_is_shown_at_its_place() {
    for number in ["-1", "0"] {
        let config = format!("require:\n- {{policy: agent, atLeast: {number}}}\n");
        let refused = refusal(&Repository::new(&config).apply("", &["apps"]));
        assert!(
            refused.contains("`atLeast` must be at least 1"),
            "{refused}"
        );
        assert!(refused.contains("podgraft.yaml:4:28]"), "{refused}");
    }
}

#[test]
fn a_mistake_of_the_configuration_or_a_policy_is_no_finding() {
    let twice = "policies: [agents/policy.yaml]\nparams: {agent: {port: 1}, agent: {port: 2}}\n";
    let other = "policies: [agents/other.yaml]\n";
    for (config, policy) in [
        (twice, OTHER.to_owned()),
        (other, OTHER.replace("{name: other}", "{name: Other}")),
        (other, OTHER.replace("'yes'", "${nope.x}")),
    ] {
        let repository = Repository::new(config);
        repository.write("agents/other.yaml", &policy);
        for command in ["check", "explain"] {
            let refused = refusal(&repository.0.run(&[command, "apps"]));
            assert!(
                refused.contains("1 error; nothing was written"),
                "{refused}"
            );
        }
    }
}

#[test]
fn a_value_that_a_policy_does_not_accept_is_shown_in_the_configuration() {
    let narrow = POLICY.replace("default: '9000'", "default: '9000', pattern: '\\d+'");
    for (config, place) in [
        ("policies: [agents]\nparams: {agent: {port: http}}", "4:24"),
        (
            "policies: [{use: agents/policy.yaml, params: {port: http}}]",
            "3:53",
        ),
    ] {
        let repository = Repository::new(&format!("{config}\n"));
        repository.write("agents/policy.yaml", &narrow);
        let refused = refusal(&repository.apply("", &["apps"]));
        for place in [&format!("podgraft.yaml:{place}"), "agents/policy.yaml:7:12"] {
            assert!(refused.contains(place), "{config}: {refused}");
        }
    }
}

#[test]
fn what_the_configuration_forbids_is_refused_whatever_the_flags_say() {
    let repository = Repository::new("policies: [agents/policy.yaml]\nforbid: [no-digest]\n");
    for args in [
        &["apps"][..],
        &["-p", "agents/policy.yaml", "--forbid", "privileged", "apps"],
    ] {
        let refused = refusal(&repository.apply("", args));
        assert!(
            refused.contains("forbidden") && refused.contains("policy.yaml:10"),
            "{refused}"
        );
    }
    assert!(stdout(&repository.apply("", &["-p", "agents/other.yaml", "apps"])).contains("other"));
    assert!(
        stdout(&repository.apply("", &["--no-config", "-p", "agents/policy.yaml", "apps"]))
            .contains("agent:1")
    );
    let misspelt = Repository::new("policies: [agents/policy.yaml]\nforbid: [host-pth]\n");
    let refused = refusal(&misspelt.apply("", &["apps"]));
    assert!(
        refused.contains("podgraft.yaml:4:10") && refused.contains("did you mean `host-path`?"),
        "{refused}"
    );
}

#[test]
fn policies_are_looked_at_with_the_same_settings() {
    let config = "policies: [agents/policy.yaml]\nforbid: [no-digest]\nparams: {agent: {port: 7}}\n\
                  imageMirrors: [{name: docker.io/agent, newName: mirror/agent}]\n";
    let repository = Repository::new(config);
    let lint = |args: &[&str]| repository.0.run(&[&["policy", "lint"], args].concat());
    let forbidden = lint(&[]);
    assert_eq!(forbidden.status.code(), Some(2));
    assert!(
        stderr_of(&forbidden).contains("forbidden")
            && stdout_of(&forbidden).contains("mirror/agent:1"),
        "{forbidden:?}"
    );
    assert!(stderr_of(&lint(&["--no-config"])).contains("no policy is given"));
    assert!(stderr_of(&lint(&["--param", "prot=1"])).contains("did you mean `port`?"));
    let images = repository.0.run(&["policy", "images"]);
    assert_eq!(
        stdout(&images),
        "docker.io/agent:1\n",
        "what a mirror has to have"
    );
}

#[test]
fn image_mirrors_are_for_injected_images_only() {
    let config = "policies: [agents/policy.yaml]\nimageMirrors:\n- {name: docker.io/agent, newName: mirror/agent}\n";
    let repository = Repository::new(config);
    let once = stdout(&repository.apply("", &["apps/shop/deployment.yaml"]));
    assert!(
        once.contains("image: mirror/agent:1") && once.contains("image: docker.io/agent:1"),
        "{once}"
    );
    repository.write("apps/shop/deployment.yaml", &once);
    assert_eq!(
        stdout(&repository.apply("", &["apps/shop/deployment.yaml"])),
        once,
        "a second run changes nothing"
    );
}

#[test]
fn the_opentelemetry_operator_is_set_up_once_and_flags_win() {
    let config = "policies: [instrumentation.yaml]\nnamespace: shop\n\
                  openTelemetry: {enable: [go], images: {java: 'registry.example.com/java:1'}}\n";
    let repository = Repository::new(config);
    repository.write(
        "instrumentation.yaml",
        "apiVersion: opentelemetry.io/v1alpha1\nkind: Instrumentation\nmetadata: {name: agents, namespace: shop}\nspec: {}\n",
    );
    let pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  annotations:\n    \
               instrumentation.opentelemetry.io/inject-java: 'true'\nspec:\n  containers:\n  - {name: app, image: a}\n";
    repository.write("pod.yaml", pod);
    let apply = |args: &[&str]| repository.0.run(&[&["apply", "pod.yaml"], args].concat());
    let configured = apply(&[]);
    assert!(
        stdout_of(&configured).contains("image: registry.example.com/java:1")
            && stderr_of(&configured).contains("OpenTelemetry Operator 0.158.0, go enabled"),
        "{configured:?}"
    );
    let flags = apply(&[
        "--otel-disable",
        "go",
        "--otel-image",
        "java=other.example.com/java:2",
    ]);
    assert!(
        stdout_of(&flags).contains("image: other.example.com/java:2")
            && !stderr_of(&flags).contains("go enabled"),
        "{flags:?}"
    );
    let none = apply(&[
        "--no-config",
        "-p",
        "instrumentation.yaml",
        "--namespace",
        "shop",
    ]);
    assert!(
        stdout_of(&none).contains("autoinstrumentation-java:2.30.0"),
        "{none:?}"
    );
}

#[test]
fn globs_of_paths_count_from_the_folder_of_the_file() {
    let repository = Repository::new(
        "policies: [agents/policy.yaml]\nexclude: [apps/shop/off, 'apps/old/**']\n",
    );
    for name in ["apps/shop/off/a.yaml", "apps/old/b.yaml"] {
        repository.write(name, &DEPLOYMENT.replace("name: a\n", "name: left-out\n"));
    }
    for (folder, path) in [
        ("", "apps"),
        ("", "apps/shop"),
        ("apps", "."),
        ("agents", "../apps"),
    ] {
        let output = stdout(&repository.apply(folder, &[path]));
        assert!(
            output.contains("name: a\n") && !output.contains("left-out"),
            "{folder} {path}: {output}"
        );
    }
    for path in ["apps/old", "apps/shop/off"] {
        let output = refusal(&repository.apply("", &[path]));
        assert!(output.contains("there is no manifest"), "{output}");
    }
    // Globs of the command line count from the folder that is named.
    let output = stdout(&repository.apply("", &["--exclude", "shop/off", "apps"]));
    assert_eq!(output.matches("left-out").count(), 1, "{output}");
    // So do those of the file, for folders outside of its own.
    repository.write("elsewhere/c.yaml", &format!("{HEAD}exclude: [shop/off]\n"));
    let flags = ["--config", "elsewhere/c.yaml", "-p", "agents/policy.yaml"];
    let output = stdout(&repository.apply("", &[&flags[..], &["apps"]].concat()));
    assert_eq!(output.matches("left-out").count(), 1, "{output}");
    let include = "policies: [agents/policy.yaml]\ninclude: [apps/shop/*]\n";
    repository.write("podgraft.yaml", &format!("{HEAD}{include}"));
    let output = stdout(&repository.apply("apps", &["."]));
    assert!(!output.contains("left-out"), "{output}");
}

#[test]
fn a_policy_on_stdin_has_its_parameters_and_its_versions() {
    let config = "policies: [{use: '-', params: {port: 1}}]\n";
    let repository = Repository::new(config);
    let run = |args: &[&str]| stdout_of(&repository.0.run_with_stdin(args, POLICY));
    let applied = run(&["apply", "apps"]);
    assert!(applied.contains("port: \"1\""), "{applied}");
    repository.write("old.yaml", &POLICY.replace("agent:1", "agent:0"));
    let upgrade = run(&["diff", "--against-policy", "old.yaml", "apps"]);
    assert!(
        upgrade.contains("init container agent updated"),
        "{upgrade}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_not_passed_over() {
    let repository = Repository::new("forbid: [privileged]\n");
    fs::remove_file(repository.0.path("podgraft.yaml")).unwrap();
    fs::create_dir(repository.0.path("podgraft.yaml")).unwrap();
    let args = ["-p", "agents/policy.yaml", "apps"];
    assert!(refusal(&repository.apply("", &args)).contains("`podgraft.yaml` cannot be read"));
    let below = ["-p", "../agents/policy.yaml", "."];
    assert!(refusal(&repository.apply("apps", &below)).contains("`../podgraft.yaml` cannot"));
    #[cfg(unix)]
    {
        fs::remove_dir(repository.0.path("podgraft.yaml")).unwrap();
        std::os::unix::fs::symlink("gone.yaml", repository.0.path("podgraft.yaml")).unwrap();
        assert!(refusal(&repository.apply("", &args)).contains("`podgraft.yaml` cannot be read"));
    }
}
