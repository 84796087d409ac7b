//! Items that a new version of a policy finds as it wants them, where the item of the earlier version is gone: a patch
//! of `podgraft diff` was applied, or they are the user's.

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::record::split_last;
use crate::record::words::words_of;

use super::WorkloadPlan;
use super::draft_paths::RecordedPlaces;
use super::recording::{EarlierRun, SatisfiedChange};

/// Returns a warning for each such item: nothing says who wrote it, so `undo` leaves it.
pub(super) fn unclear_items(
    workload: &Workload<'_>,
    planned: &WorkloadPlan<'_>,
    earlier: &EarlierRun<'_>,
) -> Vec<Diagnostic> {
    if earlier.taken.is_complete || earlier.adopting.is_some() {
        return Vec::new();
    }
    let (current, record) = (earlier.current, &earlier.record);
    let places = RecordedPlaces::of(current.tree, current.node, record.paths());
    let mut warnings = Vec::new();
    for (policy, met) in &planned.satisfied {
        let was = record.policy(policy).map(|policy| &policy.effects.added);
        let now = planned
            .record
            .as_ref()
            .and_then(|record| record.policy(policy));
        let is_wanted = |path: &String| now.is_some_and(|now| now.effects.added.contains_key(path));
        let mut gone = was.into_iter().flat_map(|added| added.keys());
        let gone = gone.find(|path| is_beside(path, met) && !places.has(path) && !is_wanted(path));
        warnings.extend(gone.map(|gone| unclear(workload, policy, &met.path, gone)));
    }
    warnings
}

/// Whether a path is of another item of the same list or mapping.
fn is_beside(path: &str, met: &SatisfiedChange) -> bool {
    path != met.path && split_last(path).0 == split_last(&met.path).0
}

fn unclear(workload: &Workload<'_>, policy: &str, path: &str, gone: &str) -> Diagnostic {
    let message = format!(
        "{} of {} matches policy `{policy}`, but the recorded {} is gone: it is unclear who \
         renamed it, so `undo` leaves it",
        words_of(path),
        workload.title(),
        words_of(gone),
    );
    Diagnostic::warning(Code::NoRecord, message)
        .at(workload.name_place(), "this workload")
        .help(
            "if a patch of `podgraft diff` renamed it, revert the patch and run `podgraft apply \
             --in-place` with the same policies, which records it",
        )
}
