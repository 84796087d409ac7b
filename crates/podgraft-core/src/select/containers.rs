//! Chooses the containers that the container-level parts of a rule go into.

use globset::GlobMatcher;
use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::glob;
use crate::manifest::pod::{Container, ContainerListKey};
use crate::policy::{ComputedNames, ContainerChoice, ContainerList, ContainerMode};

use super::WorkloadFacts;
use super::filters::matches_any;

/// Containers that other injectors add to pods. A policy chooses them only by their exact name.
const FOREIGN_CONTAINERS: &[&str] = &[
    "istio-proxy",
    "linkerd-proxy",
    "vault-agent",
    "datadog-agent",
    "otc-container",
    "opentelemetry-auto-instrumentation",
    "jaeger-agent",
    "daprd",
    "consul-dataplane",
    "cloud-sql-proxy",
];

/// Why a choice leaves out a container.
enum Rejection<'c> {
    /// It is of a kind that `include` does not name, in words.
    List(&'static str),
    /// It is known as a container of another injector.
    Foreign,
    Name,
    Image,
    ExcludedName,
    ExcludedImage,
    /// It lacks a variable.
    WithEnv(&'c str),
    /// It has a variable.
    WithoutEnv(&'c str),
    /// It does not meet the condition of this name.
    Condition(&'c str),
    /// With `applyRules: One`, an earlier rule has it.
    Taken,
}

impl Rejection<'_> {
    /// The reason, about the container of this name.
    fn describe(&self, name: &str) -> String {
        match self {
            Rejection::List(kind) => {
                format!("`{name}` is {kind}, and the policy does not include these")
            }
            Rejection::Foreign => {
                format!("`{name}` belongs to another injector, so only its exact name selects it")
            }
            Rejection::Name => format!("`{name}` does not match `names`"),
            Rejection::Image => format!("the image of `{name}` does not match `images`"),
            Rejection::ExcludedName => format!("`{name}` matches `excludeNames`"),
            Rejection::ExcludedImage => format!("the image of `{name}` matches `excludeImages`"),
            Rejection::WithEnv(variable) => {
                format!("`{name}` has no variable `{variable}` (`withEnv`)")
            }
            Rejection::WithoutEnv(variable) => {
                format!("`{name}` has the variable `{variable}` (`withoutEnv`)")
            }
            Rejection::Condition(condition) => {
                format!("`{name}` does not meet the condition `{condition}`")
            }
            Rejection::Taken => format!("an earlier rule applies to `{name}`"),
        }
    }
}

/// The reasons that are shown. A pod rarely has more containers.
const MAX_REASONS: usize = 3;

/// The rejections of containers with a wanted name; without any, those of the wanted lists, and else all.
fn most_relevant<'r, 'c>(
    choice: &ContainerChoice,
    rejections: &'r [(&'r str, Rejection<'c>)],
) -> Vec<&'r (&'r str, Rejection<'c>)> {
    let is_named = |name: &str| !choice.names.is_empty() && matches_any(&choice.names, name);
    let named = rejections.iter().filter(|(name, _)| is_named(name));
    let in_list = rejections.iter();
    let in_list = in_list.filter(|(_, rejection)| !matches!(rejection, Rejection::List(_)));
    let found: [Vec<_>; 2] = [named.collect(), in_list.collect()];
    let found = found.into_iter().find(|found| !found.is_empty());
    found.unwrap_or_else(|| rejections.iter().collect())
}

impl<'t> WorkloadFacts<'_, 't> {
    /// Returns the containers that a rule chooses, in the order of the pod, and then those of `added`, which policies of
    /// this run have added.
    ///
    /// # Errors
    /// When a condition or a computed name cannot be evaluated.
    pub(crate) fn choose_containers(
        &self,
        choice: &ContainerChoice,
        added: &[Container<'t>],
    ) -> Result<Vec<Container<'t>>, Box<Diagnostic>> {
        let containers = self.own_containers().chain(added);
        let key = choice.names_from_annotation.as_deref();
        if let Some(names) = key.and_then(|key| self.any_annotation(key)) {
            let names: Vec<&str> = names.split(',').map(str::trim).collect();
            let named = containers.filter(|container| names.contains(&container.name));
            return Ok(named.cloned().collect());
        }
        let computed = self.with_computed_names(choice)?;
        let choice = computed.as_ref().unwrap_or(choice);
        let mut chosen: Vec<Container<'t>> = Vec::new();
        for container in containers.filter(|container| self.is_chosen(choice, container)) {
            let facts = WorkloadFacts {
                container: Some(container),
                ..*self
            };
            let conditions = &choice.match_conditions;
            if conditions.is_empty() || facts.first_that_fails(conditions)?.is_none() {
                chosen.push(container.clone());
            }
        }
        // "First" means the first app container where both lists are included: init containers end before it starts.
        if choice.mode == ContainerMode::First {
            let is_app = |container: &Container<'_>| container.list == ContainerListKey::Containers;
            let at = chosen.iter().position(is_app).unwrap_or(0);
            chosen = chosen.into_iter().skip(at).take(1).collect();
        }
        Ok(chosen)
    }

    /// Why a rule chooses none of the containers of a workload, in words. `None` if an annotation names them, if all have
    /// other names than those that the rule wants, if it wants only injected containers, or if there is no container.
    pub(crate) fn reason_for_no_container(&self, choice: &ContainerChoice) -> Option<String> {
        let key = choice.names_from_annotation.as_deref();
        let is_annotated = key.is_some_and(|key| self.workload.has_annotation(key));
        if is_annotated || choice.include == [ContainerList::Injected] {
            return None;
        }
        let computed = self.with_computed_names(choice).ok()?;
        let choice = computed.as_ref().unwrap_or(choice);
        if choice.include.is_empty() {
            return Some("`names` is empty".to_owned());
        }
        let rejection_of = |container| {
            let facts = WorkloadFacts {
                container: Some(container),
                ..*self
            };
            let condition = || facts.first_that_fails(&choice.match_conditions).ok()?;
            let failed = || Some(Rejection::Condition(&condition()?.name));
            let rejection = self.rejection(choice, container).or_else(failed);
            (container.name, rejection.unwrap_or(Rejection::Taken))
        };
        let rejections: Vec<(&str, Rejection<'_>)> =
            self.own_containers().map(rejection_of).collect();
        let shown = most_relevant(choice, &rejections);
        if shown
            .iter()
            .all(|(_, rejection)| matches!(rejection, Rejection::Name))
        {
            return None;
        }
        let reasons = shown
            .iter()
            .take(MAX_REASONS)
            .map(|(name, rejection)| rejection.describe(name));
        let mut reasons: Vec<String> = reasons.collect();
        if shown.len() > MAX_REASONS {
            reasons.push(format!("and {} more", shown.len() - MAX_REASONS));
        }
        Some(reasons.join(", "))
    }

    /// The containers of the workload that the baseline does not leave out.
    fn own_containers(&self) -> impl Iterator<Item = &Container<'t>> {
        let containers = self.workload.containers().iter();
        containers.filter(|container| !self.base.left_out.contains(&container.node))
    }

    /// The choice with its computed names evaluated for the workload. `None` if no names are computed.
    fn with_computed_names(
        &self,
        choice: &ContainerChoice,
    ) -> Result<Option<ContainerChoice>, Box<Diagnostic>> {
        if choice.computed_names.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut computed = choice.clone();
        let [names, exclude_names] = &choice.computed_names;
        if let Some(names) = names {
            computed.names = self.globs_of(names)?;
            // An empty list of names would match all containers, but here it means that none is chosen.
            if computed.names.is_empty() {
                computed.include.clear();
            }
        }
        if let Some(names) = exclude_names {
            computed.exclude_names = self.globs_of(names)?;
        }
        Ok(Some(computed))
    }

    fn globs_of(&self, names: &ComputedNames) -> Result<Vec<GlobMatcher>, Box<Diagnostic>> {
        let bad = |message| {
            let policy = self.policy;
            let place = policy.text.place(names.at.clone());
            let problem = Diagnostic::error(Code::BadExpression, message)
                .at(self.workload.name_place(), "for this workload");
            Box::new(problem.at(place, format!("policy `{}`", policy.identity)))
        };
        let value = names
            .template
            .evaluate(&self.evaluator())
            .map_err(|fault| {
                let Diagnostic { help, message, .. } = *fault.problem;
                Box::new(Diagnostic {
                    help,
                    ..*bad(message)
                })
            })?;
        let entries = value.as_array().map(Vec::as_slice).unwrap_or_default();
        let compiled = |entry: &Value| {
            let text = entry.as_str().ok_or("a container name must be a string")?;
            glob::compile(text, glob::GlobSubject::Text)
        };
        let globs: Result<Vec<GlobMatcher>, String> = entries.iter().map(compiled).collect();
        globs.map_err(bad)
    }

    fn is_chosen(&self, choice: &ContainerChoice, container: &Container<'_>) -> bool {
        self.rejection(choice, container).is_none()
    }

    /// The first condition of a choice that a container does not meet. Its `matchConditions` are not evaluated here.
    fn rejection<'c>(
        &self,
        choice: &'c ContainerChoice,
        container: &Container<'_>,
    ) -> Option<Rejection<'c>> {
        let list = match (container.list, container.is_native_sidecar) {
            _ if container.added.is_some() => ContainerList::Injected,
            (ContainerListKey::Containers, _) => ContainerList::Containers,
            (ContainerListKey::InitContainers, false) => ContainerList::InitContainers,
            (ContainerListKey::InitContainers, true) => ContainerList::Sidecars,
        };
        let mut names = choice.names.iter().map(|glob| glob.glob().glob());
        let is_ours = container.added.is_some()
            || !FOREIGN_CONTAINERS.contains(&container.name)
            || names.any(|name| name == container.name);
        let fits_name = |glob: &GlobMatcher| glob::is_match(glob, container.name);
        let fits_image = |glob: &GlobMatcher| glob::is_match(glob, container.image);
        let has_env = |name: &&String| self.has_env(container, name);
        let lacks_env = |name: &&String| !self.has_env(container, name);
        if !choice.include.contains(&list) {
            return Some(Rejection::List(match list {
                ContainerList::Containers => "an app container",
                ContainerList::InitContainers => "an init container",
                ContainerList::Sidecars => "a native sidecar",
                ContainerList::Injected => "an injected container",
            }));
        } else if !matches_any(&choice.names, container.name) {
            return Some(Rejection::Name);
        } else if !is_ours {
            return Some(Rejection::Foreign);
        } else if !matches_any(&choice.images, container.image) {
            return Some(Rejection::Image);
        } else if choice.exclude_names.iter().any(fits_name) {
            return Some(Rejection::ExcludedName);
        } else if choice.exclude_images.iter().any(fits_image) {
            return Some(Rejection::ExcludedImage);
        }
        let absent = choice.with_env.iter().find(lacks_env);
        let present = || choice.without_env.iter().find(has_env);
        let absent = absent.map(|name| Rejection::WithEnv(name));
        absent.or_else(|| present().map(|name| Rejection::WithoutEnv(name)))
    }

    /// Whether a container has a variable in its `env`. `envFrom` is not considered.
    fn has_env(&self, container: &Container<'_>, name: &str) -> bool {
        if let Some(value) = &container.added {
            let mut env = value["env"].as_array().into_iter().flatten();
            return env.any(|entry| entry["name"] == name);
        }
        let tree = self.workload.tree;
        let Some(env) = tree.get(container.node, "env") else {
            return false;
        };
        let is_match =
            |entry| tree.get(entry, "name").and_then(|node| tree.string(node)) == Some(name);
        tree.items(env)
            .any(|entry| !self.base.left_out.contains(&entry) && is_match(entry))
    }
}
