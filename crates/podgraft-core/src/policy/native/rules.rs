//! Reads `rules`, or `inject` as the only rule. Each rule selects workloads and containers and says what they get.

use serde_json::Value;
use std::ops::Range;

use super::PolicyReader;
use super::expressions::ConditionSubject;
use super::types::{OnConflict, RuleEntry};
use crate::diagnostic::Code;
use crate::policy::document::Document;
use crate::policy::{ContainerChoice, Rule};
use crate::yaml::value::Path;

/// The paths of what may have `inject` and filters: each rule, and `spec`.
pub(super) fn holders(document: &Document<'_>) -> Vec<Path> {
    let mut holders = document.entries(&Path::of(&["spec", "rules"]));
    holders.push(Path::of(&["spec"]));
    holders
}

/// The paths of every `inject`, in rules and at the top.
pub(super) fn injects(document: &Document<'_>) -> Vec<Path> {
    let holders = holders(document).into_iter();
    document.existing(holders.map(|holder| holder.key("inject")))
}

impl PolicyReader<'_, '_> {
    /// The rule of a policy with `inject` at the top. The policy's own filters apply, so the rule has none.
    pub(super) fn only_rule(
        &mut self,
        containers: ContainerChoice,
        on_conflict: OnConflict,
        spec: &Path,
    ) -> Rule {
        let at = spec.key("inject");
        self.check_injects_something(&at, "the policy");
        Rule {
            name_part: self.name_part(&Path::of(&["spec", "match"])),
            containers,
            on_conflict,
            inject: self.inject(&at),
            template: self.template(&at),
            ..Rule::default()
        }
    }

    pub(super) fn rules(&mut self, rules: Vec<RuleEntry>, spec: &Path) -> Vec<Rule> {
        let rules_at = spec.key("rules");
        if rules.is_empty() {
            self.report_error(
                &rules_at,
                "the policy has no rules",
                "add one, or use `inject` instead",
            );
        }
        for word in ["inject", "containers", "onConflict"] {
            let at = spec.key(word);
            if at.get(&self.document.value).is_some() {
                let message = format!("`{word}` cannot be used together with `rules`");
                let problem = self.document.key_error(Code::BadPolicy, &at, message);
                self.problems
                    .push(problem.help(format!("move `{word}` into each rule")));
            }
        }
        (0..)
            .zip(rules)
            .map(|(index, rule)| self.rule_entry(rule, &rules_at.index(index)))
            .collect()
    }

    fn rule_entry(&mut self, rule: RuleEntry, at: &Path) -> Rule {
        let entry = self.document.places.field_of_resource(at);
        let entry = entry.filter(|field| field.ends_with(']'));
        let name = entry.or(rule.name).unwrap_or_else(|| at.name());
        self.check_injects_something(&at.key("inject"), "the rule");
        Rule {
            name: Some(name),
            name_part: self.name_part(&at.key("match")),
            selects: self.filter(&rule.r#match.unwrap_or_default(), &at.key("match")),
            excludes: self.filters(&rule.exclude, &at.key("exclude")),
            match_conditions: self.conditions(
                rule.match_conditions,
                ConditionSubject::Workload,
                &at.key("matchConditions"),
            ),
            containers: self.containers(&rule.containers, &at.key("containers")),
            on_conflict: rule.on_conflict,
            inject: self.inject(&at.key("inject")),
            template: self.template(&at.key("inject")),
            ..Rule::default()
        }
    }

    /// The text of `nameContains` and its place; `None` if it is empty.
    fn name_part(&self, filter: &Path) -> Option<(String, Range<usize>)> {
        let at = filter.key("nameContains");
        let part = at.get(&self.document.value)?.as_str()?;
        (!part.is_empty()).then(|| (part.to_owned(), self.document.span(&at)))
    }

    fn check_injects_something(&mut self, at: &Path, subject: &str) {
        let inject = at.get(&self.document.value).and_then(Value::as_object);
        if inject.is_none_or(serde_json::Map::is_empty) {
            let problem =
                self.document
                    .key_error(Code::BadPolicy, at, format!("{subject} injects nothing"));
            self.problems.push(
                problem.help("add what to inject to `inject`, for example `env` or `sidecars`"),
            );
        }
    }
}
