//! `ualter.com Podbuggertool`: a shell beside an application that has none.
//!
//! The fields are those of `pkg/apis/podbuggertool/v1beta1/types.go` of <https://github.com/ualter/podbuggertool>, the
//! container that of its controller. What the operator does to pods that run is no part of a workload, so there are two
//! ways: ephemeral containers for `podgraft debug`, or a container of the workload. The operator names the container after
//! the image as it is written, which an API server refuses for most images; here it is a DNS label.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};

use super::conversion::{self, Conversion, DebugMode, Given, literal, pointer};
use super::document::Document;
use super::functions::{dns_label, image_name};
use super::names::{check_key, check_label_value};
use super::schema::Schema;
use super::stored::PODBUGGERTOOL;
use crate::diagnostic::{Code, Diagnostic};

/// The resource.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "fields that stand there for the schema alone")]
pub(crate) struct Podbuggertool {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    /// Which pods, and with what.
    spec: Spec,
    status: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
struct Spec {
    /// A label of the pods, as `key=value`.
    label: String,
    /// The image with the shell.
    image: String,
}

static SCHEMA: Schema = Schema::Stored(&PODBUGGERTOOL, "Podbuggertool");

/// What the resource becomes.
///
/// # Errors
/// All that is wrong with it.
pub fn convert(document: &Document<'_>, given: &Given<'_>) -> Result<Conversion, Vec<Diagnostic>> {
    let Podbuggertool { spec, .. } = conversion::read(document, &SCHEMA)?;
    let mut conversion = Conversion::of(
        document,
        "Give a shell beside the application, as Podbuggertool does.",
    );
    let Some((key, value)) = split_label(&spec.label) else {
        let message = format!(
            "the label `{}` is no `key=value`, so the resource chooses no pod",
            spec.label
        );
        let warning = Diagnostic::warning(Code::NothingToDo, message)
            .at(document.place(&pointer("/spec/label")), "here");
        conversion
            .problems
            .push(warning.help("write one label of the pods, such as `app=payment`"));
        conversion.suspend();
        return Ok(conversion);
    };
    conversion.set("match", json!({"selector": {"matchLabels": {key: value}}}));
    match inject(&spec.image, given.reading.debug_mode) {
        Ok(inject) => conversion.set("inject", inject),
        Err(message) => {
            let problem = document.error(Code::Invalid, &pointer("/spec/image"), message);
            return Err(vec![problem.help("name an image, such as `busybox:1.36`")]);
        }
    }
    for (part, origin) in [
        ("/spec/match", "/spec/label"),
        ("/spec/inject", "/spec/image"),
        ("/spec/inject/podSpec", "/metadata/name"),
    ] {
        conversion.comes_from(part, origin);
    }
    Ok(conversion)
}

/// The one label; `None` for all that the operator ignores.
fn split_label(label: &str) -> Option<(&str, &str)> {
    let (key, value) = label.split_once('=')?;
    (check_key(key).is_ok() && check_label_value(value).is_ok()).then_some((key, value))
}

fn inject(image: &str, mode: DebugMode) -> Result<Value, String> {
    let name = image_name(image);
    let name = name.rsplit('/').next().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| format!("`{image}` is no image"))?;
    let named = |prefix: &str| dns_label(&format!("{prefix}-{name}"));
    let image = literal(image);
    Ok(match mode {
        DebugMode::Ephemeral => json!({"ephemeralContainers": [{
            "name": named("ephemeral")?,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh"],
            "stdin": true,
            "tty": true,
            "terminationMessagePolicy": "File",
            "targetContainerName": "${containers.first.name}",
        }]}),
        DebugMode::Sidecar => json!({
            "podSpec": {"shareProcessNamespace": true},
            "sidecars": [{
                "name": named("debug")?,
                "type": "Container",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh"],
                "stdin": true,
                "tty": true,
            }],
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_a_key_and_a_value() {
        assert_eq!(split_label("app=payment"), Some(("app", "payment")));
        assert_eq!(
            split_label("app.kubernetes.io/name="),
            Some(("app.kubernetes.io/name", ""))
        );
        for bad in [
            "app",
            "",
            "=payment",
            "app=a=b",
            "app = payment",
            "app: payment",
        ] {
            assert_eq!(split_label(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_name_is_a_dns_label_for_every_image() {
        for (image, name) in [
            ("busybox", "debug-busybox"),
            ("busybox:1.36", "debug-busybox"),
            (
                "registry.example.com:5000/Tools/net_shoot:v1@sha256:0123",
                "debug-net-shoot",
            ),
            ("gcr.io/a/b.c__d", "debug-b-c--d"),
        ] {
            assert_eq!(
                inject(image, DebugMode::Sidecar).unwrap()["sidecars"][0]["name"],
                name,
                "{image}"
            );
        }
        let long = inject(&"a".repeat(80), DebugMode::Ephemeral).unwrap();
        assert_eq!(
            long["ephemeralContainers"][0]["name"]
                .as_str()
                .unwrap()
                .len(),
            63
        );
        assert!(
            inject("", DebugMode::Ephemeral).is_err()
                && inject("a/", DebugMode::Ephemeral).is_err()
        );
    }
}
