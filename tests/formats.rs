//! Resources of other operators that are broken at random: they are read or refused, and never more than that.

use podgraft_core::convert::convert;
use podgraft_core::policy::conversion::{DebugMode, ReadOptions};
use podgraft_core::policy::read::{PolicyFile, read_as};
use std::fs;

/// A linear congruential generator: the same mutants in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits fit") % most.max(1)
    }
}

/// Values that stand where others are expected.
const ODD: [&str; 14] = [
    "[]",
    "{}",
    "null",
    "\"\"",
    "0",
    "-1",
    "99999999999",
    "true",
    "${x}",
    "$${x}",
    "'a: b'",
    "*",
    "a/b:c@d",
    "\u{fc}",
];

fn mutant(text: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(lines.len());
        match dice.below(5) {
            0 if lines.len() > 1 => drop(lines.remove(at)),
            1 => {
                let other = dice.below(lines.len());
                lines.swap(at, other);
            }
            2 => {
                let copy = lines[at].clone();
                lines.insert(at, copy);
            }
            3 => lines[at] = format!("  {}", lines[at]),
            _ => {
                if let Some((key, _)) = lines[at].clone().split_once(": ") {
                    lines[at] = format!("{key}: {}", ODD[dice.below(ODD.len())]);
                }
            }
        }
    }
    lines.join("\n") + "\n"
}

/// The resources of the case folders.
fn resources() -> Vec<String> {
    let areas = [
        "rookout",
        "jmx-exporter",
        "podbuggertool",
        "config-monitor",
        "formats",
    ];
    let folders = areas
        .iter()
        .flat_map(|area| fs::read_dir(format!("testdata/cases/{area}")).expect("it is there"));
    let texts = folders.map(|folder| {
        let path = folder
            .expect("the entry is readable")
            .path()
            .join("policy.yaml");
        fs::read_to_string(path).expect("a case has a policy")
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    assert!(
        texts.len() > 50,
        "only {} resources were found",
        texts.len()
    );
    texts
}

#[test]
fn a_broken_resource_is_refused_or_becomes_a_policy_that_can_be_read() {
    let resources = resources();
    let mut dice = Dice(7);
    let mut accepted = 0;
    for round in 0..1000 {
        let text = mutant(&resources[round % resources.len()], &mut dice);
        let debug_mode = if round % 2 == 0 {
            DebugMode::Ephemeral
        } else {
            DebugMode::Sidecar
        };
        let reading = ReadOptions {
            debug_mode,
            ..ReadOptions::default()
        };
        let file = || {
            vec![PolicyFile {
                name: "resource.yaml".into(),
                text: text.clone(),
            }]
        };
        let (policies, problems) = read_as(file(), &[], reading.clone());
        let is_refused = problems.iter().any(|problem| problem.is_error());
        assert!(
            is_refused || !policies.is_empty(),
            "neither read nor refused:\n{text}"
        );
        for problem in &problems {
            assert!(
                !problem.labels.is_empty(),
                "a problem has no place: {problem:?}\n{text}"
            );
        }
        let Ok((converted, _)) = convert(file(), &[], reading) else {
            continue;
        };
        assert!(!is_refused, "refused, and converted:\n{text}");
        let file = PolicyFile {
            name: "converted.yaml".into(),
            text: converted.clone(),
        };
        let (read, problems) = read_as(vec![file], &[], ReadOptions::default());
        assert_eq!(
            (read.len(), problems),
            (policies.len(), Vec::new()),
            "{text}\n{converted}"
        );
        accepted += 1;
    }
    assert!(accepted > 40, "only {accepted} mutants were accepted");
}
