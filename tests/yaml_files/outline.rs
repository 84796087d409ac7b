//! What an outline shows is what the whole tree has; tests and a fuzz target share this file.

use podgraft_core::yaml::parse::{parse_fast, parse_outline, parse_with_granit};
use podgraft_core::yaml::tree::{NodeId, NodeKind, Tree};

/// Compares the outline of a text with its tree, if it has both; says whether it has.
///
/// # Panics
/// Where they differ in more than what was passed over.
pub fn check(text: &str) -> bool {
    let Some(read) = parse_outline(text) else {
        return false;
    };
    if !read.tree.is_outline() {
        assert_eq!(Some(read.tree), parse_fast(text));
        return false;
    }
    let outline = read.tree.clone();
    assert_eq!(
        read.parse_whole(),
        parse_fast(text),
        "reading on comes to another tree: {text:?}"
    );
    let Ok(whole) = parse_with_granit(text) else {
        return false;
    };
    assert_eq!(
        outline.roots().len(),
        whole.roots().len(),
        "another number of documents: {text:?}"
    );
    for (&node, &other) in outline.roots().iter().zip(whole.roots()) {
        compare((&outline, node), (&whole, other), text);
    }
    true
}

fn compare((outline, node): (&Tree<'_>, NodeId), (whole, other): (&Tree<'_>, NodeId), text: &str) {
    let facts = |tree: &Tree<'_>, id| {
        (
            tree.kind(id),
            tree.start(id),
            tree.scalar(id).map(str::to_owned),
        )
    };
    assert_eq!(facts(outline, node), facts(whole, other), "{text:?}");
    let shown: Vec<NodeId> = outline.children(node).collect();
    // There are no block mappings without entries.
    if shown.is_empty() && outline.kind(node) == NodeKind::BlockMapping {
        return;
    }
    let children: Vec<NodeId> = whole.children(other).collect();
    assert_eq!(
        shown.len(),
        children.len(),
        "at byte {}: {text:?}",
        outline.start(node)
    );
    for (&node, &other) in shown.iter().zip(&children) {
        compare((outline, node), (whole, other), text);
    }
}
