//! Finds odd results of the operator, which hardly anybody wants. They are written like the operator does, with a
//! warning.

use serde_json::Value;
use std::collections::BTreeMap;

use super::env::{comes_from_elsewhere, items, text_of};
use super::injector::ATTRIBUTES;
use crate::diagnostic::Code;
use crate::policy::mutation::Remark;
use crate::yaml::value::Path;

const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Odd results in a pod spec that were not in the spec before.
pub(super) fn find(before: &Value, after: &Value) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for list in LISTS {
        for container in items(&after[list]) {
            let old = items(&before[list])
                .iter()
                .position(|old| old["name"] == container["name"]);
            let env = old.map_or(&[][..], |at| items(&before[list][at]["env"]));
            let place = old.map(|at| Path::of(&["spec", list]).index(at));
            in_container(container, env, place.as_ref(), &mut remarks);
        }
    }
    remarks
}

fn in_container(container: &Value, before: &[Value], at: Option<&Path>, remarks: &mut Vec<Remark>) {
    let name = container["name"].as_str().unwrap_or_default();
    let env = items(&container["env"]);
    let mut say = |message: String, help: &str| {
        let remark = Remark::warning(Code::OddResult, message);
        remarks.push(remark.at(at.cloned()).help(help));
    };
    let (old, new) = (count(before), count(env));
    let twice = new
        .iter()
        .filter(|(name, number)| **number > 1 && old.get(*name) != Some(number));
    let names: Vec<&str> = twice.map(|(name, _)| *name).collect();
    if !names.is_empty() {
        let message = format!(
            "container `{name}` of {{}} has {} more than once, as the operator writes it; the last \
             one takes effect",
            names.join(", ")
        );
        let help = "make sure that the manifest has none of them: `kubectl apply` merges variables \
                    by name";
        say(message, help);
    }
    // `set_text` of a variable with `valueFrom` makes such an entry.
    let is_both = |item: &&Value| comes_from_elsewhere(item) && !text_of(item).is_empty();
    let is_new = |item: &&Value| !before.contains(item);
    for item in env.iter().filter(is_both).filter(is_new) {
        let variable = item["name"].as_str().unwrap_or_default();
        let message = format!(
            "`{variable}` of container `{name}` of {{}} has both `value` and `valueFrom`, as the \
             operator writes it; the API server rejects that"
        );
        say(message, "set it with `value`");
    }
    let attributes = |env: &[Value]| {
        let mut env = env.iter();
        env.find(|item| item["name"] == ATTRIBUTES).map(text_of)
    };
    // The container or the resource has the variable without a value.
    let starts_with_comma =
        |env: &[Value]| attributes(env).is_some_and(|text| text.starts_with(','));
    if starts_with_comma(env) && !starts_with_comma(before) {
        let message = format!(
            "`{ATTRIBUTES}` of container `{name}` of {{}} is empty, so its value starts with a \
             comma, as the operator writes it"
        );
        say(message, "remove the empty variable");
    }
}

fn count(env: &[Value]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for name in env.iter().filter_map(|item| item["name"].as_str()) {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
