//! Parses the edited document and compares it with the plan before it is written.

use serde_json::Value;
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::edit::companion::ObjectPlacement;
use crate::plan::draft::Draft;
use crate::source::Source;
use crate::verify::verify;
use crate::yaml::parse::reparse;
use crate::yaml::splice::{Edit, changes_of, splice_text};
use crate::yaml::tree::{NodeId, Tree};

/// Returns what is wrong with the edits, which would be a bug.
pub(super) fn check(
    tree: &Tree<'_>,
    source: &Source<'_>,
    drafts: &[(NodeId, Draft<'_>)],
    edits: &[Edit],
    written: &[(ObjectPlacement, Arc<Value>)],
) -> Option<Diagnostic> {
    // At the same offset, insertions go before replacements.
    let mut ordered: Vec<&Edit> = edits.iter().collect();
    if !ordered.is_sorted_by_key(|edit| (edit.at.start, !edit.at.is_empty())) {
        ordered.sort_by_key(|edit| (edit.at.start, !edit.at.is_empty()));
    }
    let changes = changes_of(ordered.iter().copied());
    let edited = splice_text(source.text, &ordered);
    let defect = match reparse(tree, &edited, &changes) {
        Err(error) => format!("it cannot be parsed ({:?})", error.kind),
        Ok(output) => {
            let difference = verify(&output, tree, drafts, written).err()?;
            let at = difference.node.map_or(String::new(), |node| {
                format!(" at `{}`", output.slice(node))
            });
            format!("there is {}{at}", difference.description)
        }
    };
    let message = format!("the edited document differs from the plan: {defect}");
    let node = drafts.first().map_or(0..0, |(node, _)| tree.span(*node));
    let problem = Diagnostic::error(Code::Internal, message);
    let problem = problem.at(source.place(node), "in this document");
    let help = "this is a bug in podgraft, and nothing was written; report it with the document";
    Some(problem.help(help))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
