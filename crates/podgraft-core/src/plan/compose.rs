//! Joins a text to a variable whose value comes from elsewhere (`valueFrom`): the variable is renamed, and a new one
//! with its old name refers to it and adds the text. A variable that refers to itself would reach the program as the
//! literal text `$(NAME)`, which stops a JVM (opentelemetry-operator#3463).

use serde_json::{Value, json};

use crate::change::OriginalVariable;
use crate::diagnostic::Code;
use crate::policy::EnvOp;
use crate::record::ORIGINAL;

use super::env::{DraftVariable, VariableChange};
use super::joined::joined;
use super::order;
use super::planner::{PlanResult, Planner};

impl Planner<'_, '_> {
    pub(super) fn compose(
        &mut self,
        change: VariableChange<'_>,
        variable: &DraftVariable,
    ) -> PlanResult {
        let original = format!("{ORIGINAL}{}", change.entry.name);
        self.check_composable(change, variable, &original)?;
        let value = joined(&format!("$({original})"), change.addition(), change.entry);
        self.check_references(change, &value, variable.index)?;
        let list = self.open_list(change.list())?;
        let item = self.draft.open_item(list, variable.index)?;
        let name = Value::String(original.clone());
        self.draft.set(item, "name", name, order::ENV_VAR)?;
        self.draft.insert(
            list,
            variable.index + 1,
            json!({"name": change.entry.name, "value": value}),
        );
        self.note_join(change);
        let original = OriginalVariable {
            name: original,
            is_of_env_from: false,
        };
        self.report_join(change, Some(original));
        Ok(())
    }

    /// Joins a text to a variable that comes from `envFrom`: a new variable reads its key, and one with the old name
    /// refers to that and adds the text.
    pub(super) fn compose_hidden(
        &mut self,
        change: VariableChange<'_>,
        reference: Value,
        text: Option<&str>,
    ) -> PlanResult {
        let addition = change.addition();
        if text.is_some_and(|text| joined(text, addition, change.entry) == text) {
            return Ok(());
        }
        let original = format!("{ORIGINAL}{}", change.entry.name);
        self.check_joinable(change, &original, "`envFrom`")?;
        let value = joined(&format!("$({original})"), addition, change.entry);
        let at = self.index_of_new(change, &value)?;
        let list = self.open_list(change.list())?;
        self.draft
            .insert(list, at, json!({"name": original, "valueFrom": reference}));
        self.draft.insert(
            list,
            at + 1,
            json!({"name": change.entry.name, "value": value}),
        );
        let original = OriginalVariable {
            name: original,
            is_of_env_from: true,
        };
        self.report_join(change, Some(original));
        Ok(())
    }

    fn check_composable(
        &self,
        change: VariableChange<'_>,
        variable: &DraftVariable,
        original: &str,
    ) -> PlanResult {
        self.check_joinable(change, original, "`valueFrom`")?;
        let source = self.draft.get(&variable.part, "valueFrom");
        let source = source.and_then(|source| self.draft.value(&source));
        let source = source.unwrap_or_default();
        let mut references = ["configMapKeyRef", "secretKeyRef"].into_iter();
        if !references.any(|key| source[key]["optional"] == true) {
            return Ok(());
        }
        let is_present = self.has_key(&source);
        if is_present.map_err(|doubt| self.in_doubt(doubt, change.entry))? {
            return Ok(());
        }
        let message = format!(
            "`{}` of container `{}` comes from an optional key; without the key, the program would \
             get the literal text `$({original})`",
            change.entry.name, change.container.name
        );
        let problem = self.problem(Code::CannotCompose, message, &change.entry.item);
        let help = "pass the file that contains the key with `--context`, remove `optional: true`, \
                    or exclude the container";
        Err(problem.help(help).into())
    }

    fn check_joinable(&self, change: VariableChange<'_>, original: &str, from: &str) -> PlanResult {
        let (name, container) = (&change.entry.name, change.container.name);
        let variable = format!("`{name}` of container `{container}`");
        let refuse = |message: String, help: &str| {
            let problem = self.problem(Code::CannotCompose, message, &change.entry.item);
            Err(problem.help(help).into())
        };
        if change.entry.op == EnvOp::MergeKeys {
            let message = format!(
                "{variable} comes from {from}, so its pairs are unknown and cannot be merged"
            );
            let help = "set its value in the manifest, or exclude the container";
            return refuse(message, help);
        }
        let list = self.list_part(change.list());
        if self.position_by(list.as_ref(), "name", original).is_some() {
            let message =
                format!("{variable} would be renamed to `{original}`, which already exists");
            return refuse(message, "remove one of the two");
        }
        Ok(())
    }
}
