//! Validates probes and lifecycle hooks.

use super::Checker;
use crate::policy::names;
use crate::yaml::view::View;

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
    pub(super) fn probes_and_hooks(&mut self, container: &'v View<'v>) {
        for key in PROBES {
            self.visit_key(container, key, |checker, probe| checker.probe(key, probe));
        }
        self.visit_key(container, "lifecycle", |checker, lifecycle| {
            for key in ["postStart", "preStop"] {
                checker.visit_key(lifecycle, key, |checker, hook| {
                    checker.handler(key, hook, &HOOK_HANDLERS)
                });
            }
        });
    }

    fn probe(&mut self, key: &str, probe: &'v View<'v>) {
        self.handler(key, probe, &PROBE_HANDLERS);
        for count in COUNTS {
            self.number(probe, count, 0..=i64::MAX);
        }
        self.number(probe, "terminationGracePeriodSeconds", 1..=i64::MAX);
        if key == "readinessProbe" {
            self.visit_key(probe, "terminationGracePeriodSeconds", |checker, _| {
                checker.report_rule("must not be set in a readiness probe");
            });
            return;
        }
        self.visit_key(probe, "successThreshold", |checker, number| {
            // Zero means the default, which is 1.
            if number.as_i64().is_some_and(|number| number > 1) {
                checker.report_rule("must be 1 but in a readiness probe");
            }
        });
    }

    fn handler(&mut self, key: &str, holder: &'v View<'v>, kinds: &[&'static str]) {
        let Some(kind) = self.one_of(holder, kinds, format_args!("`{key}`")) else {
            return;
        };
        self.visit_key(holder, kind, |checker, action| match kind {
            "exec" => {
                let command = action.get("command").and_then(View::as_array);
                if command.is_none_or(Vec::is_empty) {
                    checker.report_rule("needs `command`");
                }
            }
            "httpGet" | "tcpSocket" | "grpc" => checker.request(action),
            _ => checker.number(action, "seconds", 0..=i64::MAX),
        });
    }

    fn request(&mut self, action: &'v View<'v>) {
        self.word(action, "scheme", &["HTTP", "HTTPS"]);
        self.each(action, "httpHeaders", |checker, header| {
            checker.text(header, "name", check_header);
        });
        self.number(action, "port", 1..=65535);
        self.text(action, "port", names::check_port_name);
    }
}

fn check_header(name: &str) -> names::RuleCheck {
    let is_body = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    match !name.is_empty() && name.bytes().all(is_body) {
        true => Ok(()),
        false => Err("must be letters, digits and `-`"),
    }
}
