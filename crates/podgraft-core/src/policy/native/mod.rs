//! Translates `podgraft.dev/v1alpha1 InjectionPolicy` to the internal [`Policy`]: checks it against the schema of its
//! types, fills in parameters, checks it again, and converts it.

mod chains;
pub mod checks;
mod checksums;
pub mod convert;
mod evaluate;
pub mod expand;
mod expressions;
mod for_each;
pub mod generate;
mod inject;
#[cfg(test)]
mod inject_schema;
mod inject_types;
mod limits;
mod patches;
mod rules;
mod select;
pub mod source;
pub mod types;
mod validations;

use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

use super::conversion::ConversionContext;
use super::document::Document;
use super::expression::PolicyVariable;
use super::schema::{Schema, TemplateMode};
use super::stored_schemas::INJECTION_POLICY;
use super::vocabulary::{SourceState, Vocabulary};
use super::{ConfigKey, Policy, names, params, template};
use crate::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use crate::yaml::value::Path;
use evaluate::PendingTemplates;
use expressions::ConditionSubject;
use source::PolicyInstance;
use types::{InjectionPolicy, Param};

/// The schema of an `InjectionPolicy`.
pub(crate) static SCHEMA: Schema = Schema::Stored(&INJECTION_POLICY, "InjectionPolicy");

/// The names of those of a policy's parameters for which something holds. Works for an invalid policy too.
pub(crate) fn declared(document: &Document<'_>, holds: impl Fn(&Value) -> bool) -> Vec<String> {
    let list = document.value.pointer("/spec/params");
    let params = list.and_then(Value::as_array).into_iter().flatten();
    let names = params.filter(|param| holds(param));
    names
        .filter_map(|param| Some(param.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// A policy in which everything that does not depend on a workload has been evaluated.
struct PreparedPolicy<'t> {
    document: Document<'t>,
    vocabulary: Vocabulary,
    variables: Vec<PolicyVariable>,
    unfilled: PendingTemplates,
    /// Warnings and notes of `validations`.
    warnings: Vec<Diagnostic>,
    /// `notes`, which are shown once the policy has changed a workload.
    effects: Vec<Diagnostic>,
}

/// Translates a policy, for a resource if it has `source`. Returns no policy if it has `source` and `instance` is
/// `None`: then it is only checked. The second value has warnings.
pub(crate) fn translate(
    document: Document<'_>,
    given: &ConversionContext<'_>,
    instance: Option<&PolicyInstance<'_, '_>>,
) -> Diagnosed<(Option<Policy>, Vec<Diagnostic>)> {
    let mut broken = Vec::new();
    let translated = translate_with(document, given, instance, &mut broken);
    if broken.is_empty() {
        return translated;
    }
    // A wrong field is reported once, preferably by its validation.
    let more = translated.err().unwrap_or_default();
    for problem in more {
        if !broken.iter().any(|known| known.place() == problem.place()) {
            broken.push(problem);
        }
    }
    Err(broken)
}

fn translate_with(
    document: Document<'_>,
    given: &ConversionContext<'_>,
    instance: Option<&PolicyInstance<'_, '_>>,
    broken: &mut Vec<Diagnostic>,
) -> Diagnosed<(Option<Policy>, Vec<Diagnostic>)> {
    let is_namespaced = source::is_namespaced(&document.value);
    let prepared = prepare(document, given, instance, broken)?;
    if prepared.vocabulary.source == SourceState::Unbound {
        let mut problems = source::check(&prepared.document);
        return none_of(&mut problems).map(|()| (None, prepared.warnings));
    }
    let document = prepared.document;
    let policy = InjectionPolicy::deserialize(&document.value);
    let policy = policy.map_err(|error| vec![unreadable(&document, &error)])?;
    let mut reader = PolicyReader::of(&document, prepared.vocabulary, prepared.unfilled);
    reader.variables = prepared.variables;
    let mut translated = reader.policy(policy);
    none_of(&mut reader.problems)?;
    translated.effects = prepared.effects;
    if let Some(instance) = instance {
        translated.identity = instance.document.identity();
        if is_namespaced {
            let namespace = instance.document.text(&["metadata", "namespace"]);
            translated.namespace = namespace.map(str::to_owned);
        }
    }
    Ok((Some(translated), prepared.warnings))
}

fn prepare<'t>(
    mut document: Document<'t>,
    given: &ConversionContext<'_>,
    instance: Option<&PolicyInstance<'_, 't>>,
    broken: &mut Vec<Diagnostic>,
) -> Diagnosed<PreparedPolicy<'t>> {
    limits::check(&document)?;
    let mut problems = check_words(&document);
    none_of(&mut problems)?;
    // Users cannot open the file of a built-in policy, so its problems are reported at the resource's fields.
    let of_builtin = instance.filter(|_| document.file.name.starts_with(BUILTIN));
    let mut vocabulary = read_params(&document, given, of_builtin, &mut problems)?;
    vocabulary.source = source_known(&document, instance);
    refuse_expressions_elsewhere(&document, &mut problems);
    let resources = instance.map(PolicyInstance::variables).into_iter();
    let resources: Vec<PolicyVariable> = resources.flatten().collect();
    let made = for_each::expand_loops(&mut document, &vocabulary, &resources, &mut problems);
    if let Some(instance) = of_builtin {
        document = instance.places_of(document, &made);
    }
    let mut variables = expressions::read_variables(&document, &mut vocabulary, &mut problems);
    variables.extend(resources);
    let context = validations::ValidationContext {
        document: &document,
        vocabulary: &vocabulary,
        variables: &variables,
        instance,
    };
    let (not_held, diagnostics) = by_error(context.validations());
    broken.extend(not_held);
    // An error of the resource would cause further errors wherever the policy uses it.
    if !broken.is_empty() && of_builtin.is_none() {
        return Err(problems);
    }
    let (not_noted, effects) = by_error(context.notes());
    problems.extend(not_noted);
    let unfilled = evaluate::fill_in(&mut document, &vocabulary, &variables, &mut problems);
    if !problems.is_empty() || vocabulary.source == SourceState::Unbound {
        expressions::check_conditions(&document, &vocabulary, &mut problems);
    }
    none_of(&mut problems)?;
    Ok(PreparedPolicy {
        document,
        vocabulary,
        variables,
        unfilled,
        warnings: diagnostics,
        effects,
    })
}

/// Reads the parameters and their values. Problems of a built-in policy's parameters are reported at the resource's
/// fields.
fn read_params<'t>(
    document: &Document<'t>,
    given: &ConversionContext<'_>,
    of_builtin: Option<&PolicyInstance<'_, 't>>,
    problems: &mut Vec<Diagnostic>,
) -> Diagnosed<Vocabulary> {
    let declared = document.value.pointer("/spec/params").cloned();
    let declared = declared.unwrap_or_else(|| Value::Array(Vec::new()));
    let declared: Vec<Param> =
        serde_json::from_value(declared).map_err(|error| unreadable_params(document, &error))?;
    let params = match of_builtin {
        Some(instance) => {
            let shown = instance.places_of(document.clone(), &[]);
            let params = params::values(&shown, &declared, given, problems);
            none_of(problems)?;
            params
        }
        None => params::values(document, &declared, given, problems),
    };
    // Without a value and required: reported once here, not again at each use.
    let is_open = |param: &&Param| param.required && params.get(&param.name) == Some(&None);
    let open = declared.iter().filter(is_open);
    let open = open.map(|param| param.name.clone()).collect();
    Ok(Vocabulary {
        params,
        open,
        ..Vocabulary::default()
    })
}

/// The prefix of the file names of built-in policies.
const BUILTIN: &str = "builtin:";

/// The fields of a policy that select workloads and containers.
const FILTER_FIELDS: [&str; 8] = [
    "suspend",
    "requires",
    "match",
    "exclude",
    "containers",
    "optIn",
    "optOut",
    "leaveAlone",
];

/// Splits into errors, and warnings and notes.
fn by_error(problems: Vec<Diagnostic>) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
    problems.into_iter().partition(Diagnostic::is_error)
}

fn source_known(document: &Document<'_>, instance: Option<&PolicyInstance<'_, '_>>) -> SourceState {
    match (source::kind_of(&document.value), instance) {
        (None, _) => SourceState::NoSource,
        (Some(_), None) => SourceState::Unbound,
        (Some(_), Some(_)) => SourceState::Bound,
    }
}

fn none_of(problems: &mut Vec<Diagnostic>) -> Diagnosed {
    unless(std::mem::take(problems), ())
}

fn check_words(document: &Document<'_>) -> Vec<Diagnostic> {
    document.problems(&SCHEMA.check(&document.value, TemplateMode::Allowed))
}

/// Refuses `${...}` outside of `inject` and `generate`. As a glob or name it would silently match nothing. In a policy
/// for resources, the filters may have it.
fn refuse_expressions_elsewhere(document: &Document<'_>, problems: &mut Vec<Diagnostic>) {
    let is_for_resources = source::kind_of(&document.value).is_some();
    let holders = rules::holders(document).into_iter();
    let holders = holders.filter(|_| !is_for_resources);
    let paths = holders.flat_map(|holder| FILTER_FIELDS.map(|word| holder.key(word)));
    let paths = paths.chain(patches::no_values(document));
    let names = generate::names_of_containers(document);
    for path in [Path::of(&["metadata"])].into_iter().chain(paths) {
        let texts = path.get(&document.value);
        let texts = texts.map(|value| template::texts(value, &path));
        for (path, _) in texts.into_iter().flatten() {
            if names.iter().any(|allowed| path.starts_with(allowed)) {
                continue;
            }
            let message = format!(
                "`{}` cannot contain `${{...}}`; only values under `inject` and `generate` can",
                path.name()
            );
            let problem = document.error(Code::BadExpression, &path, message);
            problems.push(problem.help("write the value itself"));
        }
    }
}

/// The error for a value that passes the schema but not the type, such as a number out of range.
fn unreadable(document: &Document<'_>, error: &serde_json::Error) -> Diagnostic {
    document.error(
        Code::WrongType,
        &Path::default(),
        format!("the policy is not valid: {error}"),
    )
}

/// The errors for parameters that pass the schema only because `${...}` could have any value.
fn unreadable_params(document: &Document<'_>, error: &serde_json::Error) -> Vec<Diagnostic> {
    let params = Path::of(&["spec", "params"]);
    let mut problems = SCHEMA.check(&document.value, TemplateMode::Filled);
    problems.retain(|problem| problem.path.starts_with(&params));
    match problems.is_empty() {
        true => vec![unreadable(document, error)],
        false => document.problems(&problems),
    }
}

/// Converts a checked policy to the internal type and collects problems.
struct PolicyReader<'d, 't> {
    document: &'d Document<'t>,
    problems: Vec<Diagnostic>,
    vocabulary: Vocabulary,
    variables: Vec<PolicyVariable>,
    /// The templates that are not evaluated yet.
    unfilled: PendingTemplates,
    /// The entries of `inject` with such templates. They are skipped here and read once the workload is known.
    pending_entries: Vec<Path>,
}

impl<'d, 't> PolicyReader<'d, 't> {
    fn of(document: &'d Document<'t>, vocabulary: Vocabulary, unfilled: PendingTemplates) -> Self {
        let waiting = unfilled.templates.iter();
        let left_out = waiting
            .map(|(path, _)| expand::entry_of(path, &rules::injects(document)))
            .collect();
        PolicyReader {
            document,
            problems: Vec::new(),
            vocabulary,
            variables: Vec::new(),
            unfilled,
            pending_entries: left_out,
        }
    }

    fn config_keys(&self, requires: Vec<types::RequiredKey>) -> Vec<ConfigKey> {
        let list = Path::of(&["spec", "requires"]);
        let requires = requires.into_iter().enumerate();
        let keys = requires.map(|(index, required)| ConfigKey {
            name: required.config_map,
            key: required.key,
            at: self.document.span(&list.index(index)),
        });
        keys.collect()
    }

    fn policy(&mut self, policy: InjectionPolicy) -> Policy {
        let spec = policy.spec;
        let problems = source::check_names(self.document, &self.document.value);
        self.problems.extend(problems);
        let at = Path::of(&["spec"]);
        let selects = self.filter(&spec.r#match.unwrap_or_default(), &at.key("match"));
        let excludes = self.filters(&spec.exclude, &at.key("exclude"));
        let opt_in = self.opt(spec.opt_in, ["true", "enabled"], &at.key("optIn"));
        let opt_out = self.opt(spec.opt_out, ["false", "disabled"], &at.key("optOut"));
        let leave_alone = self.leave_alone(&spec.leave_alone, &at.key("leaveAlone"));
        let containers = self.containers(&spec.containers, &at.key("containers"));
        let match_conditions = self.conditions(
            spec.match_conditions,
            ConditionSubject::Workload,
            &at.key("matchConditions"),
        );
        let generate = self.generate(spec.generate);
        let config_keys = self.config_keys(spec.requires);
        // A suspended policy may have no rules: `forEach` over an empty list leaves none and suspends it.
        let rules = match self.document.value.pointer("/spec/rules") {
            None if spec.suspend && spec.inject.is_none() => Vec::new(),
            Some(_) if spec.suspend && spec.rules.is_empty() => Vec::new(),
            Some(_) => self.rules(spec.rules, &at),
            None => vec![self.only_rule(containers, spec.on_conflict, &at)],
        };
        Policy {
            namespace: policy.metadata.namespace,
            description: spec.description,
            weight: spec.weight,
            suspend: spec.suspend,
            failure_policy: spec.failure_policy,
            selects,
            excludes,
            opt_in,
            opt_out,
            match_conditions,
            params: std::mem::take(&mut self.vocabulary.params),
            open_params: std::mem::take(&mut self.vocabulary.open),
            variables: std::mem::take(&mut self.variables),
            looks_up: self.vocabulary.looked_up(),
            rules,
            apply_rules: spec.apply_rules,
            generate,
            leave_alone,
            alone_among: spec.alone_among.map(Into::into),
            config_keys,
            identity: self.document.identity(),
            text: Arc::clone(&self.document.file),
            ..Policy::default()
        }
    }

    /// Reports a value that breaks a rule of Kubernetes.
    fn report_invalid(&mut self, path: &Path, rule: names::RuleCheck) {
        self.problems.extend(self.document.invalid(path, rule));
    }

    /// Reports an inconsistency in the policy.
    fn report_error(&mut self, path: &Path, message: impl Into<String>, help: &str) {
        self.problems.push(
            self.document
                .error(Code::BadPolicy, path, message)
                .help(help),
        );
    }
}
