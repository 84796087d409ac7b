//! Finds policies and rules that match no workload, whatever the workload says.

use std::ops::Range;

use globset::GlobMatcher;
use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::policy::expression::{Evaluator, ExpressionResult, NoFacts};
use crate::policy::{
    ApplyRules, ContainerChoice, ContainerMode, LabelSelector, MatchCondition, Policy, Rule,
    SelectorOperator, SelectorRequirement, WorkloadFilter,
};

use super::ParamOrigin;

/// Why a policy or rule never matches, and the byte range in the policy that says so.
type UnmatchedReason = (String, Range<usize>);

pub(super) fn find(policy: &Policy, params: ParamOrigin) -> Vec<Diagnostic> {
    let reasons = in_selection(&policy.selects, &policy.match_conditions, policy, params);
    let reasons = reasons.into_iter();
    let mut found: Vec<Diagnostic> = reasons
        .map(|reason| warning(policy, None, reason))
        .collect();
    for (index, rule) in policy.rules.iter().enumerate() {
        let mut reasons = in_selection(&rule.selects, &rule.match_conditions, policy, params);
        let of_rule = [in_containers(&rule.containers), shadowed(policy, index)];
        let of_rule = of_rule.into_iter().flatten();
        reasons.extend(of_rule.map(|reason| (reason, rule.selects.at.clone())));
        let reasons = reasons.into_iter();
        found.extend(reasons.map(|reason| warning(policy, Some(rule), reason)));
    }
    found
}

fn in_selection(
    filter: &WorkloadFilter,
    conditions: &[MatchCondition],
    policy: &Policy,
    params: ParamOrigin,
) -> Vec<UnmatchedReason> {
    let mut reasons = in_filter(filter, policy);
    let conditions = conditions.iter();
    reasons.extend(conditions.filter_map(|condition| constant(condition, policy, params)));
    reasons
}

fn warning(policy: &Policy, rule: Option<&Rule>, (reason, at): UnmatchedReason) -> Diagnostic {
    let subject = match rule.and_then(|rule| rule.name.as_ref()) {
        Some(name) => format!("the rule `{name}` of policy `{}`", policy.identity),
        None => format!("policy `{}`", policy.identity),
    };
    let finding = Diagnostic::warning(
        Code::NeverMatches,
        format!("{subject} can never match: {reason}"),
    );
    finding
        .at(policy.text.place(at), "here")
        .help("run `podgraft explain -p POLICY` to see which condition fails for each workload")
}

fn in_filter(filter: &WorkloadFilter, policy: &Policy) -> Vec<UnmatchedReason> {
    let mut reasons = Vec::new();
    let selectors = [&filter.selector, &filter.workload_selector];
    reasons.extend(selectors.into_iter().flatten().filter_map(in_selector));
    for globs in [&filter.names, &filter.namespaces] {
        reasons.extend(in_globs(globs).map(|reason| (reason, filter.at.clone())));
    }
    if let Some(namespace) = &policy.namespace
        && !filter.namespaces.is_empty()
        && !filter
            .namespaces
            .iter()
            .any(|glob| glob.is_match(namespace))
    {
        let reason =
            format!("the policy is bound to the namespace `{namespace}`, but requires others");
        reasons.push((reason, filter.at.clone()));
    }
    if filter
        .sample
        .as_ref()
        .is_some_and(|sample| sample.percent <= 0.0)
    {
        reasons.push(("its sample is 0 percent".to_owned(), filter.at.clone()));
    }
    // One filter of `any` must match, so `any` is impossible only if all of its filters are.
    let of_any: Vec<Vec<UnmatchedReason>> = filter
        .any
        .iter()
        .map(|inner| in_filter(inner, policy))
        .collect();
    if !of_any.is_empty() && of_any.iter().all(|reasons| !reasons.is_empty()) {
        reasons.extend(of_any.into_iter().flatten());
    }
    reasons
}

/// Why the globs match nothing: all of them have characters that no name in Kubernetes has. They were probably meant as
/// regular expressions, or as what to leave out.
fn in_globs(globs: &[GlobMatcher]) -> Option<String> {
    const SIGNS: [char; 7] = ['^', '$', '(', ')', '|', '+', '\\'];
    let is_capital = |letter: char| letter.is_ascii_uppercase();
    let is_impossible = |glob: &GlobMatcher| {
        let text = glob.glob().glob();
        text.contains(SIGNS) || text.contains(is_capital) || text.starts_with('!')
    };
    let first = globs.first()?.glob().glob();
    if !globs.iter().all(is_impossible) {
        return None;
    }
    Some(match first.strip_prefix('!') {
        Some(rest) => format!("no name starts with `!`: write `{rest}` under `exclude`"),
        None if first.contains(SIGNS) => {
            let plain: String = first.replace(".*", "*").replace(SIGNS, "");
            format!("`{first}` is a glob, not a regular expression: write `{plain}`")
        }
        None => {
            let plain = first.to_lowercase();
            format!("names cannot contain uppercase letters, as `{first}` does: write `{plain}`")
        }
    })
}

fn in_selector(selector: &LabelSelector) -> Option<UnmatchedReason> {
    let requirements = &selector.requirements;
    let pairs = requirements
        .iter()
        .enumerate()
        .flat_map(|(at, requirement)| {
            requirements[at..]
                .iter()
                .map(move |other| (requirement, other))
        });
    let mut pairs = pairs.filter(|(requirement, other)| requirement.key == other.key);
    let (requirement, _) = pairs.find(|(requirement, other)| {
        contradict(requirement, other) || contradict(other, requirement)
    })?;
    Some((
        format!(
            "its conditions on the label `{}` contradict each other",
            requirement.key
        ),
        requirement.at.clone(),
    ))
}

fn contradict(requirement: &SelectorRequirement, other: &SelectorRequirement) -> bool {
    let mut values = requirement.values.iter();
    match (requirement.operator, other.operator) {
        (SelectorOperator::In | SelectorOperator::Exists, SelectorOperator::DoesNotExist) => true,
        (SelectorOperator::In, SelectorOperator::In) => {
            !values.any(|value| other.values.contains(value))
        }
        (SelectorOperator::In, SelectorOperator::NotIn) => {
            values.all(|value| other.values.contains(value))
        }
        (SelectorOperator::In, SelectorOperator::Exists)
        | (
            SelectorOperator::Exists,
            SelectorOperator::In | SelectorOperator::NotIn | SelectorOperator::Exists,
        )
        | (SelectorOperator::NotIn | SelectorOperator::DoesNotExist, _) => false,
    }
}

/// Why a condition that does not read the workload never holds; `None` if it may.
fn constant(
    condition: &MatchCondition,
    policy: &Policy,
    params: ParamOrigin,
) -> Option<UnmatchedReason> {
    if condition.expression.uses.workload {
        return None;
    }
    let evaluator = Evaluator::new(&policy.params, &policy.variables, &NoFacts);
    let explanation = match evaluator.evaluate(&condition.expression) {
        // Another value of a parameter may make it true.
        Ok(ExpressionResult::Value(Value::Bool(false)))
            if params == ParamOrigin::Set || !condition.expression.reads_params() =>
        {
            "is false for every workload"
        }
        Ok(ExpressionResult::Value(Value::Bool(_))) => return None,
        Ok(ExpressionResult::Value(_)) => "must evaluate to true or false",
        Ok(_) | Err(_) => return None,
    };
    let reason = format!("the condition `{}` {explanation}", condition.name);
    Some((reason, condition.at.clone()))
}

fn in_containers(choice: &ContainerChoice) -> Option<String> {
    let pairs = [
        (&choice.names, &choice.exclude_names),
        (&choice.images, &choice.exclude_images),
    ];
    if pairs
        .iter()
        .any(|(globs, excluded)| covers(excluded, globs))
    {
        return Some("all containers that it lists are excluded".to_owned());
    }
    let mut required = choice.with_env.iter();
    let name = required.find(|name| choice.without_env.contains(name))?;
    Some(format!("`withEnv` and `withoutEnv` both list `{name}`"))
}

/// Whether each of some globs is excluded.
fn covers(excluded: &[GlobMatcher], globs: &[GlobMatcher]) -> bool {
    let is_excluded = |glob: &GlobMatcher| {
        let mut excluded = excluded.iter().map(GlobMatcher::glob);
        excluded.any(|excluded| excluded == glob.glob() || excluded.glob() == "*")
    };
    !globs.is_empty() && globs.iter().all(is_excluded)
}

/// With `applyRules: One`, a rule after one that matches everything gets no container.
fn shadowed(policy: &Policy, index: usize) -> Option<String> {
    let containers = &policy.rules[index].containers;
    let mut before = policy.rules[..index].iter();
    let earlier = before.find(|rule| {
        is_open(&rule.selects)
            && rule.excludes.is_empty()
            && rule.match_conditions.is_empty()
            && takes_all(&rule.containers, containers)
    });
    let earlier = earlier.filter(|_| policy.apply_rules == ApplyRules::One)?;
    let name = earlier.name.as_deref().unwrap_or_default();
    Some(format!(
        "the earlier rule `{name}` selects every container, and `applyRules` is `One`"
    ))
}

/// Whether a filter has no condition. Each field is named, so that the compiler asks about a new one.
fn is_open(filter: &WorkloadFilter) -> bool {
    let WorkloadFilter {
        at: _,
        kinds,
        names,
        namespaces,
        selector,
        workload_selector,
        namespace_selector,
        annotations,
        images,
        hooks,
        sample,
        any,
        words: _,
    } = filter;
    let selectors = [selector, workload_selector, namespace_selector];
    [names, namespaces, images].into_iter().all(Vec::is_empty)
        && selectors.into_iter().all(Option::is_none)
        && kinds.is_empty()
        && annotations.is_empty()
        && any.is_empty()
        && sample.is_none()
        && hooks.is_none()
}

/// Whether a choice has no condition, and looks into the same lists as another one. Each field is named here, too.
fn takes_all(choice: &ContainerChoice, other: &ContainerChoice) -> bool {
    let ContainerChoice {
        names,
        names_word: _,
        images,
        exclude_names,
        exclude_images,
        with_env,
        without_env,
        computed_names,
        match_conditions,
        names_from_annotation,
        include,
        mode,
    } = choice;
    let lists = [names, images, exclude_names, exclude_images];
    lists.into_iter().all(Vec::is_empty)
        && [with_env, without_env].into_iter().all(Vec::is_empty)
        && computed_names.iter().all(Option::is_none)
        && match_conditions.is_empty()
        && names_from_annotation.is_none()
        && *mode == ContainerMode::All
        && *include == other.include
}
