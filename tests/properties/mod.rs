//! Promises over manifests and policies that nobody wrote: generated values, written as YAML in many styles.
//!
//! `PROPTEST_CASES=100000 SEED=7 cargo test --release --test integration properties::` looks at more, and at others. A failure shows the
//! smallest input that was found.

mod generate;
mod style;

use crate::promises;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use serde_json::{Value, json};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use self::generate::{Case, case, cases};
use self::style::Style;
use podgraft_core::graft::{Options, graft};
use podgraft_core::options::RemovalSelection;
use podgraft_core::yaml::parse::parse_with_granit;
use podgraft_core::yaml::splice::splice;
use podgraft_core::yaml::value::to_value;

fn number(variable: &str, default: u32) -> u32 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Runs a property over generated inputs: the same ones every time, unless `SEED` says otherwise.
fn for_all<S: Strategy>(strategy: S, times: u32, property: impl Fn(S::Value))
where
    S::Value: std::fmt::Debug,
{
    let times = number("PROPTEST_CASES", 256) * times / 256;
    let config = Config {
        cases: times.max(1),
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..4].copy_from_slice(&number("SEED", 1).to_le_bytes());
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed));
    let failed = runner.run(&strategy, |input| {
        property(input);
        Ok::<(), TestCaseError>(())
    });
    match failed {
        Ok(()) => {}
        Err(TestError::Fail(why, input)) => panic!("{why}\n{input:?}"),
        Err(other) => panic!("{other}"),
    }
}

/// The text with every edit made; `None` when it is refused.
fn grafted(text: &str, case: &Case) -> Option<String> {
    let policies = case.policies();
    let report = promises::run(text.as_bytes(), &policies);
    if !promises::errors(&report).is_empty() {
        return None;
    }
    Some(String::from_utf8(splice(text.as_bytes(), &report.edits)).expect("text in text is text"))
}

fn values(text: &str) -> Vec<Value> {
    let tree = parse_with_granit(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let value = |&root| to_value(&tree, root).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    tree.roots().iter().map(value).collect()
}

/// How often each comment that the style writer makes stands in a text.
fn comments(text: &str) -> [usize; 6] {
    [
        "# why",
        "# deeper",
        "# at the edge",
        "# said here",
        "# next",
        "# Source: a/b.yaml",
    ]
    .map(|comment| text.matches(comment).count())
}

#[test]
fn whatever_is_generated_keeps_the_promises() {
    let (refused, edited, compared) = (Cell::new(0), Cell::new(0), Cell::new(0));
    for_all(case(), 512, |case| {
        let text = case.text();
        assert_eq!(
            values(&text),
            case.objects,
            "the style writer is wrong\n{text}"
        );
        let kept = promises::check(text.as_bytes(), &case.policies());
        // What is removed or replaced takes its comments with it.
        let is_adding = !["\"Remove\"", "\"Replace\""]
            .iter()
            .any(|word| case.policy.to_string().contains(word));
        if let Some(output) = kept.output.as_ref().filter(|_| is_adding) {
            assert_eq!(
                comments(&String::from_utf8_lossy(output)),
                comments(&text),
                "comments of\n{text}"
            );
        }
        refused.set(refused.get() + u32::from(kept.output.is_none()));
        edited.set(edited.get() + u32::from(kept.edits > 0));
        compared.set(compared.get() + kept.compared);
    });
    eprintln!(
        "{} edited, {} refused, {} documents compared",
        edited.get(),
        refused.get(),
        compared.get()
    );
    assert!(
        edited.get() > refused.get() / 2 && compared.get() > 0,
        "hardly anything was edited"
    );
}

#[test]
fn windows_line_ends_stay_and_change_nothing_else() {
    for_all(case(), 256, |case| {
        let text = case.text();
        let with_returns = |text: String| text.replace('\n', "\r\n");
        assert_eq!(
            grafted(&with_returns(text.clone()), &case),
            grafted(&text, &case).map(with_returns),
            "{text}"
        );
    });
}

#[test]
fn wrapped_in_lists_the_values_are_the_same() {
    for_all(case(), 256, |case| {
        let alone = grafted(&case.text(), &case).map(|text| values(&text));
        for (version, kind) in [("v1", "List"), ("config.kubernetes.io/v1", "ResourceList")] {
            let list = json!({"apiVersion": version, "kind": kind, "items": case.objects});
            let text = Style::new(&case.style).document(&list);
            assert_eq!(values(&text), [list], "the style writer is wrong\n{text}");
            let wrapped = grafted(&text, &case).map(|text| values(&text).remove(0)["items"].take());
            assert_eq!(wrapped, alone.clone().map(Value::Array), "{text}");
        }
    });
}

#[test]
fn json_has_the_values_of_yaml() {
    for_all(case(), 128, |case| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": case.objects});
        let alone = grafted(&case.text(), &case).map(|text| values(&text));
        for text in [
            list.to_string(),
            serde_json::to_string_pretty(&list).expect("a value is JSON"),
        ] {
            let output = grafted(&text, &case);
            let items = output.map(|text| {
                let mut value: Value =
                    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
                value["items"].take()
            });
            assert_eq!(items, alone.clone().map(Value::Array), "{text}");
        }
    });
}

/// Injects with a record, and takes it out again.
#[test]
fn what_was_injected_with_a_record_is_undone_to_the_byte() {
    let undone = Cell::new(0);
    for_all(case(), 256, |case| {
        let (text, policies) = (case.text(), case.policies());
        let recording = Options {
            record: true,
            ..Options::default()
        };
        let report = graft(
            &Arc::from("input.yaml"),
            text.as_bytes(),
            &policies,
            &recording,
        );
        if !promises::errors(&report).is_empty() || report.edits.is_empty() {
            return;
        }
        let injected = splice(text.as_bytes(), &report.edits);
        let undoing = Options {
            take_out: RemovalSelection::All,
            ..Options::default()
        };
        let report = graft(&Arc::from("input.yaml"), &injected, &[], &undoing);
        let shown = String::from_utf8_lossy(&injected);
        assert!(
            promises::errors(&report).is_empty(),
            "{:?}\n{shown}",
            report.diagnostics
        );
        let back = splice(&injected, &report.edits);
        assert_eq!(String::from_utf8_lossy(&back), text, "from\n{shown}");
        undone.set(undone.get() + 1);
    });
    eprintln!("{} undone", undone.get());
    assert!(undone.get() > 0, "nothing was undone");
}

/// Runs the program in a folder with `policy.yaml`.
fn podgraft(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
    command
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the program runs")
}

#[test]
fn the_order_of_files_and_the_number_of_threads_do_not_matter() {
    for_all(cases(), 16, |(files, policy)| {
        let mut results = Vec::new();
        for (threads, is_reversed) in [("1", false), ("1", true), ("4", false), ("3", true)] {
            let folder = tempfile::TempDir::new().expect("there is a folder for temporary files");
            let write = |name: &str, text: &str| {
                fs::write(folder.path().join(name), text).expect("it can be written")
            };
            write("policy.yaml", &policy.policy.to_string());
            let names: Vec<String> = (0..files.len())
                .map(|number| format!("{number}.yaml"))
                .collect();
            names
                .iter()
                .zip(&files)
                .for_each(|(name, file)| write(name, &file.text()));
            let mut args = vec![
                "apply",
                "-q",
                "-i",
                "-p",
                "policy.yaml",
                "--threads",
                threads,
            ];
            let at = args.len();
            args.extend(names.iter().map(String::as_str));
            if is_reversed {
                args[at..].reverse();
            }
            let status = podgraft(folder.path(), &args).status.code();
            let read =
                |name: &String| fs::read_to_string(folder.path().join(name)).expect("it is there");
            results.push((status, names.iter().map(read).collect::<Vec<_>>()));
        }
        assert!(
            results.windows(2).all(|pair| pair[0] == pair[1]),
            "{results:#?}"
        );
    });
}
