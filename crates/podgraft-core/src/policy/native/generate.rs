//! Reads `generate`: whole objects that are written behind a workload.

use serde_json::Value;
use std::sync::Arc;

use super::evaluate::write_as_text;
use super::expressions::compile;
use super::{PolicyReader, rules, source, types};
use crate::diagnostic::{Code, Diagnosed, unless};
use crate::manifest::workload::group_of;
use crate::policy::GenerateEntry;
use crate::policy::document::{Document, KeptValue};
use crate::policy::expression::{Evaluator, Expression};
use crate::policy::names::{self, RuleCheck};
use crate::policy::objects::schema_of;
use crate::policy::replacement::ItemMoves;
use crate::policy::template::{Template, evaluate_all, has_expression};
use crate::yaml::value::Path;

/// An object of `generate`. Parts of it may depend on the workload.
#[derive(Debug)]
pub struct ResourceTemplate {
    /// The object with its constants filled in.
    object: KeptValue,
    templates: Vec<(Path, Template)>,
    /// The paths of values that were evaluated when the policy was read.
    evaluated: Vec<Path>,
}

impl ResourceTemplate {
    /// The object with `${...}` that depend on the workload unevaluated.
    pub(crate) fn unevaluated(&self) -> &Value {
        &self.object.value
    }
}

/// The paths of the `resource` fields of `generate`.
pub(super) fn resources(document: &Document<'_>) -> Vec<Path> {
    let list = Path::of(&["spec", "generate"]);
    let entries = document.entries(&list).into_iter();
    document.existing(entries.map(|entry| entry.key("resource")))
}

impl PolicyReader<'_, '_> {
    pub(super) fn generate(&mut self, entries: Vec<types::Companion>) -> Vec<GenerateEntry> {
        let list = Path::of(&["spec", "generate"]);
        let read =
            |(index, entry): (usize, types::Companion)| self.generated(&entry, &list.index(index));
        entries.into_iter().enumerate().filter_map(read).collect()
    }

    fn generated(&mut self, entry: &types::Companion, at: &Path) -> Option<GenerateEntry> {
        let when = match &entry.when {
            Some(text) => Some(self.condition_of(text, &at.key("when"))?),
            None => None,
        };
        let resource = at.key("resource");
        self.check_type(&resource)?;
        let is_within = |path: &Path| path.starts_with(&resource);
        let unfilled = self.unfilled.templates.iter();
        let unfilled = unfilled.filter(|(path, _)| is_within(path));
        let waiting: Vec<(Path, Template)> = unfilled.cloned().collect();
        let mut templates = waiting.iter();
        if let Some((path, _)) = templates.find(|(_, template)| template.uses().container) {
            let help = "use `containers.first`: an object is generated once per workload";
            self.report_error(
                path,
                "objects under `generate` cannot use `container`",
                help,
            );
        }
        let evaluated = self.unfilled.evaluated.iter();
        let evaluated = evaluated.filter(|path| is_within(path)).cloned().collect();
        let template = ResourceTemplate {
            object: self.document.keep(&resource)?,
            templates: waiting,
            evaluated,
        };
        if template.templates.is_empty()
            && let Err(found) = template.check(&mut template.document(), &ItemMoves::default())
        {
            self.problems.extend(found);
        }
        Some(GenerateEntry {
            at: self.document.span(at),
            when,
            resource: Arc::new(template),
        })
    }

    /// Checks that `apiVersion` and `kind` are constants of plain characters: a later run finds the generated object by
    /// these two, so every way to read a file must see the same text.
    fn check_type(&mut self, resource: &Path) -> Option<()> {
        for word in ["apiVersion", "kind"] {
            let path = resource.key(word);
            let text = path.get(&self.document.value).and_then(Value::as_str);
            let text = text.unwrap_or_default();
            let mut waiting = self.unfilled.templates.iter();
            if text.is_empty() || waiting.any(|(waiting, _)| *waiting == path) {
                let message = format!("the object must have a constant `{word}`");
                let help = "write the value itself: it cannot depend on the workload";
                self.report_error(&path, message, help);
                return None;
            }
            let is_known = |byte: u8| {
                byte.is_ascii_alphanumeric() || word == "apiVersion" && b"./-".contains(&byte)
            };
            if !text.bytes().all(is_known) {
                let message = format!("invalid `{word}`");
                let help = "use, for example, `v1` and `ConfigMap`, or `apps/v1` and `Deployment`";
                self.report_error(&path, message, help);
                return None;
            }
        }
        Some(())
    }

    fn condition_of(&mut self, text: &str, at: &Path) -> Option<Expression> {
        match compile(self.document, text, &self.vocabulary, at) {
            Ok(expression) if expression.uses.container => {
                let help = "use `containers.first`: an object is generated once per workload";
                self.report_error(at, "`when` cannot use `container`", help);
                None
            }
            Ok(expression) => Some(expression),
            Err(found) => {
                if has_expression(text) {
                    self.report_error(
                        at,
                        "`when` is a CEL expression, which does not need `${}`",
                        "write the expression without `${}`",
                    );
                } else {
                    self.problems.extend(found);
                }
                None
            }
        }
    }
}

impl ResourceTemplate {
    /// `apiVersion` and `kind`, such as `v1` and `ConfigMap`.
    pub(crate) fn type_of(&self) -> (&str, &str) {
        let text = |key: &str| self.object.value[key].as_str().unwrap_or_default();
        (text("apiVersion"), text("kind"))
    }

    /// Evaluates the object for one workload.
    ///
    /// # Errors
    /// All problems, with their places in the policy.
    pub fn expand(&self, evaluator: &Evaluator<'_>) -> Diagnosed<Value> {
        let mut document = self.document();
        let evaluated = evaluate_all(&self.templates, |template| template.evaluate(evaluator));
        let outcomes = evaluated.map_err(|faults| document.faults(faults))?;
        let moves = document.put_all(outcomes);
        self.check(&mut document, &moves)?;
        let object = self.object.at.get(&document.value);
        let object = object.expect("the document was made around it");
        Ok(object.clone())
    }

    /// The object at its path in an otherwise empty document.
    fn document(&self) -> Document<'static> {
        self.object.document(self.object.value.clone())
    }

    /// Checks the names, and the fields if the kind is built in. Evaluated values are written as strings where the
    /// schema wants a string.
    fn check(&self, document: &mut Document<'_>, moves: &ItemMoves) -> Diagnosed {
        let mut problems = Vec::new();
        let (api_version, kind) = self.type_of();
        let check_name: fn(&str) -> RuleCheck = match group_of(api_version) {
            "rbac.authorization.k8s.io" => names::check_path_segment,
            _ => names::check_dns_subdomain,
        };
        for (word, check) in [("name", check_name), ("namespace", names::check_dns_label)] {
            let path = self.object.at.key("metadata").key(word);
            match path.get(&document.value) {
                None if word == "namespace" => {}
                Some(Value::String(text)) => problems.extend(document.invalid(&path, check(text))),
                // The schema check reports a value of another type.
                Some(_) => {}
                None => {
                    let message = format!("missing field `{word}` in `metadata`");
                    problems.push(document.error(Code::BadPolicy, &path, message));
                }
            }
        }
        let (schema, of) = match schema_of(api_version, kind) {
            Some(schema) => (schema, self.object.at.clone()),
            None => (&source::METADATA, self.object.at.key("metadata")),
        };
        let evaluated: Vec<Path> = self
            .evaluated
            .iter()
            .chain(self.templates.iter().map(|(path, _)| path))
            .cloned()
            .collect();
        let unquoted = document.check(schema, &of);
        write_as_text(
            &mut document.value,
            &unquoted,
            &moves.all_new_paths(&evaluated),
        );
        problems.extend(document.problems(&document.check(schema, &of)));
        unless(problems, ())
    }
}

/// The paths below which `${...}` is evaluated: `inject`, objects of `generate` and names of containers. In a policy
/// for resources also the filters.
pub(super) fn template_roots(document: &Document<'_>) -> Vec<Path> {
    let places = rules::injects(document).into_iter();
    let places = places.chain(resources(document));
    let places = places.chain(filter_paths(document));
    places.chain(names_of_containers(document)).collect()
}

/// The paths of `containers.names` and `containers.excludeNames`, which may depend on the workload.
pub(super) fn names_of_containers(document: &Document<'_>) -> Vec<Path> {
    let holders = rules::holders(document).into_iter();
    let lists = holders.map(|holder| holder.key("containers"));
    document.existing(lists.flat_map(|list| ["names", "excludeNames"].map(|word| list.key(word))))
}

/// The paths of the filters of a policy for resources. Empty without `source`. They may depend on the resource, never
/// on the workload.
pub(super) fn filter_paths(document: &Document<'_>) -> Vec<Path> {
    if source::kind_of(&document.value).is_none() {
        return Vec::new();
    }
    let holders = rules::holders(document).into_iter();
    document.existing(holders.flat_map(|holder| super::FILTER_FIELDS.map(|word| holder.key(word))))
}
