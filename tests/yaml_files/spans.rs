//! What holds for the spans of any tree, see the text of `yaml::tree`.

use podgraft_core::yaml::parse::parse_with_granit;
use podgraft_core::yaml::tree::{NodeId, NodeKind, Tree};

pub fn check(name: &str, tree: &Tree<'_>) {
    let mut floor = 0;
    for &root in tree.roots() {
        let from = tree.start_with_properties(root);
        assert!(floor <= from, "{name}: roots overlap at {from}");
        floor = tree.span(root).end;
        check_node(name, tree, root);
    }
}

fn check_node(name: &str, tree: &Tree<'_>, id: NodeId) {
    let span = tree.span(id);
    let at = format!("{name}: {:?} {span:?} {:?}", tree.kind(id), tree.slice(id));
    assert!(
        span.start <= span.end && tree.start_with_properties(id) <= span.start,
        "{at}"
    );
    check_ends(&at, tree, id);
    let mut floor = span.start;
    for child in tree.children(id) {
        let child_span = tree.span(child);
        assert!(
            floor <= tree.start_with_properties(child),
            "{at}: child {child_span:?} begins too early"
        );
        assert!(
            child_span.end <= span.end,
            "{at}: child {child_span:?} ends too late"
        );
        if tree.kind(child) == NodeKind::Absent {
            check_absent(&at, tree, child, child_span.start == floor);
        }
        floor = child_span.end;
        check_node(name, tree, child);
    }
    if matches!(
        tree.kind(id),
        NodeKind::BlockMapping | NodeKind::BlockSequence
    ) {
        // The end is the last content's: at most an indicator or properties stand behind the last child's span.
        assert!(tree.children(id).next().is_some(), "{at}: empty");
        assert_eq!(span.end, floor, "{at}");
    }
}

fn check_ends(at: &str, tree: &Tree<'_>, id: NodeId) {
    let slice = tree.slice(id);
    let first_child = || {
        tree.children(id)
            .next()
            .map(|child| tree.start_with_properties(child))
    };
    match tree.kind(id) {
        NodeKind::BlockMapping => {
            let is_explicit = slice.starts_with('?')
                && !slice[1..].starts_with(|char: char| !char.is_whitespace());
            assert!(
                is_explicit || first_child() == Some(tree.span(id).start),
                "{at}"
            );
        }
        NodeKind::BlockSequence => assert!(slice.starts_with('-'), "{at}"),
        NodeKind::FlowSequence => assert!(slice.starts_with('[') && slice.ends_with(']'), "{at}"),
        NodeKind::FlowMapping => {
            let has_braces = slice.starts_with('{') && slice.ends_with('}');
            assert!(has_braces || tree.children(id).count() == 2, "{at}");
        }
        NodeKind::Literal => assert!(slice.starts_with('|'), "{at}"),
        NodeKind::Folded => assert!(slice.starts_with('>'), "{at}"),
        NodeKind::SingleQuoted => assert!(
            slice.len() > 1 && slice.starts_with('\'') && slice.ends_with('\''),
            "{at}"
        ),
        NodeKind::DoubleQuoted => assert!(
            slice.len() > 1 && slice.starts_with('"') && slice.ends_with('"'),
            "{at}"
        ),
        NodeKind::Plain => assert!(
            !slice.is_empty() && slice.trim_matches([' ', '\t']) == slice,
            "{at}"
        ),
        NodeKind::Absent => assert_eq!(slice, "", "{at}"),
        NodeKind::Alias => assert!(slice.starts_with('*') && slice.len() > 1, "{at}"),
    }
    check_scalar(at, tree, id);
}

fn check_absent(at: &str, tree: &Tree<'_>, id: NodeId, is_explicit: bool) {
    let before = tree.text()[..tree.span(id).start].chars().next_back();
    let has_properties = tree.start_with_properties(id) < tree.span(id).start;
    let is_behind_indicator = matches!(before, Some(':' | '-' | '?'));
    // A bare key in a flow mapping, `{a}`, and an explicit key may be without a `:`; a key itself without a `?`.
    let is_unmarked =
        is_explicit || tree.text()[tree.span(id).start..].starts_with([',', '}', ']', ':']);
    assert!(has_properties || is_behind_indicator || is_unmarked, "{at}");
}

/// A scalar's slice on its own has the same value. Not with an indentation indicator: it counts from the parent.
fn check_scalar(at: &str, tree: &Tree<'_>, id: NodeId) {
    let slice = tree.slice(id);
    let header = slice.lines().next().unwrap_or("");
    let is_block = matches!(tree.kind(id), NodeKind::Literal | NodeKind::Folded);
    // `k:: v` has the key `k:`, and `-: v` the key `-`.
    let is_half_key =
        tree.kind(id) == NodeKind::Plain && (slice.ends_with(':') || matches!(slice, "-" | "?"));
    let has_value = !is_half_key
        && !tree.kind(id).is_collection()
        && !matches!(tree.kind(id), NodeKind::Absent | NodeKind::Alias);
    let has_indicator = is_block
        && header[1..].starts_with(|char: char| char.is_ascii_digit() || "+-".contains(char));
    if !has_value || (has_indicator && header.bytes().any(|byte| byte.is_ascii_digit())) {
        return;
    }
    // Blanks without a line end, which end the text, are the last line of a block with `+`. They are behind its span.
    let behind = &tree.text()[tree.span(id).end..];
    if has_indicator && behind.ends_with(' ') && behind.trim().is_empty() {
        return;
    }
    // On its own, the text of a flow collection would end at a line that begins like a separator.
    let is_separator = |line: &str| line.starts_with("---") || line.starts_with("...");
    if slice.lines().skip(1).any(is_separator) {
        return;
    }
    let line_end = if is_block && tree.span(id).end < tree.text().len() && !slice.ends_with('\n') {
        "\n"
    } else {
        ""
    };
    // A blank in front, since `...` is a scalar but for the start of a line.
    let line = format!(" {slice}{line_end}");
    let alone = parse_with_granit(&line).unwrap_or_else(|error| panic!("{at}: {error:?}"));
    assert_eq!(alone.scalar(alone.roots()[0]), tree.scalar(id), "{at}");
}
