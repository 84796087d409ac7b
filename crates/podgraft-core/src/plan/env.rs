//! Plans changes of environment variables: set, append, prepend, merge, remove.
//! <https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/>

use serde_json::Value;
use std::sync::Arc;

use crate::change::{ChangeTarget, Join, JoinPlace, Operation, OriginalVariable};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Container;
use crate::manifest::references::references;
use crate::mask;
use crate::policy::{EnvChange, EnvOp, Injection, Position};
use crate::record::has_token;
use crate::yaml::value::field;

use super::containers::{DesiredItem, ListPlace, items_of};
use super::draft::DraftValue;
use super::env_from::EnvFromVariable;
use super::joined::joined;
use super::planner::{PlanResult, Planner};
use super::{order, reconcile};

pub(super) fn value_of(change: &EnvChange) -> Option<&str> {
    field(&change.item.value, "value").and_then(Value::as_str)
}

/// Whether a change joins blanks alone. They are no flag: no later run could find them again.
pub(super) fn joins_nothing(change: &EnvChange) -> bool {
    change.op.joins() && value_of(change).unwrap_or_default().trim().is_empty()
}

/// An entry of a policy, and the container whose variable it changes.
#[derive(Clone, Copy)]
pub(super) struct VariableChange<'v> {
    pub container: &'v Container<'v>,
    pub entry: &'v EnvChange,
}

impl<'v> VariableChange<'v> {
    /// The variables of the container.
    pub(super) fn list(self) -> ListPlace<'v> {
        ListPlace::OfContainer(self.container, "env")
    }

    /// The text of the policy.
    pub(super) fn addition(self) -> &'v str {
        value_of(self.entry).unwrap_or_default()
    }

    fn target(self) -> ChangeTarget {
        ChangeTarget::env(self.container.name, &self.entry.name)
    }
}

/// A variable of a container in the draft.
pub(super) struct DraftVariable {
    pub index: usize,
    pub part: DraftValue,
}

impl<'t> Planner<'_, 't> {
    pub(super) fn env(&mut self, change: VariableChange<'_>) -> PlanResult {
        let existing = self.variable(change);
        match (change.entry.op, existing) {
            (EnvOp::Remove, _) => self.remove_variables(change),
            (EnvOp::Set, None) => self.add_variable(change, change.entry.item.value.clone()),
            (EnvOp::SetIfAbsent, None) => self.add_if_absent(change),
            (EnvOp::SetIfAbsent, Some(_)) => {
                self.is_partial = true;
                Ok(())
            }
            (EnvOp::Set, Some(variable)) => self.set_variable(change, &variable),
            _ if joins_nothing(change.entry) => Ok(()),
            (EnvOp::Append | EnvOp::Prepend | EnvOp::MergeKeys, None) => self.add_joined(change),
            (EnvOp::Append | EnvOp::Prepend | EnvOp::MergeKeys, Some(variable)) => {
                self.join(change, &variable)
            }
        }
    }

    /// The variable that an entry names. Of duplicates the last one, which takes effect.
    fn variable(&self, change: VariableChange<'_>) -> Option<DraftVariable> {
        let list = self.list_part(change.list())?;
        let mut found = self.draft.items_by(&list, "name", &change.entry.name);
        let (index, part) = found.pop()?;
        Some(DraftVariable { index, part })
    }

    fn set_variable(&mut self, change: VariableChange<'_>, variable: &DraftVariable) -> PlanResult {
        let wanted = DesiredItem {
            item: &change.entry.item,
            description: format_args!("{}: env {}", change.container.name, change.entry.name),
            list: change.list(),
        };
        let target = || change.target();
        self.same_or_replace(&variable.part, wanted, target, |planner| {
            // The variable keeps its place, which may be before those that its new value refers to.
            let value = value_of(change.entry).unwrap_or_default();
            planner.check_references(change, value, variable.index)?;
            let list = planner.open_list(change.list())?;
            let (draft, item) = (&mut planner.draft, &change.entry.item.value);
            Ok(reconcile::replace_item(draft, list, variable.index, item)?)
        })
    }

    /// Removes all variables of a name: a list may have it more than once.
    fn remove_variables(&mut self, change: VariableChange<'_>) -> PlanResult {
        let list = self.list_part(change.list());
        let positions = self.positions_of(list.as_ref(), &change.entry.name);
        if positions.is_empty() {
            return Ok(());
        }
        let list = self.open_list(change.list())?;
        for index in positions.into_iter().rev() {
            self.draft.remove(list, index)?;
        }
        self.report(Operation::Remove, || change.target());
        Ok(())
    }

    /// The entries that remove a variable which the container has.
    pub(super) fn removed_variables<'i>(
        &self,
        container: &Container<'_>,
        inject: &'i Injection,
    ) -> Vec<&'i EnvChange> {
        let removals = inject.env.iter().filter(|entry| entry.op == EnvOp::Remove);
        removals
            .filter(|&entry| self.variable(VariableChange { container, entry }).is_some())
            .collect()
    }

    /// Warns of texts that use `$(X)` where X was removed, and is not set again before them: Kubernetes then leaves
    /// `$(X)` as it is.
    pub(super) fn warn_of_users(&mut self, change: VariableChange<'_>) {
        let name = &change.entry.name;
        if self.options.brief {
            return;
        }
        let Some(part) = self.container_part(change.container) else {
            return;
        };
        if self.draft.get(&part, "envFrom").is_some() {
            return;
        }
        let value = self.draft.value(&part).unwrap_or_default();
        let is_called = |variable: &Value| variable.get("name").is_some_and(|own| own == name);
        let set_again = items_of(&value, "env").iter().position(is_called);
        let users = users_of(name, &value, set_again);
        if users.is_empty() {
            return;
        }
        let (again, help) = match set_again {
            None => (
                "",
                format!("set `{name}` in the policy, or change the variables that use it"),
            ),
            Some(_) => (
                " and sets it again after the variables that use it",
                format!(
                    "replace its value (`onConflict: Replace`), or set a `position` for `{name}`"
                ),
            ),
        };
        let message = format!(
            "policy `{}` removes `{name}`{again}, so `$({name})` in {} of container `{}` becomes \
             literal text",
            self.policy.identity,
            users.join(", "),
            change.container.name
        );
        let removed_at = self.policy.text.place(change.entry.item.at.clone());
        let warning = Diagnostic::warning(Code::OddResult, message)
            .at(
                self.workload.place(change.container.node),
                "in this container",
            )
            .at(removed_at, "removed by this");
        self.problems.push(warning.help(help));
    }

    /// Joins a text to a variable that `env` does not have. `envFrom` may bring it; otherwise the value that the image
    /// sets comes first, if the user has stated it.
    fn add_joined(&mut self, change: VariableChange<'_>) -> PlanResult {
        let hidden = self.find_in_sources(change);
        let (hidden, unknown) = hidden.map_err(|doubt| self.in_doubt(doubt, change.entry))?;
        self.warn_of_unknown_sources(change, &unknown);
        if let Some(EnvFromVariable { reference, text }) = hidden {
            return self.compose_hidden(change, reference, text.as_deref());
        }
        let addition = change.addition();
        let value = match self.value_in_image(change) {
            Some(value) => joined(value, addition, change.entry),
            None => {
                self.warn_of_hidden_env(change);
                addition.to_owned()
            }
        };
        let mut item = Arc::clone(&change.entry.item.value);
        if value_of(change.entry) != Some(&value) {
            Arc::make_mut(&mut item)["value"] = Value::String(value);
        }
        self.note_join(change);
        self.add_variable(change, item)
    }

    /// The value of the variable in the container's image, if the user has stated it.
    fn value_in_image(&self, change: VariableChange<'_>) -> Option<&str> {
        let mut in_images = self.options.image_env.iter();
        let (container, name) = (change.container.name, &change.entry.name);
        let stated = in_images.find(|env| env.container == container && env.name == *name);
        stated.map(|env| env.value.as_str())
    }

    fn warn_of_hidden_env(&mut self, change: VariableChange<'_>) {
        if self.options.brief || self.is_in_manifest(change) {
            return;
        }
        let name = &change.entry.name;
        let (policy, container_name) = (&self.policy.identity, change.container.name);
        let message = format!(
            "policy `{policy}` sets `{name}`, which the manifest does not set; this hides any \
             `{name}` that the image sets"
        );
        let words = self.options.image_env_words;
        let words = words.unwrap_or("use --image-env");
        let help = format!("if the image sets it, {words} {container_name}:{name}=VALUE");
        self.warn_of_hidden(change, message, help);
    }

    /// Whether the manifest has the variable, which a policy of this run has removed.
    fn is_in_manifest(&self, change: VariableChange<'_>) -> bool {
        let tree = self.workload.tree;
        let variables = tree.get(change.container.node, "env");
        let mut names = variables
            .into_iter()
            .flat_map(|variables| tree.items(variables))
            .filter_map(|variable| tree.scalar_at(variable, "name"));
        names.any(|name| name == change.entry.name)
    }

    /// Warns that a variable of the policy hides another.
    pub(super) fn warn_of_hidden(
        &mut self,
        change: VariableChange<'_>,
        message: String,
        help: String,
    ) {
        let set_at = self.policy.text.place(change.entry.item.at.clone());
        let label = format!("container `{}`", change.container.name);
        let warning = Diagnostic::warning(Code::HiddenEnv, message)
            .at(self.workload.place(change.container.node), label)
            .at(set_at, "set by this");
        self.problems.push(warning.help(help));
    }

    /// Adds a variable unless the image or a known object of `envFrom` brings it.
    fn add_if_absent(&mut self, change: VariableChange<'_>) -> PlanResult {
        if self.value_in_image(change).is_some() {
            self.is_partial = true;
            return Ok(());
        }
        let hidden = self.find_in_sources(change);
        match hidden.map_err(|doubt| self.in_doubt(doubt, change.entry))? {
            (Some(_), _) => {
                self.is_partial = true;
                Ok(())
            }
            (None, _) => self.add_variable(change, change.entry.item.value.clone()),
        }
    }

    fn join(&mut self, change: VariableChange<'_>, variable: &DraftVariable) -> PlanResult {
        let source = self.draft.get(&variable.part, "valueFrom");
        if source.is_some_and(|source| !self.draft.is_empty(&source)) {
            return self.compose(change, variable);
        }
        self.refuse_untyped(change, variable)?;
        let old = self.draft.text_at(&variable.part, "value");
        let old = old.unwrap_or_default();
        let addition = change.addition();
        let new = joined(&old, addition, change.entry);
        if new == old {
            // With `MergeKeys`, the keys may exist with other values. Then the policy's text is not in the variable.
            let (body, addition) = (old.trim_end_matches('\n'), addition);
            if has_token(
                body,
                addition.trim_end_matches('\n'),
                &change.entry.separator,
            ) {
                self.note_twin(change, &variable.part);
            }
            return Ok(());
        }
        self.check_references(change, &new, variable.index)?;
        let list = self.open_list(change.list())?;
        let item = self.draft.open_item(list, variable.index)?;
        self.draft
            .set(item, "value", Value::String(new), order::ENV_VAR)?;
        self.note_join(change);
        self.report_join(change, None);
        Ok(())
    }

    /// Refuses to join a text to what is no string: an API server accepts only strings as values.
    fn refuse_untyped(&self, change: VariableChange<'_>, variable: &DraftVariable) -> PlanResult {
        let value = self.draft.get(&variable.part, "value");
        let is_untyped = |value: &Value| !value.is_string() && !value.is_null();
        let is_refused =
            |part: &DraftValue| self.draft.value(part).as_ref().is_some_and(is_untyped);
        let Some(value) = value.filter(is_refused) else {
            return Ok(());
        };
        let message = format!(
            "the value of `{}` in container `{}` is not a string, so the API server rejects it",
            change.entry.name, change.container.name
        );
        let help = match self.draft.text(&value) {
            Some(text) => mask::quote_it(&change.entry.name, &text),
            None => "write a string, not a list or a mapping".to_owned(),
        };
        let place = match self.draft.origin(&value) {
            Some(node) => self.workload.place(node),
            None => self.workload.name_place(),
        };
        let policy_label = format!("policy `{}` adds to it", self.policy.identity);
        let problem = Diagnostic::error(Code::Invalid, message)
            .at(place, "here")
            .at(
                self.policy.text.place(change.entry.item.at.clone()),
                policy_label,
            );
        Err(problem.help(help).into())
    }

    fn add_variable(&mut self, change: VariableChange<'_>, item: Arc<Value>) -> PlanResult {
        let value = field(&item, "value")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let at = self.index_of_new(change, value)?;
        // Not behind one that had to go behind the variables that it refers to.
        let position = &change.entry.position;
        if *position != Position::Last
            && at == self.index_for(position, change.list(), &change.entry.item)?
        {
            self.note_inserted(change.list(), position, &change.entry.name);
        }
        let list = self.open_list(change.list())?;
        self.draft.insert(list, at, item);
        self.report(Operation::Add, || change.target());
        Ok(())
    }

    /// Reports how a text was joined to a variable. `original` is the variable that now has the old value, if that
    /// comes from elsewhere.
    pub(super) fn report_join(
        &mut self,
        change: VariableChange<'_>,
        original: Option<OriginalVariable>,
    ) {
        let place = match change.entry.op {
            EnvOp::Prepend => JoinPlace::Prepend,
            EnvOp::MergeKeys => JoinPlace::Merge,
            EnvOp::Set | EnvOp::SetIfAbsent | EnvOp::Append | EnvOp::Remove => JoinPlace::Append,
        };
        let join = Operation::Join(Join { place, original });
        self.report(join, || change.target());
    }

    fn positions_of(&self, env: Option<&DraftValue>, name: &str) -> Vec<usize> {
        let found = env.map_or_else(Vec::new, |env| self.draft.items_by(env, "name", name));
        found.into_iter().map(|(at, _)| at).collect()
    }

    /// The index of a new variable: its position in the policy, but behind all variables that it refers to.
    pub(super) fn index_of_new(
        &self,
        change: VariableChange<'_>,
        value: &str,
    ) -> PlanResult<usize> {
        let list = change.list();
        let at = self.index_for(&change.entry.position, list, &change.entry.item)?;
        let used = references(value);
        if used.is_empty() {
            return Ok(at);
        }
        let env = self.list_part(list);
        let used = used.into_iter();
        let needed = used.filter_map(|name| self.positions_of(env.as_ref(), name).last().copied());
        let needed = needed.max().map_or(0, |at| at + 1);
        let at = match change.entry.position {
            Position::First | Position::Last => at.max(needed),
            Position::Before(_) | Position::After(_) => at,
        };
        self.check_references(change, value, at)?;
        Ok(at)
    }

    /// Refuses references of the policy that Kubernetes would not expand at this index: `$(X)` needs X set before it,
    /// otherwise the program gets the literal text.
    pub(super) fn check_references(
        &self,
        change: VariableChange<'_>,
        value: &str,
        index: usize,
    ) -> PlanResult {
        let used = references(value);
        if used.is_empty() {
            return Ok(());
        }
        let list = self.list_part(change.list());
        let has_sources = self
            .container_part(change.container)
            .is_some_and(|part| self.draft.get(&part, "envFrom").is_some());
        let from_policy = value_of(change.entry).map(references).unwrap_or_default();
        for name in used.into_iter().filter(|name| from_policy.contains(name)) {
            let is_set = match self.positions_of(list.as_ref(), name).first() {
                Some(at) => *at < index,
                None => has_sources || is_service_variable(name),
            };
            if !is_set {
                let message = format!(
                    "`{}` uses `$({name})`, which is not set before it in container `{}`",
                    change.entry.name, change.container.name
                );
                let problem = self.problem(Code::Invalid, message, &change.entry.item);
                let how = self.how_to_set_before(change, list.as_ref(), name);
                let help = format!("{how}, or write `$$({name})` for the literal text");
                return Err(problem.help(help).into());
            }
        }
        Ok(())
    }

    /// The advice for a variable that uses another one, which is not set before it.
    fn how_to_set_before(
        &self,
        change: VariableChange<'_>,
        list: Option<&DraftValue>,
        used: &str,
    ) -> String {
        let name = &change.entry.name;
        if used == name {
            return format!("use `op: Append` to keep the value of `{name}`");
        }
        let is_new = self.positions_of(list, name).is_empty();
        let is_placed = !matches!(change.entry.position, Position::First | Position::Last);
        let found = list.map_or_else(Vec::new, |env| self.draft.items_by(env, "name", used));
        match found.first() {
            None => format!("set `{used}` before it"),
            Some(_) if is_new && is_placed => format!("remove the `position` of `{name}`"),
            Some((_, part)) if self.draft.origin(part).is_some() => {
                format!("move `{used}` before it in the manifest")
            }
            Some(_) => format!("set a `position` for `{used}` that is before it"),
        }
    }
}

/// Whether a name is like those that the kubelet sets for every Service, such as `DB_SERVICE_HOST` and `DB_PORT`.
fn is_service_variable(name: &str) -> bool {
    name.contains("_SERVICE_") || name.contains("_PORT")
}

/// The users of `$(NAME)` in a container for a message: variables, then `command` and `args`, each in backticks. Where
/// the variable is set, these are only the variables before it.
fn users_of(name: &str, container: &Value, set_at: Option<usize>) -> Vec<String> {
    let uses = |text: &Value| references(text.as_str().unwrap_or_default()).contains(&name);
    let words = ["command", "args"].into_iter().filter(|_| set_at.is_none());
    let words = words.filter(|key| items_of(container, key).iter().any(uses));
    let variables = items_of(container, "env").iter();
    let variables = variables
        .take(set_at.unwrap_or(usize::MAX))
        .filter(|variable| variable.get("value").is_some_and(uses))
        .filter_map(|variable| variable.get("name")?.as_str());
    let users = variables.chain(words);
    users.map(|user| format!("`{user}`")).collect()
}
