//! What injections need from a cluster: objects that must exist, images that nodes pull, and privileges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use super::ReportedFile;

/// The kind of a need.
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
    /// A setting that gives a container privileges beyond its pod.
    Privilege,
}

impl NeedKind {
    /// The kind of need that an object of the core group meets. Pods refer to such objects by name, in their namespace.
    pub(crate) fn of_object(kind: &str) -> Option<Self> {
        match kind {
            "Secret" => Some(NeedKind::Secret),
            "ConfigMap" => Some(NeedKind::ConfigMap),
            "PersistentVolumeClaim" => Some(NeedKind::VolumeClaim),
            "ServiceAccount" => Some(NeedKind::ServiceAccount),
            _ => None,
        }
    }
}

/// One thing that an injection needs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// The kind of thing that is needed.
    pub kind: NeedKind,
    /// The namespace of an object, if known.
    pub namespace: Option<String>,
    /// The image, the object's name, or the privilege as `--forbid` names it.
    pub name: String,
    /// The key of a Secret or ConfigMap, or the setting that gives a privilege: `hostPath: /var/log`.
    pub detail: Option<String>,
    /// Pods start without it.
    pub is_optional: bool,
}

impl Need {
    /// A need without namespace and detail.
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
    /// Describes the need without its kind: `a:1`, `shop/token key t`, `host-path (hostPath: /var/log)`.
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
            (Some(detail), NeedKind::Privilege) => format!(" ({detail})"),
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

/// What one policy needs for all workloads that it applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyNeeds {
    /// The number of workloads that it applies to.
    pub workloads: usize,
    /// Its needs, each with the number of workloads that have it.
    pub needs: BTreeMap<Need, usize>,
}

/// What each policy needs, in the order in which they apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunNeeds(Vec<(Arc<str>, PolicyNeeds)>);

impl RunNeeds {
    /// Adds what a policy needs for one workload.
    pub fn add(&mut self, policy: &Arc<str>, needs: BTreeSet<Need>) {
        let policy_needs = self.of(policy);
        policy_needs.workloads += 1;
        needs
            .into_iter()
            .for_each(|need| *policy_needs.needs.entry(need).or_default() += 1);
    }

    /// Adds the needs of other workloads.
    pub fn append(&mut self, other: RunNeeds) {
        for (policy, more) in other.0 {
            let policy_needs = self.of(&policy);
            policy_needs.workloads += more.workloads;
            more.needs
                .into_iter()
                .for_each(|(need, number)| *policy_needs.needs.entry(need).or_default() += number);
        }
    }

    fn of(&mut self, policy: &Arc<str>) -> &mut PolicyNeeds {
        let at = self
            .0
            .iter()
            .position(|(known, _)| known == policy)
            .unwrap_or_else(|| {
                self.0.push((Arc::clone(policy), PolicyNeeds::default()));
                self.0.len() - 1
            });
        &mut self.0[at].1
    }

    /// The needs of each policy, in the order in which they apply.
    pub fn policies(&self) -> impl Iterator<Item = (&str, &PolicyNeeds)> {
        self.0
            .iter()
            .map(|(policy, policy_needs)| (&**policy, policy_needs))
    }

    /// The needs of all files.
    pub fn of_files(files: &[ReportedFile<'_>]) -> Self {
        let mut total = RunNeeds::default();
        files
            .iter()
            .for_each(|file| total.append(file.report.needs.clone()));
        total
    }
}
