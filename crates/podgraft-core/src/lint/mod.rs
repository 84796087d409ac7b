//! Finds what is wrong or dangerous in a policy, without any manifest.

mod never_matches;
mod unused;

use json_patch::{Patch, PatchOperation};

use crate::dangers::{self, Danger, FoundDanger};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::manifest::workload::PodKinds;
use crate::policy::needs::parts_of;
use crate::policy::{PatchEntry, Policy};
use crate::select::kinds::unknown_kinds;

/// Where the values of parameters come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamOrigin {
    /// The defaults of the policy; another run may set other values.
    Default,
    /// Set for this run.
    Set,
}

/// All findings about the policies, in the order of the policies.
pub fn lint(
    policies: &[Policy],
    kinds: &PodKinds,
    forbid: &[Danger],
    params: ParamOrigin,
) -> Vec<Diagnostic> {
    let mut found = unknown_kinds(policies, kinds);
    for policy in policies {
        found.extend(unused::find(policy));
        found.extend(never_matches::find(policy, params));
        found.extend(dangerous(policy, forbid));
        found.extend(patches(policy));
    }
    found
}

fn dangerous(policy: &Policy, forbid: &[Danger]) -> Vec<Diagnostic> {
    let mut findings: Vec<Diagnostic> = Vec::new();
    for part in parts_of(policy) {
        let found = dangers::find(&part.value);
        for occurrence in &found {
            // An image with the tag `latest` also lacks a digest. Only the worse finding is reported.
            let is_worse = |other: &FoundDanger| {
                other.danger == Danger::LatestTag && other.excerpt == occurrence.excerpt
            };
            let is_forbidden = forbid.contains(&occurrence.danger);
            if occurrence.danger == Danger::NoDigest && found.iter().any(is_worse) && !is_forbidden
            {
                continue;
            }
            let finding = finding(occurrence, policy, forbid);
            let finding = finding.at(policy.text.place(part.at.clone()), "here");
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
    for entry in &policy.generate {
        let found = dangers::data_of_secret(entry.resource.unevaluated());
        let found = found.map(|found| finding(&found, policy, forbid));
        findings.extend(found.map(|found| found.at(policy.text.place(entry.at.clone()), "here")));
    }
    findings
}

fn finding(found: &FoundDanger, policy: &Policy, forbid: &[Danger]) -> Diagnostic {
    if forbid.contains(&found.danger) {
        forbidden(found, policy)
    } else {
        describe(found, policy)
    }
}

fn forbidden(found: &FoundDanger, policy: &Policy) -> Diagnostic {
    let message = format!(
        "policy `{}` has `{}`, but `{}` is forbidden",
        policy.identity, found.excerpt, found.danger
    );
    let help = "change the policy, or remove the word from `--forbid` or `forbid`";
    Diagnostic::error(Code::Forbidden, message).help(help)
}

fn describe(found: &FoundDanger, policy: &Policy) -> Diagnostic {
    let FoundDanger { danger, excerpt } = found;
    let owner = format!("policy `{}`", policy.identity);
    match danger {
        Danger::LatestTag => Diagnostic::warning(
            Code::LatestImage,
            format!("{owner} uses `{excerpt}`, which can change at any time"),
        )
        .help("specify a version or, better, a digest"),
        Danger::NoDigest => Diagnostic::note(
            Code::NoDigest,
            format!("{owner} uses `{excerpt}` without a digest"),
        )
        .help("pin it: NAME:TAG@sha256:DIGEST"),
        Danger::ClearSecret => Diagnostic::warning(
            Code::ClearSecret,
            format!("{owner} contains a secret in plain text: `{excerpt}`"),
        )
        .help(
            "keep it in a Secret outside the repository, and refer to that Secret: `valueFrom: \
             {secretKeyRef: {name: ..., key: ...}}`",
        ),
        Danger::Privileged
        | Danger::HostPath
        | Danger::HostNamespaces
        | Danger::HostPort
        | Danger::Capabilities
        | Danger::PrivilegeEscalation
        | Danger::RunAsRoot
        | Danger::Unconfined
        | Danger::ShareProcessNamespace
        | Danger::ServiceAccountToken => {
            let message =
                format!("{owner} grants privileges beyond the pod or the container: `{excerpt}`");
            let help = format!("to forbid it, use `--forbid {danger}`");
            Diagnostic::warning(Code::Privilege, message).help(help)
        }
    }
}

/// Warns of patches that would change their own result again, as far as their operations alone show it.
fn patches(policy: &Policy) -> Vec<Diagnostic> {
    let entries = policy.rules.iter().flat_map(|rule| &rule.inject.patches);
    let endless =
        entries.filter(|entry| !has_test(&entry.patch) && entry.patch.iter().any(is_endless));
    endless.map(|entry| never_done(policy, entry)).collect()
}

fn never_done(policy: &Policy, entry: &PatchEntry) -> Diagnostic {
    let message = format!(
        "patch {} of policy `{}` would change its own result if applied again",
        entry.index + 1,
        policy.identity
    );
    let help = "add a `test` first that fails once the patch is applied";
    let place = policy.text.place(entry.item.at.clone());
    Diagnostic::warning(Code::PatchWithoutTest, message)
        .at(place, "here")
        .help(help)
}

fn has_test(patch: &Patch) -> bool {
    patch
        .iter()
        .any(|operation| matches!(operation, PatchOperation::Test(_)))
}

/// Whether an operation changes its own result: `remove` and `move` take one more thing away or fail, and a path that
/// ends in `/-` appends once more (RFC 6902).
fn is_endless(operation: &PatchOperation) -> bool {
    match operation {
        PatchOperation::Remove(_) | PatchOperation::Move(_) => true,
        PatchOperation::Add(_) | PatchOperation::Copy(_) => operation
            .path()
            .last()
            .is_some_and(|token| token.decoded() == "-"),
        PatchOperation::Replace(_) | PatchOperation::Test(_) => false,
    }
}

/// Whether there is a finding above a note.
pub fn has_findings(findings: &[Diagnostic]) -> bool {
    findings
        .iter()
        .any(|finding| finding.severity >= Severity::Warning)
}
