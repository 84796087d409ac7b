//! Finds policies that are not idempotent: a second run over their output would change more.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use memchr::memmem;
use serde_json::{Map, Value};

use crate::change::{Change, ChangeTarget, Operation, list};
use crate::diagnostic::{Code, Diagnostic};
use crate::edit::yaml_document;
use crate::manifest::object::{DocumentContent, find_objects};
use crate::manifest::pod::Workload;
use crate::options::Options;
use crate::outcome::{Outcome, PolicyReport};
use crate::plan::draft::Draft;
use crate::plan::{RunContext, plan};
use crate::policy::{Policy, Rule};
use crate::record::restore_order;
use crate::source::Source;
use crate::yaml::parse::parse;
use crate::yaml::value::is_equal;

use super::adopt::unmarked;
use super::document::DocumentTask;

/// A policy that a second run may not find done, with the range in its file that shows it.
struct DoubtfulPolicy<'p> {
    policy: &'p Policy,
    at: Range<usize>,
    cause: DoubtCause,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DoubtCause {
    /// It may read what it writes.
    ReadsItself,
    /// It joins a text to a variable, label or annotation to which another text is joined with another separator.
    OtherSeparator,
    /// It changes a variable, label or annotation twice, in different ways.
    ChangedTwice,
    /// It selects containers by a variable that the run changes.
    SelectsByChange,
}

/// What a second run over the result would do.
#[derive(Default)]
struct SecondRun {
    reports: Vec<PolicyReport>,
    /// The first error, if one policy alone fails.
    error: Option<String>,
    /// Whether it gives the same values, perhaps in another order.
    is_same: bool,
    /// Whether it gives the same values in the same order.
    is_identical: bool,
}

impl SecondRun {
    /// The error with which the policy fails.
    fn failure(&self, policy: &Policy) -> Option<&str> {
        let report = report_of(policy, &self.reports)?;
        let error = self.error.as_deref();
        error.filter(|_| has_failed(report))
    }

    /// The changes by which it differs from the first run; `None` if the policy injects nothing. Where one policy removes
    /// what another one sets, a second run does both again, with the same result.
    fn further_changes(&self, policy: &Policy) -> Option<Vec<Change>> {
        let report = report_of(policy, &self.reports).filter(|_| !self.is_identical)?;
        let changes = report.outcome.injections()?.iter();
        let further =
            changes.filter(|change| !change.is_generated() && !self.is_reverted(change, policy));
        Some(further.cloned().collect())
    }

    fn is_reverted(&self, change: &Change, policy: &Policy) -> bool {
        let is_removal = |change: &Change| change.operation == Operation::Remove;
        let others = self.reports.iter();
        let others = others.filter(|report| *report.policy != *policy.identity);
        let mut same = others
            .flat_map(|report| report.outcome.injections().unwrap_or_default())
            .filter(|other| other.target == change.target);
        self.is_same && same.any(|other| is_removal(other) != is_removal(change))
    }
}

impl DocumentTask<'_> {
    /// Plans the result again if a policy that reads what it writes changed the workload. Returns a problem for each
    /// such policy that would change it once more.
    pub(super) fn idempotence_problems(
        &self,
        workload: &Workload<'_>,
        draft: &Draft<'_>,
        reports: &[PolicyReport],
    ) -> Vec<Diagnostic> {
        let doubtful = self.doubtful(reports);
        if doubtful.is_empty() {
            return Vec::new();
        }
        let second_run = draft
            .value(&draft.root())
            .and_then(|result| self.plan_result(&result))
            .unwrap_or_default();
        let repeated = |doubt: DoubtfulPolicy<'_>| {
            let policy = doubt.policy;
            if let Some(error) = second_run.failure(policy) {
                let does = format!("is refused on {}: {error}", workload.title());
                return Some(not_idempotent(&doubt, doubt.at.clone(), &does));
            }
            let more = second_run.further_changes(policy)?;
            let does = format!("changes {} again: {}", workload.title(), list(&more));
            let at = patch_among(&more, policy).unwrap_or_else(|| doubt.at.clone());
            (!more.is_empty()).then(|| not_idempotent(&doubt, at, &does))
        };
        doubtful.into_iter().filter_map(repeated).collect()
    }

    /// The policies that a second run may not find done, and that did change the workload.
    fn doubtful(&self, reports: &[PolicyReport]) -> Vec<DoubtfulPolicy<'_>> {
        let policies = self.setting.policies;
        let texts = RunTexts::of(policies);
        let has_injected = |policy: &&Policy| {
            report_of(policy, reports).is_some_and(|report| report.outcome.injections().is_some())
        };
        let doubt = |policy| {
            let doubt = |at, cause| DoubtfulPolicy { policy, at, cause };
            let reads_itself = self_reference(policy).map(|at| doubt(at, DoubtCause::ReadsItself));
            let separator = || {
                Some(doubt(
                    texts.joined_apart(policy)?,
                    DoubtCause::OtherSeparator,
                ))
            };
            let twice = || {
                let at = policy.changed_texts().again.clone()?;
                Some(doubt(at, DoubtCause::ChangedTwice))
            };
            let selects = || Some(doubt(texts.selecting(policy)?, DoubtCause::SelectsByChange));
            let reads_others = || {
                let at = reads_what_is_filled(policy, policies)?;
                Some(doubt(at, DoubtCause::ReadsItself))
            };
            let of_texts = reads_itself.or_else(separator).or_else(twice);
            of_texts.or_else(selects).or_else(reads_others)
        };
        policies
            .iter()
            .filter(has_injected)
            .filter_map(doubt)
            .collect()
    }

    /// Plans a workload with this value. `None` if the value is no workload, or no policy changes it.
    fn plan_result(&self, value: &Value) -> Option<SecondRun> {
        let text = yaml_document(value);
        let tree = parse(&text).ok()?;
        let source = Source::new(self.setting.name.clone(), &text);
        let found = find_objects(&tree, self.setting.kinds);
        let [DocumentContent::Object(object)] = found.as_slice() else {
            return None;
        };
        let result = self.parsed(&tree, &source).read_workload(object)?;
        let options = Options {
            brief: false,
            ..self.setting.options.clone()
        };
        let run = RunContext {
            options: &options,
            ..self.setting.run
        };
        let planned = plan(&result, run, None);
        let mut errors = planned
            .diagnostics
            .iter()
            .filter(|problem| problem.is_error());
        let mut failed = planned.policies.iter().filter(|report| has_failed(report));
        let fails_alone = failed.next().is_some() && failed.next().is_none();
        let error = errors.next().filter(|_| fails_alone);
        let error = error.map(|problem| problem.message.clone());
        // Mostly nothing changes. Then the values need not be compared.
        let mut reports = planned.policies.iter();
        if error.is_none() && reports.all(|report| report.outcome.injections().is_none()) {
            return None;
        }
        // Another name in the marker is no change by a policy.
        let first = unmarked(value.clone());
        let mut wanted = unmarked(planned.draft.value(&planned.draft.root())?);
        let is_identical = is_equal(&wanted, &first);
        restore_order(&mut wanted, value);
        Some(SecondRun {
            reports: planned.policies,
            error,
            is_same: is_identical || is_equal(&wanted, &first),
            is_identical,
        })
    }
}

fn has_failed(report: &PolicyReport) -> bool {
    matches!(report.outcome, Outcome::Failed(_))
}

fn report_of<'r>(policy: &Policy, reports: &'r [PolicyReport]) -> Option<&'r PolicyReport> {
    let mut reports = reports.iter();
    reports.find(|report| *report.policy == *policy.identity)
}

/// The variables, labels and annotations that the policies of a run change.
struct RunTexts<'p> {
    /// The separators with which texts are joined to each, where there are several texts.
    separators: HashMap<(&'static str, &'p str), HashSet<&'p str>>,
    /// The variables that are changed, if a policy selects containers by variables.
    variables: HashSet<&'p str>,
}

impl<'p> RunTexts<'p> {
    fn of(policies: &'p [Policy]) -> Self {
        let texts = policies
            .iter()
            .flat_map(|policy| &policy.changed_texts().all);
        let joined = texts.clone().filter(|text| text.op.joins());
        // One text alone has none beside it.
        let has_several = joined.clone().nth(1).is_some();
        let mut separators: HashMap<_, HashSet<&str>> = HashMap::new();
        for text in joined.filter(|_| has_several) {
            let used = separators.entry((text.field, &*text.name)).or_default();
            used.insert(&text.separator);
        }
        let selects = policies
            .iter()
            .any(|policy| selecting(policy).next().is_some());
        let variables = texts.filter(|text| selects && text.field == "env");
        RunTexts {
            separators,
            variables: variables.map(|text| &*text.name).collect(),
        }
    }

    /// The first text of a policy beside one with another separator. Where one text ends and the other one begins, a
    /// second run cannot tell.
    fn joined_apart(&self, policy: &Policy) -> Option<Range<usize>> {
        let texts = policy.changed_texts().all.iter();
        let apart = texts.filter(|text| text.op.joins()).find(|text| {
            let used = self.separators.get(&(text.field, &*text.name));
            used.is_some_and(|used| used.len() > 1)
        })?;
        Some(apart.at.clone())
    }

    /// Where a policy names a changed variable by which it selects containers.
    fn selecting(&self, policy: &Policy) -> Option<Range<usize>> {
        let name = selecting(policy).find(|name| self.variables.contains(&***name))?;
        let at = memmem::find(policy.text.text.as_bytes(), name.as_bytes())?;
        Some(at..at + name.len())
    }
}

/// The variables by which a policy selects containers.
fn selecting(policy: &Policy) -> impl Iterator<Item = &String> {
    let choices = policy.rules.iter().map(|rule| &rule.containers);
    choices.flat_map(|choice| choice.with_env.iter().chain(&choice.without_env))
}

/// `does` is what the policy does to its own result.
fn not_idempotent(doubt: &DoubtfulPolicy<'_>, at: Range<usize>, does: &str) -> Diagnostic {
    let policy = doubt.policy;
    let (label, help) = match doubt.cause {
        DoubtCause::ReadsItself => (
            "this reads its own output",
            "check first whether the change is already made: add a `test` to the patch, or a \
             condition to the expression",
        ),
        DoubtCause::OtherSeparator => (
            "another text uses a different `separator`, so a second run does not find this one",
            "use the same `separator` for all texts, or use `apply --in-place`, which records the \
             original value",
        ),
        DoubtCause::ChangedTwice => (
            "the policy changes this twice",
            "set it with `op: SetIfAbsent`, or by one entry with `onConflict: Replace`; with \
             `apply --in-place`, which records the original value, neither is necessary",
        ),
        DoubtCause::SelectsByChange => (
            "a policy of this run changes the variable that this selects by",
            "select containers by something that no policy changes, or use `apply --in-place`, \
             which records the original value",
        ),
    };
    let message = format!(
        "policy `{}` is not idempotent: applied to its own result, it {does}",
        policy.identity
    );
    let problem = Diagnostic::error(Code::NotIdempotent, message).at(policy.text.place(at), label);
    Diagnostic {
        policy: Some(policy.identity.as_str().into()),
        ..problem.help(help)
    }
}

/// The place of the first patch that is among the changes. One with an expression is known by that.
fn patch_among(changes: &[Change], policy: &Policy) -> Option<Range<usize>> {
    let number = changes.iter().find_map(|change| match change.target {
        ChangeTarget::Patched { number, .. } => Some(number),
        _ => None,
    })?;
    let mut patches = policy.rules.iter().flat_map(|rule| &rule.inject.patches);
    let patch = patches.find(|patch| patch.index + 1 == number);
    let mut templates = policy
        .rules
        .iter()
        .filter_map(|rule| rule.template.as_ref());
    let expression = || templates.next()?.first_expression();
    patch.map(|patch| patch.item.at.clone()).or_else(expression)
}

/// Returns the range of the first place where a policy may read what it writes: a patch, a container's variable if
/// the policy reads `env`, or a label or annotation if the policy reads those and names the key elsewhere, too.
fn self_reference(policy: &Policy) -> Option<Range<usize>> {
    let text = policy.text.text.as_bytes();
    let is_named = |key: &str| memmem::find_iter(text, key.as_bytes()).count() > 1;
    let reads = |field: &str, key: Option<&str>| {
        key.is_none_or(is_named) && (reads_field(text, field) || names(text, "object"))
    };
    policy.rules.iter().find_map(|rule| {
        let patch = rule.inject.patches.first();
        let of_template = || rule.template.as_ref()?.self_reference(reads);
        patch
            .map(|patch| patch.item.at.clone())
            .or_else(of_template)
    })
}

/// The place of an expression of a policy that may read a field of the pod or of its containers that a policy of the run
/// fills.
fn reads_what_is_filled(policy: &Policy, policies: &[Policy]) -> Option<Range<usize>> {
    let at = first_expression(policy)?;
    let text = policy.text.text.as_bytes();
    let rules = policies.iter().flat_map(|policy| &policy.rules);
    let mut filled = rules.flat_map(filled_fields);
    filled.any(|field| reads_field(text, field)).then_some(at)
}

/// The place of the first expression of a policy: in what it injects, or else in its conditions.
fn first_expression(policy: &Policy) -> Option<Range<usize>> {
    let rules = policy.rules.iter();
    let of_template = |rule: &Rule| rule.template.as_ref()?.first_expression();
    let of_rules = rules
        .clone()
        .flat_map(|rule| [&rule.match_conditions, &rule.containers.match_conditions]);
    let mut conditions = [&policy.match_conditions]
        .into_iter()
        .chain(of_rules)
        .flatten();
    let in_template = rules.clone().find_map(of_template);
    in_template.or_else(|| Some(conditions.next()?.at.clone()))
}

/// The fields of the pod spec and of containers into which a rule puts something other than containers.
fn filled_fields(rule: &Rule) -> Vec<&str> {
    if let Some(template) = &rule.template {
        return template.filled_fields();
    }
    let inject = &rule.inject;
    let (of_pod, of_containers) = inject.items_of_lists();
    let lists = of_pod.into_iter().chain(of_containers);
    let lists = lists
        .filter(|(_, items)| !items.is_empty())
        .map(|(list, _)| list);
    let maps = [&inject.pod_spec, &inject.container_defaults]
        .into_iter()
        .flatten();
    let maps = maps
        .filter_map(|map| map.value.as_object())
        .flat_map(Map::keys);
    let pod_context = inject
        .pod_security_context
        .iter()
        .map(|_| "securityContext");
    lists
        .chain(maps.map(String::as_str))
        .chain(pod_context)
        .collect()
}

/// Whether an expression reads a field: `pod.labels`, `c.?labels`, `c['labels']`. Fields of `variables` and `params`
/// do not count.
fn reads_field(text: &[u8], field: &str) -> bool {
    memmem::find_iter(text, field.as_bytes()).any(|at| {
        let before = &text[..at];
        let is_asked = matches!(before.last(), Some(b'.' | b'?' | b'\'' | b'"'));
        let is_policy_name = before.ends_with(b"variables.") || before.ends_with(b"params.");
        is_asked && !is_policy_name && ends_word(text, at + field.len())
    })
}

/// Whether the text contains the word as a whole word.
fn names(text: &[u8], word: &str) -> bool {
    memmem::find_iter(text, word.as_bytes()).any(|at| {
        let begins = at.checked_sub(1).is_none_or(|at| ends_word(text, at));
        begins && ends_word(text, at + word.len())
    })
}

fn ends_word(text: &[u8], at: usize) -> bool {
    !text.get(at).is_some_and(u8::is_ascii_alphanumeric)
}
