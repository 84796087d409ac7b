//! The spans of every construct, as the module's text of `yaml::tree` says them. A node that is not written is shown
//! as the line in front of it.

use podgraft_core::yaml::parse::{MAX_DEPTH, ParseErrorKind, parse, parse_with_granit};
use podgraft_core::yaml::tree::{NodeId, NodeKind, Tree};

use NodeKind::{
    Absent, Alias, BlockMapping, BlockSequence, DoubleQuoted, FlowMapping, FlowSequence, Folded,
    Literal, Plain, SingleQuoted,
};

type Shown = (NodeKind, String);

fn show(tree: &Tree<'_>) -> Vec<Shown> {
    let mut shown = Vec::new();
    for &root in tree.roots() {
        show_node(tree, root, &mut shown);
    }
    shown
}

fn show_node(tree: &Tree<'_>, id: NodeId, shown: &mut Vec<Shown>) {
    let slice = match tree.kind(id) {
        Absent => tree.text()[..tree.span(id).start]
            .lines()
            .next_back()
            .unwrap_or("")
            .trim_start(),
        _ => tree.slice(id),
    };
    shown.push((tree.kind(id), slice.to_owned()));
    for child in tree.children(id) {
        show_node(tree, child, shown);
    }
}

#[track_caller]
fn check(text: &str, expected: &[(NodeKind, &str)]) {
    let expected: Vec<Shown> = expected
        .iter()
        .map(|&(kind, slice)| (kind, slice.to_owned()))
        .collect();
    for parser in [parse, parse_with_granit] {
        let tree = parser(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        assert_eq!(show(&tree), expected, "{text:?}");
    }
}

/// The spans of the values of a block mapping whose keys are plain.
#[track_caller]
fn check_values(text: &str, expected: &[(NodeKind, &str)]) {
    for parser in [parse, parse_with_granit] {
        let tree = parser(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
        let mut shown = Vec::new();
        for (_, value) in tree.entries(tree.roots()[0]) {
            let mut all = Vec::new();
            show_node(&tree, value, &mut all);
            shown.push(all.swap_remove(0));
        }
        let expected: Vec<Shown> = expected
            .iter()
            .map(|&(kind, slice)| (kind, slice.to_owned()))
            .collect();
        assert_eq!(shown, expected, "{text:?}");
    }
}

#[test]
fn block_collections_end_with_their_last_content() {
    check(
        "# c\na:\n  b: 1 # d\n  # e\n\n# f\nc: 2\n\n# g\n",
        &[
            (BlockMapping, "a:\n  b: 1 # d\n  # e\n\n# f\nc: 2"),
            (Plain, "a"),
            (BlockMapping, "b: 1"),
            (Plain, "b"),
            (Plain, "1"),
            (Plain, "c"),
            (Plain, "2"),
        ],
    );
    check(
        "- a\n- b: 1\n  # c\n# d\n",
        &[
            (BlockSequence, "- a\n- b: 1"),
            (Plain, "a"),
            (BlockMapping, "b: 1"),
            (Plain, "b"),
            (Plain, "1"),
        ],
    );
}

#[test]
fn sequences_begin_at_their_first_dash() {
    check(
        "k: # - no\n# - no\n- a\n\n# c\n- b # d\n# e\nl: 1\n",
        &[
            (
                BlockMapping,
                "k: # - no\n# - no\n- a\n\n# c\n- b # d\n# e\nl: 1",
            ),
            (Plain, "k"),
            (BlockSequence, "- a\n\n# c\n- b"),
            (Plain, "a"),
            (Plain, "b"),
            (Plain, "l"),
            (Plain, "1"),
        ],
    );
    check(
        "- - - a\n    - b\n-\n  - c\n",
        &[
            (BlockSequence, "- - - a\n    - b\n-\n  - c"),
            (BlockSequence, "- - a\n    - b"),
            (BlockSequence, "- a\n    - b"),
            (Plain, "a"),
            (Plain, "b"),
            (BlockSequence, "- c"),
            (Plain, "c"),
        ],
    );
    check_values(
        "k:\n- - a\n- b\nl:\n  - # x\n    - b\n",
        &[
            (BlockSequence, "- - a\n- b"),
            (BlockSequence, "- # x\n    - b"),
        ],
    );
    check_values("k:\n- # a - b\n- c\n", &[(BlockSequence, "- # a - b\n- c")]);
}

#[test]
fn properties_stand_before_the_span() {
    let text = "k: !!seq &s # x - y\n- &i !t a\n- &e\n- !!str\nm: &m\n  x: 1\nn: &n x\no: &o\n";
    let tree = parse(text).unwrap();
    let values: Vec<NodeId> = tree
        .entries(tree.roots()[0])
        .map(|(_, value)| value)
        .collect();
    assert_eq!(tree.slice(values[0]), "- &i !t a\n- &e\n- !!str");
    assert_eq!(tree.start_with_properties(values[0]), 3);
    assert_eq!(tree.tag(values[0]), Some("tag:yaml.org,2002:seq"));
    let items: Vec<NodeId> = tree.children(values[0]).collect();
    assert_eq!(
        (tree.slice(items[0]), tree.tag(items[0])),
        ("a", Some("!t"))
    );
    assert_eq!(
        tree.span(items[1]),
        text.find("&e").unwrap() + 2..text.find("&e").unwrap() + 2
    );
    assert_eq!(tree.span(items[2]).start, text.find("!!str").unwrap() + 5);
    assert_eq!(
        (tree.kind(values[1]), tree.slice(values[1])),
        (BlockMapping, "x: 1")
    );
    assert_eq!(&text[tree.start_with_properties(values[1])..][..2], "&m");
    assert_eq!((tree.slice(values[2]), tree.slice(values[3])), ("x", ""));
    assert_eq!(tree.span(values[3]).start, text.len() - 1);
    // Properties in front of an implicit key are the key's, so the mapping begins with them.
    check(
        "- &a x: 1\n- &b\n  y: 2\n",
        &[
            (BlockSequence, "- &a x: 1\n- &b\n  y: 2"),
            (BlockMapping, "&a x: 1"),
            (Plain, "x"),
            (Plain, "1"),
            (BlockMapping, "y: 2"),
            (Plain, "y"),
            (Plain, "2"),
        ],
    );
}

#[test]
fn what_is_not_written_stands_behind_its_indicator() {
    check_values(
        "a:\nb: # c\nc: \n\n# d\nd:",
        &[
            (Absent, "a:"),
            (Absent, "b:"),
            (Absent, "c:"),
            (Absent, "d:"),
        ],
    );
    check(
        "-\n- # c\n-  \n- - \n",
        &[
            (BlockSequence, "-\n- # c\n-  \n- -"),
            (Absent, "-"),
            (Absent, "-"),
            (Absent, "-"),
            (BlockSequence, "-"),
            (Absent, "- -"),
        ],
    );
    check(
        "k:\n-\n- # c\nl: &a # d\nm: !!null\n\n",
        &[
            (BlockMapping, "k:\n-\n- # c\nl: &a # d\nm: !!null"),
            (Plain, "k"),
            (BlockSequence, "-\n-"),
            (Absent, "-"),
            (Absent, "-"),
            (Plain, "l"),
            (Absent, "l: &a"),
            (Plain, "m"),
            (Absent, "m: !!null"),
        ],
    );
    check(
        ": v\n",
        &[(BlockMapping, ": v"), (Absent, ""), (Plain, "v")],
    );
    check("&a\n", &[(Absent, "&a")]);
}

#[test]
fn what_is_not_written_in_a_flow_mapping_stands_behind_what_is() {
    check(
        "{a: , b, \"c\":, d: &x , ? }",
        &[
            (FlowMapping, "{a: , b, \"c\":, d: &x , ? }"),
            (Plain, "a"),
            (Absent, "{a:"),
            (Plain, "b"),
            (Absent, "{a: , b"),
            (DoubleQuoted, "\"c\""),
            (Absent, "{a: , b, \"c\":"),
            (Plain, "d"),
            (Absent, "{a: , b, \"c\":, d: &x"),
            (Absent, "{a: , b, \"c\":, d: &x , ?"),
            (Absent, "{a: , b, \"c\":, d: &x , ?"),
        ],
    );
}

#[test]
fn flow_collections_have_their_brackets() {
    check(
        "a: [ # c\n  b, {c: d},\n] # e\nf: {}\ng: [ ]\n",
        &[
            (BlockMapping, "a: [ # c\n  b, {c: d},\n] # e\nf: {}\ng: [ ]"),
            (Plain, "a"),
            (FlowSequence, "[ # c\n  b, {c: d},\n]"),
            (Plain, "b"),
            (FlowMapping, "{c: d}"),
            (Plain, "c"),
            (Plain, "d"),
            (Plain, "f"),
            (FlowMapping, "{}"),
            (Plain, "g"),
            (FlowSequence, "[ ]"),
        ],
    );
    check(
        "[a: b , c: [d] , e: , ? f : g, {h: i}: j, : k]",
        &[
            (
                FlowSequence,
                "[a: b , c: [d] , e: , ? f : g, {h: i}: j, : k]",
            ),
            (FlowMapping, "a: b"),
            (Plain, "a"),
            (Plain, "b"),
            (FlowMapping, "c: [d]"),
            (Plain, "c"),
            (FlowSequence, "[d]"),
            (Plain, "d"),
            (FlowMapping, "e:"),
            (Plain, "e"),
            (Absent, "[a: b , c: [d] , e:"),
            (FlowMapping, "? f : g"),
            (Plain, "f"),
            (Plain, "g"),
            (FlowMapping, "{h: i}: j"),
            (FlowMapping, "{h: i}"),
            (Plain, "h"),
            (Plain, "i"),
            (Plain, "j"),
            (FlowMapping, ": k"),
            (Absent, "[a: b , c: [d] , e: , ? f : g, {h: i}: j, "),
            (Plain, "k"),
        ],
    );
}

#[test]
fn json_is_flow() {
    check(
        "{\n\t\"a\":[1,\"b\"],\"c\":{}}",
        &[
            (FlowMapping, "{\n\t\"a\":[1,\"b\"],\"c\":{}}"),
            (DoubleQuoted, "\"a\""),
            (FlowSequence, "[1,\"b\"]"),
            (Plain, "1"),
            (DoubleQuoted, "\"b\""),
            (DoubleQuoted, "\"c\""),
            (FlowMapping, "{}"),
        ],
    );
}

#[test]
fn block_scalars_end_with_their_last_content_line() {
    check_values(
        "a: | # c\n  x\n\n   y\n\n# d\nb: >-\n  z\nc: |\nd: |-\n\n\ne: 1\n",
        &[
            (Literal, "| # c\n  x\n\n   y"),
            (Folded, ">-\n  z"),
            (Literal, "|"),
            (Literal, "|-"),
            (Plain, "1"),
        ],
    );
    check_values("a: |\n  x\n ", &[(Literal, "|\n  x")]);
    check_values("a: |\n  x\n   ", &[(Literal, "|\n  x\n   ")]);
    check_values("a: |\n  x", &[(Literal, "|\n  x")]);
    check_values(
        "a: |-\n  x\n  \n \nb: 1\n",
        &[(Literal, "|-\n  x"), (Plain, "1")],
    );
    check_values(
        "a: |\n  x\n   \nb: 1\n",
        &[(Literal, "|\n  x\n   "), (Plain, "1")],
    );
    check_values("a: |\n  \t\n \n", &[(Literal, "|\n  \t")]);
    check_values("a: |\n \n\n", &[(Literal, "|")]);
    check(
        "- |\n x\n- >\n  y\n\n-",
        &[
            (BlockSequence, "- |\n x\n- >\n  y\n\n-"),
            (Literal, "|\n x"),
            (Folded, ">\n  y"),
            (Absent, "-"),
        ],
    );
}

#[test]
fn kept_blank_lines_belong_to_the_scalar() {
    check_values(
        "a: |+\n  x\n\n \n# c\nb: |+\n\n\nc: |+\n",
        &[
            (Literal, "|+\n  x\n\n \n"),
            (Literal, "|+\n\n\n"),
            (Literal, "|+"),
        ],
    );
    check_values("a: >+ # c\n  x", &[(Folded, ">+ # c\n  x")]);
    check_values("a: |+\n  x\n\n ", &[(Literal, "|+\n  x\n\n ")]);
    check(
        "- |+\n  x\n\n  \n- y\n",
        &[
            (BlockSequence, "- |+\n  x\n\n  \n- y"),
            (Literal, "|+\n  x\n\n  \n"),
            (Plain, "y"),
        ],
    );
}

#[test]
fn indentation_indicators_count_from_the_parent() {
    check_values(
        "a: |2\n    x\n  y\n   \n  \nb: >1-\n x\n  \n",
        &[(Literal, "|2\n    x\n  y\n   "), (Folded, ">1-\n x\n  ")],
    );
    check(
        "- - a: |1+\n      \n     x\n    b: |-1\n     \n      \n",
        &[
            (
                BlockSequence,
                "- - a: |1+\n      \n     x\n    b: |-1\n     \n      ",
            ),
            (
                BlockSequence,
                "- a: |1+\n      \n     x\n    b: |-1\n     \n      ",
            ),
            (
                BlockMapping,
                "a: |1+\n      \n     x\n    b: |-1\n     \n      ",
            ),
            (Plain, "a"),
            (Literal, "|1+\n      \n     x\n"),
            (Plain, "b"),
            (Literal, "|-1\n     \n      "),
        ],
    );
    check(
        "k:\n- |2\n   x\n   \n  \n",
        &[
            (BlockMapping, "k:\n- |2\n   x\n   "),
            (Plain, "k"),
            (BlockSequence, "- |2\n   x\n   "),
            (Literal, "|2\n   x\n   "),
        ],
    );
}

#[test]
fn carriage_returns_stay_outside() {
    check_values(
        "a: |\r\n  x\r\n\r\n  y\r\n\r\nb: |+\r\n  z\r\n\r\nc: d\r\ne:\r\nf: 'g'\r\n",
        &[
            (Literal, "|\r\n  x\r\n\r\n  y"),
            (Literal, "|+\r\n  z\r\n\r\n"),
            (Plain, "d"),
            (Absent, "e:"),
            (SingleQuoted, "'g'"),
        ],
    );
    check(
        "k: # - c\r\n- a\r\n- b\r\n",
        &[
            (BlockMapping, "k: # - c\r\n- a\r\n- b"),
            (Plain, "k"),
            (BlockSequence, "- a\r\n- b"),
            (Plain, "a"),
            (Plain, "b"),
        ],
    );
}

#[test]
fn scalars_of_several_lines_end_with_their_text() {
    check_values(
        "a: x\n  y # c\nb: \"x\n  y\" # d\nc: 'x''\n\n  y'\n",
        &[
            (Plain, "x\n  y"),
            (DoubleQuoted, "\"x\n  y\""),
            (SingleQuoted, "'x''\n\n  y'"),
        ],
    );
}

#[test]
fn explicit_keys_begin_at_their_question_mark() {
    check(
        "? a # c\n: b\n? - x\n: - y\n? z\n? |\n  q\n: r\n",
        &[
            (
                BlockMapping,
                "? a # c\n: b\n? - x\n: - y\n? z\n? |\n  q\n: r",
            ),
            (Plain, "a"),
            (Plain, "b"),
            (BlockSequence, "- x"),
            (Plain, "x"),
            (BlockSequence, "- y"),
            (Plain, "y"),
            (Plain, "z"),
            (Absent, "? z"),
            (Literal, "|\n  q"),
            (Plain, "r"),
        ],
    );
    check(
        "?\n:\n?a: 1\n",
        &[
            (BlockMapping, "?\n:\n?a: 1"),
            (Absent, "?"),
            (Absent, ":"),
            (Plain, "?a"),
            (Plain, "1"),
        ],
    );
}

#[test]
fn a_colon_belongs_to_the_mapping_at_its_column() {
    check(
        "k:\n  ? a\n: b\n",
        &[
            (BlockMapping, "k:\n  ? a\n: b"),
            (Plain, "k"),
            (BlockMapping, "? a"),
            (Plain, "a"),
            (Absent, "? a"),
            (Absent, "? a"),
            (Plain, "b"),
        ],
    );
    check(
        "? a\n:b: c\n",
        &[
            (BlockMapping, "? a\n:b: c"),
            (Plain, "a"),
            (Absent, "? a"),
            (Plain, ":b"),
            (Plain, "c"),
        ],
    );
}

#[test]
fn every_end_marker_is_passed() {
    check(
        "...\n- a\n...\n... # c\n- b\n",
        &[
            (BlockSequence, "- a"),
            (Plain, "a"),
            (BlockSequence, "- b"),
            (Plain, "b"),
        ],
    );
}

#[test]
fn aliases_point_at_the_latest_anchor() {
    let text = "a: &x 1\nb: &x [2]\n*x : *x\n";
    let tree = parse(text).unwrap();
    let entries: Vec<_> = tree.entries(tree.roots()[0]).collect();
    let (key, value) = entries[2];
    assert_eq!(
        (tree.kind(key), tree.slice(key), tree.slice(value)),
        (Alias, "*x", "*x")
    );
    assert_eq!(tree.follow(value), entries[1].1);
    assert!(tree.is_aliased(entries[1].1) && !tree.is_aliased(entries[0].1));
}

#[test]
fn documents_have_a_root_each_unless_they_are_empty() {
    check(
        "---\n# c\n---\na: 1\n...\n# d\n--- |\n x\n--- b\n...\n[c]\n",
        &[
            (BlockMapping, "a: 1"),
            (Plain, "a"),
            (Plain, "1"),
            (Literal, "|\n x"),
            (Plain, "b"),
            (FlowSequence, "[c]"),
            (Plain, "c"),
        ],
    );
    for text in ["", "\n\n", "# c", "---", "---\n...\n", "--- # c\n---\n"] {
        check(text, &[]);
    }
    check("# |\n| # c\n  x y\n", &[(Literal, "| # c\n  x y")]);
    check("\u{feff}>\n x\n", &[(Folded, ">\n x")]);
    check("%YAML 1.1\n---\n&a x\n", &[(Plain, "x")]);
}

#[test]
fn a_byte_order_mark_is_in_no_node() {
    check(
        "\u{feff}a: |1\n  ü\n  \n",
        &[
            (BlockMapping, "a: |1\n  ü\n  "),
            (Plain, "a"),
            (Literal, "|1\n  ü\n  "),
        ],
    );
    check("\u{feff}# c\n- a", &[(BlockSequence, "- a"), (Plain, "a")]);
}

#[test]
fn values_are_read_from_the_text_where_they_stand_in_it() {
    let text = "a: 'it''s'\nb: 'x'\nc: \"\\u0041\"\nd: |\n  x\n  y\ne: >\n  x\n  y\nf: x\n  y\n";
    let tree = parse(text).unwrap();
    let values: Vec<_> = tree
        .entries(tree.roots()[0])
        .map(|(_, value)| tree.scalar(value).unwrap())
        .collect();
    assert_eq!(values, ["it's", "x", "A", "x\ny\n", "x y\n", "x y"]);
    let last = |text| {
        parse(text)
            .map(|tree| tree.scalar(tree.roots()[0]).unwrap().to_owned())
            .unwrap()
    };
    assert_eq!(last("|\n x"), "x\n");
    assert_eq!(last(">+\n x\n y"), "x y\n");
    assert_eq!(last("|\n x\n "), "x\n");
    // As kubectl reads them, whose reader of documents ends the last line.
    assert_eq!(last("|+\n x\n\n "), "x\n\n\n");
    assert_eq!(last("|+\n\n "), "\n\n");
    assert_eq!(last("|+\n "), "\n");
    assert_eq!(last("|\n x\n  "), "x\n \n");
    assert_eq!(last("|"), "");
}

#[track_caller]
fn check_error(text: &str, kind: &ParseErrorKind, at: std::ops::Range<usize>) {
    let error = parse(text).expect_err(text);
    assert_eq!((&error.kind, error.at), (kind, at), "{text:?}");
}

#[test]
fn errors_say_where() {
    check_error("a: 1\nb: *nope, x\n", &ParseErrorKind::UnknownAlias, 8..13);
    check_error("a: [*ü, 1]\n", &ParseErrorKind::UnknownAlias, 4..7);
    check_error(
        "a: &a [*a]\n",
        &ParseErrorKind::Syntax("an alias inside the node that its anchor names".into()),
        7..9,
    );
    check_error(
        "ü: \"\u{7f}\"\n",
        &ParseErrorKind::Syntax("the control character U+007F".into()),
        5..6,
    );
    check_error(
        "a: 1\0",
        &ParseErrorKind::Syntax("the control character U+0000".into()),
        4..5,
    );
    for text in [
        "a: b: c\n",
        "a: 1\n   b: 2\n",
        "a:\n\tb: 1\n",
        "a: \"x\n",
        "a: [1\n",
    ] {
        let error = parse(text).expect_err(text);
        assert!(
            error.at.end <= text.len() && error.at.start <= error.at.end,
            "{text:?}: {error:?}"
        );
    }
}

#[test]
fn depth_has_a_limit() {
    let sequences = |depth: usize| "- ".repeat(depth) + "a";
    let brackets = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    let mappings = |depth: usize| {
        (0..depth)
            .map(|level| format!("{}a:\n", " ".repeat(level)))
            .collect::<String>()
    };
    let indentless = |depth: usize| {
        (0..depth)
            .map(|level| format!("{}- a:\n", "  ".repeat(level)))
            .collect::<String>()
    };
    assert!(parse(&indentless(MAX_DEPTH / 2)).is_ok());
    for nest in [sequences, brackets, mappings] as [fn(usize) -> String; 3] {
        assert!(parse(&nest(MAX_DEPTH)).is_ok());
        assert_eq!(
            parse(&nest(MAX_DEPTH + 1)).unwrap_err().kind,
            ParseErrorKind::TooDeep
        );
    }
}

#[test]
fn lines_are_folded_as_yaml_says() {
    let text = "a: b\n  c\n\n  - d # e\nf: \"g \\\n  \\ h\t\n   i\n\n\n  j\" # k\nl: 'm\n  n''s\n  '\no:\n  p\n  q\n";
    for parser in [parse, parse_with_granit] {
        let tree = parser(text).unwrap();
        let values: Vec<_> = tree
            .entries(tree.roots()[0])
            .map(|(_, value)| tree.scalar(value).unwrap())
            .collect();
        assert_eq!(values, ["b c\n- d", "g  h i\n\nj", "m n's ", "p q"]);
    }
    for text in [
        "\"a\n b\": c\n",
        "- 'a\n  b': c\n",
        "a\n b: c\n",
        "k:\n \"a\n  b\": c\n",
    ] {
        assert!(parse(text).is_err(), "{text:?}");
    }
}
