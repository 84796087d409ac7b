//! What the conditions of a policy are called where their author wrote them: in a resource of another operator, the
//! author never saw the fields of `match`.

use std::collections::BTreeMap;
use std::ops::Range;

/// The words of a filter's conditions, by their own names. Only those that the author called otherwise are in it.
pub type ConditionWords = BTreeMap<&'static str, ConditionWord>;

/// What a condition is called where its author wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionWord {
    /// The field, or the kind of the resource if the condition is the same for all resources.
    pub field: String,
    /// The text that a name must contain, if any name with it will do.
    pub part: Option<String>,
    /// The byte range of its value in the file.
    pub at: Range<usize>,
}

impl ConditionWord {
    /// What the condition wants of a name, as far as it is another thing than globs: `` deployment requires `cart` in``.
    pub(crate) fn wanted_part(&self) -> Option<String> {
        let part = self.part.as_ref()?;
        Some(format!("{} requires `{part}` in", self.field))
    }
}
