//! All Instrumentations of a run. Chooses one for each language that a pod's annotations request, or returns a remark
//! why there is none.

use foldhash::HashMap;

use super::annotations::Annotations;
use super::language::Language;
use super::release::OperatorSettings;
use super::resource::Instrumentation;
use crate::diagnostic::Code;
use crate::policy::mutation::{PodFacts, Remark};

/// Each language that a pod requests, with the index of its resource in the catalog.
pub(super) type ChosenResources = Vec<(Language, usize)>;

/// All Instrumentations of a run, and the settings of the operator.
#[derive(Debug)]
pub(super) struct Catalog {
    /// In the order of the files.
    pub resources: Vec<Instrumentation>,
    /// The operator's flags.
    pub settings: OperatorSettings,
    /// The indexes of the resources of each namespace, and of those that state none.
    by_namespace: HashMap<Option<String>, Vec<usize>>,
}

impl Catalog {
    pub(super) fn new(resources: Vec<Instrumentation>, settings: OperatorSettings) -> Self {
        let mut by_namespace: HashMap<Option<String>, Vec<usize>> = HashMap::default();
        for (at, resource) in resources.iter().enumerate() {
            let found = by_namespace.entry(resource.namespace.clone()).or_default();
            found.push(at);
        }
        Catalog {
            resources,
            settings,
            by_namespace,
        }
    }

    /// Chooses the resources for a pod. One unresolved request is an error for the whole pod, because the operator then
    /// leaves the pod as it is.
    pub(super) fn choose(
        &self,
        pod: &PodFacts<'_>,
        annotations: &Annotations<'_>,
    ) -> Result<ChosenResources, Remark> {
        if pod.namespace.is_none() {
            let message = "{} does not specify a namespace, which the operator needs, so the pod \
                           is left unchanged";
            let remark = Remark::warning(Code::UnknownNamespace, message);
            return Err(remark.help("set the namespace of these manifests with `--namespace NAME`"));
        }
        let mut chosen = Vec::new();
        for language in Language::ALL {
            if let Some(request) = annotations.requested(language) {
                let key = language.inject_key();
                let found = self.find(pod, request);
                let at = found.map_err(|reason| unresolved(annotations, key, request, reason))?;
                chosen.push((language, at));
            }
        }
        Ok(chosen)
    }

    /// Resolves a request: `true`, a name, or `namespace/name`. The message of the error is only the reason.
    fn find(&self, pod: &PodFacts<'_>, request: &str) -> Result<usize, Remark> {
        if let Some((namespace, name)) = request.split_once('/') {
            return self.named(pod, namespace, name);
        }
        let namespace = pod.namespace.unwrap_or_default();
        if !request.eq_ignore_ascii_case("true") {
            return self.named(pod, namespace, request);
        }
        let found: Vec<usize> = candidate_namespaces(pod, namespace)
            .flat_map(|home| self.of_namespace(home))
            .collect();
        match found[..] {
            [resource] => Ok(resource),
            [] => Err(self.missing(format!(
                "there is no Instrumentation in namespace `{namespace}`"
            ))),
            [..] => {
                let names = found.iter().map(|&at| self.resources[at].name.as_str());
                let names = names.collect::<Vec<_>>().join(", ");
                let count = found.len();
                let reason = format!("namespace `{namespace}` has {count} Instrumentations");
                Err(Remark::warning(Code::UnresolvedResource, reason)
                    .help(format!("specify one in the annotation: {names}")))
            }
        }
    }

    fn named(&self, pod: &PodFacts<'_>, namespace: &str, name: &str) -> Result<usize, Remark> {
        let is_named = |at: &usize| self.resources[*at].name == name;
        let found = candidate_namespaces(pod, namespace)
            .find_map(|home| self.of_namespace(home).rfind(is_named));
        found.ok_or_else(|| {
            self.missing(format!(
                "there is no Instrumentation `{name}` in namespace `{namespace}`"
            ))
        })
    }

    /// The indexes of the resources whose manifests state a namespace, or none.
    fn of_namespace(&self, home: Option<&str>) -> impl DoubleEndedIterator<Item = usize> {
        let found = self.by_namespace.get(&home.map(str::to_owned));
        found.into_iter().flatten().copied()
    }

    fn missing(&self, reason: String) -> Remark {
        const MOST: usize = 5;
        let resources = &self.resources;
        let names = resources
            .iter()
            .take(MOST)
            .map(|resource| resource.identity.as_str());
        let more = if resources.len() > MOST { ", ..." } else { "" };
        let names = names.collect::<Vec<_>>().join(", ");
        Remark::warning(Code::UnresolvedResource, reason).help(format!(
            "pass the file that contains it with `-p`; this run has {names}{more}"
        ))
    }
}

/// The remark on a request in an annotation that stands for no resource.
fn unresolved(annotations: &Annotations<'_>, key: &str, request: &str, reason: Remark) -> Remark {
    let message = format!(
        "`{key}: {request}` of {{}} matches no resource: {}; the operator leaves the pod unchanged",
        reason.message
    );
    let remark = Remark { message, ..reason };
    remark.at(annotations.place(key))
}

/// The values of `metadata.namespace` that mean a namespace: its name, and `None` if it is the default namespace of the
/// run.
fn candidate_namespaces<'p>(
    pod: &PodFacts<'p>,
    namespace: &'p str,
) -> impl Iterator<Item = Option<&'p str>> {
    let is_default = pod.default_namespace == Some(namespace);
    [Some(namespace)]
        .into_iter()
        .chain(is_default.then_some(None))
}
