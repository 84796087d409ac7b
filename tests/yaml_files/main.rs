//! Every file of the torture set and of the corpus of real manifests: spans nest, values are those that another
//! parser reads, and what must be refused is refused. The files are not part of this repository; without them the
//! tests say so and pass.

mod files;
mod spans;
mod values;

use files::{Folder, each_chunk};
use podgraft::yaml::parse::{ParseErrorKind, parse, parse_with_granit};

#[test]
fn spans_nest_and_begin_with_their_indicators() {
    each_chunk(&[Folder::Torture, Folder::Corpus], |name, text| {
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
    let has_files = each_chunk(&[Folder::Torture, Folder::Corpus], |name, text| {
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
    let Some(files) = files::read(Folder::Torture) else { return };
    for stem in REFUSED {
        let (_, bytes) = files.iter().find(|(name, _)| name == &format!("{stem}.yaml")).expect(stem);
        let chunks = podgraft::yaml::stream::chunks(bytes);
        let is_bad = |bytes| std::str::from_utf8(bytes).map_or(true, |text| parse(text).is_err());
        assert!(chunks.map(|chunk| chunk.text).any(is_bad), "{stem} is not refused");
    }
}

#[test]
fn torture_that_is_too_deep_says_so() {
    let Some(files) = files::read(Folder::Torture) else { return };
    for (name, bytes) in files.iter().filter(|(name, _)| name.starts_with("deep-")) {
        let text = std::str::from_utf8(bytes).expect("the deep files are ASCII");
        assert_eq!(parse(text).expect_err(name).kind, ParseErrorKind::TooDeep, "{name}");
    }
}

#[test]
fn torture_that_is_yaml_is_read() {
    let Some(files) = files::read(Folder::Torture) else { return };
    let table = files::torture_table();
    for (name, bytes) in &files {
        let class = table.get(name.as_str()).map_or("", String::as_str);
        if matches!(class, "ERR" | "OPQ" | "") {
            continue;
        }
        for chunk in podgraft::yaml::stream::chunks(bytes) {
            let Ok(text) = std::str::from_utf8(chunk.text) else { continue };
            assert!(parse(text).is_ok(), "{name}: {:?}", parse(text));
        }
    }
}
