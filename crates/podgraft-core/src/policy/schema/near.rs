//! Names that were probably meant where one is not known.

use crate::diagnostic::Code;

/// The help for a misspelt name.
pub fn did_you_mean(name: &str) -> String {
    format!("did you mean `{name}`?")
}

/// The help for an unknown name: the nearest name, or else all names after an introduction such as "valid names:".
pub fn meant<'c>(
    name: &str,
    names: impl Iterator<Item = &'c str> + Clone,
    introduction: &str,
) -> String {
    match nearest(name, names.clone()) {
        Some(near) => did_you_mean(near),
        None => format!("{introduction} {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// The help for an unknown diagnostic code.
pub fn meant_code(name: &str) -> String {
    let names = Code::ALL.iter().map(|code| code.name());
    meant(name, names, "valid codes:")
}

/// The candidate that is closest to a name, ignoring case, if at most a third of its letters differ. The first one wins
/// ties.
pub fn nearest<'c>(name: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let most = (name.chars().count() / 3).max(1);
    let lower = name.to_lowercase();
    candidates
        .map(|candidate| {
            (
                strsim::osa_distance(&lower, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|&(distance, _)| distance <= most)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
