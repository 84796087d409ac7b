//! Where the fast parser answers, the complete one answers the same; no tree of either makes a walk of it panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podgraft_core::yaml::ambiguity::find_ambiguity_in_tree;
use podgraft_core::yaml::parse::{parse_fast, parse_with_granit};
use podgraft_core::yaml::value::to_value;

fuzz_target!(|text: &str| {
    let complete = parse_with_granit(text);
    if let Some(fast) = parse_fast(text) {
        match &complete {
            Ok(complete) => assert!(fast == *complete, "the trees differ\nfast {fast:#?}\ncomplete {complete:#?}"),
            Err(error) => panic!("accepted by the fast parser only: {error:?}"),
        }
    }
    let Ok(tree) = complete else { return };
    let _ = find_ambiguity_in_tree(&tree);
    for &root in tree.roots() {
        let _ = to_value(&tree, root);
    }
    for id in tree.ids() {
        assert!(text.get(tree.span(id)).is_some(), "a span that is no text: {:?}", tree.span(id));
        let _ = tree.scalar(id);
    }
});
