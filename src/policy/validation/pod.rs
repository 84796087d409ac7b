//! Validates the fields of a pod spec, except for containers and volumes.

use core::net::IpAddr;
use std::collections::BTreeSet;

use super::Checker;
use crate::policy::names;
use crate::yaml::view::View;

const MAX_USER_ID: i64 = i32::MAX as i64;
const MAX_NAMESERVERS: usize = 3;
const NODE_OPERATORS: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
const LABEL_OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

impl<'v> Checker<'v> {
    pub(super) fn pod_spec(&mut self, spec: &'v View<'v>) {
        self.text(spec, "serviceAccountName", |name| match name.is_empty() {
            true => Ok(()),
            false => names::check_dns_subdomain(name),
        });
        self.word(spec, "restartPolicy", &["Always", "OnFailure", "Never"]);
        self.word(
            spec,
            "dnsPolicy",
            &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        );
        self.word(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"]);
        self.number(spec, "terminationGracePeriodSeconds", (0, i64::MAX));
        self.number(spec, "activeDeadlineSeconds", (1, i64::from(i32::MAX)));
        self.text(spec, "hostname", names::check_dns_label);
        self.text(spec, "subdomain", names::check_dns_label);
        for key in ["priorityClassName", "runtimeClassName"] {
            self.text(spec, key, names::check_dns_subdomain);
        }
        self.fields(spec, "nodeSelector", |checker, key, value| {
            checker.rule(names::check_label_key(key));
            checker.rule(value.as_str().map_or(Ok(()), names::check_label_value));
        });
        self.each(spec, "tolerations", Self::toleration);
        self.each(spec, "topologySpreadConstraints", |checker, constraint| {
            checker.number(constraint, "maxSkew", (1, i64::MAX));
            checker.needs_text(constraint, "topologyKey");
            checker.word(
                constraint,
                "whenUnsatisfiable",
                &["DoNotSchedule", "ScheduleAnyway"],
            );
            for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
                checker.word(constraint, key, &["Honor", "Ignore"]);
            }
            checker.number(constraint, "minDomains", (1, i64::from(i32::MAX)));
            let states = |key: &str| constraint.get(key).is_some_and(|value| !value.is_null());
            let is_hard = constraint
                .get("whenUnsatisfiable")
                .is_some_and(|when| when == "DoNotSchedule");
            if states("minDomains") && !is_hard {
                checker.report_rule(
                    "has `minDomains`, which goes with `whenUnsatisfiable: DoNotSchedule` only",
                );
            }
            if states("matchLabelKeys") && !states("labelSelector") {
                checker.report_rule("has `matchLabelKeys`, which needs a `labelSelector`");
            }
        });
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
            checker.one_of(
                claim,
                &["resourceClaimName", "resourceClaimTemplateName"],
                "a claim of `resourceClaims`",
            );
        });
        self.amounts(spec, "overhead");
        self.visit_key(spec, "resources", |checker, resources| {
            checker.resources(resources);
            for kind in ["limits", "requests"] {
                checker.fields(resources, kind, |checker, name, _| {
                    if !matches!(name, "cpu" | "memory") && !name.starts_with("hugepages-") {
                        checker.add(format!(
                            "a pod as a whole has cpu, memory and `hugepages-*`, not `{name}`"
                        ));
                    }
                });
            }
        });
        let mut gates = BTreeSet::new();
        self.each(spec, "schedulingGates", |checker, gate| {
            checker.text(gate, "name", names::check_label_key);
            if !gates.insert(gate.get("name").and_then(View::as_str)) {
                checker.report_rule("stands twice");
            }
        });
        self.visit_key(spec, "securityContext", Self::pod_security_context);
        let is_true = |key: &str| spec.get(key) == Some(&View::Bool(true));
        if is_true("hostPID") && is_true("shareProcessNamespace") {
            self.add("a pod has either `hostPID` or `shareProcessNamespace`");
        }
    }

    /// Checks a toleration (`ValidateTolerations` of Kubernetes).
    fn toleration(&mut self, toleration: &'v View<'v>) {
        let text = |key: &str| {
            toleration
                .get(key)
                .and_then(View::as_str)
                .unwrap_or_default()
        };
        self.word(toleration, "operator", &["", "Equal", "Exists", "Lt", "Gt"]);
        self.word(
            toleration,
            "effect",
            &["", "NoSchedule", "PreferNoSchedule", "NoExecute"],
        );
        self.text(toleration, "key", |key| {
            if key.is_empty() {
                Ok(())
            } else {
                names::check_label_key(key)
            }
        });
        if text("operator") != "Exists" {
            self.text(toleration, "value", names::check_label_value);
        }
        if text("key").is_empty() && text("operator") != "Exists" {
            self.report_rule("needs `operator: Exists`, for it has no `key`");
        }
        if text("operator") == "Exists" && !text("value").is_empty() {
            self.report_rule("has a `value`, which `operator: Exists` does not take");
        }
        if toleration
            .get("tolerationSeconds")
            .is_some_and(|seconds| !seconds.is_null())
            && text("effect") != "NoExecute"
        {
            self.report_rule("has `tolerationSeconds`, which goes with `effect: NoExecute` only");
        }
    }

    pub(super) fn pod_security_context(&mut self, context: &'v View<'v>) {
        for key in ["runAsUser", "runAsGroup", "fsGroup"] {
            self.number(context, key, (0, MAX_USER_ID));
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
        let mut names = BTreeSet::new();
        self.each(context, "sysctls", |checker, parameter| {
            checker.needs_text(parameter, "name");
            checker.text(parameter, "name", check_kernel_parameter);
            if !names.insert(parameter.get("name").and_then(View::as_str)) {
                checker.report_rule("stands twice");
            }
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
        self.texts(config, "searches", |search| {
            // Besides names, Linux accepts a single dot, and labels that begin with `_`.
            let name = search.strip_suffix('.').unwrap_or(search).replace('_', "a");
            if search == "." {
                Ok(())
            } else {
                names::check_dns_subdomain(&name)
            }
        });
        self.each(config, "options", |checker, option| {
            checker.needs_text(option, "name")
        });
    }

    /// Checks `affinity` (`validateAffinity` of Kubernetes).
    fn affinity(&mut self, affinity: &'v View<'v>) {
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        self.visit_key(affinity, "nodeAffinity", |checker, nodes| {
            checker.visit_key(nodes, REQUIRED, |checker, selector| {
                let terms = selector.get("nodeSelectorTerms").and_then(View::as_array);
                if terms.is_none_or(Vec::is_empty) {
                    checker.report_rule("needs a term in `nodeSelectorTerms`");
                }
                checker.each(selector, "nodeSelectorTerms", |checker, term| {
                    checker.expressions(term, &NODE_OPERATORS);
                });
            });
            checker.each(nodes, PREFERRED, |checker, preferred| {
                checker.number(preferred, "weight", (1, 100));
                checker.visit_key(preferred, "preference", |checker, term| {
                    checker.expressions(term, &NODE_OPERATORS);
                });
            });
        });
        for key in ["podAffinity", "podAntiAffinity"] {
            self.visit_key(affinity, key, |checker, pods| {
                checker.each(pods, REQUIRED, Self::pods);
                checker.each(pods, PREFERRED, |checker, preferred| {
                    checker.number(preferred, "weight", (1, 100));
                    checker.visit_key(preferred, "podAffinityTerm", Self::pods);
                });
            });
        }
    }

    /// Checks a pod affinity term.
    fn pods(&mut self, term: &'v View<'v>) {
        self.needs_text(term, "topologyKey");
        self.text(term, "topologyKey", |key| match key.is_empty() {
            true => Ok(()),
            false => names::check_label_key(key),
        });
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
            let count = expression
                .get("values")
                .and_then(View::as_array)
                .map_or(0, Vec::len);
            let wrong = match expression.get("operator").and_then(View::as_str) {
                Some("In" | "NotIn") if count == 0 => "needs `values`",
                Some("Exists" | "DoesNotExist") if count > 0 => {
                    "has `values`, which its operator does not take"
                }
                Some("Gt" | "Lt") if count != 1 => "needs one entry in `values`",
                _ => return,
            };
            checker.report_rule(wrong);
        });
    }
}

fn check_kernel_parameter(name: &str) -> names::RuleCheck {
    let is_word = |word: &str| {
        let is_body =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        !word.is_empty()
            && word.bytes().all(is_body)
            && !word.starts_with(['-', '_'])
            && !word.ends_with(['-', '_'])
    };
    match name.is_empty() || name.len() <= 253 && name.split(['.', '/']).all(is_word) {
        true => Ok(()),
        false => {
            Err("must be lower-case words of letters, digits, `-` and `_`, with `.` or `/` between")
        }
    }
}

fn check_address(address: &str) -> names::RuleCheck {
    address
        .parse::<IpAddr>()
        .map(|_| ())
        .map_err(|_| "must be an IP address")
}
