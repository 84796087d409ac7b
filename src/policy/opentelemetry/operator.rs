//! The operator's webhook for pods: which resource each language takes, which containers, and then what becomes of the
//! pod. Where the operator says nothing, a remark does.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::annotations::{Annotations, common_containers};
use super::injector::Injector;
use super::language::{Language, annotation, is_unknown};
use super::pod::Pod;
use super::release::Settings;
use super::resource::Instrumentation;
use super::{oddities, parts};
use crate::diagnostic::Code;
use crate::outcome::{Skip, SkipCause};
use crate::policy::images::ImageMirror;
use crate::policy::mutation::{Mutated, Mutation, PodFacts, Remark};
use crate::policy::parts::Part;
use crate::policy::schema::did_you_mean;
use crate::yaml::value::Path;

/// All resources of a run, and how the operator is set up.
#[derive(Debug)]
pub(super) struct Catalog {
    /// In the order of the files.
    pub resources: Vec<Instrumentation>,
    /// The operator's flags.
    pub settings: Settings,
    /// By namespace, as far as they state one, and name.
    by_name: BTreeMap<(Option<String>, String), usize>,
    /// By namespace.
    by_namespace: BTreeMap<Option<String>, Vec<usize>>,
}

impl Catalog {
    /// With these resources.
    pub(super) fn new(resources: Vec<Instrumentation>, settings: Settings) -> Self {
        let mut by_name = BTreeMap::new();
        let mut by_namespace: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (at, resource) in resources.iter().enumerate() {
            let namespace = resource.namespace.clone();
            by_name.insert((namespace.clone(), resource.name.clone()), at);
            by_namespace.entry(namespace).or_default().push(at);
        }
        Catalog {
            resources,
            settings,
            by_name,
            by_namespace,
        }
    }
}

/// What one resource does to pods: the first that a pod takes does all of its work, that of others included, so that
/// languages come in the operator's order.
#[derive(Debug)]
pub(super) struct Operator {
    /// All resources.
    pub catalog: Arc<Catalog>,
    /// The place of this one among them.
    pub at: usize,
    /// Other places for images.
    pub mirrors: Arc<[ImageMirror]>,
}

/// The resource of each language that a pod asks for.
pub(super) type Chosen = Vec<(Language, usize)>;

impl Mutation for Operator {
    fn mutate(&self, pod: &PodFacts<'_>) -> Mutated {
        let nothing = BTreeMap::new();
        let annotations = Annotations {
            pod: pod.annotations,
            namespace: pod.namespace_annotations.unwrap_or(&nothing),
        };
        if Language::ALL
            .into_iter()
            .all(|language| annotations.wish(language).is_none())
        {
            return Mutated::Skipped(nobody_asks(pod));
        }
        let chosen = self.choose(pod, &annotations);
        let speaker = match &chosen {
            Ok(chosen) => chosen.first().map_or(0, |(_, at)| *at),
            Err(_) => 0,
        };
        if speaker != self.at {
            return Mutated::Skipped(match chosen {
                Ok(chosen) if chosen.iter().any(|(_, at)| *at == self.at) => Skip::because(
                    SkipCause::OfOperator,
                    format!(
                        "`{}` applies it together with its own",
                        self.catalog.resources[speaker].identity
                    ),
                ),
                Ok(_) => Skip::because(SkipCause::OfOperator, "the pod takes another resource"),
                Err(_) => Skip::because(
                    SkipCause::OfOperator,
                    "it is not clear which resource the pod takes",
                ),
            });
        }
        let Some(spec) = (pod.spec)() else {
            return Mutated::Skipped(Skip::because(
                SkipCause::OfOperator,
                "the pod spec has no plain value",
            ));
        };
        let Some(before) = Pod::read(&spec) else {
            return Mutated::Skipped(Skip::because(
                SkipCause::OfOperator,
                "a container of the pod is none",
            ));
        };
        if pod.is_marked {
            return match chosen
                .ok()
                .and_then(|chosen| self.outdated(&chosen, &before))
            {
                Some(remark) => Mutated::LeftAlone(vec![remark]),
                None => Mutated::UpToDate,
            };
        }
        if let Some(mark) = injected_already(&before) {
            return Mutated::Skipped(Skip::because(
                SkipCause::OfOperator,
                format!("the operator leaves the pod alone, it is instrumented already: {mark}"),
            ));
        }
        match chosen {
            Ok(chosen) => self.inject(pod, &annotations, chosen, before, &spec),
            Err(remark) => Mutated::LeftAlone(vec![*remark]),
        }
    }

    fn asks_data(&self) -> bool {
        self.catalog.resources[self.at].tls.is_some()
    }

    fn parts(&self) -> Vec<Part> {
        let resource = &self.catalog.resources[self.at];
        parts::parts_of(resource, &self.catalog.settings, &self.mirrors)
    }

    fn with_image_mirrors(&self, mirrors: &Arc<[ImageMirror]>) -> Arc<dyn Mutation> {
        Arc::new(Operator {
            catalog: Arc::clone(&self.catalog),
            at: self.at,
            mirrors: Arc::clone(mirrors),
        })
    }
}

impl Operator {
    /// The resources that the languages take; the first that cannot be found ends it.
    fn choose(
        &self,
        pod: &PodFacts<'_>,
        annotations: &Annotations<'_>,
    ) -> Result<Chosen, Box<Remark>> {
        if pod.namespace.is_none() {
            let message = "{} states no namespace, and what the operator writes depends on it: the pod stays as it is";
            let remark = Remark::warning(Code::UnknownNamespace, message);
            return Err(Box::new(remark.help(
                "say with `--namespace NAME` where these manifests will be installed",
            )));
        }
        let mut chosen = Vec::new();
        for language in Language::ALL {
            if let Some(wish) = annotations.wish(language) {
                let found = self.find(pod, wish);
                let at = found.map_err(|(message, help)| {
                    let key = language.inject_key();
                    let message = format!(
                        "`{key}: {wish}` of {{}} finds no resource: {message}; the operator leaves the pod as it is"
                    );
                    Box::new(
                        Remark::warning(Code::UnresolvedResource, message)
                            .at(place_of(annotations, &key))
                            .help(help),
                    )
                })?;
                chosen.push((language, at));
            }
        }
        Ok(chosen)
    }

    fn find(&self, pod: &PodFacts<'_>, wish: &str) -> Result<usize, (String, String)> {
        if let Some((namespace, name)) = wish.split_once('/') {
            return self.named(pod, namespace, name);
        }
        let namespace = pod.namespace.unwrap_or_default();
        if !wish.eq_ignore_ascii_case("true") {
            return self.named(pod, namespace, wish);
        }
        let found: Vec<usize> = homes(pod, namespace)
            .filter_map(|home| self.catalog.by_namespace.get(&home))
            .flatten()
            .copied()
            .collect();
        match found[..] {
            [one] => Ok(one),
            [] => Err((
                format!("there is no Instrumentation in namespace `{namespace}`"),
                self.given(),
            )),
            [..] => {
                let names = found
                    .iter()
                    .map(|&at| self.catalog.resources[at].name.as_str());
                Err((
                    format!(
                        "namespace `{namespace}` has {} of kind Instrumentation",
                        found.len()
                    ),
                    format!(
                        "name one in the annotation: {}",
                        names.collect::<Vec<_>>().join(", ")
                    ),
                ))
            }
        }
    }

    fn named(
        &self,
        pod: &PodFacts<'_>,
        namespace: &str,
        name: &str,
    ) -> Result<usize, (String, String)> {
        let found = homes(pod, namespace)
            .find_map(|home| self.catalog.by_name.get(&(home, name.to_owned())));
        found.copied().ok_or_else(|| {
            (
                format!("there is no Instrumentation `{name}` in namespace `{namespace}`"),
                self.given(),
            )
        })
    }

    fn given(&self) -> String {
        const MOST: usize = 5;
        let all = &self.catalog.resources;
        let names = all
            .iter()
            .take(MOST)
            .map(|resource| resource.identity.as_str());
        let more = if all.len() > MOST { ", ..." } else { "" };
        format!(
            "give the file that holds it with `-p`; given are {}{more}",
            names.collect::<Vec<_>>().join(", ")
        )
    }

    /// An agent of an earlier run whose image is another one now.
    fn outdated(&self, chosen: &Chosen, pod: &Pod) -> Option<Remark> {
        chosen.iter().find_map(|(language, at)| {
            let resource = &self.catalog.resources[*at];
            let there = pod.init.get(pod.find_init(&language.agent_name())?)?;
            let there = there.field("image")?.as_str()?;
            let image = &resource.agent(*language)?.image;
            let mut mirrors = self.mirrors.iter();
            let mirrored = mirrors.find_map(|mirror| mirror.rewrite(image));
            let wanted = mirrored.as_deref().unwrap_or(image);
            let message = format!(
                "{{}} has the {language} agent `{there}` of an earlier run, and `{}` now says `{wanted}`: what is there \
                 stays",
                resource.identity
            );
            let remark = Remark::warning(Code::AppliedBefore, message)
                .help("apply to the original manifest; with `--in-place` a record lets later runs change it");
            (there != wanted).then_some(remark)
        })
    }

    fn inject(
        &self,
        pod: &PodFacts<'_>,
        annotations: &Annotations<'_>,
        chosen: Chosen,
        before: Pod,
        spec: &Value,
    ) -> Mutated {
        let mut remarks = unknown_annotations(annotations);
        let (chosen, off): (Chosen, Chosen) = chosen
            .into_iter()
            .partition(|(language, _)| self.catalog.settings.is_on(*language));
        for (language, _) in off {
            remarks.push(switched_off(annotations, language));
        }
        let containers = match self.containers(annotations, &chosen) {
            Ok(containers) => containers,
            Err(remark) => {
                remarks.push(*remark);
                return Mutated::LeftAlone(remarks);
            }
        };
        if before.apps.is_empty() {
            return Mutated::Skipped(Skip::because(
                SkipCause::OfOperator,
                "the pod has no containers",
            ));
        }
        let jobs: Vec<_> = chosen.iter().copied().zip(containers).collect();
        for ((language, _), names) in &jobs {
            remarks.extend(unknown_names(annotations, *language, names, &before));
        }
        let mut injector = Injector {
            facts: pod,
            annotations: *annotations,
            settings: &self.catalog.settings,
            mirrors: &self.mirrors,
            pod: before,
            remarks,
        };
        for ((language, at), names) in jobs {
            injector.language(language, &self.catalog.resources[at], names);
        }
        let Injector {
            pod: after,
            remarks,
            ..
        } = injector;
        let mut remarks = remarks;
        let is_seen = injected_already(&after).is_some();
        let after = after.into_value();
        if after == *spec {
            return Mutated::LeftAlone(remarks);
        }
        if !is_seen {
            let message = "an operator in the cluster does not see that {} is instrumented, and adds its variables again";
            remarks.push(
                Remark::warning(Code::OddResult, message)
                    .help("do not install this one where the operator's webhook runs"),
            );
        }
        remarks.extend(self.beside(pod, &chosen));
        remarks.extend(oddities::find(spec, &after));
        Mutated::Changed(after, remarks)
    }

    /// The names of each language's containers; none where the first container is meant.
    fn containers(
        &self,
        annotations: &Annotations<'_>,
        chosen: &Chosen,
    ) -> Result<Vec<Vec<String>>, Box<Remark>> {
        let common_key = common_containers();
        let names = |key: &str| {
            annotations.names(key).map_err(|text| {
                let message = format!(
                    "`{key}: {text}` of {{}} has a character that the operator does not take, so it leaves the pod as it is"
                );
                Box::new(
                    Remark::warning(Code::UnknownContainer, message)
                        .at(place_of(annotations, key))
                        .help("only letters, digits, `-`, and `,` between names; no spaces"),
                )
            })
        };
        if chosen.is_empty() {
            return Ok(Vec::new());
        }
        let common = names(&common_key)?;
        if !self.catalog.settings.is_multi {
            return Ok(vec![common; chosen.len()]);
        }
        let mut own = BTreeMap::new();
        for language in Language::ALL {
            own.insert(language, names(&language.containers_key())?);
        }
        let lists: Vec<Vec<String>> = chosen
            .iter()
            .map(|(language, _)| {
                let own = own.get(language).into_iter().flatten();
                common.iter().chain(own).cloned().collect()
            })
            .collect();
        for ((language, _), names) in chosen.iter().zip(&lists) {
            let mut seen = BTreeSet::new();
            let twice = names
                .iter()
                .find(|name| !name.is_empty() && !seen.insert(*name));
            if let Some(name) = twice {
                let key = language.containers_key();
                let message = format!(
                    "`{name}` is named twice for {language} in {{}}, so the operator leaves the pod as it is"
                );
                let help = format!("`{key}` adds to `{common_key}`: name it in one of them, once");
                return Err(Box::new(
                    Remark::warning(Code::UnknownContainer, message)
                        .at(place_of(annotations, &key).or(place_of(annotations, &common_key)))
                        .help(help),
                ));
            }
        }
        let without = chosen
            .iter()
            .zip(&lists)
            .find(|(_, names)| names.is_empty());
        match without {
            Some(((language, _), _)) if chosen.len() > 1 => {
                let message = format!(
                    "{{}} asks for several languages and names no containers for {language}, so the operator leaves \
                     the pod as it is"
                );
                Err(Box::new(
                    Remark::warning(Code::UnknownContainer, message)
                        .at(place_of(annotations, &language.inject_key()))
                        .help(format!(
                            "add the annotation `{}`",
                            language.containers_key()
                        )),
                ))
            }
            _ => Ok(lists),
        }
    }

    /// What is not seen here and counts in a cluster.
    fn beside(&self, pod: &PodFacts<'_>, chosen: &Chosen) -> Vec<Remark> {
        let mut remarks = Vec::new();
        if pod.namespace_annotations.is_none() {
            let namespace = pod.namespace.unwrap_or_default();
            let message = format!(
                "the Namespace `{namespace}` is not among the manifests, so its annotations do not count here"
            );
            remarks.push(
                Remark::note(Code::UnknownNamespace, message)
                    .help("give the file that holds it with `--context`"),
            );
        }
        let mut seen = BTreeSet::new();
        for (_, at) in chosen.iter().filter(|(_, at)| seen.insert(*at)) {
            let resource = &self.catalog.resources[*at];
            let files = resource
                .tls
                .iter()
                .flat_map(|tls| [(tls, false, &tls.secret), (tls, true, &tls.config_map)]);
            for (tls, is_config_map, name) in files {
                if !name.is_empty() && !(pod.has_object)(is_config_map, name) {
                    let kind = if is_config_map { "ConfigMap" } else { "Secret" };
                    let message = format!(
                        "the {kind} `{name}` of `{}` is not among the manifests of namespace `{}`: without it the \
                         operator injects nothing, and the pods do not start",
                        resource.identity,
                        pod.namespace.unwrap_or_default()
                    );
                    let mut remark = Remark::note(Code::MissingObject, message)
                        .help("see that it is in the cluster, or give its file with `--context`");
                    if *at == self.at {
                        remark = remark.in_policy(tls.at.clone());
                    }
                    remarks.push(remark);
                }
            }
            if resource.adds_uids {
                let message = format!(
                    "`addK8sUIDAttributes` of `{}` gives {{}} no UIDs of its owners: only a cluster knows them",
                    resource.identity
                );
                remarks.push(Remark::note(Code::PartIgnored, message));
            }
        }
        remarks
    }
}

/// The namespaces that a resource of a namespace may state: its own, or none where that is the run's.
fn homes<'p>(
    pod: &PodFacts<'p>,
    namespace: &str,
) -> impl Iterator<Item = Option<String>> + use<'p> {
    let is_default = pod.default_namespace == Some(namespace);
    [Some(namespace.to_owned())]
        .into_iter()
        .chain(is_default.then_some(None))
}

/// Where an annotation of the pod stands, if its value counts.
pub(super) fn place_of(annotations: &Annotations<'_>, key: &str) -> Option<Path> {
    annotations
        .is_of_pod(key)
        .then(|| Path::of(&["metadata", "annotations", key]))
}

fn nobody_asks(pod: &PodFacts<'_>) -> Skip {
    let asks = |annotations: &BTreeMap<String, String>| {
        let mut keys = Language::ALL.into_iter().map(Language::inject_key);
        keys.find(|key| {
            annotations
                .get(key)
                .is_some_and(|value| !value.is_empty() && !value.eq_ignore_ascii_case("false"))
        })
    };
    // Where the template has no word of it, the annotation is in the wrong place.
    let says_no = pod
        .annotations
        .keys()
        .any(|key| key.starts_with(&annotation("inject-")));
    if let Some(key) = asks(pod.own_annotations).filter(|_| !says_no) {
        return Skip::because(
            SkipCause::OfOperator,
            format!("`{key}` stands on the workload, not on its pod template"),
        )
        .hint(Some(
            "move the annotation to the pod template: the operator reads it there alone".to_owned(),
        ));
    }
    let mut unknown = pod.annotations.keys();
    if let Some((key, meant)) = unknown.find_map(|key| Some((key, is_unknown(key)?))) {
        let hint = meant.map(|meant| did_you_mean(&meant));
        return Skip::because(
            SkipCause::OfOperator,
            format!("the operator knows no annotation `{key}`"),
        )
        .hint(hint);
    }
    let place = match pod.namespace_annotations {
        Some(_) => "neither the pod template nor its Namespace",
        None => "the pod template has no annotation that",
    };
    Skip::because(
        SkipCause::OfOperator,
        format!("{place} asks for an instrumentation"),
    )
}

/// What the operator passes over without a word.
fn unknown_annotations(annotations: &Annotations<'_>) -> Vec<Remark> {
    let unknown = annotations
        .pod
        .keys()
        .filter_map(|key| Some((key, is_unknown(key)?)));
    let tell = |(key, meant): (&String, Option<String>)| {
        let message = format!("the operator knows no annotation `{key}`, which {{}} has");
        let remark = Remark::warning(Code::PartIgnored, message);
        remark.at(place_of(annotations, key)).help(match meant {
            Some(meant) => did_you_mean(&meant),
            None => "take it out".to_owned(),
        })
    };
    unknown.map(tell).collect()
}

/// What shows that the operator has been here.
fn injected_already(pod: &Pod) -> Option<String> {
    let agents = [
        Language::DotNet,
        Language::Java,
        Language::NodeJs,
        Language::Python,
    ]
    .map(Language::agent_name);
    let web = [
        "otel-agent-attach-apache",
        "otel-agent-source-container-clone",
    ];
    let init = pod.init.iter().find(|container| {
        agents.iter().any(|name| container.name() == name) || web.contains(&container.name())
    });
    if let Some(container) = init {
        return Some(format!("init container `{}`", container.name()));
    }
    pod.apps.iter().find_map(|container| {
        if container.name() == "opentelemetry-auto-instrumentation" {
            return Some(format!("container `{}`", container.name()));
        }
        let has_variable = container.name() != "otc-container"
            && container.env.has("OTEL_RESOURCE_ATTRIBUTES_NODE_NAME");
        has_variable.then(|| {
            format!(
                "container `{}` has OTEL_RESOURCE_ATTRIBUTES_NODE_NAME",
                container.name()
            )
        })
    })
}

fn switched_off(annotations: &Annotations<'_>, language: Language) -> Remark {
    let message = format!(
        "{{}} asks for {language}, which is off in the operator, so nothing is injected for it"
    );
    Remark::warning(Code::SwitchedOff, message)
        .at(place_of(annotations, &language.inject_key()))
        .help(format!(
            "where the operator runs with it: --otel-enable {language}"
        ))
}

fn unknown_names(
    annotations: &Annotations<'_>,
    language: Language,
    names: &[String],
    pod: &Pod,
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
        (Language::Go, _) => "the operator takes the first container where the first name is none",
        (_, true) => "none is left, so nothing is injected for it",
        (_, false) => "the operator passes over it",
    };
    let message = format!(
        "{{}} has no container `{}`, which is named for {language}: {end}",
        unknown.join("`, `")
    );
    let own = language.containers_key();
    let containers = pod.init.iter().chain(&pod.apps).map(|one| one.name());
    Some(
        Remark::warning(Code::UnknownContainer, message)
            .at(place_of(annotations, &own).or(place_of(annotations, &common_containers())))
            .help(format!(
                "its containers are {}",
                containers.collect::<Vec<_>>().join(", ")
            )),
    )
}
