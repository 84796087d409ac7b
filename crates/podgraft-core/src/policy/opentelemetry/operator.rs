//! Imitates the operator's webhook for pods: chooses the resource and the containers of each language, then changes the
//! pod. Where the operator only logs or ignores something, a remark reports it.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::annotations::Annotations;
use super::catalog::{Catalog, ChosenResources};
use super::injector::{Injector, NODE_NAME, mirrored};
use super::language::{Language, annotation, is_unknown};
use super::named::unknown_names;
use super::pod::{InstrumentedContainer, InstrumentedPod};
use super::resource::Instrumentation;
use super::{odd_results, parts};
use crate::diagnostic::Code;
use crate::outcome::{Skip, SkipCause};
use crate::policy::PolicyValue;
use crate::policy::images::ImageMirror;
use crate::policy::mutation::{MutationResult, PodFacts, Remark};
use crate::policy::schema::did_you_mean;

/// The kinds of Knative Serving. No other workloads have these names.
const KNATIVE_KINDS: [&str; 2] = ["Service", "Configuration"];

/// What to do where an earlier run without a record left something else.
const APPLY_TO_ORIGINAL: &str =
    "apply to the original manifest; with `--in-place`, a record lets later runs change it";

/// What one resource does to pods. Of the resources that a pod requests, the first does the work of all, so that the
/// languages are applied in the operator's order.
#[derive(Debug, Clone)]
pub(crate) struct InstrumentationMutation {
    /// All resources of the run.
    pub(super) catalog: Arc<Catalog>,
    /// The index of this resource in the catalog.
    pub(super) at: usize,
    /// Replacements for image names.
    pub(crate) mirrors: Arc<[ImageMirror]>,
}

impl InstrumentationMutation {
    /// The result for a pod.
    pub(crate) fn mutate(&self, pod: &PodFacts<'_>) -> MutationResult {
        let nothing = BTreeMap::new();
        let annotations = Annotations {
            pod: pod.annotations,
            namespace: pod.namespace_annotations.unwrap_or(&nothing),
        };
        if Language::ALL
            .into_iter()
            .all(|language| annotations.requested(language).is_none())
        {
            return MutationResult::Skipped(not_requested(pod));
        }
        let chosen = self.catalog.choose(pod, &annotations);
        if let Some(reason) = self.deferral_reason(&chosen) {
            return left(reason);
        }
        let Some(spec) = (pod.spec)() else {
            return MutationResult::Unreadable;
        };
        let Some(mut before) = InstrumentedPod::read(&spec) else {
            return left("a container of the pod is not valid");
        };
        if KNATIVE_KINDS.contains(&pod.kind) {
            before.name_like_knative();
        }
        // The pod has podgraft's marker: an earlier run injected it, unless the marker was copied from another workload.
        if (pod.is_marked)() && has_instrumentation(&before) {
            let chosen = chosen.ok();
            let outdated = |chosen: ChosenResources| {
                let unwanted = self.unwanted_agent(&chosen, &before);
                unwanted.or_else(|| self.outdated_agent(&chosen, &before))
            };
            return match chosen.and_then(outdated) {
                Some(remark) => MutationResult::LeftAlone(vec![remark]),
                None => MutationResult::UpToDate,
            };
        }
        if let Some(mark) = injected_already(&before) {
            return left(format!(
                "the operator skips the pod because it is already instrumented: {mark}"
            ));
        }
        match chosen {
            Ok(chosen) => self.inject(pod, &annotations, chosen, before, &spec),
            Err(remark) => MutationResult::LeftAlone(vec![remark]),
        }
    }

    /// Whether it asks which ConfigMaps and Secrets exist.
    pub(crate) fn asks_data(&self) -> bool {
        self.catalog.resources[self.at].tls.is_some()
    }

    /// The parts that it may inject into any pod.
    pub(crate) fn parts(&self) -> Vec<PolicyValue> {
        let resource = &self.catalog.resources[self.at];
        parts::parts_of(resource, &self.catalog.settings, &self.mirrors)
    }

    /// Why this resource leaves a pod to another one; `None` if this is the one that acts. That is the first that the
    /// pod requests, or the first of all if the request cannot be resolved.
    fn deferral_reason(&self, chosen: &Result<ChosenResources, Remark>) -> Option<String> {
        let places = chosen.iter().flatten().map(|(_, at)| *at);
        let speaker = places.clone().next().unwrap_or_default();
        let is_among = places.clone().any(|at| at == self.at);
        match chosen {
            _ if speaker == self.at => None,
            Ok(_) if is_among => Some(format!(
                "`{}` applies it together with its own changes",
                self.catalog.resources[speaker].identity
            )),
            Ok(_) => Some("the pod uses another resource".to_owned()),
            Err(_) => Some("it is unclear which resource the pod uses".to_owned()),
        }
    }

    /// A remark if the pod has an agent of an earlier run that it does not request any more.
    fn unwanted_agent(&self, chosen: &ChosenResources, pod: &InstrumentedPod) -> Option<Remark> {
        let is_chosen = |language| chosen.iter().any(|(chosen, _)| *chosen == language);
        let has_agent = |language: Language| pod.find_init(&language.agent_name()).is_some();
        let mut languages = Language::ALL.into_iter();
        let unwanted = languages.find(|&language| has_agent(language) && !is_chosen(language))?;
        let requested: Vec<String> = chosen
            .iter()
            .map(|(language, _)| language.to_string())
            .collect();
        let message = format!(
            "{{}} has the {unwanted} agent from an earlier run, but requests {} now; the existing agent is kept",
            requested.join(" and ")
        );
        Some(Remark::warning(Code::AppliedBefore, message).help(APPLY_TO_ORIGINAL))
    }

    /// A remark if an agent of an earlier run has another image than the resource states now.
    fn outdated_agent(&self, chosen: &ChosenResources, pod: &InstrumentedPod) -> Option<Remark> {
        let mut chosen = chosen.iter();
        chosen.find_map(|(language, at)| {
            self.outdated_image(*language, &self.catalog.resources[*at], pod)
        })
    }

    fn outdated_image(
        &self,
        language: Language,
        resource: &Instrumentation,
        pod: &InstrumentedPod,
    ) -> Option<Remark> {
        let container = pod.init.get(pod.find_init(&language.agent_name())?)?;
        let existing = container.field("image")?.as_str()?;
        let image = &resource.agent(language)?.image;
        let wanted = mirrored(image, &self.mirrors);
        let message = format!(
            "{{}} has the {language} agent `{existing}` from an earlier run, but `{}` now \
             specifies `{wanted}`; the existing agent is kept",
            resource.identity
        );
        let remark = Remark::warning(Code::AppliedBefore, message).help(APPLY_TO_ORIGINAL);
        (existing != wanted).then_some(remark)
    }

    fn inject(
        &self,
        pod: &PodFacts<'_>,
        annotations: &Annotations<'_>,
        chosen: ChosenResources,
        before: InstrumentedPod,
        spec: &Value,
    ) -> MutationResult {
        let mut remarks = unknown_annotations(annotations);
        remarks.extend(collector_sidecar(annotations, spec));
        let (chosen, off): (ChosenResources, ChosenResources) = chosen
            .into_iter()
            .partition(|(language, _)| self.catalog.settings.is_on(*language));
        let off = off.into_iter();
        remarks.extend(off.map(|(language, _)| disabled_remark(annotations, language)));
        let containers = match self.containers(annotations, &chosen) {
            Ok(containers) => containers,
            Err(remark) => {
                remarks.push(remark);
                return MutationResult::LeftAlone(remarks);
            }
        };
        if before.apps.is_empty() {
            return left("the pod has no containers");
        }
        let mut after = before;
        for (&(language, at), names) in chosen.iter().zip(containers) {
            // A name may be that of a container that an earlier language added.
            remarks.extend(unknown_names(annotations, language, &names, &after));
            let mut injector = Injector {
                language,
                resource: &self.catalog.resources[at],
                facts: pod,
                annotations: *annotations,
                settings: &self.catalog.settings,
                mirrors: &self.mirrors,
                pod: &mut after,
                remarks: &mut remarks,
            };
            injector.inject(names);
        }
        let unseen = injected_already(&after).is_none().then(unseen);
        let after = after.into_value();
        if after == *spec {
            return MutationResult::LeftAlone(remarks);
        }
        remarks.extend(unseen);
        remarks.extend(self.cluster_remarks(pod, &chosen));
        remarks.extend(odd_results::find(spec, &after));
        MutationResult::Changed(after, remarks)
    }

    /// Remarks about what only a cluster knows: the Namespace, objects with TLS files, UIDs of owners.
    fn cluster_remarks(&self, pod: &PodFacts<'_>, chosen: &ChosenResources) -> Vec<Remark> {
        let mut remarks = Vec::new();
        if pod.namespace_annotations.is_none() {
            let namespace = pod.namespace.unwrap_or_default();
            let message = format!(
                "the Namespace `{namespace}` is not among the manifests, so its annotations are \
                 ignored"
            );
            remarks.push(
                Remark::note(Code::UnknownNamespace, message)
                    .help("pass the file that contains it with `--context`"),
            );
        }
        let mut seen = BTreeSet::new();
        for (_, at) in chosen.iter().filter(|(_, at)| seen.insert(*at)) {
            let resource = &self.catalog.resources[*at];
            let files = resource.tls.iter().flat_map(|tls| {
                [
                    (tls, "Secret", &tls.secret),
                    (tls, "ConfigMap", &tls.config_map),
                ]
            });
            for (tls, kind, name) in files {
                if !name.is_empty() && !(pod.has_object)(kind, name) {
                    let message = format!(
                        "the {kind} `{name}` of `{}` is not among the manifests of namespace `{}`: \
                         without it, the operator injects nothing and the pods do not start",
                        resource.identity,
                        pod.namespace.unwrap_or_default()
                    );
                    let mut remark = Remark::note(Code::MissingObject, message).help(
                        "make sure that it is in the cluster, or pass its file with `--context`",
                    );
                    if *at == self.at {
                        remark = remark.in_policy(tls.at.clone());
                    }
                    remarks.push(remark);
                }
            }
            if resource.adds_uids {
                let message = format!(
                    "`addK8sUIDAttributes` of `{}` does not add UIDs of owners to {{}}: only a \
                     cluster knows them",
                    resource.identity
                );
                remarks.push(Remark::note(Code::PartIgnored, message));
            }
        }
        remarks
    }
}

/// The operator would do nothing for the pod.
fn left(reason: impl Into<String>) -> MutationResult {
    MutationResult::Skipped(skip(reason))
}

fn skip(reason: impl Into<String>) -> Skip {
    Skip::because(SkipCause::OfOperator, reason)
}

/// A warning that the result has nothing by which the operator recognizes an injected pod, so that its webhook would
/// inject again.
fn unseen() -> Remark {
    let message = "an operator in the cluster does not detect that {} is instrumented, and adds \
                   its variables again";
    let remark = Remark::warning(Code::OddResult, message);
    remark.help("do not apply it where the operator's webhook runs")
}

fn not_requested(pod: &PodFacts<'_>) -> Skip {
    let asks = |annotations: &BTreeMap<String, String>| {
        let is_yes = |value: &String| !value.is_empty() && !value.eq_ignore_ascii_case("false");
        let mut keys = Language::ALL.into_iter().map(Language::inject_key);
        keys.find(|key| annotations.get(*key).is_some_and(is_yes))
    };
    // An annotation on the workload is a mistake only if the template has no such annotation itself.
    let says_no = pod
        .annotations
        .keys()
        .any(|key| key.starts_with(&annotation("inject-")));
    if let Some(key) = asks(&(pod.workload_annotations)()).filter(|_| !says_no) {
        let hint = "move the annotation to the pod template: the operator reads it only there";
        return skip(format!(
            "`{key}` is on the workload, not on its pod template"
        ))
        .hint(Some(hint.to_owned()));
    }
    let mut unknown = pod.annotations.keys();
    if let Some((key, meant)) = unknown.find_map(|key| Some((key, is_unknown(key)?))) {
        let hint = meant.map(|meant| did_you_mean(&meant));
        return skip(format!(
            "the operator does not recognize the annotation `{key}`"
        ))
        .hint(hint);
    }
    let place = match pod.namespace_annotations {
        Some(_) => "neither the pod template nor its Namespace",
        None => "the pod template has no annotation that",
    };
    skip(format!("{place} requests instrumentation"))
}

/// A warning that the operator would add a sidecar, too: that of an OpenTelemetryCollector.
fn collector_sidecar(annotations: &Annotations<'_>, spec: &Value) -> Option<Remark> {
    const INJECT: &str = "sidecar.opentelemetry.io/inject";
    let wanted = annotations.value(INJECT);
    let is_there = || {
        let lists = ["containers", "initContainers"].into_iter();
        let mut containers = lists
            .filter_map(|list| spec.get(list)?.as_array())
            .flatten();
        containers.any(|container| {
            container
                .get("name")
                .is_some_and(|name| name == "otc-container")
        })
    };
    if wanted.is_empty() || wanted.eq_ignore_ascii_case("false") || is_there() {
        return None;
    }
    let message = format!(
        "`{INJECT}` requests the sidecar of an OpenTelemetryCollector in {{}}, which podgraft does \
         not add"
    );
    let remark = Remark::warning(Code::PartIgnored, message).at(annotations.place(INJECT));
    Some(remark.help("leave it to the operator, or define it as a sidecar in an InjectionPolicy"))
}

/// Remarks on annotations that the operator silently ignores.
fn unknown_annotations(annotations: &Annotations<'_>) -> Vec<Remark> {
    let unknown = annotations
        .pod
        .keys()
        .filter_map(|key| Some((key, is_unknown(key)?)));
    unknown
        .map(|(key, meant)| unknown_annotation(annotations, key, meant))
        .collect()
}

fn unknown_annotation(annotations: &Annotations<'_>, key: &str, meant: Option<String>) -> Remark {
    let message = format!("the operator does not recognize the annotation `{key}` of {{}}");
    let remark = Remark::warning(Code::PartIgnored, message);
    remark.at(annotations.place(key)).help(match meant {
        Some(meant) => did_you_mean(&meant),
        None => "remove it".to_owned(),
    })
}

/// Whether a pod has an agent or a variable that the operator may have injected.
fn has_instrumentation(pod: &InstrumentedPod) -> bool {
    let is_agent = |container: &InstrumentedContainer| {
        let prefixes = ["opentelemetry-auto-instrumentation", "otel-agent-"];
        prefixes
            .iter()
            .any(|prefix| container.name().starts_with(prefix))
    };
    let has_variable = |container: &InstrumentedContainer| {
        let mut names = container
            .env
            .items()
            .iter()
            .filter_map(|item| item["name"].as_str());
        names.any(|name| name.starts_with("OTEL_"))
    };
    let mut containers = pod.init.iter().chain(&pod.apps);
    containers.any(|container| is_agent(container) || has_variable(container))
}

/// The part of a pod by which the operator recognizes that it is injected already; `None` if there is none.
fn injected_already(pod: &InstrumentedPod) -> Option<String> {
    const AGENTS: [&str; 6] = [
        "opentelemetry-auto-instrumentation-dotnet",
        "opentelemetry-auto-instrumentation-java",
        "opentelemetry-auto-instrumentation-nodejs",
        "opentelemetry-auto-instrumentation-python",
        "otel-agent-attach-apache",
        "otel-agent-source-container-clone",
    ];
    let mut init = pod.init.iter().map(InstrumentedContainer::name);
    if let Some(name) = init.find(|name| AGENTS.contains(name)) {
        return Some(format!("init container `{name}`"));
    }
    pod.apps
        .iter()
        .find_map(|container| match container.name() {
            name @ "opentelemetry-auto-instrumentation" => Some(format!("container `{name}`")),
            "otc-container" => None,
            name => container
                .env
                .has(NODE_NAME)
                .then(|| format!("container `{name}` has {NODE_NAME}")),
        })
}

fn disabled_remark(annotations: &Annotations<'_>, language: Language) -> Remark {
    let message = format!(
        "{{}} requests {language}, which is disabled in the operator, so nothing is injected for it"
    );
    Remark::warning(Code::SwitchedOff, message)
        .at(annotations.place(language.inject_key()))
        .help(format!(
            "if your operator enables it, use --otel-enable {language}"
        ))
}
