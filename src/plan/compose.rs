//! Joins a text to a variable whose value comes from elsewhere (`valueFrom`): the variable is renamed, and a new one
//! with its old name refers to it and adds the text. A variable that refers to itself would reach the program as the
//! literal text `$(NAME)`, which stops a JVM (opentelemetry-operator#3463).

use serde_json::{Value, json};

use crate::change::OriginalVariable;
use crate::diagnostic::Code;
use crate::manifest::pod::Container;
use crate::policy::{EnvChange, EnvOp};
use crate::record::ORIGINAL;

use super::env::{DraftVariable, value_of};
use super::joined::joined;
use super::order;
use super::planner::{PlanResult, Planner};

impl Planner<'_, '_> {
    pub(super) fn compose(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        variable: &DraftVariable,
    ) -> PlanResult {
        let original = format!("{ORIGINAL}{}", change.name);
        self.check_composable(container, change, variable, &original)?;
        let value = joined(
            &format!("$({original})"),
            value_of(change).unwrap_or_default(),
            change,
        );
        self.check_references(container, change, &value, variable.index)?;
        let list = self.open_container_list(container, "env")?;
        let item = self.draft.open_item(list, variable.index)?;
        let name = Value::String(original.clone());
        self.draft.set(item, "name", name, order::ENV_VAR)?;
        self.draft.insert(
            list,
            variable.index + 1,
            json!({"name": change.name, "value": value}),
        );
        self.note_join(container, change);
        let original = OriginalVariable {
            name: original,
            is_of_env_from: false,
        };
        self.report_join(container, change, Some(original));
        Ok(())
    }

    /// Joins a text to a variable that comes from `envFrom`: a new variable reads its key, and one with the old name
    /// refers to that and adds the text.
    pub(super) fn compose_hidden(
        &mut self,
        container: &Container<'_>,
        change: &EnvChange,
        reference: Value,
        text: Option<&str>,
    ) -> PlanResult {
        let addition = value_of(change).unwrap_or_default();
        if text.is_some_and(|text| joined(text, addition, change) == text) {
            return Ok(());
        }
        let original = format!("{ORIGINAL}{}", change.name);
        self.check_joinable(container, change, &original, "`envFrom`")?;
        let value = joined(&format!("$({original})"), addition, change);
        let at = self.index_of_new(container, change, &value)?;
        let list = self.open_container_list(container, "env")?;
        self.draft
            .insert(list, at, json!({"name": original, "valueFrom": reference}));
        self.draft
            .insert(list, at + 1, json!({"name": change.name, "value": value}));
        let original = OriginalVariable {
            name: original,
            is_of_env_from: true,
        };
        self.report_join(container, change, Some(original));
        Ok(())
    }

    fn check_composable(
        &self,
        container: &Container<'_>,
        change: &EnvChange,
        variable: &DraftVariable,
        original: &str,
    ) -> PlanResult {
        self.check_joinable(container, change, original, "`valueFrom`")?;
        let source = self
            .draft
            .get(&variable.part, "valueFrom")
            .and_then(|source| self.draft.value(&source));
        let references = ["configMapKeyRef", "secretKeyRef"]
            .into_iter()
            .filter_map(|key| source.as_ref()?.get(key));
        let is_optional =
            |reference: &Value| reference.get("optional").and_then(Value::as_bool) == Some(true);
        if !references.into_iter().any(is_optional) {
            return Ok(());
        }
        let is_present = source
            .as_ref()
            .map_or(Ok(false), |source| self.has_key(source));
        if is_present.map_err(|doubt| self.in_doubt(doubt, change))? {
            return Ok(());
        }
        let message = format!(
            "`{}` of container `{}` comes from an optional key, and without the key the program would get the text \
             `$({original})`",
            change.name, container.name
        );
        let problem = self.problem(Code::CannotCompose, message, &change.item);
        let help = "give the file that has the key with `--context`, take `optional: true` out, or leave the container out";
        Err(problem.help(help).into())
    }

    fn check_joinable(
        &self,
        container: &Container<'_>,
        change: &EnvChange,
        original: &str,
        from: &str,
    ) -> PlanResult {
        let variable = format!("`{}` of container `{}`", change.name, container.name);
        let refuse = |message: String, help: &str| {
            let problem = self.problem(Code::CannotCompose, message, &change.item);
            Err(problem.help(help).into())
        };
        if change.op == EnvOp::MergeKeys {
            let message = format!(
                "{variable} comes from {from}, so its pairs cannot be compared with those to merge"
            );
            return refuse(
                message,
                "state its value in the manifest, or leave the container out",
            );
        }
        if self
            .variables(container)
            .iter()
            .any(|(_, name)| name.as_deref() == Some(original))
        {
            let message = format!("{variable} would become `{original}`, which is there already");
            return refuse(message, "take one of the two out");
        }
        Ok(())
    }
}
