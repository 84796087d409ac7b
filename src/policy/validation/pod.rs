//! Fields of a pod spec, containers and volumes aside.

use core::net::IpAddr;
use serde_json::Value;

use super::Checker;
use crate::policy::names;

const MOST_USER: i64 = i32::MAX as i64;

impl<'v> Checker<'v> {
    pub(super) fn pod_spec(&mut self, spec: &'v Value) {
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
        });
        self.each(spec, "hostAliases", |checker, alias| {
            checker.text(alias, "ip", check_address)
        });
        self.under(spec, "securityContext", Self::pod_security_context);
        let is_true = |key: &str| spec.get(key) == Some(&Value::Bool(true));
        if is_true("hostPID") && is_true("shareProcessNamespace") {
            self.add("a pod has either `hostPID` or `shareProcessNamespace`");
        }
    }

    /// `ValidateTolerations` of Kubernetes.
    fn toleration(&mut self, toleration: &'v Value) {
        let text = |key: &str| {
            toleration
                .get(key)
                .and_then(Value::as_str)
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
        if text("key").is_empty() && text("operator") != "Exists" {
            self.must("needs `operator: Exists`, for it has no `key`");
        }
        if text("operator") == "Exists" && !text("value").is_empty() {
            self.must("has a `value`, which `operator: Exists` does not take");
        }
        if toleration
            .get("tolerationSeconds")
            .is_some_and(|seconds| !seconds.is_null())
            && text("effect") != "NoExecute"
        {
            self.must("has `tolerationSeconds`, which goes with `effect: NoExecute` only");
        }
    }

    pub(super) fn pod_security_context(&mut self, context: &'v Value) {
        for key in ["runAsUser", "runAsGroup", "fsGroup"] {
            self.number(context, key, (0, MOST_USER));
        }
        self.word(
            context,
            "fsGroupChangePolicy",
            &["OnRootMismatch", "Always"],
        );
        self.word(context, "supplementalGroupsPolicy", &["Merge", "Strict"]);
        self.profiles(context);
    }
}

fn check_address(address: &str) -> names::Rule {
    address
        .parse::<IpAddr>()
        .map(|_| ())
        .map_err(|_| "must be an IP address")
}
