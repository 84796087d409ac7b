//! Validates probes and lifecycle hooks.

use super::Checker;
use crate::policy::names::{self, require};

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

impl<'v> Checker<'v> {
    pub(super) fn probes_and_hooks(&mut self) {
        for key in PROBES {
            self.visit_key(key, |checker| checker.probe(key));
        }
        self.visit_key("lifecycle", |checker| {
            for key in ["postStart", "preStop"] {
                checker.visit_key(key, |checker| checker.handler(key, &HOOK_HANDLERS));
            }
        });
    }

    fn probe(&mut self, key: &str) {
        self.handler(key, &PROBE_HANDLERS);
        for count in COUNTS {
            self.number(count, 0..=i64::MAX);
        }
        self.number("terminationGracePeriodSeconds", 1..=i64::MAX);
        if key == "readinessProbe" {
            self.visit_key("terminationGracePeriodSeconds", |checker| {
                checker.report_rule("must not be set in a readiness probe");
            });
            return;
        }
        self.visit_key("successThreshold", |checker| {
            // Zero means the default, which is 1.
            if checker.value.as_i64().is_some_and(|number| number > 1) {
                checker.report_rule("must be 1 except in a readiness probe");
            }
        });
    }

    fn handler(&mut self, key: &str, kinds: &[&'static str]) {
        let Some(kind) = self.one_of(kinds, format_args!("`{key}`")) else {
            return;
        };
        self.visit_key(kind, |checker| match kind {
            "exec" if checker.list("command").is_empty() => {
                checker.report_rule("must have `command`")
            }
            "exec" => {}
            "httpGet" | "tcpSocket" | "grpc" => checker.request(),
            _ => checker.number("seconds", 0..=i64::MAX),
        });
    }

    fn request(&mut self) {
        self.word("scheme", &["", "HTTP", "HTTPS"]);
        self.each("httpHeaders", |checker| checker.text("name", check_header));
        self.number("port", 1..=65535);
        self.text("port", names::check_port_name);
    }
}

fn check_header(name: &str) -> names::RuleCheck {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_right = !name.is_empty() && name.bytes().all(is_body);
    require(is_right, "must contain only letters, digits, and `-`")
}
