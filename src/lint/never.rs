//! Policies and rules that fit no workload, whatever it says.

use std::ops::Range;

use globset::GlobMatcher;
use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::policy::expression::{Evaluator, NoFacts, Outcome};
use crate::policy::{
    ApplyRules, Condition, ContainerChoice, Filter, LabelSelector, Operator, Policy, Requirement,
    Rule,
};

use super::Params;

/// Why, and where.
type Reason = (String, Range<usize>);

pub(super) fn find(policy: &Policy, params: Params) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut reasons = in_filter(&policy.selects, policy);
    reasons.extend(
        policy
            .match_conditions
            .iter()
            .filter_map(|condition| constant(condition, policy, params)),
    );
    found.extend(
        reasons
            .into_iter()
            .map(|reason| warning(policy, None, reason)),
    );
    for (index, rule) in policy.rules.iter().enumerate() {
        let mut reasons = in_filter(&rule.selects, policy);
        reasons.extend(
            rule.match_conditions
                .iter()
                .filter_map(|condition| constant(condition, policy, params)),
        );
        reasons.extend(in_containers(&rule.containers).map(|why| (why, rule.selects.at.clone())));
        reasons.extend(shadowed(policy, index).map(|why| (why, rule.selects.at.clone())));
        found.extend(
            reasons
                .into_iter()
                .map(|reason| warning(policy, Some(rule), reason)),
        );
    }
    found
}

fn warning(policy: &Policy, rule: Option<&Rule>, (why, at): Reason) -> Diagnostic {
    let what = match rule.and_then(|rule| rule.name.as_ref()) {
        Some(name) => format!("the rule `{name}` of policy `{}`", policy.identity),
        None => format!("policy `{}`", policy.identity),
    };
    let finding = Diagnostic::warning(Code::NeverMatches, format!("{what} can never match: {why}"));
    finding
        .at(policy.text.place(at), "here")
        .help("`podgraft explain -p POLICY` shows for each workload what does not hold")
}

fn in_filter(filter: &Filter, policy: &Policy) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let selectors = [&filter.selector, &filter.workload_selector];
    reasons.extend(selectors.into_iter().flatten().filter_map(in_selector));
    for globs in [&filter.names, &filter.namespaces] {
        reasons.extend(in_globs(globs).map(|why| (why, filter.at.clone())));
    }
    if let Some(namespace) = &policy.namespace
        && !filter.namespaces.is_empty()
        && !filter
            .namespaces
            .iter()
            .any(|glob| glob.is_match(namespace))
    {
        let why = format!("the policy touches the namespace `{namespace}` only, and wants others");
        reasons.push((why, filter.at.clone()));
    }
    if filter
        .sample
        .as_ref()
        .is_some_and(|sample| sample.percent <= 0.0)
    {
        reasons.push(("its sample is 0 percent".to_owned(), filter.at.clone()));
    }
    // One of `any` must hold; all of them would have to be impossible.
    let of_any: Vec<Vec<Reason>> = filter
        .any
        .iter()
        .map(|inner| in_filter(inner, policy))
        .collect();
    if !of_any.is_empty() && of_any.iter().all(|reasons| !reasons.is_empty()) {
        reasons.extend(of_any.into_iter().flatten());
    }
    reasons
}

/// Globs with signs that no name in Kubernetes has: somebody thought of regular expressions.
fn in_globs(globs: &[GlobMatcher]) -> Option<String> {
    const SIGNS: [char; 7] = ['^', '$', '(', ')', '|', '+', '\\'];
    let is_impossible = |glob: &GlobMatcher| glob.glob().glob().contains(SIGNS);
    let first = globs.first()?.glob().glob();
    globs.iter().all(is_impossible).then(|| {
        let plain: String = first.replace(".*", "*").replace(SIGNS, "");
        format!("`{first}` is a glob, not a regular expression: write `{plain}`")
    })
}

fn in_selector(selector: &LabelSelector) -> Option<Reason> {
    let all = &selector.requirements;
    let pairs = all
        .iter()
        .enumerate()
        .flat_map(|(at, one)| all[at..].iter().map(move |other| (one, other)));
    let mut pairs = pairs.filter(|(one, other)| one.key == other.key);
    let (one, _) = pairs.find(|(one, other)| contradict(one, other) || contradict(other, one))?;
    Some((
        format!(
            "its conditions on the label `{}` contradict each other",
            one.key
        ),
        one.at.clone(),
    ))
}

fn contradict(one: &Requirement, other: &Requirement) -> bool {
    let all_in = |values: &[String]| one.values.iter().all(|value| values.contains(value));
    match (one.operator, other.operator) {
        (Operator::In | Operator::Exists, Operator::DoesNotExist) => true,
        (Operator::In, Operator::In) => {
            !one.values.iter().any(|value| other.values.contains(value))
        }
        (Operator::In, Operator::NotIn) => all_in(&other.values),
        (Operator::In, Operator::Exists)
        | (Operator::Exists, Operator::In | Operator::NotIn | Operator::Exists)
        | (Operator::NotIn | Operator::DoesNotExist, _) => false,
    }
}

/// A condition that asks nothing of the workload and comes to `false`.
fn constant(condition: &Condition, policy: &Policy, params: Params) -> Option<Reason> {
    if condition.expression.uses.workload {
        return None;
    }
    let evaluator = Evaluator::new(&policy.params, &policy.variables, &NoFacts);
    let why = match evaluator.evaluate(&condition.expression) {
        // Another value of a parameter may make it true.
        Ok(Outcome::Value(Value::Bool(false)))
            if params == Params::Set || !condition.expression.reads_params() =>
        {
            "is false for every workload"
        }
        Ok(Outcome::Value(Value::Bool(_))) => return None,
        Ok(Outcome::Value(_)) => "is neither true nor false: it must come to a boolean",
        Ok(_) | Err(_) => return None,
    };
    let reason = format!("the condition `{}` {why}", condition.name);
    Some((reason, condition.at.clone()))
}

fn in_containers(choice: &ContainerChoice) -> Option<String> {
    let is_excluded = |name: &globset::GlobMatcher| {
        choice
            .exclude_names
            .iter()
            .any(|other| other.glob() == name.glob() || other.glob().glob() == "*")
    };
    let names = &choice.names;
    (!names.is_empty() && names.iter().all(is_excluded))
        .then(|| "all containers that it names are excluded".to_owned())
}

/// With `applyRules: One`, a rule behind one that fits everything gets no container.
fn shadowed(policy: &Policy, index: usize) -> Option<String> {
    let own = &policy.rules[index].containers;
    let is_open = |rule: &&Rule| {
        is_open(&rule.selects)
            && rule.excludes.is_empty()
            && rule.match_conditions.is_empty()
            && takes_all(&rule.containers, own)
    };
    let earlier = policy.rules[..index]
        .iter()
        .find(is_open)
        .filter(|_| policy.apply_rules == ApplyRules::One)?;
    let name = earlier.name.as_deref().unwrap_or_default();
    Some(format!(
        "the rule `{name}` before it takes every container, and `applyRules` is `One`"
    ))
}

fn is_open(filter: &Filter) -> bool {
    let Filter {
        kinds,
        names,
        namespaces,
        selector,
        workload_selector,
        annotations,
        images,
        sample,
        any,
        ..
    } = filter;
    let lists = [
        names.is_empty(),
        namespaces.is_empty(),
        images.is_empty(),
        annotations.is_empty(),
        any.is_empty(),
    ];
    kinds.is_empty()
        && lists.into_iter().all(|is_empty| is_empty)
        && selector.is_none()
        && workload_selector.is_none()
        && sample.is_none()
        && filter.hooks.is_none()
}

fn takes_all(choice: &ContainerChoice, other: &ContainerChoice) -> bool {
    let lists = [
        &choice.names,
        &choice.images,
        &choice.exclude_names,
        &choice.exclude_images,
    ];
    lists.into_iter().all(Vec::is_empty)
        && choice.with_env.is_empty()
        && choice.without_env.is_empty()
        && choice.names_from_annotation.is_none()
        && choice.mode == crate::policy::ContainerMode::All
        && choice.include == other.include
}
