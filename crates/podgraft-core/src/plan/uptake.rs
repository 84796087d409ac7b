//! Tells which parts of a rule the workload takes. What it keeps in their place, and a patch whose `test` fails, are not
//! injected, so they are neither needed nor forbidden.

use serde_json::Value;

use crate::policy::parts::PartForm;

use super::planner::Planner;

/// Whether the workload takes a part of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uptake {
    /// It takes the part, or that cannot be told.
    Taken,
    /// It has the part in its result if it takes it.
    IfFound,
    /// It has the part in its result if it takes it, perhaps with what a patch has added in an earlier run without a record.
    IfPatched,
}

impl Uptake {
    /// Whether the workload takes what a part wants. `present` is the same of its result; `None` if that has no value.
    /// `may_become` tells what a patch of an earlier run may have made of it.
    pub(super) fn takes<'p, T: PartialEq + 'p>(
        self,
        wanted: &T,
        present: Option<impl IntoIterator<Item = &'p T>>,
        may_become: impl Fn(&T, &T) -> bool,
    ) -> bool {
        let Some(mut present) = present.map(IntoIterator::into_iter) else {
            return true;
        };
        match self {
            Uptake::Taken => true,
            Uptake::IfFound => present.any(|other| other == wanted),
            Uptake::IfPatched => present.any(|other| may_become(wanted, other)),
        }
    }
}

impl Planner<'_, '_> {
    /// Whether the workload takes all that the rule states.
    pub(super) fn takes_all(&self) -> bool {
        !self.is_partial && self.patch_results.values().all(|applies| *applies)
    }

    pub(super) fn uptake(&self, form: PartForm) -> Uptake {
        match form {
            PartForm::Whole if self.unpatched.is_some() => Uptake::IfPatched,
            PartForm::Whole if self.is_partial => Uptake::IfFound,
            PartForm::Patch(index) if self.patch_results.get(&index) == Some(&false) => {
                Uptake::IfPatched
            }
            PartForm::Whole | PartForm::Hidden | PartForm::Patch(_) => Uptake::Taken,
        }
    }

    /// The workload with the rule. A patch may change what the rule injects, so the workload before the patches counts, too.
    /// `None` if it has no value that all readers agree on.
    pub(super) fn results(&self) -> Option<Vec<Value>> {
        let drafts = self.unpatched.iter().chain([&self.draft]);
        drafts.map(|draft| draft.value(&draft.root())).collect()
    }
}
