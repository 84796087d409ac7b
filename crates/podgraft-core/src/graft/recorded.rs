//! A document with its stripped form: the document without the changes that its records name. Translates places in the
//! stripped form to places in the document.

use foldhash::HashMap;
use memchr::memmem::Finder;
use std::cell::OnceCell;
use std::ops::Deref;
use std::sync::LazyLock;

use crate::diagnostic::{Diagnosed, Diagnostic};
use crate::manifest::object::DocumentContent;
use crate::plan::removal::DriftHandling;
use crate::record::{MARKER, RECORD};
use crate::source::{Place, Source};
use crate::undo::{RecordedObject, RemovalObstacle, StrippedDocument, indices_of, strip};
use crate::yaml::ambiguity::{self, Ambiguity, find_ambiguity, find_ambiguity_in_tree};
use crate::yaml::tree::{NodeId, Tree};

use super::changed_file::InputOffsets;
use super::document::{DocumentTask, ParsedDocument};
use super::record_refusals::{changed_form, copied_originals, explain};

static ANNOTATION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(RECORD.as_bytes()));
static MARKED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARKER.as_bytes()));
/// What both begin with: most documents have neither, and one search is enough to know that.
static TRACE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"podgraft.dev/"));

/// A document and its stripped form, which is the document itself if it has no records.
pub(super) struct RecordedDocument<'t> {
    document: ParsedDocument<'t>,
    pub recorded: Vec<RecordedObject<'t>>,
    /// The index of each recorded object, by its node.
    positions: HashMap<NodeId, usize>,
    pub stripped: StrippedDocument<'t>,
    /// The text that undo must restore, if it differs from the stripped one.
    original: Option<String>,
    /// The ambiguity that keeps the document from being edited, computed on first use.
    doubt: OnceCell<Option<Ambiguity>>,
}

impl<'t> Deref for RecordedDocument<'t> {
    type Target = ParsedDocument<'t>;

    fn deref(&self) -> &Self::Target {
        &self.document
    }
}

impl RecordedDocument<'_> {
    /// Parses the stripped form and proves it. `None` if there are no records.
    ///
    /// # Errors
    /// If the recorded changes cannot be removed from the document.
    pub(super) fn parse_stripped(&self) -> Diagnosed<Option<Tree<'_>>> {
        if self.recorded.is_empty() {
            return Ok(None);
        }
        match self.stripped.parse(self.tree, &self.recorded) {
            Ok(tree) => Ok(Some(tree)),
            Err(obstacle) => {
                let problem = explain(&obstacle, self.tree, self.source, &self.recorded);
                Err(vec![problem])
            }
        }
    }

    /// The text that undo must restore.
    pub(super) fn original(&self) -> &str {
        self.original.as_ref().unwrap_or(&self.stripped.text)
    }

    /// The first place that YAML readers disagree about.
    pub(super) fn ambiguity(&self) -> Option<&Ambiguity> {
        let find = || ambiguity_of(self.source, self.tree);
        self.doubt.get_or_init(find).as_ref()
    }

    /// The index of the recorded object with this node.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        self.positions.get(&node).copied()
    }

    /// The notes that the stripped form may be inexact, and that a workload has the record of another one.
    pub(super) fn notes(&self) -> Vec<Diagnostic> {
        let copied = self.recorded.iter();
        let mut notes: Vec<Diagnostic> = copied
            .filter_map(|recorded| self.copy_note(recorded))
            .collect();
        if self.stripped.is_inexact {
            let mut changed = self.stripped.taken.iter().flat_map(|taken| &taken.changed);
            let has_left = changed.any(|drift| drift.handling != DriftHandling::Force);
            notes.push(changed_form(has_left).at(self.source.place(0..0), "in this document"));
        }
        notes
    }

    /// Warns of original values that are those of another workload.
    fn copy_note(&self, recorded_object: &RecordedObject<'_>) -> Option<Diagnostic> {
        let from = recorded_object
            .from
            .as_ref()
            .filter(|_| recorded_object.is_copied)?;
        let mut policies = recorded_object.record.policies.iter();
        let place = self.place_of(recorded_object.at);
        policies
            .any(|policy| policy.effects.has_originals())
            .then(|| copied_originals(from).at(place, "injected by these policies"))
    }
}

impl DocumentTask<'_> {
    /// Whether an annotation or a lock file may record what an earlier run did to this document.
    fn may_be_recorded(&self) -> bool {
        ANNOTATION.find(self.bytes).is_some() || self.may_be_locked()
    }

    /// Whether a lock file of the run may have a record of this document, which has podgraft's marker.
    fn may_be_locked(&self) -> bool {
        let locks = self.setting.inventory.locks();
        locks.may_have_record_in(self.setting.name) && self.is_marked()
    }

    /// Whether records matter for this document: it has one, this run writes one, or something is to be undone or
    /// adopted.
    pub(super) fn has_records(&self) -> bool {
        let options = self.setting.options;
        let may_adopt = || !options.no_marker && options.lock && self.is_marked();
        options.is_recording()
            || self.is_traced() && (may_adopt() || self.may_be_recorded() || self.is_to_undo())
    }

    /// Whether the document contains podgraft's prefix, with which all its annotations begin.
    pub(super) fn is_traced(&self) -> bool {
        TRACE.find(self.bytes).is_some()
    }

    /// Whether the run is an undo and the document has podgraft's marker.
    pub(super) fn is_to_undo(&self) -> bool {
        self.setting.options.take_out.is_undo() && self.is_marked()
    }

    /// Whether the document contains podgraft's marker, so that an earlier run may have changed it.
    pub(super) fn is_marked(&self) -> bool {
        MARKED.find(self.bytes).is_some()
    }
}

impl<'t> ParsedDocument<'t> {
    /// Strips the document of recorded changes and of what this run adopts.
    ///
    /// # Errors
    /// If that is not possible.
    pub(super) fn take_out(
        self,
        mut recorded: Vec<RecordedObject<'t>>,
        found: &[DocumentContent],
    ) -> Diagnosed<RecordedDocument<'t>> {
        self.adopt_unrecorded(found, &mut recorded);
        let stripped = self.strip_adopting(&mut recorded);
        let both = stripped.and_then(|stripped| {
            let original = self.original(&recorded, &stripped)?;
            Ok((stripped, original))
        });
        let (stripped, original) =
            both.map_err(|obstacle| vec![explain(&obstacle, self.tree, self.source, &recorded)])?;
        Ok(RecordedDocument {
            document: self,
            positions: indices_of(recorded.iter().map(|recorded_object| recorded_object.node)),
            recorded,
            stripped,
            original,
            doubt: OnceCell::new(),
        })
    }

    fn strip_adopting(
        &self,
        recorded: &mut Vec<RecordedObject<'_>>,
    ) -> Result<StrippedDocument<'t>, RemovalObstacle> {
        // Each step changes the records, so the document is stripped again.
        let mut stripped = self.strip(recorded)?;
        if self.adopt_changed(recorded, &stripped) {
            stripped = self.strip(recorded)?;
        }
        if self.revoke_adoptions(recorded, &stripped) {
            stripped = self.strip(recorded)?;
        }
        Ok(stripped)
    }

    fn strip(
        &self,
        recorded: &[RecordedObject<'_>],
    ) -> Result<StrippedDocument<'t>, RemovalObstacle> {
        self.strip_with(recorded, |policy| self.leniency(policy))
    }

    pub(super) fn strip_with(
        &self,
        recorded: &[RecordedObject<'_>],
        leniency: impl Fn(&str) -> DriftHandling,
    ) -> Result<StrippedDocument<'t>, RemovalObstacle> {
        let (kinds, has_more) = (self.setting.kinds, self.has_more);
        strip(self.tree, kinds, recorded, has_more, leniency)
    }

    /// Whether the run has the policy.
    pub(super) fn is_given(&self, policy: &str) -> bool {
        let mut policies = self.setting.policies.iter();
        policies.any(|given| given.identity == policy)
    }

    /// How to handle values of a policy that somebody changed. They stay if the policy is given (then they are a
    /// conflict) or is to be removed without `--force` (then that is refused). Those of a kept policy are removed,
    /// too, since they are put back unchanged.
    fn leniency(&self, policy: &str) -> DriftHandling {
        match self.is_given(policy) || (self.is_dropped(policy) && !self.setting.options.force) {
            true => DriftHandling::Leave,
            false => DriftHandling::Force,
        }
    }

    fn is_dropped(&self, policy: &str) -> bool {
        // The set does not matter here: a kept policy is put back in any case.
        self.setting.options.removes(policy, None)
    }

    /// Returns the text that undo must restore, if it differs from the stripped text because changed values stay.
    fn original(
        &self,
        recorded: &[RecordedObject<'_>],
        stripped: &StrippedDocument<'_>,
    ) -> Result<Option<String>, RemovalObstacle> {
        let strictly = |policy: &str| match self.is_dropped(policy) && self.setting.options.force {
            true => DriftHandling::Force,
            false => DriftHandling::Leave,
        };
        let mut changed = stripped.taken.iter().flat_map(|taken| &taken.changed);
        if changed.all(|changed| strictly(&changed.policy) == self.leniency(&changed.policy)) {
            return Ok(None);
        }
        let original = self.strip_with(recorded, strictly)?;
        original.parse(self.tree, recorded)?;
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

/// Maps positions in the stripped text (the base) to positions in the document.
pub(super) struct OffsetMap<'m> {
    base: &'m Source<'m>,
    source: &'m Source<'m>,
    /// The offset of each line of the base.
    lines: Vec<usize>,
    offsets: InputOffsets,
}

impl<'m> OffsetMap<'m> {
    pub(super) fn of(base: &'m Source<'m>, pair: &'m RecordedDocument<'m>) -> Self {
        let ends = base.text.match_indices('\n').map(|(at, _)| at + 1);
        OffsetMap {
            base,
            source: pair.source,
            lines: std::iter::once(0).chain(ends).collect(),
            offsets: InputOffsets::of(&pair.stripped.edits),
        }
    }

    /// Returns the place in the document of a place in the base. A place that is not in the base, such as that of an
    /// object in another document of the file, stays.
    pub(super) fn place_before(&self, place: &Place) -> Place {
        let Some(line_start) = self.line_start(place) else {
            return place.clone();
        };
        let column: usize = self.base.text[line_start..]
            .chars()
            .take(place.column - 1)
            .map(char::len_utf8)
            .sum();
        let at = self.offsets.before(line_start + column);
        let span = at..at + (place.end - place.start);
        self.source.place(span)
    }

    /// The offset of the line of a place in the base; `None` if the place is not in the base. Two documents of a file
    /// may have the same line numbers, as the base is shorter or longer than the document. The excerpt tells.
    fn line_start(&self, place: &Place) -> Option<usize> {
        let line = place.line.checked_sub(self.base.first_line)?;
        let start = *self.lines.get(line)?;
        let text = self.base.text[start..].lines().next().unwrap_or_default();
        text.contains(&place.excerpt).then_some(start)
    }
}
