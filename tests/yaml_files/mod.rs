//! Every file of the torture set and of the corpus of real manifests: spans nest, values are those that another
//! parser reads, and what must be refused is refused. The files are not part of this repository; without them the
//! tests say so and pass.

pub mod files;
pub mod mutants;
mod spans;
mod values;

use self::files::{Folder, each_chunk};
use self::mutants::{Random, mutate};
use podgraft_core::yaml::ambiguity::{TextPosition, find_ambiguity, find_ambiguity_in_tree};
use podgraft_core::yaml::parse::{ParseErrorKind, parse, parse_fast, parse_with_granit};
use std::env;

const ALL: [Folder; 3] = [Folder::Own, Folder::Torture, Folder::Corpus];

#[test]
fn spans_nest_and_begin_with_their_indicators() {
    each_chunk(&ALL, |name, text| {
        for parser in [parse, parse_with_granit] {
            if let Ok(tree) = parser(text) {
                spans::check(name, &tree);
            }
        }
    });
}

#[test]
fn values_are_those_that_another_parser_reads() {
    let mut counts = values::Counts::default();
    let has_files = each_chunk(&ALL, |name, text| {
        if let Ok(tree) = parse(text) {
            values::compare(name, &tree, &mut counts);
        }
    });
    println!("{counts:?}");
    assert!(!has_files || counts.equal > 1000, "{counts:?}");
}

/// ERR in `TORTURE.md`, but for what is YAML all the same: keys that are there twice and content on the `---` line
/// are for those who read the tree.
#[test]
fn torture_that_is_not_yaml_is_refused() {
    const REFUSED: [&str; 21] = [
        "alias-undefined",
        "anchor-cross-doc",
        "tabs-indent",
        "directive-percent-plain",
        "long-key",
        "json-lines",
        "sep-in-quoted",
        "sep-in-flow",
        "helm-template",
        "deep-flow",
        "deep-block",
        "deep-block-map",
        "nul-byte",
        "control-char",
        "invalid-utf8",
        "utf16le",
        "utf16be-nobom",
        "unclosed-quote",
        "unclosed-flow",
        "bad-dedent",
        "colon-in-plain",
    ];
    let Some(files) = files::read(Folder::Torture) else {
        return;
    };
    for stem in REFUSED {
        let (_, bytes) = files
            .iter()
            .find(|(name, _)| name == &format!("{stem}.yaml"))
            .expect(stem);
        let chunks = podgraft_core::yaml::stream::chunks(bytes);
        let is_bad = |bytes| std::str::from_utf8(bytes).map_or(true, |text| parse(text).is_err());
        assert!(
            chunks.map(|chunk| chunk.text).any(is_bad),
            "{stem} is not refused"
        );
    }
}

#[test]
fn torture_that_is_too_deep_says_so() {
    let Some(files) = files::read(Folder::Torture) else {
        return;
    };
    for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("deep-")) {
        let text = std::str::from_utf8(bytes).expect("the deep files are ASCII");
        assert_eq!(
            parse(text).expect_err(name).kind,
            ParseErrorKind::TooDeep,
            "{name}"
        );
    }
}

#[test]
fn torture_that_is_yaml_is_read() {
    let Some(files) = files::read(Folder::Torture) else {
        return;
    };
    let table = files::torture_table();
    for (name, bytes) in &files {
        let class = table.get(name.as_str()).map_or("", String::as_str);
        if matches!(class, "ERR" | "OPQ" | "") {
            continue;
        }
        for chunk in podgraft_core::yaml::stream::chunks(bytes) {
            let Ok(text) = std::str::from_utf8(chunk.text) else {
                continue;
            };
            assert!(parse(text).is_ok(), "{name}: {:?}", parse(text));
        }
    }
}

/// Whatever the fast parser answers, the complete one answers too.
#[track_caller]
fn check_fast(name: &str, text: &str) -> bool {
    let Some(fast) = parse_fast(text) else {
        return false;
    };
    match parse_with_granit(text) {
        Ok(complete) => assert!(
            fast == complete,
            "{name}: {text:?}\nfast {fast:#?}\ncomplete {complete:#?}"
        ),
        Err(error) => panic!("{name}: {text:?}: accepted by the fast parser only: {error:?}"),
    }
    true
}

#[test]
fn the_fast_parser_knows_nearly_all_real_workloads() {
    const WORKLOADS: [&str; 8] = [
        "Pod",
        "Deployment",
        "StatefulSet",
        "DaemonSet",
        "ReplicaSet",
        "Job",
        "CronJob",
        "ReplicationController",
    ];
    let (mut known, mut all, mut workloads, mut known_workloads) = (0, 0, 0, 0);
    let has_files = each_chunk(&[Folder::Corpus], |name, text| {
        let is_known = check_fast(name, text);
        let kind = text
            .lines()
            .find_map(|line| line.strip_prefix("kind:"))
            .map_or("", str::trim);
        let is_workload = WORKLOADS.contains(&kind);
        known += usize::from(is_known);
        all += 1;
        workloads += usize::from(is_workload);
        known_workloads += usize::from(is_workload && is_known);
        if is_workload && !is_known {
            println!("not known: {name}");
        }
    });
    println!("{known} of {all} documents, {known_workloads} of {workloads} workloads");
    assert!(!has_files || known_workloads * 100 >= workloads * 97);
}

/// `PODGRAFT_MUTANTS` and `PODGRAFT_SEED` make more of them, and others.
fn each_mutant(mut see: impl FnMut(&str)) -> usize {
    // Real documents have few brackets and folded lines, so these come as often as a hundred others.
    let seeds = [include_str!("seed.yaml"), include_str!("seed.json")].repeat(50);
    let mut texts: Vec<String> = seeds.into_iter().map(str::to_owned).collect();
    each_chunk(&ALL, |_, text| {
        if text.len() < 40_000 {
            texts.push(text.to_owned());
        }
    });
    let count =
        env::var("PODGRAFT_MUTANTS").map_or(10_000, |count| count.parse().expect("a number"));
    let seed = env::var("PODGRAFT_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    let mut random = Random::new(seed);
    for _ in 0..count {
        see(&mutate(&texts[random.below(texts.len())], &mut random));
    }
    count
}

#[test]
fn the_fast_parser_never_differs_from_the_complete_one() {
    each_chunk(&ALL, |name, text| {
        check_fast(name, text);
    });
    let mut known = 0;
    let count = each_mutant(|text| known += usize::from(check_fast("mutant", text)));
    println!("{known} of {count} mutants are known");
    assert!(
        known * 10 > count,
        "too few mutants are known to say anything"
    );
}

/// Where no doubt is known, the trees of broken documents are as sound as those of real ones.
#[test]
fn mutants_have_sound_spans_and_the_values_of_another_parser() {
    let mut counts = values::Counts::default();
    each_mutant(|text| {
        let Ok(tree) = parse_with_granit(text) else {
            return;
        };
        spans::check(text, &tree);
        if find_ambiguity(text, TextPosition::Inside).is_none()
            && find_ambiguity_in_tree(&tree).is_none()
        {
            values::compare(text, &tree, &mut counts);
        }
    });
    println!("{counts:?}");
}

#[test]
fn the_fast_parser_gives_up_within_the_limits() {
    for length in 990..1030 {
        let key = "é".repeat(length / 2) + &"k".repeat(length % 2);
        let ascii = "k".repeat(length);
        for key in [key, ascii] {
            for text in [
                format!("{key}: v\n"),
                format!("- '{key}'   : v\n"),
                format!("{{\"{key}\": v}}"),
                format!("a: {{{key}: v}}"),
            ] {
                check_fast("a long key", &text);
            }
        }
    }
    for depth in 1..300 {
        let indented: String = (0..depth)
            .map(|level| format!("{}k:\n", " ".repeat(level)))
            .collect();
        for text in [
            indented,
            "- ".repeat(depth) + "a",
            "[".repeat(depth) + &"]".repeat(depth),
        ] {
            check_fast("a deep document", &text);
        }
    }
}
