//! `--workload`: selects the workloads of a run, in the notation of kubectl.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use globset::GlobMatcher;

use crate::glob::{self, GlobSubject};

/// kubectl's short names of kinds with a pod template.
const SHORT_NAMES: &[(&str, &str)] = &[
    ("po", "pod"),
    ("deploy", "deployment"),
    ("sts", "statefulset"),
    ("ds", "daemonset"),
    ("rs", "replicaset"),
    ("rc", "replicationcontroller"),
    ("cj", "cronjob"),
    ("ro", "rollout"),
    ("dc", "deploymentconfig"),
    ("ksvc", "service"),
    ("gs", "gameserver"),
    ("sj", "scaledjob"),
];

/// Globs for the kind, namespace and name of a workload. An unknown namespace is matched as empty text.
#[derive(Debug, Clone)]
pub struct WorkloadPattern {
    /// The pattern as it was given.
    pub text: String,
    kinds: Vec<GlobMatcher>,
    namespace: Option<GlobMatcher>,
    name: GlobMatcher,
    /// Whether a workload of the run has matched. Shared by the threads of a run, and by clones.
    is_met: Arc<AtomicBool>,
}

impl WorkloadPattern {
    /// Parses `KIND/NAME`, `KIND/NAMESPACE/NAME`, or the title of a workload in a report (`deployment shop/orders`).
    /// Kinds are written as in kubectl: in any case, in the plural, as a short name, or with a group
    /// (`deployments.apps`).
    ///
    /// # Errors
    /// If the number of parts is another, or a glob does not compile.
    pub fn parse(text: &str) -> Result<Self, String> {
        let slashes = text.trim().replacen(' ', "/", 1);
        let parts: Vec<&str> = slashes.split('/').collect();
        let (kind, namespace, name) = match parts.as_slice() {
            [kind, name] => (*kind, None, *name),
            [kind, namespace, name] => (*kind, Some(*namespace), *name),
            _ => {
                return Err(
                    "expected kind/name or kind/namespace/name, such as deploy/orders or sts/shop/*"
                        .to_owned(),
                );
            }
        };
        if kind.is_empty() || name.is_empty() {
            return Err("the kind or the name is missing; `*` matches any".to_owned());
        }
        let glob = |text: &str| glob::compile(text, GlobSubject::TextOfAnyCase);
        Ok(WorkloadPattern {
            text: text.to_owned(),
            kinds: kinds_of(kind)
                .iter()
                .map(|kind| glob(kind))
                .collect::<Result<_, _>>()?,
            namespace: namespace.map(glob).transpose()?,
            name: glob(name)?,
            is_met: Arc::default(),
        })
    }

    /// Whether the pattern matches a workload. If so, it is marked as met.
    pub fn matches(&self, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        let is_of_namespace = |wanted: &GlobMatcher| wanted.is_match(namespace.unwrap_or_default());
        let fits = self.kinds.iter().any(|wanted| wanted.is_match(kind))
            && self.namespace.as_ref().is_none_or(is_of_namespace)
            && self.name.is_match(name);
        if fits {
            self.is_met.store(true, Ordering::Relaxed);
        }
        fits
    }

    /// Whether the pattern matches a workload with this title (`Deployment shop/orders`).
    pub(crate) fn fits_title(&self, title: &str) -> bool {
        let (kind, rest) = title.split_once(' ').unwrap_or((title, ""));
        match rest.split_once('/') {
            Some((namespace, name)) => self.matches(kind, Some(namespace), name),
            None => self.matches(kind, None, rest),
        }
    }

    /// Whether the pattern has matched a workload.
    pub fn is_met(&self) -> bool {
        self.is_met.load(Ordering::Relaxed)
    }
}

/// The kinds that kubectl accepts a word for, as globs in lower case. A trailing `s` or `es` may be a plural.
fn kinds_of(word: &str) -> Vec<String> {
    let is_glob = word.contains(['*', '?', '[', '{']);
    let lower = word.to_lowercase();
    let plain = match lower.split_once('.') {
        Some((kind, _)) if !is_glob => kind.to_owned(),
        _ => lower,
    };
    let mut kinds = vec![plain.clone()];
    if is_glob {
        return kinds;
    }
    if let Some((_, kind)) = SHORT_NAMES.iter().find(|(short, _)| *short == plain) {
        kinds.push((*kind).to_owned());
    }
    kinds.extend(plain.strip_suffix('s').map(str::to_owned));
    kinds.extend(plain.strip_suffix("es").map(str::to_owned));
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(pattern: &str, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        WorkloadPattern::parse(pattern)
            .expect("it can be read")
            .matches(kind, namespace, name)
    }

    #[test]
    fn kinds_are_written_as_in_kubectl() {
        for word in [
            "deploy",
            "deployment",
            "Deployments",
            "DEPLOY",
            "deployments.apps",
            "Deploy*",
            "*",
        ] {
            let pattern = format!("{word}/orders");
            assert!(
                fits(&pattern, "Deployment", Some("shop"), "orders"),
                "{word}"
            );
            assert_eq!(
                fits(&pattern, "DaemonSet", Some("shop"), "orders"),
                word == "*",
                "{word}"
            );
        }
        assert!(fits("sts/*/db", "StatefulSet", None, "db"));
        assert!(fits("cronjobs/shop/*", "CronJob", Some("shop"), "bill"));
    }

    #[test]
    fn what_a_report_prints_can_be_pasted_back() {
        assert!(fits(
            "deployment shop/orders",
            "Deployment",
            Some("shop"),
            "orders"
        ));
        assert!(fits("Deployment orders", "Deployment", None, "orders"));
        assert!(!fits(
            "deployment shop/orders",
            "Deployment",
            Some("web"),
            "orders"
        ));
    }

    #[test]
    fn a_pattern_knows_whether_it_was_met() {
        let pattern = WorkloadPattern::parse("deploy/orders").expect("it can be read");
        assert!(!pattern.matches("Deployment", None, "cart") && !pattern.is_met());
        assert!(pattern.matches("Deployment", None, "orders") && pattern.clone().is_met());
        for wrong in ["orders", "a/b/c/d", "/orders", "deploy/"] {
            assert!(WorkloadPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
