//! What a resource may put into pods, whichever ask for it: for those who look for images and dangers in policies.

use serde_json::{Value, json};
use std::sync::Arc;

use super::language::Language;
use super::release::Settings;
use super::resource::Instrumentation;
use crate::policy::images::ImageMirror;
use crate::policy::parts::Part;

/// The images of all languages that are on, the files of TLS, and what Go's sidecar is given.
pub(super) fn parts_of(
    resource: &Instrumentation,
    settings: &Settings,
    mirrors: &[ImageMirror],
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |value: Value, at: &std::ops::Range<usize>| {
        parts.push(Part {
            value: Arc::new(value),
            at: at.clone(),
        });
    };
    let image = |image: &str| {
        let mirrored = mirrors.iter().find_map(|mirror| mirror.rewrite(image));
        mirrored.unwrap_or_else(|| image.to_owned())
    };
    for language in Language::ALL {
        let Some(agent) = resource
            .agent(language)
            .filter(|_| settings.is_on(language))
        else {
            continue;
        };
        let mut container = json!({
            "name": language.agent_name(),
            "image": image(&agent.image),
            "env": agent.env,
        });
        if language == Language::Go {
            let default = json!({"runAsUser": 0, "privileged": true});
            let context = agent.security_context.clone().unwrap_or(default);
            container["securityContext"] = context;
            add(
                json!({"name": "kernel-debug", "hostPath": {"path": "/sys/kernel/debug"}}),
                &agent.at,
            );
        }
        add(container, &agent.at);
        for (extension, _) in &agent.extensions {
            add(
                json!({"name": "extension", "image": image(extension)}),
                &agent.at,
            );
        }
    }
    if let Some(tls) = &resource.tls {
        if !tls.secret.is_empty() {
            add(
                json!({"name": "tls", "secret": {"secretName": tls.secret}}),
                &tls.at,
            );
        }
        if !tls.config_map.is_empty() {
            add(
                json!({"name": "tls", "configMap": {"name": tls.config_map}}),
                &tls.at,
            );
        }
    }
    parts
}
