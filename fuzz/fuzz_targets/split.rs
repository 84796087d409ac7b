//! The chunks of a text are the text, and what is let through without parsing holds no workload.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podgraft_core::manifest::prefilter::{DocumentScan, classify};
use podgraft_core::manifest::workload::PodKinds;
use podgraft_core::yaml::parse::parse_with_granit;
use podgraft_core::yaml::stream::chunks;
use podgraft_core::yaml::tree::{NodeId, Tree};

fuzz_target!(|text: &[u8]| {
    let kinds = PodKinds::with([]);
    let mut end = 0;
    for chunk in chunks(text) {
        assert_eq!(chunk.start, end, "a gap between chunks");
        assert!(!chunk.text.is_empty(), "an empty chunk");
        end += chunk.text.len();
        assert_eq!(chunk.text, &text[chunk.start..end]);
        if matches!(classify(chunk.text, &kinds), DocumentScan::LetThrough { .. }) {
            check_let_through(chunk.text, &kinds);
        }
    }
    assert_eq!(end, text.len(), "the text goes on behind the last chunk");
});

/// What is not YAML is a workload to nobody.
fn check_let_through(chunk: &[u8], kinds: &PodKinds) {
    let Ok(text) = std::str::from_utf8(chunk) else { return };
    let Ok(tree) = parse_with_granit(text) else { return };
    for &root in tree.roots() {
        let root = tree.follow(root);
        for kind in values(&tree, root, "kind") {
            assert!(!kind.ends_with("List"), "a list is let through: {text:?}");
            let is_known = |version| kinds.find(version, kind).is_some();
            assert!(!values(&tree, root, "apiVersion").any(is_known), "a {kind} is let through: {text:?}");
        }
    }
}

/// All that the key holds, should it stand twice.
fn values<'t>(tree: &'t Tree<'_>, root: NodeId, key: &'static str) -> impl Iterator<Item = &'t str> {
    let entries = tree.entries(root).filter(move |(name, _)| tree.scalar(*name) == Some(key));
    entries.filter_map(|(_, value)| tree.scalar(value))
}
