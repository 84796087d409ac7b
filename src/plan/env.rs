//! Plans changes of environment variables: set, append, prepend, merge, remove.
//! <https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/>

use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

use crate::change::{ChangeTarget, Join, JoinPlace, Operation, OriginalVariable};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Container;
use crate::policy::{EnvChange, EnvOp, Position};
use crate::record::has_token;

use super::containers::{DesiredItem, ListPlace};
use super::draft::DraftValue;
use super::env_from::EnvFromVariable;
use super::env_order::references;
use super::joined::joined;
use super::order;
use super::planner::{PlanResult, Planner};

pub(super) fn value_of(change: &EnvChange) -> Option<&str> {
    change.item.value.get("value").and_then(Value::as_str)
}

/// A variable of a container in the draft.
pub(super) struct DraftVariable {
    pub index: usize,
    pub part: DraftValue,
}

impl<'t> Planner<'_, 't> {
    pub(super) fn env(&mut self, container: &Container<'_>, change: &EnvChange) -> PlanResult {
        let existing = self.variable(container, &change.name);
        match (change.op, existing) {
            (EnvOp::Remove, None) => Ok(()),
            (EnvOp::Remove, Some(variable)) => {
                self.remove_variable(container, change, variable.index)?;
                // A list may have a name more than once: remove all of them.
                self.env(container, change)
            }
            (EnvOp::Set, None) => self.add_variable(container, change, change.item.value.clone()),
            (EnvOp::SetIfAbsent, None) => self.add_if_absent(container, change),
            (EnvOp::SetIfAbsent, Some(_)) => Ok(()),
            (EnvOp::Set, Some(variable)) => self.set_variable(container, change, &variable),
            (EnvOp::Append | EnvOp::Prepend | EnvOp::MergeKeys, None) => {
                self.add_joined(container, change)
            }
            (EnvOp::Append | EnvOp::Prepend | EnvOp::MergeKeys, Some(variable)) => {
                self.join(container, change, &variable)
            }
        }
    }

    pub(super) fn variables(
        &self,
        container: &Container<'_>,
    ) -> Vec<(DraftValue, Option<Cow<'t, str>>)> {
        self.items_by(self.env_list(container).as_ref(), "name")
    }

    fn env_list(&self, container: &Container<'_>) -> Option<DraftValue> {
        self.draft.get(&self.container_part(container)?, "env")
    }

    /// The variable of a name. Of duplicates the last one, which takes effect.
    fn variable(&self, container: &Container<'_>, name: &str) -> Option<DraftVariable> {
        let list = self.env_list(container)?;
        let index = *self.draft.positions_by(&list, "name", name).last()?;
        Some(DraftVariable {
            index,
            part: self.draft.item(&list, index)?,
        })
    }

    fn set_variable(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        variable: &DraftVariable,
    ) -> PlanResult {
        let wanted = DesiredItem {
            item: &change.item,
            description: format_args!("{}: env {}", container.name, change.name),
            list: ListPlace::OfContainer(container, "env"),
        };
        let target = || env_of(container, change);
        self.same_or_replace(&variable.part, wanted, target, |planner| {
            planner.replace_variable(container, change, variable)
        })
    }

    fn replace_variable(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        variable: &DraftVariable,
    ) -> PlanResult {
        let list = self.open_container_list(container, "env")?;
        let existing = self.draft.value(&variable.part).unwrap_or_default();
        let is_plain = existing
            .as_object()
            .is_some_and(|existing| existing.keys().all(|key| key == "name" || key == "value"));
        let item = &change.item.value;
        let replaced = match item.get("value") {
            // Only the value differs, so only the value is edited.
            Some(value) if is_plain => {
                let opened = self.draft.open_item(list, variable.index)?;
                self.draft
                    .set(opened, "value", value.clone(), order::ENV_VAR)
            }
            _ => self.draft.replace(list, variable.index, item.clone()),
        };
        Ok(replaced?)
    }

    fn remove_variable(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        index: usize,
    ) -> PlanResult {
        let list = self.open_container_list(container, "env")?;
        self.draft.remove(list, index)?;
        self.report(Operation::Remove, || env_of(container, change));
        self.done.dedup(); // of several variables of a name
        self.warn_of_users(container, change);
        Ok(())
    }

    /// Warns of texts that use `$(X)` when X is removed: Kubernetes then leaves `$(X)` as it is.
    fn warn_of_users(&mut self, container: &Container<'_>, change: &EnvChange) {
        let name = &change.name;
        let is_set_again =
            |candidate: &EnvChange| candidate.name == *name && candidate.op != EnvOp::Remove;
        let part = self.container_part(container);
        let value = part.and_then(|part| self.draft.value(&part));
        let value = value.unwrap_or_default();
        if !self.options.details
            || self.variable(container, name).is_some()
            || value.get("envFrom").is_some()
            || self.inject.env.iter().any(is_set_again)
        {
            return;
        }
        let users = users_of(name, &value);
        if users.is_empty() {
            return;
        }
        let message = format!(
            "policy `{}` removes `{name}`, and `$({name})` in {} of container `{}` becomes the text itself",
            self.policy.identity,
            users.join(", "),
            container.name
        );
        let warning = Diagnostic::warning(Code::OddResult, message)
            .at(self.workload.place(container.node), "in this container")
            .at(
                self.policy.text.place(change.item.at.clone()),
                "removed by this",
            )
            .help(format!(
                "set `{name}` in the policy, or change what uses it"
            ));
        self.problems.push(warning);
    }

    /// Joins a text to a variable that `env` does not have. `envFrom` may bring it; otherwise the value that the image
    /// sets comes first, if the user has stated it.
    fn add_joined(&mut self, container: &Container<'_>, change: &EnvChange) -> PlanResult {
        let hidden = self.find_in_sources(container, &change.name);
        let (hidden, unknown) = hidden.map_err(|doubt| self.in_doubt(doubt, change))?;
        self.warn_of_unknown_sources(container, change, unknown);
        if let EnvFromVariable::Key { reference, text } = hidden {
            return self.compose_hidden(container, change, reference, text.as_deref());
        }
        let in_image = self
            .options
            .image_env
            .iter()
            .find(|env| env.container == container.name && env.name == change.name);
        let addition = value_of(change).unwrap_or_default();
        let value = match in_image {
            Some(env) => joined(&env.value, addition, change),
            None => {
                self.warn_of_hidden_env(container, change);
                addition.to_owned()
            }
        };
        let mut item = Arc::clone(&change.item.value);
        if value_of(change) != Some(&value) {
            Arc::make_mut(&mut item)["value"] = Value::String(value);
        }
        self.note_join(container, change);
        self.add_variable(container, change, item)
    }

    fn warn_of_hidden_env(&mut self, container: &Container<'_>, change: &EnvChange) {
        if !self.options.details {
            return;
        }
        let name = &change.name;
        let message = format!(
            "policy `{}` sets `{name}` where the manifest has none, which hides a `{name}` that an image sets",
            self.policy.identity
        );
        let help = format!(
            "if an image sets it, say so: --image-env {}:{name}=VALUE",
            container.name
        );
        self.warn_of_hidden(container, change, message, help);
    }

    /// Warns that a variable of the policy hides another.
    pub(super) fn warn_of_hidden(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        message: String,
        help: String,
    ) {
        let warning = Diagnostic::warning(Code::HiddenEnv, message)
            .at(
                self.workload.place(container.node),
                format!("container `{}`", container.name),
            )
            .at(
                self.policy.text.place(change.item.at.clone()),
                "set by this",
            )
            .help(help);
        self.problems.push(warning);
    }

    /// Adds a variable unless a known object of `envFrom` brings it.
    fn add_if_absent(&mut self, container: &Container<'_>, change: &EnvChange) -> PlanResult {
        let hidden = self.find_in_sources(container, &change.name);
        match hidden.map_err(|doubt| self.in_doubt(doubt, change))? {
            (EnvFromVariable::Key { .. }, _) => Ok(()),
            (EnvFromVariable::Nowhere, _) => {
                self.add_variable(container, change, change.item.value.clone())
            }
        }
    }

    fn join(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        variable: &DraftVariable,
    ) -> PlanResult {
        let has_source = self
            .draft
            .get(&variable.part, "valueFrom")
            .is_some_and(|from| !self.draft.is_empty(&from));
        if has_source {
            return self.compose(container, change, variable);
        }
        self.refuse_untyped(container, change, variable)?;
        let old = self
            .draft
            .text_at(&variable.part, "value")
            .unwrap_or_default();
        let addition = value_of(change).unwrap_or_default();
        let new = joined(&old, addition, change);
        if new == old {
            // With `MergeKeys`, the keys may exist with other values. Then the policy's text is not in the variable.
            if has_token(
                old.trim_end_matches('\n'),
                addition.trim_end_matches('\n'),
                &change.separator,
            ) {
                self.note_twin(container, change, &variable.part, addition);
            }
            return Ok(());
        }
        self.check_references(container, change, &new, variable.index)?;
        let list = self.open_container_list(container, "env")?;
        let item = self.draft.open_item(list, variable.index)?;
        self.draft
            .set(item, "value", Value::String(new), order::ENV_VAR)?;
        self.note_join(container, change);
        self.report_join(container, change, None);
        Ok(())
    }

    /// Refuses to join a text to a number or a boolean: an API server accepts only strings as values.
    fn refuse_untyped(
        &self,
        container: &Container<'_>,
        change: &EnvChange,
        variable: &DraftVariable,
    ) -> PlanResult {
        let value = self.draft.get(&variable.part, "value");
        let Some(value) = value.filter(|value| {
            matches!(
                self.draft.value(value),
                Some(Value::Bool(_) | Value::Number(_))
            )
        }) else {
            return Ok(());
        };
        let message = format!(
            "the value of `{}` in container `{}` is no string, and an API server refuses it",
            change.name, container.name
        );
        let text = self.draft.text(&value).unwrap_or_default();
        let place = match self.draft.origin(&value) {
            Some(node) => self.workload.place(node),
            None => self.workload.name_place(),
        };
        let policy_label = format!("policy `{}` adds to it", self.policy.identity);
        let problem = Diagnostic::error(Code::Invalid, message)
            .at(place, "here")
            .at(self.policy.text.place(change.item.at.clone()), policy_label);
        Err(problem.help(format!("quote it: \"{text}\"")).into())
    }

    fn add_variable(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        item: Arc<Value>,
    ) -> PlanResult {
        let value = item
            .get("value")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let at = self.index_of_new(container, change, value)?;
        let list = self.open_container_list(container, "env")?;
        self.draft.insert(list, at, item);
        self.report(Operation::Add, || env_of(container, change));
        Ok(())
    }

    /// Reports how a text was joined to a variable. `original` is the variable that now has the old value, if that
    /// comes from elsewhere.
    pub(super) fn report_join(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        original: Option<OriginalVariable>,
    ) {
        let place = match change.op {
            EnvOp::Prepend => JoinPlace::Prepend,
            EnvOp::MergeKeys => JoinPlace::Merge,
            EnvOp::Set | EnvOp::SetIfAbsent | EnvOp::Append | EnvOp::Remove => JoinPlace::Append,
        };
        let join = Operation::Join(Join { place, original });
        self.report(join, || env_of(container, change));
    }

    fn positions_of(&self, env: Option<&DraftValue>, name: &str) -> Vec<usize> {
        env.map_or_else(Vec::new, |env| self.draft.positions_by(env, "name", name))
    }

    /// The index of a new variable: its position in the policy, but behind all variables that it refers to.
    pub(super) fn index_of_new(
        &self,
        container: &Container<'_>,
        change: &EnvChange,
        value: &str,
    ) -> PlanResult<usize> {
        let env = self.env_list(container);
        let list = ListPlace::OfContainer(container, "env");
        let at = self.index_for(&change.position, list, &change.item)?;
        let used = references(value).into_iter();
        let needed = used.filter_map(|name| self.positions_of(env.as_ref(), name).last().copied());
        let needed = needed.max().map_or(0, |at| at + 1);
        let at = match change.position {
            Position::First | Position::Last => at.max(needed),
            Position::Before(_) | Position::After(_) => at,
        };
        self.check_references(container, change, value, at)?;
        Ok(at)
    }

    /// Refuses references of the policy that Kubernetes would not expand at this index: `$(X)` needs X set before it,
    /// otherwise the program gets the literal text.
    pub(super) fn check_references(
        &self,
        container: &Container<'_>,
        change: &EnvChange,
        value: &str,
        index: usize,
    ) -> PlanResult {
        let used = references(value);
        if used.is_empty() {
            return Ok(());
        }
        let list = self.env_list(container);
        let has_sources = self
            .container_part(container)
            .is_some_and(|part| self.draft.get(&part, "envFrom").is_some());
        let from_policy = value_of(change).map(references).unwrap_or_default();
        for name in used.into_iter().filter(|name| from_policy.contains(name)) {
            let is_set = match self.positions_of(list.as_ref(), name).first() {
                Some(at) => *at < index,
                None => has_sources || is_service_variable(name),
            };
            if !is_set {
                let message = format!(
                    "`{}` uses `$({name})`, which is not set before it in container `{}`",
                    change.name, container.name
                );
                let problem = self.problem(Code::Invalid, message, &change.item);
                let help =
                    format!("set `{name}` before it, or write `$$({name})` for the text itself");
                return Err(problem.help(help).into());
            }
        }
        Ok(())
    }
}

/// Whether a name is like those that the kubelet sets for every Service, such as `DB_SERVICE_HOST` and `DB_PORT`.
fn is_service_variable(name: &str) -> bool {
    name.contains("_SERVICE_") || name.contains("_PORT")
}

fn env_of(container: &Container<'_>, change: &EnvChange) -> ChangeTarget {
    ChangeTarget::env(container.name, &change.name)
}

/// The users of `$(NAME)` in a container for a message: variables, then `command` and `args`, each in backticks.
fn users_of(name: &str, container: &Value) -> Vec<String> {
    let uses = |text: &Value| references(text.as_str().unwrap_or_default()).contains(&name);
    let list = |key: &str| {
        let list = container.get(key).and_then(Value::as_array);
        list.into_iter().flatten()
    };
    let words = ["command", "args"]
        .into_iter()
        .filter(|key| list(key).any(uses));
    let variables = list("env")
        .filter(|variable| variable.get("value").is_some_and(uses))
        .filter_map(|variable| variable.get("name")?.as_str());
    let users = variables.chain(words);
    users.map(|user| format!("`{user}`")).collect()
}
