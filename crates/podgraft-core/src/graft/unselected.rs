//! Documents with a workload that no policy selects, as their text shows.

use crate::select::RequiredTexts;

use super::FileContext;
use super::document::DocumentTask;

/// The texts without which no policy selects a workload of a document. `None` if a run looks at all workloads, or if
/// a policy has no such text.
pub(super) fn required_texts(setting: FileContext<'_>) -> Option<RequiredTexts<'_>> {
    let (run, options) = (setting.run, setting.options);
    let is_for_all = options.is_recording()
        || options.adopt
        || options.parse_all
        || options.lint
        || options.places;
    let names_workloads = !options.workloads.is_empty() || !options.image_env.is_empty();
    (!is_for_all && !names_workloads)
        .then(|| RequiredTexts::of(run.policies))
        .flatten()
}

impl DocumentTask<'_> {
    /// Whether no policy selects a workload of this document, and no earlier run has left a trace in it.
    pub(super) fn is_unselected(&self, required: Option<&RequiredTexts<'_>>) -> bool {
        required.is_some_and(|texts| !texts.may_select(self.bytes) && !self.is_traced())
    }
}
