//! Lists what a resource may inject into any pod. Reports of images and of dangerous settings use it.

use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;

use super::go;
use super::injector::mirrored;
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
    let agents = Language::ALL
        .into_iter()
        .filter(|language| settings.is_on(*language))
        .filter_map(|language| Some((language, resource.agent(language)?)));
    for (language, agent) in agents {
        let mut container = json!({
            "name": language.agent_name(),
            "image": mirrored(&agent.image, mirrors),
            "env": agent.env,
        });
        if language == Language::Go {
            container["securityContext"] = go::security_context(agent);
            add(go::volume(), &agent.at);
        }
        add(container, &agent.at);
        for (extension, _) in &agent.extensions {
            let extension = json!({"name": "extension", "image": mirrored(extension, mirrors)});
            add(extension, &agent.at);
        }
    }
    if let Some(tls) = &resource.tls {
        let volumes = tls.volumes().into_iter().flatten();
        volumes.for_each(|volume| add(volume, &tls.at));
    }
    parts
}
