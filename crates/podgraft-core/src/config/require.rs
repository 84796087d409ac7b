//! Checks required coverage: a policy applies to a minimum number of workloads, or to all that a selector matches.

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Diagnostic};
use crate::outcome::{Outcome, ReportedFile, WorkloadReport};
use crate::policy::schema::meant;
use crate::policy::{LabelSelector, SelectorOperator, SelectorRequirement};
use crate::source::Place;
use crate::wording::count;
use crate::yaml::value::Path;

use super::read::ConfigReader;
use super::types::RequireEntry;

/// The maximal number of workloads named in a message.
const MAX_NAMED: usize = 5;

/// A required coverage of a policy, from a configuration or a flag.
#[derive(Debug, Clone)]
pub struct CoverageRequirement {
    /// The identity of the policy.
    pub policy: String,
    /// The workloads that the policy must cover.
    pub coverage: Coverage,
    /// The place in the configuration; `None` for a flag.
    pub at: Option<Place>,
}

/// The workloads that a policy must cover.
#[derive(Debug, Clone)]
pub enum Coverage {
    /// At least this number of workloads.
    AtLeast(usize),
    /// All workloads whose pod template labels match. The text is the selector for messages.
    All(LabelSelector, String),
}

impl CoverageRequirement {
    /// Parses `POLICY=NUMBER` or `POLICY:SELECTOR`, with a selector as in `kubectl -l`.
    ///
    /// # Errors
    /// A text that has neither form.
    pub fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "expected POLICY=NUMBER, such as agent=3, or POLICY:SELECTOR with a \
                              selector as for `kubectl -l`, such as agent:runtime=java";
        let of = |policy: &str, coverage| CoverageRequirement {
            policy: policy.to_owned(),
            coverage,
            at: None,
        };
        let parsed = match text.split_once(':') {
            Some((policy, selector)) => {
                let parsed = parse_selector(selector)
                    .ok_or_else(|| format!("`{selector}` is not a selector; {WANTED}"))?;
                of(policy, Coverage::All(parsed, selector.to_owned()))
            }
            None => {
                let (policy, number) = text.split_once('=').ok_or(WANTED)?;
                let number = number
                    .parse()
                    .map_err(|_| format!("`{number}` is not a number; {WANTED}"))?;
                of(policy, Coverage::AtLeast(number))
            }
        };
        if parsed.policy.is_empty() {
            return Err(WANTED.to_owned());
        }
        Ok(parsed)
    }

    /// Errors for the workloads that miss the requirement.
    fn check(&self, files: &[ReportedFile<'_>]) -> Vec<Diagnostic> {
        let workloads = files.iter().flat_map(|file| {
            let reported = file.report.input_workloads();
            reported.map(|workload| (file.name, workload))
        });
        match &self.coverage {
            Coverage::AtLeast(wanted) => {
                let covered: Vec<String> = workloads
                    .filter(|(_, workload)| self.is_met(workload))
                    .map(|(_, workload)| workload.title())
                    .collect();
                match covered.len() < *wanted {
                    true => vec![self.too_few(*wanted, &covered)],
                    false => Vec::new(),
                }
            }
            Coverage::All(selector, text) => {
                let mut found = workloads
                    .filter(|(_, workload)| holds(selector, &workload.labels))
                    .peekable();
                if found.peek().is_none() {
                    let message = format!(
                        "policy `{}` must apply to all workloads with {text}, but there are none",
                        self.policy
                    );
                    return vec![self.problem(
                        message,
                        None,
                        "correct the selector: a requirement that matches nothing checks nothing",
                    )];
                }
                let missed = found.filter(|(_, workload)| !self.is_met(workload));
                missed
                    .map(|(file, workload)| self.not_covered(file, workload, text))
                    .collect()
            }
        }
    }

    /// Whether the policy is in the workload, from this run or an earlier one. Where it could not be put there, that is
    /// an error itself.
    fn is_met(&self, workload: &WorkloadReport) -> bool {
        workload.policies.iter().any(|policy_report| {
            *policy_report.policy == *self.policy
                && matches!(
                    policy_report.outcome,
                    Outcome::Injected(_) | Outcome::UpToDate | Outcome::Failed(_)
                )
        })
    }

    fn not_given(&self, given: &[String]) -> Diagnostic {
        let message = format!(
            "policy `{}` is required, but no given policy has this name",
            self.policy
        );
        let names = given.iter().map(String::as_str);
        let help = meant(&self.policy, names, "given policies:");
        self.problem(message, None, &help)
    }

    fn too_few(&self, wanted: usize, covered: &[String]) -> Diagnostic {
        let named = match covered {
            [] => String::new(),
            some => {
                let (first, others) = some.split_at(some.len().min(MAX_NAMED));
                let more = match others.len() {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(": {}{more}", first.join(", "))
            }
        };
        let message = format!(
            "policy `{}` must apply to at least {}, but applies to {}{named}",
            self.policy,
            count(wanted, "workload"),
            covered.len()
        );
        self.problem(
            message,
            None,
            "run `podgraft explain` to see why it does not apply to the others",
        )
    }

    fn not_covered(&self, file: &str, workload: &WorkloadReport, selector: &str) -> Diagnostic {
        let title = workload.title();
        let policy_report = workload
            .policies
            .iter()
            .find(|policy_report| *policy_report.policy == *self.policy);
        let reason = match policy_report.map(|policy_report| &policy_report.outcome) {
            Some(Outcome::Skipped(skip)) => format!(": {}", skip.reason),
            Some(_) | None => String::new(),
        };
        let message = format!(
            "policy `{}` must apply to all workloads with {selector}, but does not apply to \
             {title}{reason}",
            self.policy
        );
        let place = Place::of_line(file, workload.line);
        let help = "change the policy's `match` or the workload so that it applies, or change the \
                    requirement";
        self.problem(message, Some(place), help).of_workload(title)
    }

    fn problem(&self, message: String, place: Option<Place>, help: &str) -> Diagnostic {
        let problem = Diagnostic::error(Code::NotCovered, message).of_policy(self.policy.as_str());
        let problem = match place {
            Some(place) => problem.at(place, "this workload"),
            None => problem,
        };
        let problem = match &self.at {
            Some(at) => problem.at(at.clone(), "required here"),
            None => problem,
        };
        problem.help(help)
    }
}

/// Errors for all requirements that the files of a run miss. `given` are the identities of all given policies.
pub fn check(
    requirements: &[CoverageRequirement],
    given: &[String],
    files: &[ReportedFile<'_>],
) -> Vec<Diagnostic> {
    let check = |requirement: &CoverageRequirement| match given.contains(&requirement.policy) {
        true => requirement.check(files),
        false => vec![requirement.not_given(given)],
    };
    requirements.iter().flat_map(check).collect()
}

/// Whether labels match a selector. As in Kubernetes, `NotIn` also holds if the label is absent.
fn holds(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let label = |key: &str| labels.get(key).map(String::as_str);
    let mut requirements = selector.requirements.iter();
    requirements.all(|requirement| requirement.is_met(label(&requirement.key)))
}

/// Parses a selector as `kubectl -l` does: `a=b,c!=d,e,!f,g in (h,i),j notin (k)`.
fn parse_selector(text: &str) -> Option<LabelSelector> {
    // Split at commas, except in parentheses.
    let parts = regex_lite::Regex::new(r"[^,(]+(\([^)]*\))?").expect("it is a regular expression");
    let found: Option<Vec<SelectorRequirement>> = parts
        .find_iter(text)
        .map(|part| parse_part(part.as_str().trim()))
        .collect();
    let requirements = found.filter(|found| !found.is_empty())?;
    Some(LabelSelector { requirements })
}

fn parse_part(text: &str) -> Option<SelectorRequirement> {
    // `==` is a synonym of `=`.
    let single = |value: &str| vec![value.trim().trim_start_matches('=').trim().to_owned()];
    if let Some((key, values)) = text.split_once(" notin ") {
        return parsed(key, SelectorOperator::NotIn, listed(values)?);
    }
    if let Some((key, values)) = text.split_once(" in ") {
        return parsed(key, SelectorOperator::In, listed(values)?);
    }
    if let Some((key, value)) = text.split_once("!=") {
        return parsed(key, SelectorOperator::NotIn, single(value));
    }
    match (text.split_once('='), text.strip_prefix('!')) {
        (Some((key, value)), _) => parsed(key, SelectorOperator::In, single(value)),
        (None, Some(key)) => parsed(key, SelectorOperator::DoesNotExist, Vec::new()),
        (None, None) => parsed(text, SelectorOperator::Exists, Vec::new()),
    }
}

/// A part of a selector, unless the key cannot be that of a label.
fn parsed(
    key: &str,
    operator: SelectorOperator,
    values: Vec<String>,
) -> Option<SelectorRequirement> {
    let key = key.trim();
    let is_key = !key.is_empty() && !key.contains([' ', '=', '!', '(', ')']);
    is_key.then(|| requirement(key, operator, values))
}

fn requirement(key: &str, operator: SelectorOperator, values: Vec<String>) -> SelectorRequirement {
    SelectorRequirement {
        at: 0..0,
        key: key.to_owned(),
        operator,
        values,
    }
}

/// The values in `(a, b)`.
fn listed(values: &str) -> Option<Vec<String>> {
    let inner = values.trim().strip_prefix('(')?.strip_suffix(')')?;
    let values = inner.split(',').map(|value| value.trim().to_owned());
    Some(values.collect())
}

impl ConfigReader<'_, '_> {
    /// Reads `require` of a configuration.
    pub(super) fn requirements(
        &mut self,
        entries: Vec<RequireEntry>,
        at: &Path,
    ) -> Vec<CoverageRequirement> {
        let mut found = Vec::new();
        for (index, entry) in entries.into_iter().enumerate() {
            let at = at.index(index);
            let coverage = match (entry.at_least, entry.selector) {
                (Some(..1), None) => {
                    self.report_error(&at.key("atLeast"), "`atLeast` must be at least 1");
                    continue;
                }
                (Some(number), None) => {
                    Coverage::AtLeast(usize::try_from(number).unwrap_or(usize::MAX))
                }
                (None, Some(_)) => match self.coverage_of_all(&at.key("selector")) {
                    Some(coverage) => coverage,
                    None => continue,
                },
                (Some(_), Some(_)) | (None, None) => {
                    self.report_error(&at, "set either `atLeast` or `selector`");
                    continue;
                }
            };
            found.push(CoverageRequirement {
                policy: entry.policy,
                coverage,
                at: Some(self.document.place(&at)),
            });
        }
        found
    }

    fn coverage_of_all(&mut self, at: &Path) -> Option<Coverage> {
        let before = self.problems.len();
        let selector = LabelSelector::read(self.document, at, &mut self.problems)?;
        let words = selector.requirements.iter().map(ToString::to_string);
        let text = words.collect::<Vec<_>>().join(",");
        // A wrong requirement is no other mistake.
        if text.is_empty() && self.problems.len() == before {
            self.report_error(at, "this selector matches everything: specify a label");
        }
        Some(Coverage::All(selector, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_read_as_kubectl_reads_them() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let owned = pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            owned.collect()
        };
        let java = labels(&[("runtime", "java"), ("tier", "web")]);
        for text in [
            "runtime=java",
            "runtime==java",
            "runtime",
            "!team",
            "runtime in (java, kotlin),tier!=db",
            "tier notin (db)",
        ] {
            let selector = parse_selector(text).expect(text);
            assert!(holds(&selector, &java), "{text}");
        }
        for text in [
            "runtime=go",
            "!runtime",
            "runtime notin (java)",
            "runtime=java,tier=db",
        ] {
            assert!(!holds(&parse_selector(text).expect(text), &java), "{text}");
        }
        for text in ["", "a b", "a in b", "="] {
            assert!(parse_selector(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_flag_says_how_many_or_all_of_a_selector() {
        let number = CoverageRequirement::parse("agent=3").expect("it is read");
        assert!(matches!(number.coverage, Coverage::AtLeast(3)));
        let all = CoverageRequirement::parse("Rookout/shop/java:runtime=java").expect("it is read");
        assert_eq!(all.policy, "Rookout/shop/java");
        for wrong in ["agent", "agent=x", "=3", "agent:", ":a=b"] {
            assert!(CoverageRequirement::parse(wrong).is_err(), "{wrong}");
        }
    }
}
