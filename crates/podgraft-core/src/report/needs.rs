//! Renders what injections need from a cluster, as text and as JSON.

use serde_json::{Value, json};

use crate::outcome::needs::{Need, NeedKind, PolicyNeeds, RunNeeds};
use crate::wording::{count, one_line, without_nulls};

/// The most needs of one policy that are listed; the others are counted. `--report` has all.
const MAX_NEEDS: usize = 12;

/// One line for each policy that needs something: `agent needs: image a:1, Secret shop/token key t`.
pub(crate) fn text(needs: &RunNeeds) -> String {
    let policies = needs.policies();
    let in_need = policies.filter(|(_, policy_needs)| !policy_needs.needs.is_empty());
    in_need
        .map(|(policy, policy_needs)| line(policy, policy_needs))
        .collect()
}

/// The needs of each policy, for the JSON report.
pub(crate) fn as_data(needs: &RunNeeds) -> Vec<Value> {
    let policies = needs.policies();
    policies
        .map(|(policy, policy_needs)| data(policy, policy_needs))
        .collect()
}

fn line(policy: &str, policy_needs: &PolicyNeeds) -> String {
    let first = policy_needs.needs.iter().take(MAX_NEEDS);
    let first = first.map(|(need, number)| match *number < policy_needs.workloads {
        true => format!("{need} (in {number})"),
        false => need.to_string(),
    });
    let mut shown: Vec<String> = first.collect();
    if policy_needs.needs.len() > MAX_NEEDS {
        shown.push(format!(
            "and {} more; --report FILE lists all",
            policy_needs.needs.len() - MAX_NEEDS
        ));
    }
    let scope = if policy_needs.workloads > 1 {
        format!(" in {}", count(policy_needs.workloads, "workload"))
    } else {
        String::new()
    };
    one_line(&format!("{policy} needs{scope}: {}", shown.join(", "))) + "\n"
}

/// The needs of one policy in the JSON report.
fn data(policy: &str, policy_needs: &PolicyNeeds) -> Value {
    let all = |kind: NeedKind, entry: fn(&Need, usize) -> Value| -> Value {
        let needs = policy_needs.needs.iter();
        let needs = needs.filter(|(need, _)| need.kind == kind);
        needs.map(|(need, count)| entry(need, *count)).collect()
    };
    json!({
        "policy": policy,
        "workloads": policy_needs.workloads,
        "images": all(NeedKind::Image, |need, count| json!({"image": need.name, "workloads": count})),
        "secrets": all(NeedKind::Secret, object),
        "configMaps": all(NeedKind::ConfigMap, object),
        "persistentVolumeClaims": all(NeedKind::VolumeClaim, object),
        "serviceAccounts": all(NeedKind::ServiceAccount, object),
        "privileges": all(NeedKind::Privilege, |need, count| {
            let what = need.detail.as_deref().unwrap_or_default();
            json!({"danger": need.name, "what": what, "workloads": count})
        }),
    })
}

fn object(need: &Need, workloads: usize) -> Value {
    without_nulls(json!({
        "namespace": need.namespace,
        "name": need.name,
        "key": need.detail,
        "optional": need.is_optional.then_some(true),
        "workloads": workloads,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    fn secret(name: &str) -> Need {
        let (namespace, detail) = (Some("shop".to_owned()), Some("t".to_owned()));
        Need {
            namespace,
            detail,
            ..Need::of(NeedKind::Secret, name)
        }
    }

    #[test]
    fn what_not_all_workloads_need_is_counted() {
        let (agent, other) = (Arc::from("agent"), Arc::from("other"));
        let mut run = RunNeeds::default();
        run.add(
            &agent,
            BTreeSet::from([Need::of(NeedKind::Image, "a:1"), secret("token")]),
        );
        assert_eq!(
            text(&run),
            "agent needs: image a:1, Secret shop/token key t\n"
        );
        run.add(&other, BTreeSet::new());
        let mut more = RunNeeds::default();
        more.add(&agent, BTreeSet::from([Need::of(NeedKind::Image, "a:1")]));
        run.append(more);
        assert_eq!(
            text(&run),
            "agent needs in 2 workloads: image a:1, Secret shop/token key t (in 1)\n"
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let mut run = RunNeeds::default();
        run.add(
            &Arc::from("agent"),
            (0..MAX_NEEDS + 3)
                .map(|at| secret(&at.to_string()))
                .collect(),
        );
        assert!(
            text(&run).ends_with(", and 3 more; --report FILE lists all\n"),
            "{}",
            text(&run)
        );
    }
}
