//! Evaluates `validations` and `notes`: conditions on the resource and the parameters, with messages written by the
//! policy's author.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::expressions::compile;
use super::source::PolicyInstance;
use super::types::{Note, Validation, ValidationSeverity};
use crate::diagnostic::{self, Code, Diagnosed, Diagnostic};
use crate::policy::document::{Document, Places};
use crate::policy::expression::{Evaluator, ExpressionResult, NoFacts, PolicyVariable};
use crate::policy::template::{Template, as_text};
use crate::policy::vocabulary::Vocabulary;
use crate::wording::shell_word;
use crate::yaml::value::Path;

/// The context in which the validations of a policy are evaluated.
pub(super) struct ValidationContext<'a, 'i, 't> {
    pub document: &'a Document<'t>,
    pub vocabulary: &'a Vocabulary,
    pub variables: &'a [PolicyVariable],
    pub instance: Option<&'a PolicyInstance<'i, 't>>,
}

impl ValidationContext<'_, '_, '_> {
    /// Diagnostics of the validations that fail. If the policy needs a resource and has none, they are only compiled.
    pub(super) fn validations(&self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (at, entry) in self.entries::<Validation>("validations") {
            let expression = at.key("expression");
            let outcome = self
                .holds(&entry.expression, &expression)
                .and_then(|holds| {
                    let texts = [Some(entry.message.as_str()), entry.help.as_deref()];
                    self.filled_diagnostic(&at, texts, entry.code.as_deref(), holds == Some(false))
                });
            match outcome {
                Ok(None) => {}
                Ok(Some(problem)) => {
                    let problem = problem.with_severity(severity(entry.severity));
                    let problem = match self.instance {
                        Some(instance) => instance.diagnostic(problem, entry.path.as_deref()),
                        None => problem,
                    };
                    problems.push(match self.document.places {
                        // A built-in policy has no file that the user could open.
                        Places::OfResource(_) => problem,
                        _ => problem.at(self.document.place(&at), "reported by this validation"),
                    });
                }
                Err(found) => problems.extend(found),
            }
        }
        problems
    }

    /// The notes to show once something is injected, and errors in the notes themselves.
    pub(super) fn notes(&self) -> Vec<Diagnostic> {
        let mut notes = Vec::new();
        for (at, entry) in self.entries::<Note>("notes") {
            let when = entry.when.as_deref();
            let holds = when.map_or(Ok(Some(true)), |when| self.holds(when, &at.key("when")));
            let outcome = holds.and_then(|holds| {
                let texts = [Some(entry.message.as_str()), entry.help.as_deref()];
                self.filled_diagnostic(&at, texts, Some(&entry.code), holds == Some(true))
            });
            match outcome {
                Ok(note) => notes.extend(note.map(|note| self.as_note(note))),
                Err(found) => notes.extend(found),
            }
        }
        notes
    }

    fn as_note(&self, note: Diagnostic) -> Diagnostic {
        let name = Path::of(&["metadata", "name"]);
        let (document, by) = match self.instance {
            Some(instance) => (instance.document, "reported by this resource"),
            None => (self.document, "reported by this policy"),
        };
        let note = note.with_severity(diagnostic::Severity::Note);
        note.at(document.place(&name), by)
    }

    fn entries<T: DeserializeOwned>(&self, list: &str) -> Vec<(Path, T)> {
        let list = Path::of(&["spec", list]);
        let entries = list.get(&self.document.value).cloned().unwrap_or_default();
        let entries: Vec<T> = serde_json::from_value(entries).unwrap_or_default();
        let at = |(index, entry)| (list.index(index), entry);
        entries.into_iter().enumerate().map(at).collect()
    }

    /// Evaluates a condition; `None` if it cannot be evaluated yet, because the resource or a required parameter is not
    /// given.
    fn holds(&self, text: &str, at: &Path) -> Diagnosed<Option<bool>> {
        let expression = compile(self.document, text, self.vocabulary, at)?;
        if expression.uses.workload {
            let is_open = self.vocabulary.is_open() && !expression.names_workload();
            return self.unknown_or_refused(is_open, at);
        }
        let outcome = self.evaluator().evaluate(&expression);
        match outcome.map_err(|fault| self.document.faults_at(vec![fault], at))? {
            ExpressionResult::Value(Value::Bool(holds)) => Ok(Some(holds)),
            ExpressionResult::Value(_) | ExpressionResult::Absent => {
                let message = "the condition must evaluate to true or false";
                let problem = self.document.error(Code::BadExpression, at, message);
                Err(vec![problem.help("use a comparison")])
            }
        }
    }

    /// An error with its message and help filled in; `None` if `is_reported` is false. Templates are compiled in any
    /// case, so that their errors show.
    fn filled_diagnostic(
        &self,
        at: &Path,
        texts: [Option<&str>; 2],
        code: Option<&str>,
        is_reported: bool,
    ) -> Diagnosed<Option<Diagnostic>> {
        let Some(known) = code.map_or(Some(Code::Invalid), Code::find) else {
            let code = code.unwrap_or_default();
            let message = format!("there is no diagnostic code `{code}`");
            let problem = self
                .document
                .error(Code::BadPolicy, &at.key("code"), message);
            return Err(vec![problem.help(format!(
                "`podgraft explain {}` lists the codes",
                shell_word(code)
            ))]);
        };
        let mut filled = [None, None];
        for (index, key) in ["message", "help"].into_iter().enumerate() {
            if let Some(text) = texts[index] {
                filled[index] = self.text(text, &at.key(key), is_reported)?;
            }
        }
        let [Some(message), help] = filled else {
            return Ok(None);
        };
        Ok(Some(Diagnostic {
            help,
            ..Diagnostic::error(known, message)
        }))
    }

    /// Fills in a text; `None` if it need not be shown or cannot be evaluated yet. It is compiled in any case.
    fn text(&self, text: &str, at: &Path, is_said: bool) -> Diagnosed<Option<String>> {
        let template = Template::parse(text, self.vocabulary)
            .map_err(|faults| self.document.faults_at(faults, at))?;
        if template.uses().workload {
            return self.unknown_or_refused(self.vocabulary.is_open(), at);
        }
        if !is_said {
            return Ok(None);
        }
        let outcome = template.evaluate(&self.evaluator());
        match outcome.map_err(|fault| self.document.faults_at(vec![fault], at))? {
            ExpressionResult::Value(text) => Ok(Some(as_text(&text).unwrap_or_default())),
            ExpressionResult::Absent => Ok(Some(String::new())),
        }
    }

    fn evaluator(&self) -> Evaluator<'_> {
        Evaluator::new(&self.vocabulary.params, self.variables, &NoFacts)
    }

    /// What comes of an expression that waits for more than is given: for the workload, which is refused, unless it is
    /// the resource or a parameter that is open.
    fn unknown_or_refused<T>(&self, is_open: bool, at: &Path) -> Diagnosed<Option<T>> {
        if is_open {
            return Ok(None);
        }
        let message = "`validations` and `notes` can only use the resource and the parameters";
        let problem = self.document.error(Code::BadExpression, at, message);
        let help = "use `matchConditions` for conditions on the workload";
        Err(vec![problem.help(help)])
    }
}

fn severity(word: ValidationSeverity) -> diagnostic::Severity {
    match word {
        ValidationSeverity::Error => diagnostic::Severity::Error,
        ValidationSeverity::Warning => diagnostic::Severity::Warning,
        ValidationSeverity::Note => diagnostic::Severity::Note,
    }
}
