//! Validates containers, volumes and pod specs as an API server does. Each value is checked by itself; references
//! between parts of a pod are checked by the plan. Source: `pkg/apis/core/validation/validation.go` of Kubernetes.

mod container;
mod handler;
mod pod;
mod volume;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use super::names::{RuleCheck, require};
use crate::yaml::value::{Path, Step};
use crate::yaml::view::View;

pub(crate) use container::ContainerRole;

/// A value that an API server refuses, or accepts although it is almost certainly a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValidationError {
    /// The path from the validated value to the wrong one.
    pub path: Path,
    /// The API server refuses the value. If false, it accepts the value, which is most likely a mistake.
    pub is_refused: bool,
    message: ValidationMessage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ValidationMessage {
    /// The end of a sentence that begins with the name of the field: `must be ...`.
    Rule(String),
    Sentence(String),
}

impl ValidationError {
    /// The message, without a full stop. `name` gives the name of the field at the path.
    pub(crate) fn sentence(&self, name: impl FnOnce() -> String) -> String {
        match &self.message {
            ValidationMessage::Rule(rule) => format!("`{}` {rule}", name()),
            ValidationMessage::Sentence(sentence) => sentence.clone(),
        }
    }
}

/// The errors that a check finds in a value.
pub(crate) fn check<'v>(
    value: &'v View<'v>,
    check: impl FnOnce(&mut Checker<'v>),
) -> Vec<ValidationError> {
    let mut checker = Checker {
        value,
        steps: Vec::new(),
        found: Vec::new(),
    };
    check(&mut checker);
    checker.found
}

/// A borrowed step of the current path. It is made a [`Path`] only for an error.
#[derive(Clone, Copy)]
enum PathStep<'v> {
    Key(&'v str),
    Index(usize),
}

/// Walks a value and collects errors at the current path.
pub(crate) struct Checker<'v> {
    /// The value at the current path.
    value: &'v View<'v>,
    steps: Vec<PathStep<'v>>,
    found: Vec<ValidationError>,
}

impl<'v> Checker<'v> {
    fn get(&self, key: &str) -> Option<&'v View<'v>> {
        self.value.get(key)
    }

    /// Whether there is a value at a key that is not null.
    fn is_stated(&self, key: &str) -> bool {
        self.get(key).is_some_and(|inner| !inner.is_null())
    }

    /// Whether there is nothing at a key but perhaps null or an empty text.
    fn is_empty(&self, key: &str) -> bool {
        let value = self.get(key);
        value.is_none_or(|value| value.is_null() || value.as_str() == Some(""))
    }

    fn is_true(&self, key: &str) -> bool {
        self.get(key) == Some(&View::Bool(true))
    }

    /// The text at a key; empty if there is none.
    fn text_at(&self, key: &str) -> &'v str {
        self.value.text(key)
    }

    /// The entries of the list at a key; none if there is no list.
    fn list(&self, key: &str) -> &'v [View<'v>] {
        self.value.list(key)
    }

    /// Visits the value at a key, unless it is absent or null.
    fn visit_key(&mut self, key: &'static str, check: impl FnOnce(&mut Self)) {
        if let Some(inner) = self.get(key).filter(|inner| !inner.is_null()) {
            self.visit_step(PathStep::Key(key), inner, check);
        }
    }

    /// Visits each entry of the list at a key.
    fn each(&mut self, key: &'static str, mut check: impl FnMut(&mut Self)) {
        self.visit_key(key, |checker| {
            let entries = checker.value.as_array().into_iter().flatten();
            for (index, entry) in entries.enumerate() {
                checker.visit_step(PathStep::Index(index), entry, &mut check);
            }
        });
    }

    /// Visits each entry of the list at a key. No two of them may have the same text at `name`.
    fn each_once(&mut self, key: &'static str, name: &str, check: impl Fn(&mut Self)) {
        let mut names = BTreeSet::new();
        self.each(key, |checker| {
            check(checker);
            if !names.insert(checker.get(name).and_then(View::as_str)) {
                checker.report_rule("is defined twice");
            }
        });
    }

    /// Visits each field of the mapping at a key.
    fn fields(&mut self, key: &'static str, mut check: impl FnMut(&mut Self, &'v str)) {
        self.visit_key(key, |checker| {
            for (name, inner) in checker.value.as_object().into_iter().flatten() {
                checker.visit_step(PathStep::Key(name), inner, |checker| check(checker, name));
            }
        });
    }

    fn visit_step(
        &mut self,
        step: PathStep<'v>,
        value: &'v View<'v>,
        check: impl FnOnce(&mut Self),
    ) {
        let outer = std::mem::replace(&mut self.value, value);
        self.steps.push(step);
        check(self);
        self.steps.pop();
        self.value = outer;
    }

    fn path(&self) -> Path {
        let step = |at: &PathStep<'_>| match *at {
            PathStep::Key(key) => Step::Key(key.to_owned()),
            PathStep::Index(index) => Step::Index(index),
        };
        Path(self.steps.iter().map(step).collect())
    }

    fn report(&mut self, message: ValidationMessage) {
        self.found.push(ValidationError {
            path: self.path(),
            is_refused: true,
            message,
        });
    }

    /// Adds an error with a whole sentence, at the current path.
    fn add(&mut self, message: impl Into<String>) {
        self.report(ValidationMessage::Sentence(message.into()));
    }

    /// Runs a check of values that the API server accepts, but that are most likely mistakes.
    fn likely_mistakes(&mut self, check: impl FnOnce(&mut Self)) {
        let before = self.found.len();
        check(self);
        for error in &mut self.found[before..] {
            error.is_refused = false;
        }
    }

    /// Adds an error that begins with the name of the current field, such as "`port` must be ...".
    fn report_rule(&mut self, rule: impl Into<String>) {
        self.report(ValidationMessage::Rule(rule.into()));
    }

    fn rule(&mut self, rule: RuleCheck) {
        if let Err(rule) = rule {
            self.report_rule(rule);
        }
    }

    /// Checks the text at a key, if there is one.
    fn text(&mut self, key: &'static str, check: impl FnOnce(&str) -> RuleCheck) {
        self.visit_key(key, |checker| checker.this_text(check));
    }

    /// Checks the text at a key by a rule that the API server leaves to others, such as the kubelet.
    fn likely_text(&mut self, key: &'static str, check: impl FnOnce(&str) -> RuleCheck) {
        self.likely_mistakes(|checker| checker.text_or_empty(key, check));
    }

    fn texts(&mut self, key: &'static str, check: impl Fn(&str) -> RuleCheck) {
        self.each(key, |checker| checker.this_text(&check));
    }

    fn this_text(&mut self, check: impl FnOnce(&str) -> RuleCheck) {
        if let Some(text) = self.value.as_str() {
            self.rule(check(text));
        }
    }

    fn text_or_empty(&mut self, key: &'static str, check: impl FnOnce(&str) -> RuleCheck) {
        self.text(key, |text| match text {
            "" => Ok(()),
            _ => check(text),
        });
    }

    /// Checks that the text at a key exists and is not empty.
    fn needs_text(&mut self, key: &str) {
        if self.is_empty(key) {
            self.report_rule(format!("must have `{key}`"));
        }
    }

    /// Checks the text at a key, which must exist and not be empty.
    fn required_text(&mut self, key: &'static str, check: impl FnOnce(&str) -> RuleCheck) {
        self.needs_text(key);
        self.text_or_empty(key, check);
    }

    /// Checks that the text at a key, if there is one, is one of `words`. An empty one is for fields with a default.
    fn word(&mut self, key: &'static str, words: &[&str]) {
        self.visit_key(key, |checker| checker.this_word(words));
    }

    fn this_word(&mut self, words: &[&str]) {
        let word = self.value.as_str();
        if let Some(word) = word.filter(|word| !words.contains(word)) {
            let words = words.iter().copied().filter(|word| !word.is_empty());
            let words = words.collect::<Vec<_>>().join(", ");
            self.report_rule(format!("must be one of {words}, not `{word}`"));
        }
    }

    /// Checks that the number at a key, if there is one, is in an inclusive range.
    fn number(&mut self, key: &'static str, range: RangeInclusive<i64>) {
        self.visit_key(key, |checker| checker.this_number(range));
    }

    fn this_number(&mut self, range: RangeInclusive<i64>) {
        let number = self.value.as_i64();
        let Some(number) = number.filter(|number| !range.contains(number)) else {
            return;
        };
        let (least, most) = range.into_inner();
        self.report_rule(match most {
            i64::MAX => format!("must be at least {least}, not {number}"),
            _ => format!("must be between {least} and {most}, not {number}"),
        });
    }

    /// Checks that exactly one of the keys exists, and returns it.
    fn one_of(
        &mut self,
        keys: &[&'static str],
        subject: impl fmt::Display,
    ) -> Option<&'static str> {
        let mut present = keys.iter().copied().filter(|key| self.is_stated(key));
        match (present.next(), present.next()) {
            (Some(only), None) => return Some(only),
            (Some(first), Some(second)) => self.add(format!(
                "{subject} can have only one of {first} and {second}"
            )),
            (None, _) => self.add(format!("{subject} must have one of {}", keys.join(", "))),
        }
        None
    }
}

/// Checks that a path is relative and has no `..` (`validateLocalDescendingPath` of Kubernetes).
fn check_descending(path: &str) -> RuleCheck {
    if path.starts_with('/') {
        return Err("must be a relative path");
    }
    check_no_backsteps(path)
}

fn check_no_backsteps(path: &str) -> RuleCheck {
    require(
        path.split('/').all(|part| part != ".."),
        "must not contain `..`",
    )
}
