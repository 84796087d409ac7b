//! Validates the fields of a pod spec, except for containers and volumes.

use core::net::IpAddr;
use std::collections::BTreeSet;

use super::Checker;
use super::container::MAX_USER_ID;
use crate::policy::names::{self, require};

const MAX_NAMESERVERS: usize = 3;
const NODE_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const LABEL_OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

impl<'v> Checker<'v> {
    pub(crate) fn pod_spec(&mut self) {
        self.simple_pod_fields();
        self.labels("nodeSelector");
        self.each("tolerations", Self::toleration);
        self.spread_constraints();
        self.each("hostAliases", |checker| {
            checker.required_text("ip", check_address);
            checker.texts("hostnames", names::check_dns_subdomain);
        });
        self.visit_key("dnsConfig", Self::dns);
        self.visit_key("affinity", Self::affinity);
        self.visit_key("os", |checker| checker.word("name", &["linux", "windows"]));
        self.each("readinessGates", |checker| {
            checker.text("conditionType", names::check_label_key);
        });
        self.each("resourceClaims", |checker| {
            let sources = ["resourceClaimName", "resourceClaimTemplateName"];
            if let Some(source) = checker.one_of(&sources, "a claim of `resourceClaims`") {
                checker.text(source, names::check_dns_subdomain);
            }
            checker.required_text("name", names::check_dns_label);
        });
        self.amounts("overhead");
        self.visit_key("resources", Self::pod_resources);
        self.each_once("schedulingGates", "name", |checker| {
            checker.text("name", names::check_label_key);
        });
        self.visit_key("securityContext", Self::pod_security_context);
        if self.is_true("hostPID") && self.is_true("shareProcessNamespace") {
            self.add("a pod cannot have both `hostPID` and `shareProcessNamespace`");
        }
    }

    /// Checks the fields of a pod spec that are words, numbers or names.
    fn simple_pod_fields(&mut self) {
        self.text_or_empty("serviceAccountName", names::check_dns_subdomain);
        self.word("restartPolicy", &["", "Always", "OnFailure", "Never"]);
        self.word(
            "dnsPolicy",
            &[
                "",
                "ClusterFirstWithHostNet",
                "ClusterFirst",
                "Default",
                "None",
            ],
        );
        self.word("preemptionPolicy", &["PreemptLowerPriority", "Never"]);
        // The API server makes 1 of it.
        self.likely_mistakes(|checker| {
            checker.number("terminationGracePeriodSeconds", 0..=i64::MAX);
        });
        self.number("activeDeadlineSeconds", 1..=i64::from(i32::MAX));
        self.text_or_empty("hostname", names::check_dns_label);
        self.text_or_empty("subdomain", names::check_dns_label);
        self.text_or_empty("priorityClassName", names::check_dns_subdomain);
        self.text("runtimeClassName", names::check_dns_subdomain);
    }

    /// Checks `topologySpreadConstraints` (`validateTopologySpreadConstraints` of Kubernetes).
    fn spread_constraints(&mut self) {
        let mut known = BTreeSet::new();
        self.each("topologySpreadConstraints", |checker| {
            checker.spread_constraint();
            checker.repeated_spread(&mut known);
        });
    }

    fn repeated_spread(&mut self, known: &mut BTreeSet<[&'v str; 2]>) {
        let [topology, when] = ["topologyKey", "whenUnsatisfiable"].map(|key| self.text_at(key));
        if !known.insert([topology, when]) {
            self.report_rule(format!(
                "has the `topologyKey` and the `whenUnsatisfiable` of an earlier one (`{topology}`, \
                 `{when}`)"
            ));
        }
    }

    fn spread_constraint(&mut self) {
        self.number("maxSkew", 1..=i64::MAX);
        self.needs_text("topologyKey");
        self.word("whenUnsatisfiable", &["DoNotSchedule", "ScheduleAnyway"]);
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            self.word(key, &["Honor", "Ignore"]);
        }
        self.visit_key("labelSelector", Self::label_selector);
        self.number("minDomains", 1..=i64::from(i32::MAX));
        let is_hard = self.text_at("whenUnsatisfiable") == "DoNotSchedule";
        if self.is_stated("minDomains") && !is_hard {
            self.report_rule("has `minDomains`, which requires `whenUnsatisfiable: DoNotSchedule`");
        }
        self.label_keys("matchLabelKeys");
    }

    /// Checks the keys of labels of the pod, which are added to `labelSelector` (`validateLabelKeys` of Kubernetes).
    fn label_keys(&mut self, key: &'static str) {
        if self.list(key).is_empty() {
            return;
        }
        if !self.is_stated("labelSelector") {
            self.report_rule(format!("has `{key}`, which requires `labelSelector`"));
            return;
        }
        self.texts(key, names::check_label_key);
    }

    /// Checks the resources of the pod as a whole.
    fn pod_resources(&mut self) {
        self.resources();
        if !self.list("claims").is_empty() {
            self.add("the `resources` of a pod as a whole cannot have `claims`");
        }
        for kind in ["limits", "requests"] {
            self.fields(kind, |checker, name| {
                if !matches!(name, "cpu" | "memory") && !name.starts_with("hugepages-") {
                    checker.add(format!(
                        "a pod as a whole can have only cpu, memory, and `hugepages-*`, not \
                         `{name}`"
                    ));
                }
            });
        }
    }

    /// Checks a toleration (`ValidateTolerations` of Kubernetes).
    fn toleration(&mut self) {
        let value = self.value;
        self.word("operator", &["", "Equal", "Exists", "Lt", "Gt"]);
        self.word(
            "effect",
            &["", "NoSchedule", "PreferNoSchedule", "NoExecute"],
        );
        self.text_or_empty("key", names::check_label_key);
        if value.text("operator") != "Exists" {
            self.text("value", names::check_label_value);
        }
        if value.text("key").is_empty() && value.text("operator") != "Exists" {
            self.report_rule("must have `operator: Exists` because it has no `key`");
        }
        if value.text("operator") == "Exists" && !value.text("value").is_empty() {
            self.report_rule("has a `value`, which `operator: Exists` does not accept");
        }
        if self.is_stated("tolerationSeconds") && value.text("effect") != "NoExecute" {
            self.report_rule("has `tolerationSeconds`, which requires `effect: NoExecute`");
        }
    }

    pub(crate) fn pod_security_context(&mut self) {
        for key in ["runAsUser", "runAsGroup", "fsGroup"] {
            self.number(key, 0..=MAX_USER_ID);
        }
        self.word("fsGroupChangePolicy", &["OnRootMismatch", "Always"]);
        self.word("supplementalGroupsPolicy", &["Merge", "Strict"]);
        self.word("seLinuxChangePolicy", &["MountOption", "Recursive"]);
        self.each("supplementalGroups", |checker| {
            checker.this_number(0..=MAX_USER_ID);
        });
        self.each_once("sysctls", "name", |checker| {
            checker.required_text("name", check_kernel_parameter);
        });
        self.profiles();
    }

    /// Checks `dnsConfig` (`validatePodDNSConfig` of Kubernetes).
    fn dns(&mut self) {
        self.texts("nameservers", check_address);
        if self.list("nameservers").len() > MAX_NAMESERVERS {
            self.visit_key("nameservers", |checker| {
                checker.report_rule(format!("must have at most {MAX_NAMESERVERS} entries"));
            });
        }
        self.texts("searches", check_search);
        self.each("options", |checker| checker.needs_text("name"));
    }

    /// Checks `affinity` (`validateAffinity` of Kubernetes).
    fn affinity(&mut self) {
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        self.visit_key("nodeAffinity", |checker| {
            checker.visit_key(REQUIRED, Self::node_selector);
            checker.each(PREFERRED, |checker| {
                checker.number("weight", 1..=100);
                checker.visit_key("preference", Self::node_selector_term);
            });
        });
        for key in ["podAffinity", "podAntiAffinity"] {
            self.visit_key(key, |checker| {
                checker.each(REQUIRED, Self::pods);
                checker.each(PREFERRED, |checker| {
                    checker.number("weight", 1..=100);
                    checker.visit_key("podAffinityTerm", Self::pods);
                });
            });
        }
    }

    fn node_selector(&mut self) {
        if self.list("nodeSelectorTerms").is_empty() {
            self.report_rule("must have a term in `nodeSelectorTerms`");
        }
        self.each("nodeSelectorTerms", |checker| {
            checker.node_selector_term();
            checker.each("matchExpressions", |checker| {
                checker.texts("values", names::check_label_value);
            });
        });
    }

    /// Checks a term of a node selector (`ValidateNodeSelectorTerm` of Kubernetes).
    fn node_selector_term(&mut self) {
        self.expressions(&NODE_OPERATORS);
        self.each("matchFields", |checker| {
            checker.word("operator", &["In", "NotIn"]);
            checker.word("key", &["metadata.name"]);
            if checker.list("values").len() != 1 {
                checker.report_rule("must have one entry in `values`");
            }
            checker.texts("values", names::check_dns_subdomain);
        });
    }

    /// Checks a pod affinity term.
    fn pods(&mut self) {
        self.required_text("topologyKey", names::check_label_key);
        for key in ["labelSelector", "namespaceSelector"] {
            self.visit_key(key, Self::label_selector);
        }
        self.texts("namespaces", names::check_dns_label);
        let key_lists = ["matchLabelKeys", "mismatchLabelKeys"];
        for key in key_lists {
            self.label_keys(key);
        }
        let [matching, mismatching] = key_lists.map(|key| self.list(key));
        for key in matching.iter().filter(|key| mismatching.contains(key)) {
            self.report_rule(format!(
                "has `{}` in both `matchLabelKeys` and `mismatchLabelKeys`",
                key.as_str().unwrap_or_default()
            ));
        }
    }

    fn label_selector(&mut self) {
        self.labels("matchLabels");
        self.expressions(&LABEL_OPERATORS);
        self.each("matchExpressions", |checker| {
            checker.texts("values", names::check_label_value);
        });
    }

    /// Checks the mapping of labels at a key.
    fn labels(&mut self, key: &'static str) {
        self.fields(key, |checker, key| {
            checker.rule(names::check_label_key(key));
            checker.this_text(names::check_label_value);
        });
    }

    /// Checks `matchExpressions` of a selector.
    fn expressions(&mut self, operators: &[&str]) {
        self.each("matchExpressions", |checker| {
            checker.text("key", names::check_label_key);
            checker.word("operator", operators);
            checker.operands();
        });
    }

    /// Checks that the operator of an expression has the values that it needs.
    fn operands(&mut self) {
        let count = self.list("values").len();
        let wrong = match self.text_at("operator") {
            "In" | "NotIn" if count == 0 => "must have `values`",
            "Exists" | "DoesNotExist" if count > 0 => {
                "has `values`, which its operator does not accept"
            }
            "Gt" | "Lt" if count != 1 => "must have one entry in `values`",
            _ => return,
        };
        self.report_rule(wrong);
    }
}

fn is_word_of_parameter(word: &str) -> bool {
    let is_body =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    !word.is_empty()
        && word.bytes().all(is_body)
        && !word.starts_with(['-', '_'])
        && !word.ends_with(['-', '_'])
}

fn check_kernel_parameter(name: &str) -> names::RuleCheck {
    require(
        name.len() <= 253 && name.split(['.', '/']).all(is_word_of_parameter),
        "must be words of lowercase letters, digits, `-`, and `_`, separated by `.` or `/`",
    )
}

/// Checks a search domain: besides names, Linux accepts a single dot, and labels that begin with `_`.
fn check_search(search: &str) -> names::RuleCheck {
    let name = search.strip_suffix('.').unwrap_or(search);
    match search {
        "." => Ok(()),
        _ => names::check_dns_subdomain(&name.replace('_', "a")),
    }
}

fn check_address(address: &str) -> names::RuleCheck {
    require(address.parse::<IpAddr>().is_ok(), "must be an IP address")
}
