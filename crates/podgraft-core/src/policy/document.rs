//! An object of a policy file: its value, and the place in the file for each path in the value.

use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;

use super::PolicyFile;
use super::expression::ExpressionResult;
use super::names::RuleCheck;
pub(crate) use super::places::Places;
use super::places::StoredPlaces;
use super::replacement::{ItemMoves, put_all};
use super::schema::{Schema, SchemaProblem, SchemaProblemKind, TemplateMode};
use super::template::{TemplateError, has_expression};
use super::unread::not_a_value;
use crate::diagnostic::{Code, Diagnostic};
use crate::mask;
use crate::source::Place;
use crate::wording;
use crate::yaml::tree::{NodeId, Tree};
use crate::yaml::value::{Path, Step, to_value};

/// The help for a key that cannot be written.
pub(crate) const KEY_LIMIT: &str =
    "a YAML key can have at most 1,024 characters, including quotes and escapes";

/// An object of a policy file.
#[derive(Debug, Clone)]
pub struct Document<'t> {
    /// The file.
    pub file: Arc<PolicyFile>,
    /// The places of the values in the file.
    pub places: Places<'t>,
    /// The object as JSON.
    pub value: Value,
}

impl<'t> Document<'t> {
    /// The object at a node of a parsed file.
    ///
    /// # Errors
    /// The node has no JSON value, or a key in it is too long to be written.
    pub fn of(
        file: &Arc<PolicyFile>,
        tree: &'t Tree<'t>,
        node: NodeId,
    ) -> Result<Self, Diagnostic> {
        let mut value = to_value(tree, node).map_err(|error| not_a_value(file, error))?;
        drop_empty_namespace(&mut value);
        let document = Document {
            file: Arc::clone(file),
            places: Places::Tree(tree, node),
            value,
        };
        if let Some(path) = Path::of_long_key(&document.value) {
            let problem = document.key_error(Code::TooLong, &path, "the key is too long");
            return Err(problem.help(KEY_LIMIT));
        }
        Ok(document)
    }
}

/// To Kubernetes, an empty namespace is none.
fn drop_empty_namespace(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let metadata = metadata.filter(|metadata| metadata.get("namespace") == Some(&Value::from("")));
    if let Some(metadata) = metadata {
        metadata.shift_remove("namespace");
    }
}

/// The problem of a document that is no policy. Its message names the subject as in a policy.
pub(crate) fn about(problem: Diagnostic, subject: &str) -> Diagnostic {
    let words = ["the policy", "the object"];
    let message = words.iter().fold(problem.message, |message, owner| {
        message.replace(owner, subject)
    });
    Diagnostic { message, ..problem }
}

/// A value of a policy and its places, kept after the tree of the file is gone.
#[derive(Debug)]
pub struct KeptValue {
    /// The path of the value in the policy.
    pub at: Path,
    /// The value.
    pub value: Value,
    file: Arc<PolicyFile>,
    places: Arc<StoredPlaces>,
}

impl KeptValue {
    /// The byte range of a part of the value, by its path in the policy.
    pub fn span(&self, path: &Path) -> Range<usize> {
        self.places.find(path).value
    }

    /// A document with nothing but this value, or one made of it, at its path. Indexes before it are padded with nulls.
    pub fn document(&self, value: Value) -> Document<'static> {
        let value = self
            .at
            .0
            .iter()
            .rev()
            .fold(value, |inner, step| match step {
                Step::Key(key) => Value::Object(Map::from_iter([(key.clone(), inner)])),
                Step::Index(index) => {
                    let mut entries = vec![Value::Null; *index];
                    entries.push(inner);
                    Value::Array(entries)
                }
            });
        Document {
            file: Arc::clone(&self.file),
            places: Places::Kept(Arc::clone(&self.places)),
            value,
        }
    }
}

impl Document<'_> {
    /// The string at a path of keys; `None` if there is another value or none.
    pub fn text(&self, keys: &[&str]) -> Option<&str> {
        Path::of(keys).get(&self.value)?.as_str()
    }

    /// `[Kind/][namespace/]name`; the kind is left out for `InjectionPolicy`.
    pub fn identity(&self) -> String {
        let kind = self
            .text(&["kind"])
            .filter(|&kind| kind != "InjectionPolicy");
        let name = self.text(&["metadata", "name"]).unwrap_or_default();
        let parts = [kind, self.text(&["metadata", "namespace"]), Some(name)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }

    /// The value at a path, kept with its places.
    pub fn keep(&self, at: &Path) -> Option<KeptValue> {
        let value = at.get(&self.value)?.clone();
        Some(KeptValue {
            places: self.places.keep(&value, at),
            at: at.clone(),
            value,
            file: Arc::clone(&self.file),
        })
    }

    /// The paths of the entries of the list at a path.
    pub fn entries(&self, list: &Path) -> Vec<Path> {
        let entries = list.get(&self.value).and_then(Value::as_array);
        let count = entries.map_or(0, Vec::len);
        (0..count).map(|index| list.index(index)).collect()
    }

    /// Those of the paths at which there is a value.
    pub fn existing(&self, paths: impl Iterator<Item = Path>) -> Vec<Path> {
        paths
            .filter(|path| path.get(&self.value).is_some())
            .collect()
    }

    /// The byte range of the value at a path.
    pub fn span(&self, path: &Path) -> Range<usize> {
        self.places.find(path).value
    }

    /// The place of the value at a path. If it is empty or missing, the place of its key.
    pub fn place(&self, path: &Path) -> Place {
        let found = self.places.find(path);
        match found.key {
            Some(key) if found.value.is_empty() => self.file.place(key),
            _ => self.file.place(found.value),
        }
    }

    /// The place of the key at the end of a path.
    pub(crate) fn key_place(&self, path: &Path) -> Place {
        let found = self.places.find(path);
        self.file.place(found.key.unwrap_or(found.value))
    }

    /// A scalar as written, without quotes and without type resolution: `1.10` stays `1.10`. `None` if it is not from
    /// the file.
    pub fn written(&self, path: &Path) -> Option<&str> {
        match &self.places {
            // The file has the item that was repeated, with the name of the loop in it.
            Places::Moved(moves, _) if moves.are_copies => path.get(&self.value)?.as_str(),
            Places::Tree(..) | Places::Kept(_) | Places::Moved(..) | Places::OfResource(_) => {
                self.places.written(path)
            }
        }
    }

    /// The name of the variable whose value is at a path, or the key.
    fn name_of<'p>(&'p self, path: &'p Path) -> &'p str {
        let Some((Step::Key(key), holder)) = path.0.split_last() else {
            return "";
        };
        let holder = Path(holder.to_vec());
        let name = holder
            .get(&self.value)
            .and_then(|holder| holder.get("name"));
        let name = name.and_then(Value::as_str).filter(|_| key == "value");
        name.unwrap_or(key)
    }

    /// An error at a value.
    pub fn error(&self, code: Code, path: &Path, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(self.place(path), "here")
    }

    /// An error at a key.
    pub(crate) fn key_error(
        &self,
        code: Code,
        path: &Path,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic::error(code, message).at(self.key_place(path), "here")
    }

    /// The error for a value that breaks a rule of Kubernetes; `None` if it keeps the rule.
    pub fn invalid(&self, path: &Path, rule: RuleCheck) -> Option<Diagnostic> {
        let message = format!("`{}` {}", self.places.name(path), rule.err()?);
        Some(self.invalid_value(path, message))
    }

    /// The error for a value that the API server rejects. The label says the value if the file has an expression for it.
    pub(crate) fn invalid_value(&self, path: &Path, message: impl Into<String>) -> Diagnostic {
        let place = self.place(path);
        let is_expression = has_expression(&place.excerpt[place.start..place.end]);
        let text = path.get(&self.value).and_then(Value::as_str);
        let label = match text.filter(|_| is_expression) {
            Some(text) => {
                let shown = mask::value(self.name_of(path), text);
                format!("this evaluates to `{}`", wording::brief(&shown))
            }
            None => "here".to_owned(),
        };
        Diagnostic::error(Code::Invalid, message).at(place, label)
    }

    /// The diagnostic for a schema problem.
    pub fn problem(&self, problem: &SchemaProblem) -> Diagnostic {
        let at_root = problem.path.0.is_empty();
        let message = if at_root {
            problem.message.replace("the object", "the policy")
        } else {
            problem.message.clone()
        };
        let diagnostic = match problem.kind {
            SchemaProblemKind::UnknownField => {
                self.key_error(Code::UnknownField, &problem.path, message)
            }
            SchemaProblemKind::WrongType
            | SchemaProblemKind::NoSuchWord
            | SchemaProblemKind::Unquoted => self.error(Code::WrongType, &problem.path, message),
            SchemaProblemKind::Missing => self.error(Code::BadPolicy, &problem.path, message),
        };
        let help = match (problem.kind, self.written(&problem.path)) {
            (SchemaProblemKind::Unquoted, Some(text)) => {
                Some(mask::quote_it(self.name_of(&problem.path), text))
            }
            _ => problem.help.clone(),
        };
        Diagnostic { help, ..diagnostic }
    }

    /// The diagnostics for schema problems.
    pub fn problems(&self, found: &[SchemaProblem]) -> Vec<Diagnostic> {
        found.iter().map(|problem| self.problem(problem)).collect()
    }

    /// The schema problems of the value at a path, if there is one.
    pub fn check(&self, schema: &Schema, at: &Path) -> Vec<SchemaProblem> {
        let value = at.get(&self.value);
        let found = value.map(|value| schema.check(value, TemplateMode::Filled));
        let found = found.into_iter().flatten();
        let placed = found.map(|problem| SchemaProblem {
            path: at.join(&problem.path),
            ..problem
        });
        placed.collect()
    }

    /// Writes the results of expressions to their paths. Returns how list items moved, and moves the places alike.
    pub fn put_all(&mut self, outcomes: Vec<(Path, ExpressionResult)>) -> ItemMoves {
        let moves = put_all(&mut self.value, outcomes);
        match &self.places {
            Places::OfResource(resource) => {
                self.places = Places::OfResource(Arc::new(resource.filled(&moves, &self.value)));
            }
            _ if moves.is_empty() => {}
            places => {
                let places = Box::new(places.clone());
                self.places = Places::Moved(Arc::new(moves.clone()), places);
            }
        }
        moves
    }

    /// Diagnostics for template errors.
    pub fn faults(&self, faults: Vec<TemplateError>) -> Vec<Diagnostic> {
        faults.into_iter().map(|fault| self.fault(fault)).collect()
    }

    /// Diagnostics for errors of the text at a path.
    pub fn faults_at(&self, faults: Vec<TemplateError>, path: &Path) -> Vec<Diagnostic> {
        let faults = faults.into_iter().map(|fault| fault.at(path));
        self.faults(faults.collect())
    }

    /// The diagnostic for a template error: at the variable that caused it, or at the text.
    pub fn fault(&self, fault: TemplateError) -> Diagnostic {
        let at = (self.span(&fault.path), "here");
        fault.into_diagnostic(&self.file, at)
    }
}
