//! The commands and flags as people type them: paths that are enough, flags that do nothing, first policies, patches that
//! apply, charts, and messages that are said once.

use std::process::Command;

use crate::program::{AGENT as POLICY, Place, failed, stderr_of, stdout_of, succeeded};

fn deployment(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\nspec:\n  template:\n    metadata:\n      \
         labels: {{runtime: java}}\n    spec:\n      containers:\n        - name: app\n          image: docker.io/app:1\n"
    )
}

fn place() -> Place {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    place.write("apps/orders.yaml", deployment("orders"));
    place
}

#[test]
fn a_code_is_explained_by_its_name_and_every_diagnostic_names_the_command() {
    let place = place();
    let page = succeeded(&place.run(&["explain", "hidden-env"]));
    assert!(page.starts_with("# hidden-env\n"));
    let unknown = failed(&place.run(&["explain", "hiden-env"]));
    assert!(unknown.contains("did you mean `hidden-env`?"), "{unknown}");
    let unlike_any = failed(&place.run(&["explain", "nope-code"]));
    assert!(
        unlike_any.contains("`nope-code` is neither a diagnostic code nor a file"),
        "{unlike_any}"
    );
    for args in [
        &["explain", "-p", "policy.yaml", "hidden-env"][..],
        &["explain", "hidden-env", "-p", "policy.yaml", "apps"],
    ] {
        let mixed = failed(&place.run(args));
        let wanted = "`hidden-env` is a diagnostic code, not a file";
        assert!(mixed.contains(wanted), "{mixed}");
    }
    for form in ["text", "short"] {
        let output = place.run(&[
            "apply",
            "-p",
            "policy.yaml",
            "--diagnostics",
            form,
            "--workload",
            "deploy/x",
            "apps",
        ]);
        let messages = failed(&output);
        assert!(
            messages.contains("  more: podgraft explain no-match\n"),
            "{messages}"
        );
    }
    succeeded(&place.run(&["explain", "no-match"]));
}

#[test]
fn a_path_is_enough_for_the_commands_about_policies() {
    let place = place();
    let lint = place.run(&["policy", "lint", "policy.yaml"]);
    assert_eq!(
        stdout_of(&lint),
        stdout_of(&place.run(&["policy", "lint", "-p", "policy.yaml"]))
    );
    assert_ne!(lint.status.code(), Some(2), "{}", stderr_of(&lint));
    succeeded(&place.run(&["policy", "images", "builtin:jmx-exporter"]));
    place.write(
        "bugger.yaml",
        "apiVersion: ualter.com/v1beta1\nkind: Podbuggertool\nmetadata: {name: a}\nspec:\n  label: app=x\n  image: docker.io/busybox:1\n",
    );
    let convert = place.run(&["policy", "convert", "bugger.yaml"]);
    assert!(succeeded(&convert).contains("kind: InjectionPolicy"));
    assert!(failed(&place.run(&["policy", "convert"])).contains("<FILE>"));
}

#[test]
fn a_flag_that_does_nothing_in_a_command_is_refused_and_hidden() {
    let place = place();
    for (args, flag) in [
        (&["policy", "lint", "--prune", "policy.yaml"][..], "--prune"),
        (&["policy", "images", "--record", "policy.yaml"], "--record"),
        (
            &["undo", "--kube-version", "1.30", "apps"],
            "--kube-version",
        ),
        (&["inspect", "--image-env", "a:B=c", "apps"], "--image-env"),
    ] {
        let messages = failed(&place.run(args));
        assert!(
            messages.contains(flag) && messages.contains("has no effect with"),
            "{messages}"
        );
        let help = [
            args.iter()
                .copied()
                .take_while(|word| !word.starts_with('-'))
                .collect(),
            vec!["--help"],
        ]
        .concat();
        assert!(
            !succeeded(&place.run(&help)).contains(&format!("{flag} ")),
            "{args:?}"
        );
    }
}

#[test]
fn the_short_help_fits_a_screen_and_the_long_help_says_all() {
    let place = place();
    for command in ["apply", "diff", "check"] {
        let short = succeeded(&place.run(&[command, "-h"]));
        assert!(
            short.lines().count() <= 50,
            "{command}: {} lines\n{short}",
            short.lines().count()
        );
        assert!(
            short.contains("--policy") && !short.contains("--image-env"),
            "{short}"
        );
        let long = succeeded(&place.run(&[command, "--help"]));
        assert!(
            long.contains("--image-env") && long.contains("Examples:"),
            "{long}"
        );
    }
    let top = succeeded(&place.run(&["--help"]));
    for words in ["lint, test, and convert", "no warnings (policy lint)"] {
        assert!(top.contains(words), "{words}\n{top}");
    }
}

#[test]
fn wrong_usage_is_said_with_the_usage_of_the_command_that_runs() {
    let place = place();
    for command in ["apply", "diff", "check", "explain", "debug"] {
        let messages = failed(&place.run(&[command, "apps"]));
        assert!(messages.contains("no policy is given"), "{messages}");
        assert!(
            messages.contains(&format!("Usage: podgraft {command} ")),
            "{messages}"
        );
        assert!(!messages.contains("apply|diff"), "{messages}");
    }
}

#[test]
fn what_is_only_shown_is_not_said_to_be_done() {
    let place = place();
    let diff = place.run(&["diff", "-p", "policy.yaml", "apps"]);
    assert!(
        stderr_of(&diff).contains("1 workload: 1 would be injected"),
        "{}",
        stderr_of(&diff)
    );
    let apply = place.run(&["apply", "-i", "-p", "policy.yaml", "apps"]);
    assert!(
        stderr_of(&apply).contains("1 workload: 1 injected"),
        "{}",
        stderr_of(&apply)
    );
    let undo = place.run(&["undo", "-i", "apps"]);
    assert!(
        stderr_of(&undo).contains("1 workload: 1 removed"),
        "{}",
        stderr_of(&undo)
    );
}

const TEST: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: PolicyTest
metadata: {name: orders}
spec:
  policies: [../policy.yaml]
  inputs: [../apps/orders.yaml]
  expect:
    output: expected.yaml
    warnings: []
";

#[test]
fn tests_are_counted_and_their_outputs_can_be_written() {
    let place = place();
    place.write("tests/test.yaml", TEST);
    place.write("tests/expected.yaml", "");
    let red = place.run(&["policy", "test", "tests/test.yaml"]);
    assert_eq!(red.status.code(), Some(1));
    assert!(
        stdout_of(&red).ends_with("1 test: 0 passed, 1 failed\n"),
        "{}",
        stdout_of(&red)
    );
    let update = place.run(&["policy", "test", "--update", "tests/test.yaml"]);
    assert!(
        stderr_of(&update).contains("wrote tests/expected.yaml"),
        "{}",
        stderr_of(&update)
    );
    assert!(place.read("tests/expected.yaml").contains("agent: \"on\""));
    let green = place.run(&["policy", "test", "tests/test.yaml"]);
    assert!(
        succeeded(&green).ends_with("1 test: 1 passed, 0 failed\n"),
        "{}",
        stdout_of(&green)
    );
    let again = place.run(&["policy", "test", "--update", "tests"]);
    assert!(
        !stderr_of(&again).contains("wrote"),
        "{}",
        stderr_of(&again)
    );
}

#[test]
fn a_first_policy_is_written_from_answers_and_works() {
    for answers in [
        &[
            "--agent",
            "java-agent",
            "--image",
            "registry.example.com/agent:1.2.3",
        ][..],
        &[
            "--sidecar",
            "shipper",
            "--image",
            "registry.example.com/ship:1.2.3",
            "--label",
            "runtime=java",
        ],
        &[
            "--scrape",
            "metrics",
            "--port",
            "9100",
            "--label",
            "runtime=java",
        ],
    ] {
        let place = place();
        let made = succeeded(&place.run(&[&["policy", "new"], answers].concat()));
        place.write("made.yaml", &made);
        let lint = place.run(&["policy", "lint", "made.yaml"]);
        assert_ne!(lint.status.code(), Some(2), "{made}\n{}", stderr_of(&lint));
        let init = place.run(&[&["init"], answers].concat());
        succeeded(&init);
        let name = answers[1];
        // The comment names the file.
        let written = made.replace(
            &format!("-p {name}.yaml"),
            &format!("-p podgraft/{name}.yaml"),
        );
        assert_eq!(place.read(format!("podgraft/{name}.yaml")), written);
        let diff = place.run(&["diff", "apps"]);
        assert_eq!(diff.status.code(), Some(1), "{}", stderr_of(&diff));
        assert!(failed(&place.run(&[&["init"], answers].concat())).contains("already exists"));
    }
    let place = place();
    succeeded(&place.run(&["init", "--use", "builtin:jmx-exporter"]));
    assert!(!place.path("podgraft").exists());
    succeeded(&place.run(&["apply", "apps"]));
    let messages = failed(&place.run(&["policy", "new", "--agent", "a"]));
    assert!(messages.contains("add --image IMAGE"), "{messages}");
}

#[test]
fn commands_that_are_proposed_work_with_every_name_of_a_file() {
    let place = place();
    place.write("my apps/orders.yaml", deployment("orders"));
    let init = place.run(&["init", "--use", "../policy.yaml", "my apps"]);
    succeeded(&init);
    let next = "next: podgraft diff --config 'my apps/podgraft.yaml' PATH";
    assert!(stderr_of(&init).contains(next), "{}", stderr_of(&init));
    place.write("-a b.yaml", deployment("orders"));
    let check = place.run(&["check", "-p", "policy.yaml", "--", "-a b.yaml"]);
    let findings = stdout_of(&check);
    assert!(
        findings.contains("`podgraft diff -p policy.yaml './-a b.yaml'`"),
        "{findings}"
    );
}

#[test]
fn a_configuration_is_not_written_for_a_policy_that_cannot_be_used() {
    for (used, problem) in [
        ("builtin:nope", "`nope`"),
        ("/nope", "`/nope`"),
        (
            "apps/orders.yaml",
            "`./apps/orders.yaml` contains no policy",
        ),
    ] {
        let place = place();
        let messages = failed(&place.run(&["init", "--use", used]));
        assert!(messages.contains(problem), "{messages}");
        assert!(!place.path("podgraft.yaml").exists());
    }
    // The path is of the folder with the configuration.
    let place = place();
    succeeded(&place.run(&["init", "--use", "../policy.yaml", "apps"]));
    succeeded(&place.run(&["init", "--use", "@input"]));
}

#[test]
fn a_new_policy_is_accepted_whatever_words_its_answers_are() {
    let words = ["on", "no", "y", "null", "1", "1e3", "0x1", "0755", "1-2"];
    for word in words {
        let label = format!("{word}={word}");
        for answers in [
            &["--agent", word, "--image", word, "--label", &label][..],
            &["--sidecar", word, "--image", word, "--label", &label],
            &["--scrape", word, "--port", "80", "--label", &label],
        ] {
            let place = place();
            place.write(
                "made.yaml",
                succeeded(&place.run(&[&["policy", "new"], answers].concat())),
            );
            let lint = place.run(&["policy", "lint", "made.yaml"]);
            assert_ne!(
                lint.status.code(),
                Some(2),
                "{answers:?}\n{}",
                stderr_of(&lint)
            );
            succeeded(&place.run(&[&["init"], answers].concat()));
            succeeded(&place.run(&["apply", "apps"]));
        }
    }
    for (answers, problem) in [
        (
            ["--image", "", "--label", "a=b"],
            "the container must have an `image`",
        ),
        (
            ["--image", "a b: #c", "--label", "a=b"],
            "`image` must not contain whitespace",
        ),
        (["--image", "a:1", "--label", "a=b/c"], "at most 63 letters"),
    ] {
        for command in [
            &["policy", "new", "--agent", "a"][..],
            &["init", "--agent", "a"],
        ] {
            let place = place();
            let messages = failed(&place.run(&[command, &answers].concat()));
            assert!(messages.contains(problem), "{messages}");
            assert!(!place.path("podgraft.yaml").exists() && !place.path("podgraft").exists());
        }
    }
}

#[test]
fn a_patch_of_files_that_are_named_from_elsewhere_applies() {
    let place = place();
    place.write(
        "podgraft.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [policy.yaml]\n",
    );
    place.write("other/README", "");
    let git = |folder: &str, args: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(place.path(folder)).args(args);
        git.output().expect("git runs")
    };
    assert!(git(".", &["init", "-q"]).status.success());
    let before = place.read("apps/orders.yaml");
    let whole = place.path("apps").display().to_string();
    for (folder, path, flags) in [
        (".", whole.as_str(), &[][..]),
        ("apps", ".", &[]),
        ("apps", whole.as_str(), &[]),
        ("other", "../apps", &[]),
        ("apps", ".", &["--relative"]),
    ] {
        let args = [&["diff"], flags, &[path]].concat();
        let diff = place
            .command(&args)
            .current_dir(place.path(folder))
            .output()
            .expect("it runs");
        assert_eq!(diff.status.code(), Some(1), "{}", stderr_of(&diff));
        place.write("patch", &diff.stdout);
        let patch = place.path("patch").display().to_string();
        // git leaves out what is not below the folder that it runs in.
        let at = if folder == "other" { "." } else { folder };
        let applied = git(at, &["apply", &patch]);
        assert!(
            applied.status.success(),
            "{folder} {path}\n{}\n{}",
            stderr_of(&applied),
            stdout_of(&diff)
        );
        assert!(
            place.read("apps/orders.yaml").contains("agent: \"on\""),
            "{folder} {path}"
        );
        place.write("apps/orders.yaml", &before);
        let is_relative = stdout_of(&diff).contains("+++ b/orders.yaml");
        assert_eq!(is_relative, !flags.is_empty(), "{}", stdout_of(&diff));
    }
}

#[test]
fn templates_of_a_chart_are_passed_over_with_one_note() {
    let place = place();
    for chart in ["apps/one", "apps/two"] {
        place.write(format!("{chart}/Chart.yaml"), "name: x\n");
        place.write(
            format!("{chart}/templates/a.yaml"),
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {{ .Values.name }}\n",
        );
    }
    let output = place.run(&["diff", "-p", "policy.yaml", "apps"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr_of(&output));
    assert_eq!(
        stderr_of(&output)
            .matches("more: podgraft explain not-rendered")
            .count(),
        1,
        "{}",
        stderr_of(&output)
    );
    assert!(
        stderr_of(&output).contains("and those of one more chart"),
        "{}",
        stderr_of(&output)
    );
    let named = failed(&place.run(&["diff", "-p", "policy.yaml", "apps/one/templates/a.yaml"]));
    assert!(named.contains("not-rendered"), "{named}");
}

#[test]
fn what_is_the_same_of_many_workloads_is_said_once() {
    let place = Place::new();
    place.write(
        "policy.yaml",
        POLICY.replace("    selector:", "    namespaces: [shop]\n    selector:"),
    );
    for number in 0..87 {
        place.write(
            format!("apps/{number:02}.yaml"),
            deployment(&format!("app-{number}")),
        );
    }
    let output = place.run(&["apply", "-p", "policy.yaml", "apps"]);
    succeeded(&output);
    let text = stderr_of(&output);
    assert!(
        text.lines().count() < 40,
        "{} lines\n{text}",
        text.lines().count()
    );
    assert!(text.contains("the same for 86 more workloads: "), "{text}");
    let json = place.run(&[
        "apply",
        "--diagnostics",
        "json",
        "-p",
        "policy.yaml",
        "apps",
    ]);
    assert_eq!(stderr_of(&json).matches("unknown-namespace").count(), 87);
    let check = place.run(&["check", "-o", "json", "-p", "policy.yaml", "apps"]);
    assert!(
        !stdout_of(&check).contains("near-miss"),
        "{}",
        stdout_of(&check)
    );
}

#[test]
fn the_forms_for_reviewers_show_warnings() {
    let place = place();
    place.write(
        "policy.yaml",
        POLICY.replace(
            "    podAnnotations: {agent: 'on'}\n",
            "    env: [{name: JAVA_TOOL_OPTIONS, op: Append, value: -Da=b}]\n",
        ),
    );
    for form in ["markdown", "html"] {
        let shown = stdout_of(&place.run(&["diff", "-q", "-o", form, "-p", "policy.yaml", "apps"]));
        assert!(
            shown.contains("1 warning") && shown.contains("hidden-env"),
            "{form}\n{shown}"
        );
    }
}

#[test]
fn a_variable_that_has_no_value_is_one_error_at_the_variable() {
    let place = place();
    let inject = "  variables:\n  - name: missing\n    expression: workload.annotations['a.io/p']\n  inject:\n    podAnnotations:\n      \
                  one: ${variables.missing}\n      two: ${variables.missing}-x\n";
    place.write(
        "policy.yaml",
        POLICY.replace("  inject:\n    podAnnotations: {agent: 'on'}\n", inject),
    );
    let messages = failed(&place.run(&["apply", "-p", "policy.yaml", "apps"]));
    assert_eq!(
        messages.matches("\nbad-expression\n").count()
            + usize::from(messages.starts_with("bad-expression\n")),
        1,
        "{messages}"
    );
    assert!(
        messages.contains("policy.yaml:10") && messages.contains("this variable"),
        "{messages}"
    );
    // The advice works as it is written.
    assert!(messages.contains("`[?'a.io/p'].orValue('')`"), "{messages}");
    let mended = place
        .read("policy.yaml")
        .replace("['a.io/p']", "[?'a.io/p'].orValue('none')");
    place.write("policy.yaml", mended);
    assert!(succeeded(&place.run(&["apply", "-p", "policy.yaml", "apps"])).contains("one: none"));
}

#[test]
fn what_a_policy_that_is_gone_put_there_is_in_the_way_under_its_name() {
    let place = place();
    let volume = |name: &str, size: &str| {
        let inject = format!("    volumes: [{{name: data, emptyDir: {{sizeLimit: {size}}}}}]\n");
        POLICY
            .replace("    podAnnotations: {agent: 'on'}\n", &inject)
            .replace("name: agent", &format!("name: {name}"))
    };
    place.write("old.yaml", volume("old", "1Mi"));
    place.write("new.yaml", volume("new", "2Mi"));
    succeeded(&place.run(&["apply", "-i", "-p", "old.yaml", "apps"]));
    let messages = failed(&place.run(&["apply", "-i", "-p", "new.yaml", "apps"]));
    assert!(
        messages.contains("injected by policy `old` in an earlier run"),
        "{messages}"
    );
    assert!(!messages.contains("a policy of this run"), "{messages}");
    succeeded(&place.run(&["undo", "--only", "old", "--in-place", "apps/orders.yaml"]));
    succeeded(&place.run(&["apply", "-i", "-p", "new.yaml", "apps"]));
}

#[test]
fn what_was_injected_without_a_record_is_said_to_be_so() {
    let place = place();
    let volume = |size: &str| {
        let inject = format!("    volumes: [{{name: data, emptyDir: {{sizeLimit: {size}}}}}]\n");
        POLICY.replace("    podAnnotations: {agent: 'on'}\n", &inject)
    };
    place.write("policy.yaml", volume("1Mi"));
    let injected = succeeded(&place.run(&["apply", "-p", "policy.yaml", "apps/orders.yaml"]));
    place.write("apps/orders.yaml", injected);
    place.write("policy.yaml", volume("2Mi"));
    let messages = failed(&place.run(&["apply", "-i", "-p", "policy.yaml", "apps"]));
    assert!(
        messages.contains("perhaps from an earlier run without a record"),
        "{messages}"
    );
    assert!(!messages.contains("onConflict"), "{messages}");
}

#[test]
fn a_label_that_is_no_string_is_refused_and_advice_about_labels_is_a_string() {
    let place = place();
    let bare = deployment("orders").replace("{runtime: java}", "{runtime: java, tier: 1}");
    place.write("apps/orders.yaml", bare);
    let messages = failed(&place.run(&["apply", "-p", "policy.yaml", "apps"]));
    assert!(
        messages.contains("a label of Deployment orders is not a string")
            && messages.contains("quote it: \"1\""),
        "{messages}"
    );
    place.write(
        "apps/orders.yaml",
        deployment("orders").replace("{runtime: java}", "{agent: 'True'}"),
    );
    place.write(
        "policy.yaml",
        POLICY.replace("runtime: java", "agent: 'true'"),
    );
    let output = place.run(&["apply", "-p", "policy.yaml", "apps"]);
    let messages = crate::program::stderr_of(&output);
    assert!(
        messages.contains("did you mean `agent: \"true\"`?"),
        "{messages}"
    );
}

#[test]
fn lint_finds_what_can_be_decided_and_nothing_else() {
    let place = place();
    for (from, to, words) in [
        (
            "    selector:",
            "    names: ['^ad.*$']\n    selector:",
            "write `ad*`",
        ),
        (
            "  match:",
            "  matchConditions: [{name: a, expression: \"'yes'\"}]\n  match:",
            "must evaluate to true or false",
        ),
    ] {
        place.write("policy.yaml", POLICY.replace(from, to));
        let messages = stderr_of(&place.run(&["policy", "lint", "policy.yaml"]));
        assert!(messages.contains(words), "{words}\n{messages}");
    }
    let silent = "  params: [{name: region, default: ''}]\n  matchConditions: [{name: a, expression: \"params.region != ''\"}]\n  match:";
    place.write("policy.yaml", POLICY.replace("  match:", silent));
    let messages = stderr_of(&place.run(&["policy", "lint", "policy.yaml"]));
    assert!(!messages.contains("never-matches"), "{messages}");
}
