//! A document and the same without what its records say.

use memchr::memmem::Finder;
use std::cell::OnceCell;
use std::sync::LazyLock;

use crate::diagnostic::Diagnostic;
use crate::manifest::object::DocumentContent;
use crate::plan::recording::is_dropped;
use crate::record::{DriftHandling, MARKER, PolicyRecord, RECORD};
use crate::source::Source;
use crate::undo::{RecordedObject, RemovalObstacle, StrippedDocument, strip};
use crate::yaml::ambiguity::{self, Ambiguity, find_ambiguity, find_ambiguity_in_tree};
use crate::yaml::tree::{NodeId, Tree};

use super::document::DocumentTask;
use super::record_refusals::{changed_form, explain};

static ANNOTATION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(RECORD.as_bytes()));
static MARKED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARKER.as_bytes()));

/// A document and the same without what its records say, which is the document again where it has none.
pub(super) struct RecordedDocument<'t> {
    pub tree: &'t Tree<'t>,
    pub source: &'t Source<'t>,
    pub recorded: Vec<RecordedObject>,
    pub stripped: StrippedDocument,
    /// What undo must give back, where that is another text than the stripped one.
    original: Option<String>,
    /// What keeps the whole document from being edited, once it was looked for.
    doubt: OnceCell<Option<Ambiguity>>,
}

impl RecordedDocument<'_> {
    /// What undo must give back.
    pub(super) fn original(&self) -> &str {
        self.original.as_ref().unwrap_or(&self.stripped.text)
    }

    /// The first place on which readers disagree.
    pub(super) fn ambiguity(&self) -> Option<&Ambiguity> {
        let find = || ambiguity_of(self.source, self.tree);
        self.doubt.get_or_init(find).as_ref()
    }

    /// Which of the recorded objects stands here.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        self.recorded
            .iter()
            .position(|recorded_object| recorded_object.node == node)
    }

    /// What is said of the pair itself.
    pub(super) fn notes(&self) -> Option<Diagnostic> {
        let note = || changed_form().at(self.source.place(0..0), "in this document");
        self.stripped.is_inexact.then(note)
    }
}

impl<'a> DocumentTask<'a> {
    /// Whether what an earlier run did is written here.
    pub(super) fn has_recorded(&self) -> bool {
        ANNOTATION.find(self.bytes).is_some() || self.is_locked()
    }

    /// Whether the lock files of the run know something of this file, and an earlier run did something here.
    fn is_locked(&self) -> bool {
        self.setting.inventory.locks().is_for(self.setting.name) && self.is_marked()
    }

    /// Whether what an earlier run did is written here, or what this one does is to be.
    pub(super) fn has_records(&self) -> bool {
        let options = self.setting.options;
        let may_adopt = options.marker && options.lock && self.is_marked();
        options.is_recording() || may_adopt || self.has_recorded() || self.is_to_undo()
    }

    /// Whether an earlier run did something here that is to be undone.
    pub(super) fn is_to_undo(&self) -> bool {
        self.setting.options.take_out.is_undo() && self.is_marked()
    }

    /// Whether an earlier run did something here.
    pub(super) fn is_marked(&self) -> bool {
        MARKED.find(self.bytes).is_some()
    }

    /// Takes out what the records say, and what this run adopts.
    ///
    /// # Errors
    /// Where that cannot be done.
    pub(super) fn take_out<'t>(
        &self,
        tree: &'t Tree<'t>,
        source: &'t Source<'t>,
        mut recorded: Vec<RecordedObject>,
        found: &[DocumentContent],
    ) -> Result<RecordedDocument<'t>, Diagnostic>
    where
        'a: 't,
    {
        self.adopt_unrecorded(tree, source, found, &mut recorded);
        let taken_out = self.strip_adopting(tree, source, &mut recorded);
        let stripped = taken_out.map_err(|obstacle| explain(obstacle, tree, source, &recorded))?;
        let original = self
            .original(tree, &recorded, &stripped)
            .map_err(|obstacle| explain(obstacle, tree, source, &recorded))?;
        Ok(RecordedDocument {
            tree,
            source,
            recorded,
            stripped,
            original,
            doubt: OnceCell::new(),
        })
    }

    fn strip_adopting(
        &self,
        tree: &Tree<'_>,
        source: &Source<'_>,
        recorded: &mut Vec<RecordedObject>,
    ) -> Result<StrippedDocument, RemovalObstacle> {
        let mut stripped = self.strip(tree, recorded)?;
        if self.adopt_changed(source, tree, recorded, &stripped) {
            stripped = self.strip(tree, recorded)?;
        }
        if self.revoke_adoptions(source, tree, recorded, &stripped) {
            stripped = self.strip(tree, recorded)?;
        }
        Ok(stripped)
    }

    fn strip(
        &self,
        tree: &Tree<'_>,
        recorded: &[RecordedObject],
    ) -> Result<StrippedDocument, RemovalObstacle> {
        let (kinds, has_more) = (self.setting.kinds, self.place.has_more);
        strip(tree, kinds, recorded, has_more, |policy| {
            self.leniency(policy)
        })
    }

    /// What of a policy somebody changed stays where the policy is given (then it is in the way) or is to go (then that
    /// is refused). What is kept is put back as it is.
    fn leniency(&self, policy: &str) -> DriftHandling {
        let is_given = self
            .setting
            .policies
            .iter()
            .any(|given| given.identity == policy);
        match is_given || (self.is_dropped(policy) && !self.setting.options.force) {
            true => DriftHandling::Leave,
            false => DriftHandling::Force,
        }
    }

    fn is_dropped(&self, policy: &str) -> bool {
        // Which set it is of does not matter here: what is kept is put back either way.
        let named = PolicyRecord {
            policy: policy.to_owned(),
            ..Default::default()
        };
        is_dropped(&named, self.setting.options)
    }

    /// What undo gives back in the end, where what somebody changed stays and that makes a difference.
    fn original(
        &self,
        tree: &Tree<'_>,
        recorded: &[RecordedObject],
        stripped: &StrippedDocument,
    ) -> Result<Option<String>, RemovalObstacle> {
        let strictly = |policy: &str| match self.is_dropped(policy) && self.setting.options.force {
            true => DriftHandling::Force,
            false => DriftHandling::Leave,
        };
        let mut changed = stripped.taken.iter().flat_map(|taken| &taken.changed);
        if changed.all(|changed| strictly(&changed.policy) == self.leniency(&changed.policy)) {
            return Ok(None);
        }
        let (kinds, has_more) = (self.setting.kinds, self.place.has_more);
        let original = strip(tree, kinds, recorded, has_more, strictly)?;
        Ok(Some(original.text))
    }
}

fn ambiguity_of(source: &Source<'_>, tree: &Tree<'_>) -> Option<Ambiguity> {
    if tree.is_plain() {
        return None;
    }
    let place = if source.first_line == 1 {
        ambiguity::TextPosition::Start
    } else {
        ambiguity::TextPosition::Inside
    };
    find_ambiguity(source.text, place).or_else(|| find_ambiguity_in_tree(tree))
}
