//! Lists what a resource may inject into any pod. Reports of images and of dangerous settings use it.

use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;

use super::language::Language;
use super::release::OperatorSettings;
use super::resource::Instrumentation;
use crate::policy::PolicyValue;
use crate::policy::images::ImageMirror;

/// The images of all enabled languages, the TLS files of the exporter, and the privileges of the Go sidecar.
pub(super) fn parts_of(
    resource: &Instrumentation,
    settings: &OperatorSettings,
    mirrors: &[ImageMirror],
) -> Vec<PolicyValue> {
    let mut parts = Vec::new();
    let mut add = |value: Value, at: &Range<usize>| {
        let (value, at) = (Arc::new(value), at.clone());
        parts.push(PolicyValue { value, at });
    };
    let image = |image: &str| {
        let mirrored = mirrors.iter().find_map(|mirror| mirror.rewrite(image));
        mirrored.unwrap_or_else(|| image.to_owned())
    };
    let agents = Language::ALL
        .into_iter()
        .filter(|language| settings.is_on(*language))
        .filter_map(|language| Some((language, resource.agent(language)?)));
    for (language, agent) in agents {
        let mut container = json!({
            "name": language.agent_name(),
            "image": image(&agent.image),
            "env": agent.env,
        });
        if language == Language::Go {
            let default = json!({"runAsUser": 0, "privileged": true});
            let context = agent.security_context.clone().unwrap_or(default);
            container["securityContext"] = context;
            let path = json!({"path": "/sys/kernel/debug"});
            add(json!({"name": "kernel-debug", "hostPath": path}), &agent.at);
        }
        add(container, &agent.at);
        for (extension, _) in &agent.extensions {
            let extension = json!({"name": "extension", "image": image(extension)});
            add(extension, &agent.at);
        }
    }
    if let Some(tls) = &resource.tls {
        if !tls.secret.is_empty() {
            let secret = json!({"secretName": tls.secret});
            add(json!({"name": "tls", "secret": secret}), &tls.at);
        }
        if !tls.config_map.is_empty() {
            let config_map = json!({"name": tls.config_map});
            add(json!({"name": "tls", "configMap": config_map}), &tls.at);
        }
    }
    parts
}
