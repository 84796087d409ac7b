//! Inputs that are too deep, too long or too many: a clear error or a result, soon, and never a stack overflow.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use podgraft_core::yaml::parse::{ParseError, ParseErrorKind, parse};
use tempfile::TempDir;

const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    volumes: [{name: agent, emptyDir: {}}]
    env: [{name: AGENT, value: 'on'}]
";

/// Seconds of the processor, of a debug build; a release build needs a fiftieth.
const SOON: &str = "60";

/// Containers of one pod, variables of one container; a debug build takes its time for each.
const MANY: usize = if cfg!(debug_assertions) {
    2_000
} else {
    10_000
};

fn deployment(name: &str, more: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n      \
         containers:\n      - name: app\n        image: app:1\n{more}"
    )
}

/// Runs `apply` on a text; it must end, by itself and soon.
fn apply_with(policy: &str, text: &str, args: &[&str]) -> Output {
    run(&["apply", "-p", "policy.yaml"], policy, text, args)
}

/// Runs `undo` on a text; it must end, by itself and soon.
fn undo(text: &str, args: &[&str]) -> Output {
    run(&["undo"], POLICY, text, args)
}

fn run(command_line: &[&str], policy: &str, text: &str, args: &[&str]) -> Output {
    let folder = TempDir::new().expect("there is a folder for temporary files");
    fs::write(folder.path().join("policy.yaml"), policy).expect("it can be written");
    fs::write(folder.path().join("input.yaml"), text).expect("it can be written");
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -t \"$1\"; shift; exec \"$@\"", "sh", SOON])
        .arg(env!("CARGO_BIN_EXE_podgraft"))
        .args(command_line)
        .arg("input.yaml")
        .args(args)
        .current_dir(folder.path());
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("the program runs");
    assert!(
        output.status.code().is_some(),
        "killed by a signal, as after {SOON} seconds: {:?}",
        output.status
    );
    output
}

fn apply(text: &str) -> Output {
    apply_with(POLICY, text, &[])
}

#[track_caller]
fn assert_done(output: &Output) {
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[track_caller]
fn assert_refused(output: &Output, words: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        output.stdout.is_empty(),
        "a refused run must give nothing out"
    );
    assert!(
        stderr.contains(words),
        "`{words}` is missing in\n{}",
        &stderr[..stderr.len().min(4000)]
    );
}

fn flow(depth: usize) -> String {
    deployment(
        "a",
        &format!("x: {}{}\n", "[".repeat(depth), "]".repeat(depth)),
    )
}

fn block(depth: usize) -> String {
    let line = |level| format!("{}k:\n", "  ".repeat(level));
    let lines: String = (1..depth).map(line).collect();
    deployment("a", &format!("x:\n{lines}"))
}

#[test]
fn what_nests_deeper_than_256_levels_is_refused() {
    for text in [flow(200), block(200)] {
        assert_done(&apply(&text));
    }
    let dashes = deployment("a", &format!("x:\n  {}x\n", "- ".repeat(100_000)));
    let explicit = deployment("a", &format!("{}x\n", "? ".repeat(100_000)));
    let braces = deployment("a", &format!("x: {}", "{a: ".repeat(100_000)));
    for text in [
        flow(300),
        block(300),
        flow(100_000),
        dashes,
        explicit,
        braces,
        "[".repeat(1 << 20),
    ] {
        assert_refused(&apply(&text), "this document nests deeper than 256 levels");
    }
}

#[test]
fn depth_by_aliases_does_not_overflow_the_stack() {
    let mut text = deployment("a", "x:\n- &a0 [x]\n");
    for level in 1..20_000 {
        let _ = writeln!(text, "- &a{level} [*a{}]", level - 1);
    }
    assert_done(&apply(&text));
    let policy = text
        .replace("apps/v1", "podgraft.dev/v1alpha1")
        .replace("Deployment", "InjectionPolicy");
    assert_refused(&apply_with(&policy, &deployment("a", ""), &[]), "policy");
}

/// Nine levels of ten make a thousand million.
fn bomb() -> String {
    let mut lines = "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let alias = format!("*a{}", level - 1);
        let _ = writeln!(
            lines,
            "  a{level}: &a{level} [{}]",
            [alias.as_str(); 10].join(", ")
        );
    }
    lines
}

#[test]
fn aliases_that_multiply_are_not_expanded() {
    let output = apply(&deployment("a", &format!("bomb:\n{}", bomb())));
    assert_done(&output);
    assert!(output.stdout.len() < 2000);
    // Where the edit would have to read them.
    let volumes = "      volumes: *a9\n";
    let inside = deployment("a", volumes).replace(
        "spec:\n  template",
        &format!("bomb:\n{}spec:\n  template", bomb()),
    );
    let output = apply(&inside);
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
}

#[test]
fn aliases_that_multiply_in_a_policy_are_refused() {
    let policy = POLICY.replace(
        "spec:",
        &format!("bomb:\n{}spec:\n  description: *a9", bomb()),
    );
    assert_refused(
        &apply_with(&policy, &deployment("a", ""), &[]),
        "the aliases expand to too much",
    );
    let merged = POLICY.replace("spec:", &format!("bomb:\n{}spec:\n  <<: *a9", bomb()));
    assert_refused(&apply_with(&merged, &deployment("a", ""), &[]), "policy");
}

#[test]
fn merge_keys_that_multiply_end_soon() {
    let mut lines = "  a0: &a0 {k0: v}\n".to_owned();
    for level in 1..30 {
        let _ = writeln!(
            lines,
            "  a{level}: &a{level} {{k{level}: v, <<: [*a{0}, *a{0}, *a{0}]}}",
            level - 1
        );
    }
    let labels =
        format!("maps:\n{lines}spec:\n  template:\n    metadata:\n      labels: *a29\n    spec:\n");
    let text = deployment("a", "").replace("spec:\n  template:\n    spec:\n", &labels);
    let selecting = POLICY.replace(
        "  inject:",
        "  match: {selector: {matchLabels: {k0: v}}}\n  inject:",
    );
    // A key that is there, and one that all of them would have to be searched for.
    for selecting in [selecting.clone(), selecting.replace("k0: v", "absent: v")] {
        let output = apply_with(&selecting, &text, &[]);
        assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    }
    let policy = POLICY.replace("spec:\n", &format!("maps:\n{lines}spec:\n  <<: *a29\n"));
    assert_refused(&apply_with(&policy, &text, &[]), "policy");
}

#[test]
fn a_hundred_thousand_documents_are_done_soon() {
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n";
    let text = service.repeat(100_000) + "---\n" + &deployment("a", "");
    let output = apply(&text);
    assert_done(&output);
    assert!(output.stdout.len() > text.len());
}

#[test]
fn ten_thousand_workloads_in_one_list_are_done_soon() {
    let item = format!("- {}", deployment("a", "").trim_end().replace('\n', "\n  "));
    let text = format!(
        "apiVersion: v1\nkind: List\nitems:\n{}",
        (item + "\n").repeat(10_000)
    );
    assert_done(&apply(&text));
}

/// Documents so short that the lines around their changes meet.
#[test]
fn twenty_thousand_workloads_in_one_hunk_are_done_soon() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: a:1\n---\n";
    let output = run(
        &["diff", "-q", "-p", "policy.yaml"],
        POLICY,
        &pod.repeat(20_000),
        &[],
    );
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let diff = String::from_utf8(output.stdout).expect("a diff is text");
    assert!(diff.matches("\n+").count() > 40_000);
    assert!(diff.matches("\n@@ ").count() < 10, "in one hunk");
}

#[test]
fn a_line_of_50_megabytes_passes() {
    let long = "x".repeat(50 << 20);
    for line in [
        format!("note: {long}\n"),
        format!("note: \"{long}\"\n"),
        format!("# {long}\n"),
    ] {
        let text = deployment("a", &line);
        let output = apply(&text);
        assert_done(&output);
        assert!(output.stdout.len() > text.len());
    }
    // The error that stands in it shows a piece of it.
    let output = apply(&deployment("a", &format!("note: [{long}\n")));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stderr.len() < 4000, "{} bytes", output.stderr.len());
}

/// Places in a document are 32 bits. Memory that is only read, and never written, costs nothing.
#[test]
fn a_document_over_4_gigabytes_is_refused() {
    let text = String::from_utf8(vec![0; (4 << 30) + 1]).expect("NUL is UTF-8");
    assert!(matches!(
        parse(&text),
        Err(ParseError {
            kind: ParseErrorKind::TooLong,
            ..
        })
    ));
}

#[test]
fn thousands_of_containers_are_done_soon() {
    let mut text = deployment("a", "");
    for number in 0..MANY {
        let _ = write!(text, "      - name: c{number}\n        image: app:1\n");
    }
    let output = apply(&text);
    assert_done(&output);
    assert!(
        output.stderr.len() < 64 << 10,
        "{} bytes",
        output.stderr.len()
    );
}

#[test]
fn thousands_of_variables_labels_and_volumes_are_done_soon() {
    let mut text = deployment("a", "        env:\n");
    text.extend((0..MANY).map(|number| format!("        - {{name: V{number}, value: x}}\n")));
    text += "      volumes:\n";
    text.extend((0..MANY).map(|number| format!("      - {{name: v{number}, emptyDir: {{}}}}\n")));
    text += "    metadata:\n      labels:\n";
    text.extend((0..MANY).map(|number| format!("        l{number}: x\n")));
    assert_done(&apply(&text));
}

/// Lists that a record has to tell the items of, and undo.
#[test]
fn thousands_of_items_are_recorded_and_undone_soon() {
    let items = |item: &dyn Fn(usize) -> String| (0..MANY).map(item).collect::<String>();
    let named = items(&|number| format!("        - {{name: V{number}, value: x}}\n"));
    let same = "        - {name: V, value: x}\n".repeat(MANY);
    let referring = items(&|number| {
        format!(
            "        - {{name: V{number}, valueFrom: {{secretKeyRef: {{name: s, key: k{number}}}}}}}\n"
        )
    });
    let volumes = items(&|number| format!("      - {{name: v{number}, emptyDir: {{}}}}\n"));
    let mounts = items(&|number| format!("        - {{name: v{number}, mountPath: /v{number}}}\n"));
    let ports = "        - {containerPort: 80}\n".repeat(MANY);
    let labels = items(&|number| format!("        l{number}: x\n"));
    for more in [
        format!("        env:\n{named}"),
        format!("        env:\n{same}"),
        format!("        env:\n{referring}"),
        format!("        volumeMounts:\n{mounts}      volumes:\n{volumes}"),
        format!("        ports:\n{ports}    metadata:\n      labels:\n{labels}"),
    ] {
        let text = deployment("a", &more);
        let injected = apply_with(POLICY, &text, &["--record"]);
        assert_done(&injected);
        let injected = String::from_utf8(injected.stdout).expect("it is UTF-8");
        assert!(injected.contains("podgraft.dev/record"), "it has no record");
        let undone = undo(&injected, &[]);
        assert_done(&undone);
        assert!(
            undone.stdout == text.as_bytes(),
            "undo must give the input back"
        );
    }
}

fn recorded(record: &str) -> String {
    let annotations = format!("{{name: a, annotations: {{podgraft.dev/record: '{record}'}}}}");
    deployment("a", "").replace("{name: a}", &annotations)
}

#[test]
fn records_that_lead_too_deep_are_refused() {
    let path = vec!["a"; 100_000].join("/");
    let effects = |effects: &str| {
        format!(
            r#"{{"version":1,"pod":"spec.template","policies":[{{"policy":"agent","digest":"d",{effects}}}]}}"#
        )
    };
    let nested = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let beside = vec!["a"; 200].join("/");
    for record in [
        effects(&format!(r#""removed":{{"pod/{path}":{{"was":1}}}}"#)),
        effects(&format!(r#""removed":{{"{path}":{{"was":1}}}}"#)),
        effects(&format!(
            r#""replaced":{{"pod/{path}":{{"was":1,"now":"d"}}}}"#
        )),
        effects(&format!(r#""filled":{{"pod/{path}":[]}}"#)),
        effects(&format!(r#""added":{{"pod/{path}":"d"}}"#)),
        effects(&format!(r#""shared":{{"pod/{path}":"d"}}"#)),
        effects(&format!(r#""made":["pod/{path}"]"#)),
        effects(&format!(r#""joined":{{"pod/{path}":{{"text":"x"}}}}"#)),
        effects(&format!(
            r#""removed":{{"pod/{beside}":{{"was":{nested}}}}}"#
        )),
        effects(r#""removed":{"pod/a":{"was":1}}"#)
            .replace("spec.template", &path.replace('/', ".")),
        format!(
            r#"{{"version":1,"pod":"","policies":[],"marker":{{"removed":{{"{path}":{{"was":1}}}}}}}}"#
        ),
    ] {
        let text = recorded(&record);
        for output in [undo(&text, &[]), undo(&text, &["--force"]), apply(&text)] {
            assert_refused(&output, "bad-record");
            assert_refused(&output, "is deeper than the limit of 256 levels");
        }
    }
}

#[test]
fn twenty_thousand_problems_are_counted_and_bounded() {
    let broken: String = (0..20_000)
        .map(|number| format!("---\nkind: Pod\nbroken{number}: [\n"))
        .collect();
    let output = apply(&broken);
    assert_refused(&output, "20000 errors; nothing was written");
    assert!(
        output.stderr.len() < 128 << 10,
        "{} bytes",
        output.stderr.len()
    );
    let warned: String = (0..20_000)
        .map(|number| "---\n".to_owned() + &deployment(&format!("w{number}"), ""))
        .collect();
    let appending = POLICY.replace("value: 'on'", "op: Append, value: 'on'");
    let output = apply_with(&appending, &warned, &[]);
    assert_done(&output);
    assert!(
        output.stderr.len() < 128 << 10,
        "{} bytes",
        output.stderr.len()
    );
}

#[test]
fn expressions_that_would_run_for_hours_are_refused() {
    let list = format!("[{}]", vec!["1"; 1000].join(","));
    let walk = format!("{list}.all(a, {list}.all(b, a == b))");
    assert!(walk.len() < 4096);
    let doubled = (1..40).map(|level| {
        format!(
            "  - {{name: v{level}, expression: variables.v{0} + variables.v{0}}}\n",
            level - 1
        )
    });
    let doubling = format!(
        "  - {{name: v0, expression: \"'x'\"}}\n{}",
        doubled.collect::<String>()
    );
    for (variables, value) in [
        (String::new(), format!("${{{walk}}}")),
        (doubling, "${variables.v39}".to_owned()),
    ] {
        let variables = if variables.is_empty() {
            variables
        } else {
            format!("  variables:\n{variables}")
        };
        let policy = POLICY
            .replace("'on'", &format!("'{value}'"))
            .replace("  inject:", &format!("{variables}  inject:"));
        assert_refused(
            &apply_with(&policy, &deployment("a", ""), &[]),
            "cannot be evaluated",
        );
    }
}

#[test]
fn searches_that_look_to_the_end_each_time_are_refused() {
    let condition = "  matchConditions: [{name: a, expression: \"pod.annotations.x.findAll('a*a*a*b|a').size() > 0\"}]\n";
    let policy = POLICY.replace("  inject:", &format!("{condition}  inject:"));
    let with = |text: &str| {
        let template = format!("template:\n    metadata: {{annotations: {{x: '{text}'}}}}\n");
        deployment("a", "").replace("template:\n", &template)
    };
    assert_refused(
        &apply_with(&policy, &with(&"a".repeat(40_000)), &[]),
        "takes too long",
    );
    // Words of a text of some kilobytes are found.
    let words = policy.replace("a*a*a*b|a", "[a-z]+");
    assert_done(&apply_with(&words, &with(&"some words ".repeat(400)), &[]));
}

fn patching(operations: &str) -> String {
    let head = POLICY
        .split("    volumes:")
        .next()
        .expect("there is a head");
    format!(
        "{head}    patches:\n    - patchType: JSONPatch\n      scope: PodTemplate\n      patch:\n{operations}"
    )
}

#[test]
fn a_pointer_of_a_hundred_thousand_parts_is_refused() {
    for depth in [300, 100_000] {
        let add = format!(
            "      - {{op: add, path: {}, value: x}}\n",
            "/a".repeat(depth)
        );
        assert_refused(
            &apply_with(&patching(&add), &deployment("a", ""), &[]),
            "is more than 256 levels deep",
        );
    }
    // The template is two levels deep itself.
    let add = format!(
        "      - {{op: add, path: {}, value: x}}\n",
        "/a".repeat(256)
    );
    assert_refused(
        &apply_with(&patching(&add), &deployment("a", ""), &[]),
        "nest deeper than 256 levels",
    );
}

#[test]
fn copies_that_double_are_refused() {
    let copies = |count| -> String {
        let line = |level| {
            format!("      - {{op: copy, from: /metadata, path: /metadata/annotations/x{level}}}\n")
        };
        (0..count).map(line).collect()
    };
    let text = deployment("a", "    metadata: {annotations: {x: z}}\n");
    // Fewer are refused as well: the next run would double them all again.
    for (count, words) in [
        (14, "would change its own result again"),
        (100, "more than 16 MiB larger"),
    ] {
        assert_refused(&apply_with(&patching(&copies(count)), &text, &[]), words);
    }
    let deeper: String = (0..300)
        .map(|level| {
            format!(
                "      - {{op: copy, from: /metadata, path: /metadata{}}}\n",
                "/x".repeat(level + 1)
            )
        })
        .collect();
    let output = apply_with(&patching(&deeper), &text, &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn globs_with_many_braces_are_refused() {
    for (depth, words) in [
        (17, "more than 16 braces"),
        (260, "more than 16 braces"),
        (100_000, "longer than 4096"),
    ] {
        let glob = format!("{}a{}", "{".repeat(depth), "}".repeat(depth));
        let policy = POLICY.replace(
            "  inject:",
            &format!("  match: {{names: ['{glob}']}}\n  inject:"),
        );
        assert_refused(&apply_with(&policy, &deployment("a", ""), &[]), words);
        if depth < 1000 {
            for args in [
                ["--include", &glob],
                ["--exclude", &glob],
                ["--workload", &format!("*/*/{glob}")],
            ] {
                assert_refused(&apply_with(POLICY, &deployment("a", ""), &args), words);
            }
        }
    }
}

#[test]
fn variables_of_a_policy_that_use_each_other_are_done_soon() {
    let count = MANY.min(3_000);
    let entry = |number| format!("    - {{name: V{number}, value: $(V{})}}\n", number + 1);
    let chain: String = (0..count).map(entry).collect();
    let policy = POLICY.replace("    env: [{name: AGENT, value: 'on'}]\n", "    env:\n");
    let policy = format!("{policy}{chain}    - {{name: V{count}, value: x}}\n");
    assert_done(&apply_with(&policy, &deployment("a", ""), &[]));
}

#[test]
fn policies_with_too_many_items_are_refused() {
    let items = |count| -> String {
        (0..count)
            .map(|number| format!("      a{number}: x\n"))
            .collect()
    };
    for count in [5_001, 200_000] {
        let policy = format!("{POLICY}    podAnnotations:\n{}", items(count));
        assert_refused(
            &apply_with(&policy, &deployment("a", ""), &[]),
            "more than 5000 items under `inject`",
        );
    }
    assert_done(&apply_with(
        &format!("{POLICY}    podAnnotations:\n{}", items(2_000)),
        &deployment("a", ""),
        &[],
    ));
}

#[test]
fn stdin_that_never_holds_a_document_ends_with_it() {
    let folder = TempDir::new().expect("there is a folder for temporary files");
    fs::write(folder.path().join("policy.yaml"), POLICY).expect("it can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    command
        .args(["apply", "-p", "policy.yaml"])
        .current_dir(folder.path());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    child
        .stdin
        .take()
        .expect("it is a pipe")
        .write_all(&[b'\n'; 1 << 20])
        .expect("it is read");
    assert_refused(
        &child.wait_with_output().expect("it ends"),
        "no manifest in <stdin>",
    );
}

#[test]
fn annotations_may_be_as_long_as_an_api_server_takes_and_no_longer() {
    let policy = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject: {podAnnotations: {k: v}}
";
    // `ValidateAnnotationsSize` of Kubernetes counts keys and values: `big` and `k: v` take five bytes.
    for (length, code) in [(262_144 - 5, 0), (262_144 - 4, 2)] {
        let text = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: big}}\nspec:\n  template:\n    metadata:\n      \
             annotations:\n        big: {}\n    spec:\n      containers:\n      - name: app\n        image: app:1\n",
            "x".repeat(length)
        );
        let output = apply_with(policy, &text, &["-q", "--no-marker"]);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{length}: {messages}");
        assert!(
            code == 0 || messages.contains("262144 bytes in total"),
            "{messages}"
        );
    }
}

#[test]
fn annotations_that_podgraft_writes_count_with_the_others() {
    let policy = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject: {env: [{name: A, value: b}]}
";
    // `big`, `podgraft.dev/applied: agent`.
    let most = 262_144 - 3 - 20 - 5;
    for (length, args, code) in [
        (most, &["-q"][..], 0),
        (most + 1, &["-q"], 2),
        (most + 1, &["-q", "--no-marker"], 0),
        (most, &["-q", "--record"], 2),
        (most - 400, &["-q", "--record"], 0),
        // Too many before is nobody's fault here.
        (262_144, &["-q"], 0),
    ] {
        let big = "x".repeat(length);
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n    big: {big}\nspec:\n  containers:\n  \
             - name: app\n    image: app:1\n"
        );
        let output = apply_with(policy, &text, args);
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{length} {args:?}: {messages}"
        );
        assert!(
            code == 0 || messages.contains("262144 bytes of annotations"),
            "{messages}"
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn too_little_memory_for_the_parser_of_expressions_is_an_error() {
    let folder = TempDir::new().expect("there is a folder for temporary files");
    let policy = POLICY.replace("value: 'on'", "value: \"${workload.name + 'a'}\"");
    fs::write(folder.path().join("policy.yaml"), policy).expect("it can be written");
    fs::write(folder.path().join("input.yaml"), deployment("a", "")).expect("it can be written");
    for command in ["diff", "check"] {
        let limited = format!("ulimit -v 400000; exec \"$0\" {command} -p policy.yaml input.yaml");
        let output = Command::new("sh")
            .args(["-c", &limited, env!("CARGO_BIN_EXE_podgraft")])
            .current_dir(folder.path())
            .output()
            .expect("the program runs");
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("the system refused a thread"), "{text}");
    }
}
