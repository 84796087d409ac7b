//! Lists the variables, labels and annotations that a policy changes, as it is written: for all workloads the same.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use crate::change::MetadataOwner;

use super::template::has_expression;
use super::{EnvChange, EnvOp, Injection, InjectionTemplate, OnConflict, Policy, Rule};

/// The fields of `inject` with labels and annotations.
const TEXT_FIELDS: [&str; 4] = ["podAnnotations", "podLabels", "annotations", "labels"];

/// One change of a variable, a label or an annotation.
#[derive(Debug, Clone)]
pub(crate) struct ChangedText {
    /// The field of `inject`.
    pub field: &'static str,
    /// The name of the variable, or the key.
    pub name: String,
    /// The kind of change.
    pub op: EnvOp,
    /// The text between the current value and the new one, if it joins them.
    pub separator: String,
    /// What its rule does if another value exists.
    pub on_conflict: OnConflict,
    /// Its byte range in the policy's file.
    pub at: Range<usize>,
}

/// What a policy changes.
#[derive(Debug, Clone)]
pub(crate) struct ChangedTexts {
    /// The changes of all rules in order, without those whose names are expressions.
    pub all: Vec<ChangedText>,
    /// The place of the first that changes one again, by another operation, or by replacing what was set.
    pub again: Option<Range<usize>>,
}

impl Policy {
    /// The variables, labels and annotations that the policy changes.
    pub(crate) fn changed_texts(&self) -> &ChangedTexts {
        self.changed_texts.get_or_init(|| {
            let texts = self.rules.iter().flat_map(|rule| match &rule.template {
                Some(template) => of_template(rule, template),
                None => of_injection(rule, &rule.inject),
            });
            let all: Vec<ChangedText> = texts.collect();
            let again = changed_again(&all);
            ChangedTexts { all, again }
        })
    }
}

fn changed_again(texts: &[ChangedText]) -> Option<Range<usize>> {
    let mut earlier: HashMap<(&str, &str), &ChangedText> = HashMap::new();
    let again = texts.iter().find(|text| {
        let Some(first) = earlier.insert((text.field, &text.name), text) else {
            return false;
        };
        let differs = text.op != first.op && !(text.op.joins() && first.op.joins());
        differs || text.op == EnvOp::Set && text.on_conflict == OnConflict::Replace
    })?;
    Some(again.at.clone())
}

fn of_injection(rule: &Rule, inject: &Injection) -> Vec<ChangedText> {
    let of_change = |field, change: &EnvChange| ChangedText {
        field,
        name: change.name.clone(),
        op: change.op,
        separator: change.separator.clone(),
        on_conflict: rule.on_conflict,
        at: change.item.at.clone(),
    };
    let variables = inject.env.iter().map(|change| of_change("env", change));
    let texts = inject.text_changes.iter().map(|text| {
        let field = match (text.owner, text.field) {
            (MetadataOwner::Pod, "annotations") => "podAnnotations",
            (MetadataOwner::Pod, _) => "podLabels",
            (MetadataOwner::Workload, field) => field,
        };
        of_change(field, &text.change)
    });
    let maps = [
        &inject.pod_annotations,
        &inject.pod_labels,
        &inject.annotations,
        &inject.labels,
    ];
    let entries = TEXT_FIELDS.into_iter().zip(maps).flat_map(|(field, map)| {
        map.iter()
            .map(move |(key, item)| set(rule, field, key, item.at.clone()))
    });
    variables.chain(texts).chain(entries).collect()
}

/// The changes of a rule with expressions, which are not evaluated.
fn of_template(rule: &Rule, template: &InjectionTemplate) -> Vec<ChangedText> {
    let mut found = Vec::new();
    for field in ["env"].into_iter().chain(TEXT_FIELDS) {
        match template.written().get(field) {
            Some(Value::Array(entries)) => {
                let entries = entries.iter().enumerate();
                found.extend(entries.filter_map(|(index, entry)| {
                    let at = template.place_of_item(field, index);
                    of_entry(rule, field, entry, at)
                }));
            }
            Some(Value::Object(entries)) => found.extend(
                entries
                    .keys()
                    .map(|key| set(rule, field, key, template.place_of_entry(field, key))),
            ),
            _ => {}
        }
    }
    found.retain(|text| !has_expression(&text.name));
    found
}

fn of_entry(
    rule: &Rule,
    field: &'static str,
    entry: &Value,
    at: Range<usize>,
) -> Option<ChangedText> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let name = text("name").or_else(|| text("key"))?;
    let op = entry.get("op").cloned().map(serde_json::from_value);
    let op = op.and_then(Result::ok).unwrap_or_default();
    Some(ChangedText {
        field,
        name: name.to_owned(),
        op,
        separator: match (text("separator"), field) {
            (Some(separator), _) => separator.to_owned(),
            (None, "env") => op.default_separator(name).to_owned(),
            (None, _) => ",".to_owned(),
        },
        on_conflict: rule.on_conflict,
        at,
    })
}

fn set(rule: &Rule, field: &'static str, key: &str, at: Range<usize>) -> ChangedText {
    ChangedText {
        field,
        name: key.to_owned(),
        op: EnvOp::Set,
        separator: String::new(),
        on_conflict: rule.on_conflict,
        at,
    }
}
