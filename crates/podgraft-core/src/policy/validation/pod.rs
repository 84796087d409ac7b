//! Validates the fields of a pod spec, except for containers and volumes.

use core::net::IpAddr;

use super::container::MAX_USER_ID;
use super::{Checker, is_stated, text_at};
use crate::policy::names;
use crate::yaml::view::View;

const MAX_NAMESERVERS: usize = 3;
const NODE_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const LABEL_OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

impl<'v> Checker<'v> {
    pub(super) fn pod_spec(&mut self, spec: &'v View<'v>) {
        self.simple_pod_fields(spec);
        self.fields(spec, "nodeSelector", |checker, key, value| {
            checker.rule(names::check_label_key(key));
            checker.rule(value.as_str().map_or(Ok(()), names::check_label_value));
        });
        self.each(spec, "tolerations", Self::toleration);
        self.each(spec, "topologySpreadConstraints", Self::spread_constraint);
        self.each(spec, "hostAliases", |checker, alias| {
            checker.text(alias, "ip", check_address);
            checker.texts(alias, "hostnames", names::check_dns_subdomain);
        });
        self.visit_key(spec, "dnsConfig", Self::dns);
        self.visit_key(spec, "affinity", Self::affinity);
        self.visit_key(spec, "os", |checker, system| {
            checker.word(system, "name", &["linux", "windows"]);
        });
        self.each(spec, "readinessGates", |checker, gate| {
            checker.text(gate, "conditionType", names::check_label_key);
        });
        self.each(spec, "resourceClaims", |checker, claim| {
            let sources = ["resourceClaimName", "resourceClaimTemplateName"];
            checker.one_of(claim, &sources, "a claim of `resourceClaims`");
        });
        self.amounts(spec, "overhead");
        self.visit_key(spec, "resources", Self::pod_resources);
        self.each_once(spec, "schedulingGates", "name", |checker, gate| {
            checker.text(gate, "name", names::check_label_key);
        });
        self.visit_key(spec, "securityContext", Self::pod_security_context);
        let is_true = |key: &str| spec.get(key) == Some(&View::Bool(true));
        if is_true("hostPID") && is_true("shareProcessNamespace") {
            self.add("a pod has either `hostPID` or `shareProcessNamespace`");
        }
    }

    /// Checks the fields of a pod spec that are words, numbers or names.
    fn simple_pod_fields(&mut self, spec: &'v View<'v>) {
        self.text_or_empty(spec, "serviceAccountName", names::check_dns_subdomain);
        self.word(spec, "restartPolicy", &["Always", "OnFailure", "Never"]);
        self.word(
            spec,
            "dnsPolicy",
            &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        );
        self.word(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
        self.number(spec, "terminationGracePeriodSeconds", 0..=i64::MAX);
        self.number(spec, "activeDeadlineSeconds", 1..=i64::from(i32::MAX));
        self.text(spec, "hostname", names::check_dns_label);
        self.text(spec, "subdomain", names::check_dns_label);
        for key in ["priorityClassName", "runtimeClassName"] {
            self.text(spec, key, names::check_dns_subdomain);
        }
    }

    fn spread_constraint(&mut self, constraint: &'v View<'v>) {
        self.number(constraint, "maxSkew", 1..=i64::MAX);
        self.needs_text(constraint, "topologyKey");
        self.word(
            constraint,
            "whenUnsatisfiable",
            &["DoNotSchedule", "ScheduleAnyway"],
        );
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            self.word(constraint, key, &["Honor", "Ignore"]);
        }
        self.number(constraint, "minDomains", 1..=i64::from(i32::MAX));
        let is_hard = text_at(constraint, "whenUnsatisfiable") == "DoNotSchedule";
        if is_stated(constraint, "minDomains") && !is_hard {
            self.report_rule(
                "has `minDomains`, which goes with `whenUnsatisfiable: DoNotSchedule` only",
            );
        }
        if is_stated(constraint, "matchLabelKeys") && !is_stated(constraint, "labelSelector") {
            self.report_rule("has `matchLabelKeys`, which needs a `labelSelector`");
        }
    }

    /// Checks the resources of the pod as a whole.
    fn pod_resources(&mut self, resources: &'v View<'v>) {
        self.resources(resources);
        for kind in ["limits", "requests"] {
            self.fields(resources, kind, |checker, name, _| {
                if !matches!(name, "cpu" | "memory") && !name.starts_with("hugepages-") {
                    checker.add(format!(
                        "a pod as a whole has cpu, memory and `hugepages-*`, not `{name}`"
                    ));
                }
            });
        }
    }

    /// Checks a toleration (`ValidateTolerations` of Kubernetes).
    fn toleration(&mut self, toleration: &'v View<'v>) {
        let text = |key: &str| text_at(toleration, key);
        self.word(toleration, "operator", &["", "Equal", "Exists", "Lt", "Gt"]);
        self.word(
            toleration,
            "effect",
            &["", "NoSchedule", "PreferNoSchedule", "NoExecute"],
        );
        self.text_or_empty(toleration, "key", names::check_label_key);
        if text("operator") != "Exists" {
            self.text(toleration, "value", names::check_label_value);
        }
        if text("key").is_empty() && text("operator") != "Exists" {
            self.report_rule("needs `operator: Exists`, for it has no `key`");
        }
        if text("operator") == "Exists" && !text("value").is_empty() {
            self.report_rule("has a `value`, which `operator: Exists` does not take");
        }
        if is_stated(toleration, "tolerationSeconds") && text("effect") != "NoExecute" {
            self.report_rule("has `tolerationSeconds`, which goes with `effect: NoExecute` only");
        }
    }

    pub(super) fn pod_security_context(&mut self, context: &'v View<'v>) {
        for key in ["runAsUser", "runAsGroup", "fsGroup"] {
            self.number(context, key, 0..=MAX_USER_ID);
        }
        self.word(
            context,
            "fsGroupChangePolicy",
            &["OnRootMismatch", "Always"],
        );
        self.word(context, "supplementalGroupsPolicy", &["Merge", "Strict"]);
        self.word(
            context,
            "seLinuxChangePolicy",
            &["MountOption", "Recursive"],
        );
        self.each(context, "supplementalGroups", |checker, group| {
            if group
                .as_i64()
                .is_some_and(|group| !(0..=MAX_USER_ID).contains(&group))
            {
                checker.report_rule(format!("must be between 0 and {MAX_USER_ID}, not {group}"));
            }
        });
        self.each_once(context, "sysctls", "name", |checker, parameter| {
            checker.required_text(parameter, "name", check_kernel_parameter);
        });
        self.profiles(context);
    }

    /// Checks `dnsConfig` (`validatePodDNSConfig` of Kubernetes).
    fn dns(&mut self, config: &'v View<'v>) {
        self.texts(config, "nameservers", check_address);
        self.visit_key(config, "nameservers", |checker, nameservers| {
            if nameservers
                .as_array()
                .is_some_and(|nameservers| nameservers.len() > MAX_NAMESERVERS)
            {
                checker.report_rule(format!("must be at most {MAX_NAMESERVERS}"));
            }
        });
        self.texts(config, "searches", check_search);
        self.each(config, "options", |checker, option| {
            checker.needs_text(option, "name")
        });
    }

    /// Checks `affinity` (`validateAffinity` of Kubernetes).
    fn affinity(&mut self, affinity: &'v View<'v>) {
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        self.visit_key(affinity, "nodeAffinity", |checker, nodes| {
            checker.visit_key(nodes, REQUIRED, Self::node_selector);
            checker.each(nodes, PREFERRED, |checker, preferred| {
                checker.number(preferred, "weight", 1..=100);
                checker.visit_key(preferred, "preference", |checker, term| {
                    checker.expressions(term, &NODE_OPERATORS);
                });
            });
        });
        for key in ["podAffinity", "podAntiAffinity"] {
            self.visit_key(affinity, key, |checker, pods| {
                checker.each(pods, REQUIRED, Self::pods);
                checker.each(pods, PREFERRED, |checker, preferred| {
                    checker.number(preferred, "weight", 1..=100);
                    checker.visit_key(preferred, "podAffinityTerm", Self::pods);
                });
            });
        }
    }

    fn node_selector(&mut self, selector: &'v View<'v>) {
        let terms = selector.get("nodeSelectorTerms").and_then(View::as_array);
        if terms.is_none_or(Vec::is_empty) {
            self.report_rule("needs a term in `nodeSelectorTerms`");
        }
        self.each(selector, "nodeSelectorTerms", |checker, term| {
            checker.expressions(term, &NODE_OPERATORS);
        });
    }

    /// Checks a pod affinity term.
    fn pods(&mut self, term: &'v View<'v>) {
        self.required_text(term, "topologyKey", names::check_label_key);
        for key in ["labelSelector", "namespaceSelector"] {
            self.visit_key(term, key, |checker, selector| {
                checker.expressions(selector, &LABEL_OPERATORS);
            });
        }
    }

    /// Checks `matchExpressions` of a selector.
    fn expressions(&mut self, holder: &'v View<'v>, operators: &[&str]) {
        self.each(holder, "matchExpressions", |checker, expression| {
            checker.text(expression, "key", names::check_label_key);
            checker.word(expression, "operator", operators);
            checker.operands(expression);
        });
    }

    /// Checks that the operator of an expression has the values that it needs.
    fn operands(&mut self, expression: &View<'_>) {
        let values = expression.get("values").and_then(View::as_array);
        let count = values.map_or(0, Vec::len);
        let wrong = match expression.get("operator").and_then(View::as_str) {
            Some("In" | "NotIn") if count == 0 => "needs `values`",
            Some("Exists" | "DoesNotExist") if count > 0 => {
                "has `values`, which its operator does not take"
            }
            Some("Gt" | "Lt") if count != 1 => "needs one entry in `values`",
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
    match name.len() <= 253 && name.split(['.', '/']).all(is_word_of_parameter) {
        true => Ok(()),
        false => {
            Err("must be lower-case words of letters, digits, `-` and `_`, with `.` or `/` between")
        }
    }
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
    address
        .parse::<IpAddr>()
        .map(|_| ())
        .map_err(|_| "must be an IP address")
}
