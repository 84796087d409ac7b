//! Expands `forEach`: a rule or validation is repeated for each entry of a list. This happens before anything else is
//! read: the name of the entry is replaced by an index into the list.

use serde_json::Value;
use std::sync::Arc;

use super::chains::{replace, replace_within};
use super::types::ForEach;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::conversion::each_text;
use crate::policy::document::{Document, Places};
use crate::policy::expression::{Evaluator, Expression, ExpressionResult, NoFacts, PolicyVariable};
use crate::policy::params::is_name;
use crate::policy::replacement::ItemMoves;
use crate::policy::template::{Evaluated, TemplateError};
use crate::policy::vocabulary::{ROOTS, Vocabulary};
use crate::yaml::value::Path;

/// The maximal number of entries that one rule may expand to.
const MAX_ENTRIES: usize = 1_000;

/// The path of an expanded rule or validation, and the expression of its list entry, such as `source.spec.ports[0]`.
pub(super) type ExpandedEntry = (Path, String);

/// Expands all loops of `rules` and `validations`.
pub(super) fn expand_loops(
    document: &mut Document<'_>,
    vocabulary: &Vocabulary,
    resources: &[PolicyVariable],
    problems: &mut Vec<Diagnostic>,
) -> Vec<ExpandedEntry> {
    let evaluator = Evaluator::new(&vocabulary.params, resources, &NoFacts);
    let mut writer = LoopExpander {
        vocabulary,
        evaluator: &evaluator,
        made: Vec::new(),
        moves: ItemMoves {
            are_copies: true,
            ..ItemMoves::default()
        },
    };
    let mut has_entries = false;
    for word in ["rules", "validations"] {
        let list = Path::of(&["spec", word]);
        let Some(Value::Array(entries)) = list.get(&document.value) else {
            continue;
        };
        if entries.iter().all(|entry| entry.get("forEach").is_none()) {
            continue;
        }
        let written = writer.write_list(document, &list, entries, problems);
        has_entries |= !written.is_empty();
        // If all loops are empty, no rule is left: the policy does nothing, which is not an error.
        let is_suspended = written.is_empty() && word == "rules";
        if let Some(entries) = list.get_mut(&mut document.value) {
            *entries = Value::Array(written);
        }
        if is_suspended {
            document.value["spec"]["suspend"] = Value::Bool(true);
        }
    }
    if has_entries {
        let places = Box::new(document.places.clone());
        document.places = Places::Moved(Arc::new(writer.moves), places);
    }
    writer.made
}

fn check_name(name: &str) -> Evaluated<()> {
    let is_taken = ROOTS.iter().any(|(root, _)| *root == name);
    if is_name(name) && !is_taken {
        return Ok(());
    }
    let message = format!("`{name}` cannot be the name of a list entry");
    let help = "use letters, digits, and `_`, and no name that expressions already define";
    Err(TemplateError::new(Code::BadPolicy, message, help))
}

struct LoopExpander<'w> {
    vocabulary: &'w Vocabulary,
    evaluator: &'w Evaluator<'w>,
    made: Vec<ExpandedEntry>,
    /// How often each entry is written.
    moves: ItemMoves,
}

impl LoopExpander<'_> {
    /// Expands the loops of a list of rules or validations.
    fn write_list(
        &mut self,
        document: &Document<'_>,
        list: &Path,
        entries: &[Value],
        problems: &mut Vec<Diagnostic>,
    ) -> Vec<Value> {
        let mut written: Vec<Value> = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let at = list.index(index);
            let found = self.made_of(entry).unwrap_or_else(|faults| {
                problems.extend(document.faults_at(faults, &at.key("forEach")));
                Vec::new()
            });
            let counts = self.moves.lists.entry(list.clone()).or_default();
            counts.insert(index, found.len());
            for (entry, of) in found {
                if !of.is_empty() {
                    self.made.push((list.index(written.len()), of));
                }
                written.push(entry);
            }
        }
        written
    }

    /// Expands one rule or validation. Each result has the expression of its list entry, empty without `forEach`.
    fn made_of(&self, entry: &Value) -> Result<Vec<(Value, String)>, Vec<TemplateError>> {
        let loops = match entry.get("forEach").cloned().map(serde_json::from_value) {
            Some(Ok(loops)) => loops,
            Some(Err(_)) | None => Vec::new(),
        };
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.shift_remove("forEach");
        }
        self.entries(&loops, entry, String::new())
    }

    /// Expands nested loops, outermost first. `of` is the expression of the enclosing list's entry.
    fn entries(
        &self,
        loops: &[ForEach],
        entry: Value,
        of: String,
    ) -> Result<Vec<(Value, String)>, Vec<TemplateError>> {
        let Some((first, rest)) = loops.split_first() else {
            return Ok(vec![(entry, of)]);
        };
        let ForEach { name, list } = first;
        check_name(name).map_err(|fault| vec![fault])?;
        let expression = Expression::compile(list, self.vocabulary)?;
        // Without a resource the length is unknown: expand to one entry, so that the rule is still checked.
        let count = match expression.uses.workload {
            true if self.vocabulary.is_open() && !expression.names_workload() => 1,
            true => {
                let message = format!("`{list}` depends on the workload");
                let help = "use only the resource and the parameters in `forEach`";
                return Err(vec![TemplateError::new(Code::BadExpression, message, help)]);
            }
            false => self.count(&expression).map_err(|fault| vec![fault])?,
        };
        let mut made = Vec::new();
        for index in 0..count {
            let is_plain = |char: char| char.is_alphanumeric() || "_.[]".contains(char);
            let with = match list.chars().all(is_plain) {
                true => format!("{list}[{index}]"),
                false => format!("({list})[{index}]"),
            };
            let rest: Vec<ForEach> = rest
                .iter()
                .map(|each| ForEach {
                    name: each.name.clone(),
                    list: replace(&each.list, name, &with),
                })
                .collect();
            let mut entry = entry.clone();
            substitute(&mut entry, name, &with);
            made.extend(self.entries(&rest, entry, with)?);
            if made.len() > MAX_ENTRIES {
                let message = format!("`{list}` has more than {MAX_ENTRIES} entries");
                let help = "use a shorter list, or split the policy";
                return Err(vec![TemplateError::new(Code::TooLong, message, help)]);
            }
        }
        Ok(made)
    }

    fn count(&self, expression: &Expression) -> Evaluated<usize> {
        match self.evaluator.evaluate(expression)? {
            ExpressionResult::Value(Value::Array(entries)) => Ok(entries.len()),
            ExpressionResult::Absent => Ok(0),
            ExpressionResult::Value(_) => {
                let message = format!("`{}` is not a list", expression.text());
                let help = "use a list in `forEach`";
                Err(TemplateError::new(Code::BadExpression, message, help))
            }
        }
    }
}

/// Replaces the loop's name by an indexed expression: in `expression` and `path`, which hold expressions without `${}`,
/// and in `${...}` of all other texts.
fn substitute(entry: &mut Value, name: &str, with: &str) {
    let Some(entry) = entry.as_object_mut() else {
        return;
    };
    for (key, value) in entry {
        match (key.as_str(), &mut *value) {
            ("expression" | "path", Value::String(text)) => *text = replace(text, name, with),
            ("matchConditions", Value::Array(conditions)) => conditions
                .iter_mut()
                .for_each(|condition| substitute(condition, name, with)),
            ("containers", containers) => substitute(containers, name, with),
            (_, value) => each_text(value, &mut |text| *text = replace_within(text, name, with)),
        }
    }
}
