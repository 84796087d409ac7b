//! Gives back the text of what a policy had removed or replaced: its quotes, comments and layout. Values that come back
//! are written anew, so they have none of these; the document without any injection still has them.

use foldhash::HashMap;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::ops::Range;

use crate::edit::scalar::changed_piece;
use crate::plan::removal::DriftHandling;
use crate::record::Record;
use crate::undo::{StrippedDocument, comments_in, compose, strip};
use crate::yaml::parse::{parse, reparse};
use crate::yaml::splice::{Edit, changes_of, splice_text};

use super::pending::PendingWorkload;
use super::recorded::RecordedDocument;
use super::verify_undo::{flatten_edits, is_planned};

/// The most pieces of text that are tried in a document; each is parsed.
const MAX_PIECES: usize = 32;

impl RecordedDocument<'_> {
    /// Changes the edits of workloads so that what comes back has its own text. Returns whether there was any. The noted
    /// text differences do not fit any more then.
    pub(super) fn give_back_lost_text(&self, pending: &mut [PendingWorkload<'_>]) -> bool {
        let Some(edits) = self.edits_with_own_text(pending) else {
            return false;
        };
        let starts: Vec<usize> = pending
            .iter()
            .map(|entry| self.tree.span(entry.workload.object.node).start)
            .collect();
        for entry in pending.iter_mut() {
            entry.edits.clear();
            // The authors were found for the edits that are replaced here.
            entry.authors.clear();
        }
        for edit in edits {
            let after = starts.partition_point(|start| *start <= edit.at.start);
            let at = after.saturating_sub(1);
            pending[at].edits.push(edit);
        }
        true
    }

    /// The edits of all workloads, with those that give back text. `None` if there are none of these.
    fn edits_with_own_text(&self, pending: &[PendingWorkload<'_>]) -> Option<Vec<Edit>> {
        let edits = flatten_edits(pending);
        let output = splice_text(self.source.text, &edits);
        let tree = reparse(self.tree, &output, &changes_of(&edits)).ok()?;
        let entries = self.entries_of_objects(pending);
        let mut recorded = self.recorded_after(&tree, &entries);
        for object in &mut recorded {
            object.record.text = None;
        }
        let kinds = self.setting.kinds;
        let undone = strip(&tree, kinds, &recorded, self.has_more, |_| {
            DriftHandling::Leave
        })
        .ok()?;
        let given_back = text_to_give_back(self, pending, &output, &undone);
        let result = splice_text(&output, &given_back);
        let is_right =
            !given_back.is_empty() && has_each_comment_once(&result, &output, self.original());
        is_right.then(|| compose(self.source.text.len(), &edits, &given_back))
    }
}

/// The edits of the output that give back text; each and all of them leave the output as it is planned.
fn text_to_give_back(
    pair: &RecordedDocument<'_>,
    pending: &[PendingWorkload<'_>],
    output: &str,
    undone: &StrippedDocument<'_>,
) -> Vec<Edit> {
    let most_lines_of_spaces = lines_of_spaces(output).max(lines_of_spaces(pair.original()));
    let is_right = |edits: &[Edit]| {
        let text = splice_text(output, edits);
        // The line break before a `{}` that is filled again.
        if lines_of_spaces(&text) > most_lines_of_spaces {
            return false;
        }
        let tree = parse(&text);
        tree.is_ok_and(|tree| is_planned(&tree, pair.tree, pending))
    };
    let accepted = |piece: &Edit| {
        let piece = in_output(piece, &undone.edits)?;
        is_right(std::slice::from_ref(&piece)).then_some(piece)
    };
    let pieces = differences(&undone.text, pair.original());
    // A comment that moved is two pieces, of which each alone would be wrong.
    let all = pieces
        .iter()
        .map(|piece| in_output(&piece.whole, &undone.edits));
    let all: Option<Vec<Edit>> = all.collect();
    if let Some(all) = all.filter(|all| is_right(all)) {
        return all;
    }
    let pieces = pieces.iter().take(MAX_PIECES).flat_map(|piece| {
        let whole = accepted(&piece.whole);
        let lines = whole
            .is_none()
            .then_some(&piece.lines)
            .into_iter()
            .flatten();
        let lines = lines.take(MAX_PIECES).filter_map(accepted);
        whole.into_iter().chain(lines).collect::<Vec<Edit>>()
    });
    let each: Vec<Edit> = pieces.collect();
    match is_right(&each) {
        true => each,
        false => Vec::new(),
    }
}

/// The number of lines that have spaces alone.
fn lines_of_spaces(text: &str) -> usize {
    let is_spaces = |line: &&str| !line.is_empty() && line.trim().is_empty();
    text.lines().filter(is_spaces).count()
}

/// Whether a policy of the earlier record is gone, and with it text that differs, or something that it had removed,
/// replaced or filled: a key without a value, or an empty list, may be written in several ways.
pub(super) fn gives_back(pair: &RecordedDocument<'_>, entry: &PendingWorkload<'_>) -> bool {
    let earlier = pair.position(entry.workload.object.node);
    let (Some(earlier), Some(record)) = (earlier, entry.record()) else {
        return false;
    };
    let earlier = &pair.recorded[earlier].record;
    let takes = |record: &Record, path: &String| {
        let mut policies = record.policies.iter().map(|policy| &policy.effects);
        policies.any(|effects| {
            effects.removed.contains_key(path)
                || effects.replaced.contains_key(path)
                || effects.filled.contains_key(path)
        })
    };
    let mut taken = earlier.policies.iter().flat_map(|policy| {
        let effects = &policy.effects;
        let taken = effects.removed.keys().chain(effects.replaced.keys());
        taken.chain(effects.filled.keys())
    });
    let mut names = earlier.policies.iter();
    let is_gone = names.any(|policy| record.policy(&policy.policy).is_none());
    is_gone && earlier.text.is_some() || taken.any(|path| !takes(record, path))
}

/// A piece of text that differs.
struct DifferentPiece {
    whole: Edit,
    /// Its lines one by one, if both texts have the same number of lines there.
    lines: Vec<Edit>,
}

/// The edits, by lines, that make the original text of the undone one.
fn differences(undone: &str, original: &str) -> Vec<DifferentPiece> {
    let old: Vec<&str> = undone.split_inclusive('\n').collect();
    let new: Vec<&str> = original.split_inclusive('\n').collect();
    let mut starts = vec![0];
    starts.extend(old.iter().scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    }));
    let changes = capture_diff_slices(Algorithm::Myers, &old, &new);
    let changes = changes
        .iter()
        .filter(|change| !matches!(change, DiffOp::Equal { .. }));
    let edit = |old_lines: Range<usize>, new_lines: Range<usize>| {
        let new = new[new_lines].concat();
        let first = starts[old_lines.start];
        let (at, removed, added) = changed_piece(&undone[first..starts[old_lines.end]], &new);
        Edit {
            at: first + at..first + at + removed.len(),
            text: added.to_owned().into(),
        }
    };
    let pieces = changes.map(|change| {
        let (old_lines, new_lines) = (change.old_range(), change.new_range());
        let pairs = old_lines.clone().zip(new_lines.clone());
        let lines = pairs.filter(|_| old_lines.len() == new_lines.len());
        DifferentPiece {
            lines: lines
                .map(|(old, new)| edit(old..old + 1, new..new + 1))
                .collect(),
            whole: edit(old_lines.clone(), new_lines),
        }
    });
    pieces.collect()
}

/// Whether a text has each comment of the output as often as the original, and no other one more often. A comment may
/// move between two pieces of which only one is given back.
fn has_each_comment_once(text: &str, output: &str, original: &str) -> bool {
    let [now, before, was] = [text, output, original].map(|text| {
        let mut counts: HashMap<&str, usize> = HashMap::default();
        for comment in comments_in(text) {
            *counts.entry(comment).or_default() += 1;
        }
        counts
    });
    let count_in =
        |counts: &HashMap<&str, usize>, comment: &str| counts.get(comment).copied().unwrap_or(0);
    now.keys().chain(before.keys()).all(|comment| {
        let (before, was) = (count_in(&before, comment), count_in(&was, comment));
        (before.min(was)..=before.max(was)).contains(&count_in(&now, comment))
    })
}

/// An edit of the undone text as one of the output, of which `undoing` makes the undone text. `None` if the output has
/// another text there.
fn in_output(piece: &Edit, undoing: &[Edit]) -> Option<Edit> {
    let Range { start, end } = piece.at.clone();
    // How far the undone text is ahead of the output.
    let (mut longer, mut shorter) = (0, 0);
    for edit in undoing {
        let new_start = edit.at.start + longer - shorter;
        let new_end = new_start + edit.text.len();
        if end <= new_start {
            break;
        }
        if start < new_end {
            return None;
        }
        longer += edit.text.len();
        shorter += edit.at.len();
    }
    Some(Edit {
        at: start + shorter - longer..end + shorter - longer,
        text: piece.text.clone(),
    })
}
