//! What injections need from a cluster, for people and for machines.

use serde::Serialize;

use crate::outcome::needs::{Need, NeedKind, NeedsOfPolicy, NeedsOfRun};
use crate::wording::{count, one_line};

/// So many needs of one policy are spelled out; the others are counted. `--report` has all.
const MOST_NEEDS: usize = 12;

/// One line a policy that needs something: `agent needs: image a:1, Secret shop/token key t`.
pub(crate) fn text(needs: &NeedsOfRun) -> String {
    let policies = needs.policies();
    let in_need = policies.filter(|(_, all)| !all.needs.is_empty());
    in_need.map(|(policy, all)| line(policy, all)).collect()
}

/// A list of policies.
pub(crate) fn as_data(needs: &NeedsOfRun) -> Vec<NeedsData<'_>> {
    let policies = needs.policies();
    policies.map(|(policy, all)| data(policy, all)).collect()
}

fn line(policy: &str, all: &NeedsOfPolicy) -> String {
    let words = |(need, number): (&Need, &usize)| {
        let some = if *number < all.workloads {
            format!(" (in {number})")
        } else {
            String::new()
        };
        format!("{need}{some}")
    };
    let mut shown: Vec<String> = all.needs.iter().take(MOST_NEEDS).map(words).collect();
    if all.needs.len() > MOST_NEEDS {
        shown.push(format!(
            "and {} more, all of which --report FILE names",
            all.needs.len() - MOST_NEEDS
        ));
    }
    let who = if all.workloads > 1 {
        format!(" in {}", count(all.workloads, "workload"))
    } else {
        String::new()
    };
    one_line(&format!("{policy} needs{who}: {}", shown.join(", "))) + "\n"
}

/// A policy's needs in the report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NeedsData<'a> {
    policy: &'a str,
    workloads: usize,
    images: Vec<ImageData<'a>>,
    secrets: Vec<ObjectData<'a>>,
    config_maps: Vec<ObjectData<'a>>,
    persistent_volume_claims: Vec<ObjectData<'a>>,
    service_accounts: Vec<ObjectData<'a>>,
    privileges: Vec<PrivilegeData<'a>>,
}

#[derive(Debug, Serialize)]
struct ImageData<'a> {
    image: &'a str,
    workloads: usize,
}

#[derive(Debug, Serialize)]
struct ObjectData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
    workloads: usize,
}

#[derive(Debug, Serialize)]
struct PrivilegeData<'a> {
    danger: &'a str,
    what: &'a str,
    workloads: usize,
}

fn data<'a>(policy: &'a str, all: &'a NeedsOfPolicy) -> NeedsData<'a> {
    let of = |kind: NeedKind| all.needs.iter().filter(move |(need, _)| need.kind == kind);
    let objects = |kind: NeedKind| {
        let object = |(need, &workloads): (&'a Need, &usize)| ObjectData {
            namespace: need.namespace.as_deref(),
            name: &need.name,
            key: need.detail.as_deref(),
            optional: need.is_optional,
            workloads,
        };
        of(kind).map(object).collect()
    };
    let image = |(need, &workloads): (&'a Need, &usize)| ImageData {
        image: &need.name,
        workloads,
    };
    let privilege = |(need, &workloads): (&'a Need, &usize)| PrivilegeData {
        danger: &need.name,
        what: need.detail.as_deref().unwrap_or_default(),
        workloads,
    };
    NeedsData {
        policy,
        workloads: all.workloads,
        images: of(NeedKind::Image).map(image).collect(),
        secrets: objects(NeedKind::Secret),
        config_maps: objects(NeedKind::ConfigMap),
        persistent_volume_claims: objects(NeedKind::VolumeClaim),
        service_accounts: objects(NeedKind::ServiceAccount),
        privileges: of(NeedKind::Privilege).map(privilege).collect(),
    }
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
        let mut run = NeedsOfRun::default();
        run.add(
            &agent,
            BTreeSet::from([Need::of(NeedKind::Image, "a:1"), secret("token")]),
        );
        assert_eq!(
            text(&run),
            "agent needs: image a:1, Secret shop/token key t\n"
        );
        run.add(&other, BTreeSet::new());
        let mut more = NeedsOfRun::default();
        more.add(&agent, BTreeSet::from([Need::of(NeedKind::Image, "a:1")]));
        run.append(more);
        assert_eq!(
            text(&run),
            "agent needs in 2 workloads: image a:1, Secret shop/token key t (in 1)\n"
        );
    }

    #[test]
    fn long_lists_are_cut() {
        let mut run = NeedsOfRun::default();
        run.add(
            &Arc::from("agent"),
            (0..MOST_NEEDS + 3)
                .map(|at| secret(&at.to_string()))
                .collect(),
        );
        assert!(
            text(&run).ends_with(", and 3 more, all of which --report FILE names\n"),
            "{}",
            text(&run)
        );
    }
}
