//! Our reading of YAML against kubectl's own (`sigs.k8s.io/yaml`, in `tests/go`): wherever both find a value, and no doubt
//! is known, it is the same one. Over the test data, the torture set and the corpus where they are, `spec.yaml`'s corners
//! of the language, every spelling of a scalar, and texts that went wrong.
//!
//! `PODGRAFT_GO_READER` names the built reader; without it the tests say so and pass. `PODGRAFT_YAML` names a folder of
//! more files, `PODGRAFT_MUTANTS` and `PODGRAFT_SEED` make more and other broken texts.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::yaml_files::mutants::{Random, mutate};
use podgraft_core::yaml::ambiguity::{TextPosition, find_ambiguity, find_ambiguity_in_tree};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::stream::chunks;
use podgraft_core::yaml::value::to_value;
use serde_json::{Number, Value};

const FOLDERS: &[&str] = &[
    "testdata",
    "policies",
    "tests",
    "../shared/torture",
    "../shared/corpus",
    "../shared/cases",
];

#[derive(Debug, Default)]
struct Counts {
    same: usize,
    /// We refuse, or find a doubt, so nothing is edited there.
    refused_by_us: usize,
    /// kubectl would refuse it: an edit does no harm.
    refused_by_kubectl: usize,
}

fn collect(folder: &Path, texts: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("the entry is readable").path())
        .collect();
    paths.sort();
    for path in paths {
        let is_yaml = path
            .extension()
            .is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known));
        if path.is_dir() {
            collect(&path, texts);
        } else if is_yaml {
            let bytes = fs::read(&path).expect("the file is readable");
            let parts = chunks(&bytes)
                .filter_map(|chunk| std::str::from_utf8(chunk.text).ok().map(str::to_owned));
            texts.extend(parts);
        }
    }
}

fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    FOLDERS
        .iter()
        .for_each(|folder| collect(Path::new(folder), &mut texts));
    if let Ok(more) = env::var("PODGRAFT_YAML") {
        collect(Path::new(&more), &mut texts);
    }
    texts
}

/// What kubectl reads in each of the texts; `None` where it refuses.
fn read_as_kubectl(reader: &str, texts: &[String]) -> Vec<Option<Value>> {
    let mut child = Command::new(reader)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the reader runs");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    let lines: Vec<String> = texts
        .iter()
        .map(|text| serde_json::to_string(text).expect("a text is JSON"))
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(stdin, "{line}").expect("the reader reads");
        }
    });
    let answers = BufReader::new(child.stdout.take().expect("it is a pipe"))
        .lines()
        .map(|line| {
            let line = line.expect("the reader answers");
            // What nests as deep as this is refused by us anyway, or soon would be.
            let mut answer: Value = match serde_json::from_str(&line) {
                Err(error) if error.to_string().starts_with("recursion limit") => return None,
                answer => answer.expect("an answer is JSON"),
            };
            answer.get_mut("value").map(Value::take)
        });
    let answers: Vec<_> = answers.collect();
    writer.join().expect("all was read");
    assert!(child.wait().expect("the reader ends").success());
    assert_eq!(answers.len(), texts.len());
    answers
}

/// Our value of a text of one document, where no doubt is known.
fn read(text: &str) -> Option<Value> {
    // An empty document before the first is one to the other reader; kubectl cuts the text before it comes there.
    if text.lines().any(|line| line.starts_with("...")) || chunks(text.as_bytes()).count() > 1 {
        return None;
    }
    let tree = parse(text).ok()?;
    let &[root] = tree.roots() else { return None };
    if find_ambiguity(text, TextPosition::Start).is_some()
        || find_ambiguity_in_tree(&tree).is_some()
    {
        return None;
    }
    to_value(&tree, root).ok()
}

/// The reader of JSON here does not round floats as exactly as both readers of YAML do.
fn is_about(ours: &Number, theirs: &Number) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_f64(), theirs.as_f64()) else {
        return false;
    };
    (ours - theirs).abs() <= ours.abs() * 4.0 * f64::EPSILON
}

/// Go writes a float that is whole as an integer.
fn is_same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => ours == theirs || is_about(ours, theirs),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(ours, theirs)| is_same(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            let is_there = |(key, value): (&String, &Value)| {
                theirs.get(key).is_some_and(|other| is_same(value, other))
            };
            ours.len() == theirs.len() && ours.iter().all(is_there)
        }
        _ => ours == theirs,
    }
}

fn compare(texts: &[String]) -> Option<Counts> {
    let Ok(reader) = env::var("PODGRAFT_GO_READER") else {
        eprintln!(
            "SKIPPED: PODGRAFT_GO_READER is not set; `.ci/run` builds the reader of tests/go"
        );
        return None;
    };
    let mut counts = Counts::default();
    let mut wrong = Vec::new();
    for (text, theirs) in texts.iter().zip(read_as_kubectl(&reader, texts)) {
        match (read(text), theirs) {
            (None, _) => counts.refused_by_us += 1,
            (Some(_), None) => counts.refused_by_kubectl += 1,
            (Some(ours), Some(theirs)) if is_same(&ours, &theirs) => counts.same += 1,
            (Some(ours), Some(theirs)) => wrong.push(format!(
                "{text:.2000}\nours   {ours:.2000}\ntheirs {theirs:.2000}"
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(3)].join("\n\n")
    );
    eprintln!("{} texts: {counts:?}", texts.len());
    Some(counts)
}

#[test]
fn files_have_the_values_that_kubectl_reads() {
    let Some(counts) = compare(&texts()) else {
        return;
    };
    assert!(
        counts.same > 300 && counts.refused_by_kubectl * 20 < counts.same,
        "{counts:?}"
    );
}

#[test]
fn corners_of_the_language_have_the_values_that_kubectl_reads() {
    let corners = include_str!("yaml_files/corners.txt");
    let texts: Vec<String> = corners
        .split("\n=====\n")
        .map(|text| text.replace('\u{2192}', "\t") + "\n")
        .collect();
    let Some(counts) = compare(&texts) else {
        return;
    };
    assert!(counts.same > 100, "{counts:?}");
}

#[test]
fn every_spelling_of_a_scalar_is_what_kubectl_takes_it_for() {
    let Some(counts) = compare(&spellings()) else {
        return;
    };
    assert!(counts.same > 600, "{counts:?}");
}

/// Words that are more than text somewhere, and all short texts of characters that numbers are made of.
fn spellings() -> Vec<String> {
    let words = "y n yes no on off true false null nil nan inf infinity ~ = << .inf -.inf +.inf .nan 0x 0b 0o 1:30 22:22 \
                 190:20:30 2001-12-14 2001-12-14t21:59:43.10-05:00 12e03 1e400 0x1p-2 1_000 0_7 _1 1_ 0777 0o777 08 09.5 \
                 0b101 0b2 0xFF 0xG 1. .5 . .. - -- --- -. +1 -1 +-1 1e 1e+ 1e+3 1E3 e3 9223372036854775807 \
                 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 \
                 18446744073709551616 0.1 -0 -0.0 0x7fffffffffffffff 0xffffffffffffffff 1e-400 123456789012345678901234567890";
    let mut scalars: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        let title = word[..1].to_uppercase() + &word[1..];
        scalars.extend([word.to_owned(), word.to_uppercase(), title]);
    }
    let alphabet = [
        '0', '1', '7', '8', '.', '_', '-', '+', 'e', 'x', 'o', 'b', ':', 'E',
    ];
    for length in 1..=4 {
        for number in 0..alphabet.len().pow(length) {
            let digits = (0..length)
                .map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()]);
            scalars.push(digits.collect());
        }
    }
    // One document holds many, so that the reader is asked less often.
    let lists = scalars.chunks(64).flat_map(|some| {
        let list: String = some.iter().map(|scalar| format!("- {scalar}\n")).collect();
        // A scalar that is no scalar spoils its document, and is asked for alone.
        if read(&list).is_some() {
            vec![list]
        } else {
            some.iter().map(|scalar| format!("a: {scalar}\n")).collect()
        }
    });
    lists.collect()
}

#[test]
fn texts_that_went_wrong_have_the_values_that_kubectl_reads() {
    let number = |name: &str, default: u64| {
        env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let whole: Vec<String> = texts()
        .into_iter()
        .filter(|text| text.len() < 20_000)
        .collect();
    let mut random = Random::new(number("PODGRAFT_SEED", 1));
    let broken = |_| mutate(&whole[random.below(whole.len())], &mut random);
    let texts: Vec<String> = (0..number("PODGRAFT_MUTANTS", 5000)).map(broken).collect();
    let Some(counts) = compare(&texts) else {
        return;
    };
    assert!(counts.same * 10 > texts.len(), "{counts:?}");
}
