//! What an API server refuses in a container, a volume or a pod spec, seen in its value alone. Names of other things in
//! the pod are looked up by the plan.
//! Source: `pkg/apis/core/validation/validation.go` of Kubernetes.

mod container;
mod handler;
mod pod;
mod volume;

use std::fmt;

use super::names::Rule;
use crate::yaml::value::{Path, Step};
use crate::yaml::view::View;

pub(crate) use container::Role;

/// Something that an API server refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// From the value that was looked at to what is wrong.
    pub path: Path,
    /// Whether an API server refuses it; otherwise it takes it, and nobody means it.
    pub is_refused: bool,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    /// Behind the name of what stands at the path: `must be ...`.
    Rule(String),
    Sentence(String),
}

impl Invalid {
    /// A sentence without a full stop; the value is called by its name.
    pub(crate) fn sentence(&self, name: impl FnOnce() -> String) -> String {
        match &self.what {
            What::Rule(rule) => format!("`{}` {rule}", name()),
            What::Sentence(sentence) => sentence.clone(),
        }
    }
}

/// All that is wrong in a container.
pub(crate) fn of_container(container: &View<'_>, role: Role) -> Vec<Invalid> {
    found(container, |checker, container| {
        checker.container(container, role)
    })
}

/// All that is wrong in fields that are to be filled into containers: `resources`, `securityContext`, `imagePullPolicy`.
pub(crate) fn of_container_fields(fields: &View<'_>) -> Vec<Invalid> {
    found(fields, Checker::container_fields)
}

/// All that is wrong in a volume.
pub(crate) fn of_volume(volume: &View<'_>) -> Vec<Invalid> {
    found(volume, Checker::volume)
}

/// All that is wrong in a VolumeMount.
pub(crate) fn of_volume_mount(mount: &View<'_>) -> Vec<Invalid> {
    found(mount, Checker::volume_mount)
}

/// All that is wrong in an EnvVar.
pub(crate) fn of_env_var(variable: &View<'_>) -> Vec<Invalid> {
    found(variable, Checker::env_var)
}

/// All that is wrong in an EnvFromSource.
pub(crate) fn of_env_from(source: &View<'_>) -> Vec<Invalid> {
    found(source, Checker::env_from)
}

/// All that is wrong in an entry of `imagePullSecrets`.
pub(crate) fn of_image_pull_secret(secret: &View<'_>) -> Vec<Invalid> {
    found(secret, Checker::object)
}

/// All that is wrong in a ContainerPort.
pub(crate) fn of_port(port: &View<'_>) -> Vec<Invalid> {
    found(port, Checker::port)
}

/// All that is wrong in the fields of a pod spec, containers and volumes aside.
pub(crate) fn of_pod_spec(spec: &View<'_>) -> Vec<Invalid> {
    found(spec, Checker::pod_spec)
}

/// All that is wrong in a pod's security context.
pub(crate) fn of_pod_security_context(context: &View<'_>) -> Vec<Invalid> {
    found(context, Checker::pod_security_context)
}

fn found<'v>(
    value: &'v View<'v>,
    check: impl FnOnce(&mut Checker<'v>, &'v View<'v>),
) -> Vec<Invalid> {
    let mut checker = Checker {
        at: Vec::new(),
        found: Vec::new(),
    };
    check(&mut checker, value);
    checker.found
}

/// A step of the way that is walked; made a [`Path`] only where something is wrong.
#[derive(Clone, Copy)]
enum At<'v> {
    Key(&'v str),
    Index(usize),
}

struct Checker<'v> {
    at: Vec<At<'v>>,
    found: Vec<Invalid>,
}

impl<'v> Checker<'v> {
    /// Looks at what stands under a key, if something does.
    fn under(
        &mut self,
        value: &'v View<'v>,
        key: &'static str,
        check: impl FnOnce(&mut Self, &'v View<'v>),
    ) {
        if let Some(inner) = value.get(key).filter(|inner| !inner.is_null()) {
            self.within(At::Key(key), |checker| check(checker, inner));
        }
    }

    /// Looks at every entry of the list under a key.
    fn each(
        &mut self,
        value: &'v View<'v>,
        key: &'static str,
        mut check: impl FnMut(&mut Self, &'v View<'v>),
    ) {
        self.under(value, key, |checker, list| {
            for (index, entry) in list.as_array().into_iter().flatten().enumerate() {
                checker.within(At::Index(index), |checker| check(checker, entry));
            }
        });
    }

    /// Looks at every field of the mapping under a key.
    fn fields(
        &mut self,
        value: &'v View<'v>,
        key: &'static str,
        mut check: impl FnMut(&mut Self, &'v str, &'v View<'v>),
    ) {
        self.under(value, key, |checker, map| {
            for (name, inner) in map.as_object().into_iter().flatten() {
                checker.within(At::Key(name), |checker| check(checker, name, inner));
            }
        });
    }

    fn within(&mut self, step: At<'v>, check: impl FnOnce(&mut Self)) {
        self.at.push(step);
        check(self);
        self.at.pop();
    }

    fn path(&self) -> Path {
        let step = |at: &At<'_>| match *at {
            At::Key(key) => Step::Key(key.to_owned()),
            At::Index(index) => Step::Index(index),
        };
        Path(self.at.iter().map(step).collect())
    }

    /// Of where the walk stands.
    fn add(&mut self, message: impl Into<String>) {
        let path = self.path();
        self.found.push(Invalid {
            path,
            is_refused: true,
            what: What::Sentence(message.into()),
        });
    }

    /// Of what an API server takes, and nobody means.
    fn advise(&mut self, message: impl Into<String>) {
        self.add(message);
        self.found.last_mut().expect("it was just added").is_refused = false;
    }

    /// Of where the walk stands, with its name: `port` must be ....
    fn must(&mut self, rule: impl Into<String>) {
        let path = self.path();
        self.found.push(Invalid {
            path,
            is_refused: true,
            what: What::Rule(rule.into()),
        });
    }

    fn rule(&mut self, rule: Rule) {
        if let Err(rule) = rule {
            self.must(rule);
        }
    }

    /// A text under a key, where there is one, keeps a rule.
    fn text(&mut self, value: &'v View<'v>, key: &'static str, check: impl FnOnce(&str) -> Rule) {
        self.under(value, key, |checker, text| {
            if let Some(text) = text.as_str() {
                checker.rule(check(text));
            }
        });
    }

    /// Texts in a list under a key keep a rule.
    fn texts(&mut self, value: &'v View<'v>, key: &'static str, check: impl Fn(&str) -> Rule) {
        self.each(value, key, |checker, text| {
            if let Some(text) = text.as_str() {
                checker.rule(check(text));
            }
        });
    }

    /// A text that must be there and not empty.
    fn needs_text(&mut self, value: &View<'_>, key: &str) {
        if is_empty(value.get(key)) {
            self.must(format!("needs `{key}`"));
        }
    }

    /// A text under a key, where there is one, is one of some words.
    fn word(&mut self, value: &'v View<'v>, key: &'static str, words: &[&str]) {
        self.under(value, key, |checker, word| {
            if let Some(word) = word.as_str().filter(|word| !words.contains(word)) {
                let words: Vec<&str> = words
                    .iter()
                    .copied()
                    .filter(|word| !word.is_empty())
                    .collect();
                checker.must(format!("must be one of {}, not `{word}`", words.join(", ")));
            }
        });
    }

    /// A number under a key, where there is one, is in a range.
    fn number(&mut self, value: &'v View<'v>, key: &'static str, (least, most): (i64, i64)) {
        self.under(value, key, |checker, number| {
            let Some(number) = number
                .as_i64()
                .filter(|number| !(least..=most).contains(number))
            else {
                return;
            };
            match most {
                i64::MAX => checker.must(format!("must be at least {least}, not {number}")),
                _ => checker.must(format!("must be between {least} and {most}, not {number}")),
            }
        });
    }

    /// Exactly one of some fields is there; which.
    fn one_of(
        &mut self,
        value: &'v View<'v>,
        keys: &[&'static str],
        what: impl fmt::Display,
    ) -> Option<&'static str> {
        let mut there = keys
            .iter()
            .copied()
            .filter(|key| value.get(key).is_some_and(|inner| !inner.is_null()));
        match (there.next(), there.next()) {
            (Some(only), None) => return Some(only),
            (Some(one), Some(other)) => {
                self.add(format!("{what} has several sources: {one}, {other}"))
            }
            (None, _) => self.add(format!("{what} needs one of {}", keys.join(", "))),
        }
        None
    }
}

/// A relative path that stays below where it begins.
fn check_descending(path: &str) -> Rule {
    if path.starts_with('/') {
        return Err("must be a relative path");
    }
    check_no_backsteps(path)
}

fn check_no_backsteps(path: &str) -> Rule {
    if path.split('/').any(|part| part == "..") {
        return Err("must not contain `..`");
    }
    Ok(())
}

fn is_empty(value: Option<&View<'_>>) -> bool {
    value.is_none_or(|value| value.is_null() || value.as_str() == Some(""))
}

#[cfg(test)]
mod tests;
