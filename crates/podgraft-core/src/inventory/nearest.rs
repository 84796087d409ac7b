//! Chooses among objects of one name without a known namespace: a workload uses the one of its own folder, else of the
//! nearest folder above, else any of the run if all have the same content.

use super::{KnownObject, SourceRole, unclear};
use crate::diagnostic::Diagnostic;
use crate::source::Place;

/// The nearest object, and the place of another one that contradicts it.
#[derive(Debug)]
pub(super) struct NearestObject<'m, T> {
    pub known: &'m KnownObject<T>,
    contradiction: Option<&'m Place>,
}

impl<'m, T> From<&'m KnownObject<T>> for NearestObject<'m, T> {
    fn from(known: &'m KnownObject<T>) -> Self {
        NearestObject {
            known,
            contradiction: known.contradiction.as_ref(),
        }
    }
}

impl<'m, T> NearestObject<'m, T> {
    /// The content.
    ///
    /// # Errors
    /// When two texts say different things.
    pub(super) fn agreed(&self, title: impl Fn() -> String) -> Result<&'m T, Diagnostic> {
        let (first, Some(second)) = (&self.known.place, self.contradiction) else {
            return Ok(&self.known.value);
        };
        let message = format!("{} is defined twice with different content", title());
        let help = match (first.source == second.source, self.known.role) {
            (true, _) => "remove one of the two",
            (false, SourceRole::Context) => {
                "remove one of the two, or pass only one of the files with `--context`"
            }
            (false, _) => "remove one of the two, or exclude its file with `--exclude`",
        };
        Err(unclear(message, help)
            .at(first.clone(), "first definition")
            .at(second.clone(), "second definition"))
    }
}

/// The object that a workload of a folder uses. The candidates have the same name and are given with their folders.
pub(super) fn nearest<'m, T: PartialEq>(
    folder: Option<&str>,
    candidates: impl Iterator<Item = (Option<&'m str>, &'m KnownObject<T>)> + Clone,
) -> Option<NearestObject<'m, T>> {
    if let Some(known) = in_nearest_folder(folder, candidates.clone()) {
        return Some(known.into());
    }
    let key = |known: &KnownObject<T>| (known.role, known.place.source.clone(), known.place.line);
    let known = candidates
        .clone()
        .map(|(_, known)| known)
        .min_by_key(|known| key(known))?;
    let conflicting = candidates
        .map(|(_, conflicting)| conflicting)
        .find(|conflicting| conflicting.role == known.role && conflicting.value != known.value);
    let contradiction = known.contradiction.as_ref();
    Some(NearestObject {
        known,
        contradiction: contradiction.or(conflicting.map(|conflicting| &conflicting.place)),
    })
}

/// Whether a workload of a folder would use other content if the later candidates had been known.
pub(super) fn is_another_answer<'m, T: PartialEq + 'm>(
    folder: Option<&str>,
    before: impl Iterator<Item = (Option<&'m str>, &'m KnownObject<T>)> + Clone,
    later: impl Iterator<Item = (Option<&'m str>, &'m KnownObject<T>)> + Clone,
) -> bool {
    let first = nearest(folder, before.clone());
    let with_later = nearest(folder, before.chain(later));
    let answer = |found: &NearestObject<'m, T>| (&found.known.value, found.contradiction.is_some());
    first.as_ref().map(answer) != with_later.as_ref().map(answer)
}

/// The object in the folder itself or in the nearest folder above.
pub(super) fn in_nearest_folder<'m, T>(
    folder: Option<&str>,
    entries: impl Iterator<Item = (Option<&'m str>, &'m KnownObject<T>)>,
) -> Option<&'m KnownObject<T>> {
    let within = entries.filter(|(known_folder, _)| is_within(folder, *known_folder));
    let (_, known) = within.max_by_key(|(known_folder, _)| known_folder.map(str::len))?;
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
