//! Manifests that went wrong in small ways: lines lost, doubled, swapped, indented, cut off, brackets and quotes thrown
//! in. Whatever comes of it, every promise of `promises` holds: refused with a place, or edited rightly.
//!
//! `MUTATIONS=1000000 cargo test --release --test integration mutation::` runs longer; `SEED=n` runs another series.

use crate::promises;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Each is tried on a quarter of the manifests, and the last one on the rest.
const POLICIES: [&str; 3] = [
    "testdata/mutation/companions.yaml",
    "testdata/mutation/selected.yaml",
    "testdata/mutation/policy.yaml",
];
const FOLDERS: &[&str] = &["testdata/cases", "testdata/examples", "../shared/torture"];

/// A small generator (xorshift): the same seed gives the same series on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits fit") % end
    }

    fn of<'t>(&mut self, choices: &[&'t str]) -> &'t str {
        choices[self.below(choices.len())]
    }
}

const VALUES: &[&str] = &[
    " []",
    " {}",
    " ~",
    "",
    " |",
    " >-",
    " \"x\"",
    " 'y'",
    " &a x",
    " !!str 1",
    " null # n",
    " *a",
    " java",
    " \"\\x6aava\"",
];
const PIECES: &[&str] = &[
    "'", "\"", "|", ">", "- ", "&a ", "*a", "? ", "{", "}", "[", "]", ",", "#", "\t", "---\n",
    "...\n", "<<: *a\n", ":",
];

fn mutate(lines: &mut Vec<String>, random: &mut Random) {
    let at = random.below(lines.len());
    let bare = lines[at].trim_end().to_owned();
    match random.below(14) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => lines[at].insert_str(0, "  "),
        3 => {
            lines[at] = lines[at]
                .strip_prefix("  ")
                .unwrap_or(&lines[at])
                .to_owned()
        }
        4 => lines.insert(at, "# comment\n".to_owned()),
        5 => lines.insert(at, "\n".to_owned()),
        6 => lines[at] = format!("{bare} # comment\n"),
        7 => {
            if let Some(colon) = lines[at].find(':') {
                lines[at] = format!("{}{}\n", &lines[at][..=colon], random.of(VALUES));
            }
        }
        8 => lines[at] = bare,
        9 => lines[at] = format!("{bare}\r\n"),
        10 => {
            let place = lines[at].floor_char_boundary(random.below(lines[at].len() + 1));
            lines[at].insert_str(place, random.of(PIECES));
        }
        11 => lines.truncate(1 + random.below(lines.len())),
        12 => {
            let other = random.below(lines.len());
            lines.swap(at, other);
        }
        _ => {
            let other = random.below(lines.len());
            lines.insert(other, lines[at].clone());
        }
    }
}

fn texts() -> Vec<String> {
    let mut texts = Vec::new();
    FOLDERS
        .iter()
        .for_each(|folder| collect(Path::new(folder), &mut texts));
    texts.retain(|text| (1..20_000).contains(&text.len()));
    assert!(!texts.is_empty(), "there is nothing to mutate");
    texts
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
        if path.is_dir() {
            collect(&path, texts);
        } else {
            texts.extend(fs::read_to_string(&path).ok());
        }
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn manifests_that_went_wrong_are_refused_or_edited_rightly() {
    let policies = POLICIES.map(|path| {
        let text = fs::read_to_string(path).expect("the policy is there");
        promises::policies(&text).expect("the policy is right")
    });
    let texts = texts();
    let mut random = Random(number("SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut edited, mut refused, mut compared, mut broken) = (0, 0, 0, 0);
    let runs = number("MUTATIONS", 20_000);
    for run in 0..runs {
        let mut lines: Vec<String> = texts[random.below(texts.len())]
            .split_inclusive('\n')
            .map(str::to_owned)
            .collect();
        for _ in 0..1 + random.below(4) {
            if !lines.is_empty() {
                mutate(&mut lines, &mut random);
            }
        }
        let text = lines.concat();
        let policies = &policies[usize::try_from(run % 4).unwrap_or(2).min(2)];
        let checked = || promises::check(text.as_bytes(), policies);
        let Ok(kept) = catch_unwind(AssertUnwindSafe(checked)) else {
            broken += 1;
            eprintln!("run {run}, the text:\n{text}the end");
            continue;
        };
        refused += usize::from(kept.output.is_none());
        edited += usize::from(kept.edits > 0);
        compared += kept.compared;
    }
    eprintln!(
        "{runs} runs: {edited} edited, {refused} refused, {compared} documents compared by values"
    );
    assert_eq!(broken, 0, "promises were broken: see the texts above");
    assert!(
        edited > 0 && refused > 0 && compared > 0,
        "the mutations test nothing: {edited} edited, {refused} refused"
    );
}
