//! Reads policies from files: finds them in all documents, assigns parameters and sorts by weight.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

pub use super::PolicyFile;
use super::conversion::{ConversionContext, ConvertedResource, DebugMode, ReadOptions};
use super::document::Document;
pub use super::found::GroupKind;
use super::found::{
    FoundDocument, ObjectRole, built_in_sources, check_unclaimed, find_policies, parse_all,
    sources_of, without_duplicates,
};
use super::names::check_dns_subdomain;
use super::native::source::PolicyInstance;
pub use super::params::ParamSetting;
use super::params::{self, DeclaredParams};
pub(crate) use super::unread::not_yaml;
use super::{Policy, native, opentelemetry};
use crate::diagnostic::{Diagnosed, Diagnostic};
use crate::yaml::value::Path;

/// The policies in the order of application (weight, file, document), and all problems. Policies with errors are left
/// out.
pub fn read(files: Vec<PolicyFile>, settings: &[ParamSetting]) -> (Vec<Policy>, Vec<Diagnostic>) {
    read_as(files, settings, ReadOptions::default())
}

/// [`read`] with options for resources of other formats.
pub fn read_as(
    files: Vec<PolicyFile>,
    settings: &[ParamSetting],
    reading: ReadOptions,
) -> (Vec<Policy>, Vec<Diagnostic>) {
    let mut results = translate(files, settings, reading);
    results.policies.sort_by_key(|policy| policy.weight);
    (results.policies, results.problems)
}

/// Translates everything in the files, in their order.
pub(crate) fn translate(
    files: Vec<PolicyFile>,
    settings: &[ParamSetting],
    reading: ReadOptions,
) -> TranslationResults {
    let mut problems = Vec::new();
    let texts: Vec<Arc<PolicyFile>> = files.into_iter().map(Arc::new).collect();
    let trees = parse_all(&texts, &mut problems);
    let mut sources = sources_of(&trees);
    let built_in = built_in_sources(&trees, &sources);
    let more = parse_all(&built_in, &mut problems);
    sources.extend(sources_of(&more));
    let mut found: Vec<FoundDocument<'_>> = Vec::new();
    for (file, tree) in &trees {
        find_policies(file, tree, &sources, &mut found, &mut problems);
    }
    // Before the built-in policies are added: a given policy may have the same name as one of them.
    let mut found = without_duplicates(found, &mut problems);
    for (file, tree) in &more {
        find_policies(file, tree, &sources, &mut found, &mut problems);
    }
    let mut made = TranslationResults {
        problems,
        ..TranslationResults::default()
    };
    made.translate_all(&found, settings, &reading);
    // After other errors, an unclaimed resource is often only their consequence.
    if !made.problems.iter().any(Diagnostic::is_error) {
        let unclaimed = check_unclaimed(&trees, &sources, &made.policies);
        made.problems.extend(unclaimed);
    }
    made.problems
        .extend(found.iter().filter_map(invalid_former_name));
    // Rules that share an `inject` by an alias have the same problems at the same places.
    let mut seen = HashSet::new();
    made.problems.retain(|problem| seen.insert(problem.clone()));
    let renamed: BTreeMap<String, String> = found.iter().filter_map(renamed_from).collect();
    for policy in &mut made.policies {
        policy.renamed_from = renamed.get(&policy.identity).cloned();
    }
    made
}

/// What the files come to, so far.
#[derive(Default)]
pub(crate) struct TranslationResults {
    policies: Vec<Policy>,
    /// The resources of other operators as policies.
    pub converted: Vec<ConvertedResource>,
    pub problems: Vec<Diagnostic>,
}

impl TranslationResults {
    fn translate_all(
        &mut self,
        found: &[FoundDocument<'_>],
        settings: &[ParamSetting],
        reading: &ReadOptions,
    ) {
        let owners = owners(found);
        let debug_mode = debug_mode(reading);
        let (assigned, unassigned) = settings_of(found, &owners, settings, &debug_mode);
        // A file with errors hides its parameters, so settings for them would be reported as unknown.
        if self.problems.is_empty() {
            self.problems.extend(unassigned);
        }
        let translation = Translation {
            found,
            in_turn: translation_order(found, &owners),
            instances: instances(found, &owners),
            owners,
            assigned,
            reading,
        };
        let mut instrumentations = Vec::new();
        for (at, found_document) in found.iter().enumerate() {
            self.converted.extend(translation.convert(at));
            match found_document.role {
                ObjectRole::Resource => {
                    // An error in the policy itself would be repeated for each of its resources.
                    let is_known = |reason: &Diagnostic| self.problems.contains(reason);
                    let translated = translation.resource(at).map_err(|mut reasons| {
                        reasons.retain(|reason| !is_known(reason));
                        reasons
                    });
                    self.add(translated);
                }
                ObjectRole::InjectionPolicy => self.add(translation.policy(at)),
                ObjectRole::Instrumentation => {
                    instrumentations.push(found_document.document.clone())
                }
            }
        }
        let (joined, found) = opentelemetry::join(instrumentations, reading);
        self.policies.extend(joined);
        self.problems.extend(found);
    }

    fn add(&mut self, translated: Translated) {
        match translated {
            Ok((policy, warnings)) => {
                self.policies.extend(policy);
                self.problems.extend(warnings);
            }
            Err(reasons) => self.problems.extend(reasons),
        }
    }
}

/// A policy (if there is one) and warnings, or all errors.
type Translated = Diagnosed<(Option<Policy>, Vec<Diagnostic>)>;

type Instance<'f, 't> = Diagnosed<PolicyInstance<'f, 't>>;

/// The objects of all files, with what is needed to translate each. Indexes are those of `found`.
struct Translation<'f, 't> {
    found: &'f [FoundDocument<'t>],
    /// The policy for each resource; `None` for policies.
    owners: Vec<Option<usize>>,
    /// The object to translate at each index, see [`translation_order`].
    in_turn: Vec<usize>,
    /// The resources as instances of their policies, or their errors; `None` for policies.
    instances: Vec<Option<Instance<'f, 't>>>,
    /// The parameter settings for each object.
    assigned: Vec<Vec<&'f ParamSetting>>,
    reading: &'f ReadOptions,
}

impl<'f, 't> Translation<'f, 't> {
    fn given(&self, at: usize) -> ConversionContext<'_> {
        ConversionContext {
            settings: &self.assigned[at],
            reading: self.reading,
        }
    }

    /// The policy for a resource, and the resource as its instance, which knows the others if the policy reads them.
    fn instance(&self, at: usize) -> Option<(&'f Document<'t>, Instance<'f, 't>)> {
        let owner = self.owners[at]?;
        let policy = &self.found[owner].document;
        let instance = self.instances[at].clone()?;
        // The name in the text is a cheap test. A false positive only costs time.
        if !policy.file.text.contains("sources") {
            return Some((policy, instance));
        }
        let of_policy = self.instances.iter().zip(&self.owners);
        let of_policy = of_policy.filter(|(_, of)| **of == Some(owner));
        let siblings: Vec<&PolicyInstance<'_, '_>> = of_policy
            .filter_map(|(sibling, _)| sibling.as_ref()?.as_ref().ok())
            .collect();
        let instance = instance.map(|instance| instance.with_siblings(&siblings, policy));
        Some((policy, instance))
    }

    /// The policy that a resource becomes; `None` if it has errors or is a policy.
    fn convert(&self, at: usize) -> Option<ConvertedResource> {
        let (FoundDocument { document, role }, given) = (&self.found[at], self.given(at));
        match role {
            ObjectRole::InjectionPolicy => None,
            ObjectRole::Instrumentation => opentelemetry::convert(document, &given).ok(),
            ObjectRole::Resource => {
                let (policy, instance) = self.instance(at)?;
                let policy =
                    native::convert::convert(policy.clone(), &given, &instance.ok()?).ok()?;
                Some(ConvertedResource::of(document, policy))
            }
        }
    }

    /// Translates the policy for a resource.
    fn resource(&self, at: usize) -> Translated {
        let now = self.in_turn[at];
        let Some((policy, instance)) = self.instance(now) else {
            return Ok((None, Vec::new()));
        };
        native::translate(policy.clone(), &self.given(now), Some(&instance?))
    }

    /// Translates an `InjectionPolicy`. With `source` it makes no policy itself, and is only checked if no resource is
    /// given.
    fn policy(&self, at: usize) -> Translated {
        let (found_document, given) = (&self.found[at], self.given(at));
        let document = found_document.document.clone();
        if found_document.source().is_none() {
            return native::translate(document, &given, None);
        }
        if !self.owners.contains(&Some(at)) {
            check_without_resources(document, &given)?;
        }
        Ok((None, Vec::new()))
    }
}

/// The index of the policy for each resource. If several have the same `source`, the first.
fn owners(found: &[FoundDocument<'_>]) -> Vec<Option<usize>> {
    let mut sources = BTreeMap::new();
    for (at, entry) in found.iter().enumerate() {
        if let Some(kind) = entry.source() {
            sources.entry(kind).or_insert(at);
        }
    }
    let owner = |entry: &FoundDocument<'_>| match entry.role {
        ObjectRole::Resource => sources.get(&entry.kind()).copied(),
        ObjectRole::InjectionPolicy | ObjectRole::Instrumentation => None,
    };
    found.iter().map(owner).collect()
}

fn instances<'f, 't>(
    found: &'f [FoundDocument<'t>],
    owners: &[Option<usize>],
) -> Vec<Option<Instance<'f, 't>>> {
    let instance = |(entry, owner): (&'f FoundDocument<'t>, &Option<usize>)| {
        let policy = &found[(*owner)?].document;
        Some(PolicyInstance::new(&entry.document, policy))
    };
    found.iter().zip(owners).map(instance).collect()
}

/// The object to translate at each index. The resources of one policy keep their indexes as a set, and fill them sorted
/// by identity, so that the result does not depend on the order of files.
fn translation_order(found: &[FoundDocument<'_>], owners: &[Option<usize>]) -> Vec<usize> {
    let mut turns: Vec<usize> = (0..found.len()).collect();
    let mut resources: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (at, owner) in owners.iter().enumerate() {
        if let Some(owner) = owner {
            resources.entry(*owner).or_default().push(at);
        }
    }
    for places in resources.into_values() {
        let mut named = places.clone();
        named.sort_by_cached_key(|&at| found[at].document.identity());
        for (place, at) in places.into_iter().zip(named) {
            turns[place] = at;
        }
    }
    turns
}

/// The setting of `--debug-mode` for policies with this parameter; `None` for the default mode.
fn debug_mode(reading: &ReadOptions) -> Option<ParamSetting> {
    (reading.debug_mode == DebugMode::Sidecar).then(|| ParamSetting {
        policy: None,
        name: "debugMode".to_owned(),
        value: "Sidecar".to_owned(),
        at: None,
    })
}

/// The settings for each object. A resource gets those of its policy first, then its own, because the last one wins.
fn settings_of<'s>(
    found: &[FoundDocument<'_>],
    owners: &[Option<usize>],
    settings: &'s [ParamSetting],
    debug_mode: &'s Option<ParamSetting>,
) -> (Vec<Vec<&'s ParamSetting>>, Vec<Diagnostic>) {
    let declared = declared_by(found, owners);
    let (mut assigned, unassigned) = params::assign(settings, &declared);
    for (settings, declared) in assigned.iter_mut().zip(&declared) {
        let asked = debug_mode.iter();
        // In front, so that a `--param debugMode` wins.
        settings.splice(
            0..0,
            asked.filter(|mode| declared.names.contains(&mode.name)),
        );
    }
    for (at, owner) in owners.iter().enumerate() {
        let of_all = owner.map(|owner| assigned[owner].clone());
        assigned[at].splice(0..0, of_all.unwrap_or_default());
    }
    (assigned, unassigned)
}

/// Checks a policy with `source` of which no resource is given. Required parameters may be missing.
fn check_without_resources(policy: Document<'_>, given: &ConversionContext<'_>) -> Diagnosed {
    let open = ReadOptions {
        params_stay_open: true,
        ..given.reading.clone()
    };
    let given = ConversionContext {
        reading: &open,
        ..*given
    };
    native::translate(policy, &given, None).map(|_| ())
}

/// The annotation with the earlier name of a policy.
pub(crate) const RENAMED_FROM: &str = "podgraft.dev/renamed-from";

/// The error for an earlier name that no policy can have had, such as a list of names.
fn invalid_former_name(found: &FoundDocument<'_>) -> Option<Diagnostic> {
    let path = Path::of(&["metadata", "annotations", RENAMED_FROM]);
    let old = path.get(&found.document.value)?.as_str()?;
    let problem = found.document.invalid(&path, check_dns_subdomain(old))?;
    Some(problem.help("write the previous name of the policy, without kind and namespace"))
}

/// The identity of a renamed policy and its earlier identity.
fn renamed_from(found: &FoundDocument<'_>) -> Option<(String, String)> {
    let document = &found.document;
    let old = document.text(&["metadata", "annotations", RENAMED_FROM])?;
    let identity = document.identity();
    // Kind and namespace of the identity stay.
    let before = identity.rsplit_once('/').map_or("", |(before, _)| before);
    let parts = [before, old];
    let old = parts.iter().filter(|part| !part.is_empty());
    let old = old.copied().collect::<Vec<_>>().join("/");
    Some((identity, old))
}

/// The kinds of resources that policies of the files have as their `source`. Files with errors are skipped.
pub fn resource_kinds(files: &[PolicyFile]) -> Vec<GroupKind> {
    let texts: Vec<Arc<PolicyFile>> = files.iter().cloned().map(Arc::new).collect();
    sources_of(&parse_all(&texts, &mut Vec::new()))
}

/// Finds policies and, in a second search where that is needed, the resources that they or the given policies are for.
/// `find` returns the policies and the resources of some kinds.
pub fn find_with_resources(
    given: &[PolicyFile],
    find: impl Fn(&[GroupKind]) -> Vec<PolicyFile>,
) -> Vec<PolicyFile> {
    let kinds = resource_kinds(given);
    let found = find(&kinds);
    let kinds_of_found = resource_kinds(&found);
    match kinds_of_found.is_empty() {
        true => found,
        false => find(&[kinds, kinds_of_found].concat()),
    }
}

/// The parameters that policies of the files declare, including built-in policies for resources in them. Files with
/// errors are skipped.
pub fn declared(files: &[PolicyFile]) -> Vec<DeclaredParams> {
    let texts: Vec<Arc<PolicyFile>> = files.iter().cloned().map(Arc::new).collect();
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let trees = parse_all(&texts, &mut unread);
    let mut sources = sources_of(&trees);
    let built_in = built_in_sources(&trees, &sources);
    let more = parse_all(&built_in, &mut unread);
    sources.extend(sources_of(&more));
    for (file, tree) in trees.iter().chain(&more) {
        find_policies(file, tree, &sources, &mut found, &mut unread);
    }
    declared_by(&found, &owners(&found))
}

/// The parameters that each object declares, or its owner.
fn declared_by(found: &[FoundDocument<'_>], owners: &[Option<usize>]) -> Vec<DeclaredParams> {
    let entries = found.iter().zip(owners);
    entries
        .map(|(entry, owner)| entry.declared(owner.map(|owner| &found[owner])))
        .collect()
}
