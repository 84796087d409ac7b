//! Which of several objects of one name, in no known namespace, is meant by a workload: that of its own folder, else of
//! the nearest folder above, else any of the run where all say the same.

use super::{Doubt, Known};
use crate::source::Place;

/// What was found, and where another one says something else.
#[derive(Debug)]
pub(super) struct Found<'m, T> {
    known: &'m Known<T>,
    contradiction: Option<&'m Place>,
}

impl<'m, T> Found<'m, T> {
    /// What it says.
    ///
    /// # Errors
    /// When two texts say different things.
    pub(super) fn agreed(&self, title: impl Fn() -> String) -> Result<&'m T, Doubt> {
        match self.contradiction {
            None => Ok(&self.known.says),
            Some(other) => Err(super::disagree(&title(), &self.known.place, other)),
        }
    }

    pub(super) fn place(&self) -> &'m Place {
        &self.known.place
    }
}

/// The one that a workload of a folder means, of those of one name, each with its folder.
pub(super) fn nearest<'m, T: PartialEq>(
    folder: Option<&str>,
    all: impl Iterator<Item = (Option<&'m str>, &'m Known<T>)> + Clone,
) -> Option<Found<'m, T>> {
    if let Some(known) = own_or_above(folder, all.clone()) {
        return Some(Found {
            known,
            contradiction: known.contradiction.as_ref(),
        });
    }
    let key = |known: &Known<T>| (known.standing, known.place.source.clone(), known.place.line);
    let known = all
        .clone()
        .map(|(_, known)| known)
        .min_by_key(|known| key(known))?;
    let other = all
        .map(|(_, other)| other)
        .find(|other| other.standing == known.standing && other.says != known.says);
    let contradiction = known.contradiction.as_ref();
    Some(Found {
        known,
        contradiction: contradiction.or(other.map(|other| &other.place)),
    })
}

/// Whether a workload of a folder would have got another answer with what came later.
pub(super) fn is_another_answer<'m, T: PartialEq + 'm>(
    folder: Option<&str>,
    before: impl Iterator<Item = (Option<&'m str>, &'m Known<T>)> + Clone,
    later: impl Iterator<Item = (Option<&'m str>, &'m Known<T>)> + Clone,
) -> bool {
    let first = nearest(folder, before.clone());
    let with_later = nearest(folder, before.chain(later));
    let says = |found: &Found<'m, T>| (&found.known.says, found.contradiction.is_some());
    first.as_ref().map(says) != with_later.as_ref().map(says)
}

/// The one of the folder itself or of the nearest above it.
pub(super) fn own_or_above<'m, T>(
    folder: Option<&str>,
    all: impl Iterator<Item = (Option<&'m str>, &'m Known<T>)>,
) -> Option<&'m Known<T>> {
    let within = all.filter(|(own, _)| is_within(folder, *own));
    let (_, known) = within.max_by_key(|(own, _)| own.map(str::len))?;
    Some(known)
}

fn is_within(folder: Option<&str>, above: Option<&str>) -> bool {
    match (folder, above) {
        (Some(folder), Some("")) => !folder.starts_with(['/', '.']),
        (Some(folder), Some(above)) => folder
            .strip_prefix(above)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        (folder, above) => folder == above,
    }
}
