//! Checks the kinds that policies name: a misspelled `Deploymnt` would silently select nothing.

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::workload::PodKinds;
use crate::policy::schema::{did_you_mean, nearest};
use crate::policy::{KindPattern, Policy, WorkloadFilter};

/// Returns an error for each kind that is nearly a known one, and a warning for each other unknown kind, which may need
/// `--pod-template`.
pub fn unknown_kinds(policies: &[Policy], kinds: &PodKinds) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    for policy in policies {
        let of_policy = std::iter::once(&policy.selects).chain(&policy.excludes);
        let of_rules = policy
            .rules
            .iter()
            .flat_map(|rule| std::iter::once(&rule.selects).chain(&rule.excludes));
        of_policy
            .chain(of_rules)
            .for_each(|filter| check(filter, policy, kinds, &mut problems));
    }
    problems
}

fn check(
    filter: &WorkloadFilter,
    policy: &Policy,
    kinds: &PodKinds,
    problems: &mut Vec<Diagnostic>,
) {
    let found = filter.kinds.iter().filter_map(|pattern| {
        let problem = problem(pattern, kinds)?;
        Some(problem.at(policy.text.place(pattern.at.clone()), "here"))
    });
    problems.extend(found);
    filter
        .any
        .iter()
        .for_each(|alternative| check(alternative, policy, kinds, problems));
}

fn problem(pattern: &KindPattern, kinds: &PodKinds) -> Option<Diagnostic> {
    let kind = pattern.kind.glob().glob();
    let api_version = pattern.api_version.as_ref().map(|glob| glob.glob().glob());
    let is_glob = |text: &str| text.contains(['*', '?', '[', '{']);
    if is_glob(kind) || api_version.is_some_and(is_glob) {
        return None;
    }
    if kinds.has_kind(kind) {
        let has_group =
            api_version.is_none_or(|api_version| kinds.find(api_version, kind).is_some());
        let message = format!(
            "`{}/{kind}` is not a kind with a pod template",
            api_version.unwrap_or_default()
        );
        return (!has_group).then(|| {
            Diagnostic::warning(Code::UnknownKind, message)
                .help("correct the group and version: no workload can match this")
        });
    }
    let message = format!("`{kind}` is not a known kind with a pod template");
    let same = kinds.names().find(|known| known.eq_ignore_ascii_case(kind));
    match same.or_else(|| nearest(kind, kinds.names())) {
        Some(near) => Some(Diagnostic::error(Code::UnknownKind, message).help(did_you_mean(near))),
        None => {
            let help = format!(
                "if it has a pod template, specify where: --pod-template group/version/{kind}=path"
            );
            Some(Diagnostic::warning(Code::UnknownKind, message).help(help))
        }
    }
}
