//! Finds text on which YAML readers disagree: the same bytes are two different documents to two programs, so no edit
//! of them is safe.
//!
//! YAML 1.1 (libyaml, go-yaml, so kubectl and Helm) breaks lines at U+0085, U+2028 and U+2029; YAML 1.2 does not
//! (1.2.2, 5.4). A lone CR is a line break to both, but not to tools that search for `\n`. Anchor names, and plain
//! scalars in flow collections, end at different characters (go-yaml's `scannerc.go`).

use std::ops::Range;

use super::stream::mark_length;
use super::tree::{NodeId, NodeKind, Tree};

/// A place that YAML parsers read differently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ambiguity {
    /// The byte range that is ambiguous.
    pub at: Range<usize>,
    /// Why it is ambiguous, without a full stop.
    pub description: &'static str,
}

/// The position of a text in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPosition {
    /// The text begins the file, so it may begin with a byte order mark.
    Start,
    /// Another part of the file precedes the text.
    Inside,
}

/// Finds the first ambiguity that the bytes alone show. The text need not be parsed or even be valid YAML.
pub fn find_ambiguity(text: &str, place: TextPosition) -> Option<Ambiguity> {
    let first = match place {
        TextPosition::Start => mark_length(text.as_bytes()),
        TextPosition::Inside => 0,
    };
    let bytes = text.as_bytes();
    let is_lone = |&at: &usize| bytes.get(at + 1) != Some(&b'\n');
    let carriage_return = memchr::memchr_iter(b'\r', bytes).find(is_lone).map(|at| Ambiguity {
        at: at..at + 1,
        description: "a carriage return without a line feed is a line break in YAML but not for \
                      other tools",
    });
    let character = if bytes.is_ascii() {
        None
    } else {
        find_character(text, first)
    };
    carriage_return
        .into_iter()
        .chain(character)
        .chain(find_half_separator(bytes))
        .min_by_key(|doubt| doubt.at.start)
}

/// Finds `---x` at the start of a line: text to YAML, an error to kubectl (apimachinery's `YAMLReader`), and the end
/// of a document to Helm (`releaseutil.SplitManifests`).
fn find_half_separator(bytes: &[u8]) -> Option<Ambiguity> {
    let mut found = memchr::memmem::find_iter(bytes, b"---").filter(|&at| {
        let next = bytes.get(at + 3);
        (at == 0 || bytes[at - 1] == b'\n') && next.is_some_and(|next| !next.is_ascii_whitespace())
    });
    found.next().map(|at| Ambiguity {
        at: at..at + 4,
        description: "a line that starts with `---` is text for only some readers",
    })
}

fn find_character(text: &str, first: usize) -> Option<Ambiguity> {
    let (at, char, description) = text[first..]
        .char_indices()
        .find_map(|(at, char)| Some((at, char, ambiguous(char)?)))?;
    Some(Ambiguity {
        at: first + at..first + at + char.len_utf8(),
        description,
    })
}

/// Finds a line of a quoted scalar that begins in column 0: YAML 1.2 wants it indented (6.1), older readers accept
/// it, and line-based tools take it for a key of the document.
fn find_quoted_in_column_0(tree: &Tree<'_>) -> Option<Ambiguity> {
    let quoted = tree.ids().filter(|&id| {
        matches!(
            tree.kind(id),
            NodeKind::SingleQuoted | NodeKind::DoubleQuoted
        )
    });
    let lines = quoted.flat_map(|id| {
        let line_ends = tree.slice(id).match_indices('\n');
        line_ends.map(move |(at, _)| tree.start(id) + at + 1)
    });
    let mut in_column_0 = lines.filter(|&at| {
        let next = tree.text().as_bytes().get(at);
        next.is_some_and(|byte| !byte.is_ascii_whitespace())
    });
    in_column_0.next().map(|at| Ambiguity {
        at: at..at + 1,
        description: "a line of a quoted string starts in column 0",
    })
}

fn ambiguous(char: char) -> Option<&'static str> {
    match char {
        '\u{85}' => Some("U+0085 is a line break in YAML 1.1 but not in YAML 1.2"),
        '\u{2028}' => Some("U+2028 is a line break in YAML 1.1 but not in YAML 1.2"),
        '\u{2029}' => Some("U+2029 is a line break in YAML 1.1 but not in YAML 1.2"),
        '\u{feff}' => Some(
            "a byte order mark inside a file starts a document for some readers and is text or an \
             error for others",
        ),
        _ => None,
    }
}

/// Finds the first node of a tree that readers disagree about.
pub fn find_ambiguity_in_tree(tree: &Tree<'_>) -> Option<Ambiguity> {
    let doubts = [
        find_ambiguous_name(tree),
        find_ambiguous_flow_scalar(tree),
        find_explicit_key_in_brackets(tree),
        find_quoted_in_column_0(tree),
        find_ambiguous_block_scalar(tree),
    ];
    doubts
        .into_iter()
        .flatten()
        .min_by_key(|doubt| doubt.at.start)
}

/// Finds a block scalar that is a whole document and has lines at column 0: YAML 1.2 allows that, but libyaml reads a
/// `#` there as a comment.
fn find_ambiguous_block_scalar(tree: &Tree<'_>) -> Option<Ambiguity> {
    tree.roots
        .iter()
        .find(|&&root| is_at_first_column(tree, root))
        .map(|&root| Ambiguity {
            at: tree.span(root),
            description: "a block scalar without indentation has different lines in YAML 1.1",
        })
}

fn is_at_first_column(tree: &Tree<'_>, root: NodeId) -> bool {
    let mut lines = tree.slice(root).lines().skip(1);
    matches!(tree.kind(root), NodeKind::Literal | NodeKind::Folded)
        && lines.any(|line| !line.is_empty() && !line.starts_with(' '))
}

/// Finds an anchor name with a character at which go-yaml ends it. In YAML 1.2 a name runs to the next blank or
/// bracket.
fn find_ambiguous_name(tree: &Tree<'_>) -> Option<Ambiguity> {
    let mut anchors = tree
        .properties
        .iter()
        .filter_map(|properties| properties.anchor.clone());
    anchors
        .find(|at| {
            tree.text[at.start as usize..at.end as usize].contains(['?', ':', '%', '@', '`'])
        })
        .map(|at| Ambiguity {
            at: at.start as usize..at.end as usize,
            description: "an anchor name with `:`, `?`, `%`, `@`, or a backtick ends there in YAML \
                          1.1",
        })
}

/// Finds plain scalars in flow collections with a `?` or `:` that readers disagree about. go-yaml reads every `?` and
/// a leading `:` as an indicator, and a `:` before a bracket or comma as text; YAML 1.2 does the opposite.
fn find_ambiguous_flow_scalar(tree: &Tree<'_>) -> Option<Ambiguity> {
    let mut flow_until = 0;
    for (id, node) in (0_u32..).zip(&tree.nodes) {
        if node.kind.is_flow() {
            flow_until = flow_until.max(node.after);
        }
        if id >= flow_until || node.kind != NodeKind::Plain {
            continue;
        }
        let span = tree.span(NodeId(id));
        let text = &tree.text[span.clone()];
        let follows = &tree.text.as_bytes()[span.end..];
        let colon_ends = matches!(follows, [b':', b',' | b'[' | b']' | b'{' | b'}', ..]);
        if text.contains('?') || text.starts_with(':') || colon_ends {
            let description = "a `?` or `:` without a space in brackets is text for some readers \
                               and an indicator for others";
            return Some(Ambiguity {
                at: span,
                description,
            });
        }
    }
    None
}

/// Finds a `?` that begins a pair in a flow sequence. `[? ]` is a pair without key and value in YAML 1.2; for other
/// readers it depends on the next character whether it is text.
fn find_explicit_key_in_brackets(tree: &Tree<'_>) -> Option<Ambiguity> {
    let is_explicit =
        |&id: &NodeId| tree.kind(id) == NodeKind::FlowMapping && tree.slice(id).starts_with('?');
    tree.ids().find(is_explicit).map(|id| {
        let start = tree.span(id).start;
        Ambiguity {
            at: start..start + 1,
            description: "a `?` in brackets is text for some readers and an indicator for others",
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    fn at(text: &str, place: TextPosition) -> Option<Range<usize>> {
        find_ambiguity(text, place).map(|doubt| doubt.at)
    }

    #[test]
    fn characters_that_break_lines_for_some_are_found_anywhere() {
        assert_eq!(at("a: ü\r\nb: \"\u{a0}\"\n", TextPosition::Inside), None);
        assert_eq!(at("# ü\u{85}\n", TextPosition::Start), Some(4..6));
        assert_eq!(at("a: \"x\u{2028}\"\n\r", TextPosition::Start), Some(5..8));
        assert_eq!(at("a: 1\rb: \u{2029}", TextPosition::Start), Some(4..5));
        assert_eq!(at("a: 1\r", TextPosition::Start), Some(4..5));
    }

    #[test]
    fn a_byte_order_mark_begins_a_file_or_is_in_doubt() {
        assert_eq!(at("\u{feff}a: 1\n", TextPosition::Start), None);
        assert_eq!(at("\u{feff}a: 1\n", TextPosition::Inside), Some(0..3));
        assert_eq!(at("\u{feff}a: \u{feff}\n", TextPosition::Start), Some(6..9));
    }

    #[test]
    fn a_line_that_begins_like_a_separator_is_in_doubt() {
        assert_eq!(at("k: {\n---}\n", TextPosition::Inside), Some(5..9));
        assert_eq!(at("----\n", TextPosition::Inside), Some(0..4));
        assert_eq!(
            at(
                "---\na: --- b\n--- # c\n---\r\n---\tx\n a: |\n ---x\n---",
                TextPosition::Start
            ),
            None
        );
    }

    fn slice(text: &str) -> Option<&str> {
        find_ambiguity_in_tree(&parse(text).unwrap()).map(|doubt| &text[doubt.at])
    }

    #[test]
    fn names_and_flow_scalars_with_lone_indicators_are_found() {
        assert_eq!(slice("a: &x: 1\n"), Some("&x:"));
        assert_eq!(slice("a: &x 1\nb: *x\n"), None);
        assert_eq!(slice("{a?b: 1}"), Some("a?b"));
        assert_eq!(slice("a?b: [:c, d]\n"), Some(":c"));
        assert_eq!(slice("[a:, b]"), Some("a"));
        assert_eq!(slice("[a,\n? ]"), Some("?"));
        assert_eq!(slice("--- |\n# c\n"), Some("|\n# c"));
        assert_eq!(slice("--- |\n # c\n"), None);
        assert_eq!(slice("{? a : 1, \"b?\":[c:d], e: }\n"), None);
    }
}
