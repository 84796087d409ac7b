//! What injections need from a cluster, as data: what must be there, what nodes pull, and what gives power.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::{ReportedFile, count, one_line};

/// So many needs of one policy are spelled out; the others are counted. `--report` has all.
const MOST_NEEDS: usize = 12;

/// What kind of thing is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeedKind {
    /// An image that nodes pull.
    Image,
    /// A Secret, or one key of it.
    Secret,
    /// A ConfigMap, or one key of it.
    ConfigMap,
    /// A PersistentVolumeClaim.
    VolumeClaim,
    /// The service account that pods run as.
    ServiceAccount,
    /// What gives a container power beyond its pod.
    Privilege,
}

/// One thing that an injection needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// What kind of thing.
    pub kind: NeedKind,
    /// Of an object, its namespace, where it is known.
    pub namespace: Option<String>,
    /// The image, the object's name, or the danger's name as `--forbid` takes it.
    pub name: String,
    /// Of a Secret or ConfigMap, the key; of a privilege, the words that give it: `hostPath: /var/log`.
    pub detail: Option<String>,
    /// Pods start without it.
    pub is_optional: bool,
}

impl Need {
    /// One without a namespace and a detail.
    pub fn of(kind: NeedKind, name: &str) -> Self {
        Need {
            kind,
            namespace: None,
            name: name.to_owned(),
            detail: None,
            is_optional: false,
        }
    }
}

impl Need {
    /// Without the kind: `a:1`, `shop/token key t`, `host-path (hostPath: /var/log)`.
    pub fn words(&self) -> String {
        let Need {
            kind,
            namespace,
            name,
            detail,
            is_optional,
        } = self;
        let namespace = namespace
            .as_ref()
            .map(|namespace| format!("{namespace}/"))
            .unwrap_or_default();
        let detail = match (detail, kind) {
            (Some(what), NeedKind::Privilege) => format!(" ({what})"),
            (Some(key), _) => format!(" key {key}"),
            (None, _) => String::new(),
        };
        let optional = if *is_optional { " (optional)" } else { "" };
        format!("{namespace}{name}{detail}{optional}")
    }
}

/// `image a:1`, `Secret shop/token key t`, `host-path (hostPath: /var/log)`.
impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            NeedKind::Image => "image ",
            NeedKind::Secret => "Secret ",
            NeedKind::ConfigMap => "ConfigMap ",
            NeedKind::VolumeClaim => "volume claim ",
            NeedKind::ServiceAccount => "service account ",
            NeedKind::Privilege => "",
        })?;
        f.write_str(&self.words())
    }
}

/// What one policy needs, over several workloads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeedsOfPolicy {
    /// The workloads that it applies to.
    pub workloads: usize,
    /// What it needs, each with the number of workloads that it is for.
    pub needs: BTreeMap<Need, usize>,
}

/// What each policy needs, in the order in which they apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NeedsOfRun(Vec<(Arc<str>, NeedsOfPolicy)>);

impl NeedsOfRun {
    /// What a policy needs for one workload.
    pub fn add(&mut self, policy: &Arc<str>, needs: BTreeSet<Need>) {
        let all = self.of(policy);
        all.workloads += 1;
        needs
            .into_iter()
            .for_each(|need| *all.needs.entry(need).or_default() += 1);
    }

    /// Adds what came of other workloads.
    pub fn append(&mut self, others: NeedsOfRun) {
        for (policy, more) in others.0 {
            let all = self.of(&policy);
            all.workloads += more.workloads;
            more.needs
                .into_iter()
                .for_each(|(need, number)| *all.needs.entry(need).or_default() += number);
        }
    }

    fn of(&mut self, policy: &Arc<str>) -> &mut NeedsOfPolicy {
        let at = self
            .0
            .iter()
            .position(|(known, _)| known == policy)
            .unwrap_or_else(|| {
                self.0.push((Arc::clone(policy), NeedsOfPolicy::default()));
                self.0.len() - 1
            });
        &mut self.0[at].1
    }

    /// Of all files.
    pub fn of_files(files: &[ReportedFile<'_>]) -> Self {
        let mut all = NeedsOfRun::default();
        files
            .iter()
            .for_each(|file| all.append(file.report.needs.clone()));
        all
    }

    /// One line a policy that needs something: `agent needs: image a:1, Secret shop/token key t`.
    pub fn text(&self) -> String {
        self.0
            .iter()
            .filter(|(_, all)| !all.needs.is_empty())
            .map(|(policy, all)| line(policy, all))
            .collect()
    }

    /// For machines: a list of policies.
    pub fn as_data(&self) -> Vec<NeedsData<'_>> {
        self.0
            .iter()
            .map(|(policy, all)| data(policy, all))
            .collect()
    }
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
pub struct NeedsData<'a> {
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
            run.text(),
            "agent needs: image a:1, Secret shop/token key t\n"
        );
        run.add(&other, BTreeSet::new());
        let mut more = NeedsOfRun::default();
        more.add(&agent, BTreeSet::from([Need::of(NeedKind::Image, "a:1")]));
        run.append(more);
        assert_eq!(
            run.text(),
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
            run.text()
                .ends_with(", and 3 more, all of which --report FILE names\n"),
            "{}",
            run.text()
        );
    }
}
