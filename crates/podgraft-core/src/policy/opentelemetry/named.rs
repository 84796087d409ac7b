//! Reads which containers a pod's annotations name for each language, or returns a remark why the operator refuses
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::annotations::{Annotations, common_containers};
use super::catalog::ChosenResources;
use super::go::SIDECAR;
use super::language::Language;
use super::operator::InstrumentationMutation;
use super::pod::{InstrumentedContainer, InstrumentedPod};
use crate::diagnostic::Code;
use crate::policy::mutation::Remark;
use crate::yaml::value::Path;

impl InstrumentationMutation {
    /// The container names for each chosen language. An empty list means the first container.
    pub(super) fn containers(
        &self,
        annotations: &Annotations<'_>,
        chosen: &ChosenResources,
    ) -> Result<Vec<Vec<String>>, Remark> {
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let common = names(annotations, &common_containers())?;
        if !self.catalog.settings.is_multi() {
            return Ok(vec![common; chosen.len()]);
        }
        let mut by_language = BTreeMap::new();
        for language in Language::ALL {
            by_language.insert(language, names(annotations, &language.containers_key())?);
        }
        let of_language = |(language, _): &(Language, usize)| {
            let of_language = by_language.get(language).into_iter().flatten();
            common.iter().chain(of_language).cloned().collect()
        };
        let lists: Vec<Vec<String>> = chosen.iter().map(of_language).collect();
        let each = || chosen.iter().map(|(language, _)| *language).zip(&lists);
        for (language, names) in each() {
            check_twice(annotations, language, names)?;
        }
        // With several languages, each must name its containers.
        match each().find(|(_, names)| names.is_empty()) {
            Some((language, _)) if chosen.len() > 1 => Err(none_named(annotations, language)),
            _ => Ok(lists),
        }
    }
}

/// The names in an annotation.
fn names(annotations: &Annotations<'_>, key: &str) -> Result<Vec<String>, Remark> {
    annotations.names(key).map_err(|text| {
        let message = format!(
            "`{key}: {text}` of {{}} has a character that the operator does not accept, so it \
             leaves the pod unchanged"
        );
        let help = "use only letters, digits, and `-`, with `,` between names and no spaces";
        remark(message, annotations.place(key), help)
    })
}

fn check_twice(
    annotations: &Annotations<'_>,
    language: Language,
    names: &[String],
) -> Result<(), Remark> {
    let mut seen = BTreeSet::new();
    let mut names = names.iter();
    let Some(name) = names.find(|name| !name.is_empty() && !seen.insert(*name)) else {
        return Ok(());
    };
    let (key, common_key) = (language.containers_key(), common_containers());
    let message = format!(
        "`{name}` is listed twice for {language} in {{}}, so the operator leaves the pod unchanged"
    );
    let help = format!("list it once, in one annotation: `{key}` adds to `{common_key}`");
    let place = annotations.place(&key).or(annotations.place(&common_key));
    Err(remark(message, place, &help))
}

fn none_named(annotations: &Annotations<'_>, language: Language) -> Remark {
    let message = format!(
        "{{}} requests several languages but lists no containers for {language}, so the operator \
         leaves the pod unchanged"
    );
    let help = format!("add the annotation `{}`", language.containers_key());
    let place = annotations.place(language.inject_key());
    remark(message, place, &help)
}

/// A remark on names that match no container of the pod.
pub(super) fn unknown_names(
    annotations: &Annotations<'_>,
    language: Language,
    names: &[String],
    pod: &InstrumentedPod,
) -> Option<Remark> {
    let unknown: Vec<&str> = names
        .iter()
        .filter(|name| pod.find(name).is_none())
        .map(String::as_str)
        .collect();
    if unknown.is_empty() {
        return None;
    }
    let end = match (language, unknown.len() == names.len()) {
        (Language::Go, _) if names[0] == SIDECAR => "the operator uses the agent's own container",
        (Language::Go, _) => "the operator uses the first container if the first name matches none",
        (_, true) => "no container is left, so nothing is injected for it",
        (_, false) => "the operator skips it",
    };
    let message = format!(
        "{{}} has no container `{}`, which is listed for {language}: {end}",
        unknown.join("`, `")
    );
    let containers = pod.init.iter().chain(&pod.apps);
    let containers: Vec<&str> = containers.map(InstrumentedContainer::name).collect();
    let help = format!("its containers are {}", containers.join(", "));
    let place = annotations.place(&language.containers_key());
    let place = place.or(annotations.place(&common_containers()));
    Some(remark(message, place, &help))
}

fn remark(message: String, place: Option<Path>, help: &str) -> Remark {
    let remark = Remark::warning(Code::UnknownContainer, message);
    remark.at(place).help(help)
}
