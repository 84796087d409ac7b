//! `magalix.com ConfigMonitor`: pods restart when their ConfigMap changes.
//!
//! The operator is the one that Magalix builds in an article on operators: it deletes the pods when the ConfigMap changes,
//! takes the first label of the selector only, and has one ConfigMap's name written in. Here the pod template carries a checksum of the ConfigMap, so that a change rolls the workload by its own strategy.
//! The CRD spells the field `configMap`, the article's example and code `configmap`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

use super::conversion::{self, Conversion, Given, literal, literals, pointer};
use super::document::Document;
use super::functions::dns_label;
use super::schema::Schema;
use super::stored::CONFIG_MONITOR;
use crate::diagnostic::{Code, Diagnostic};

/// The parameters: `onMissing` says what a ConfigMap that is not among the manifests means.
pub const PARAMS: &[&str] = &["onMissing"];

/// The resource.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "fields that stand there for the schema alone")]
pub(crate) struct ConfigMonitor {
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    /// Which ConfigMap, and whose it is.
    spec: Spec,
    status: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schemas", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Spec {
    /// The ConfigMap.
    config_map: Option<String>,
    /// The same, as the article's example spells it.
    #[serde(rename = "configmap")]
    config_map_in_lower_case: Option<String>,
    /// Labels of the pods that read it.
    pod_selector: BTreeMap<String, String>,
}

/// Most characters of an annotation's key behind its prefix.
const MOST: usize = 63;

static SCHEMA: Schema = Schema::Stored(&CONFIG_MONITOR, "ConfigMonitor");

/// What the resource becomes.
///
/// # Errors
/// All that is wrong with it.
pub fn convert(document: &Document<'_>, given: &Given<'_>) -> Result<Conversion, Vec<Diagnostic>> {
    let ConfigMonitor { spec, .. } = conversion::read(document, &SCHEMA)?;
    let mut conversion = Conversion::of(
        document,
        "Roll the pods when their ConfigMap changes, as ConfigMonitor does by deleting them.",
    );
    let on_missing = on_missing(document, given, &mut conversion.problems);
    let names = names(document, &spec, &mut conversion.problems);
    check_selector(document, &spec, &mut conversion.problems);
    let labels = pointer("/spec/podSelector")
        .get(&document.value)
        .map(literals)
        .unwrap_or_default();
    conversion.set("match", json!({"selector": {"matchLabels": labels}}));
    conversion.comes_from("/spec/match", "/spec/podSelector");
    conversion.comes_from("/spec/match/selector/matchLabels", "/spec/podSelector");
    let mut checksums = Vec::new();
    for (index, (name, field)) in names.into_iter().enumerate() {
        let at = format!("/spec/inject/checksums/{index}");
        conversion.comes_from(&at, &format!("/spec/{field}"));
        conversion.comes_from(&format!("{at}/configMaps/0"), &format!("/spec/{field}"));
        checksums.push(json!({
            "annotation": literal(&annotation(name)),
            "configMaps": [literal(name)],
            "onMissing": on_missing,
        }));
    }
    conversion.set("inject", json!({"checksums": checksums}));
    Ok(conversion)
}

fn on_missing<'g>(
    document: &Document<'_>,
    given: &Given<'g>,
    problems: &mut Vec<Diagnostic>,
) -> &'g str {
    let stated = given.param("onMissing").unwrap_or("Error");
    if !["Error", "Skip"].contains(&stated) {
        let message = format!("the parameter `onMissing` must be Error or Skip, not `{stated}`");
        problems.push(document.error(Code::BadParam, &pointer("/metadata/name"), message));
        return "Error";
    }
    stated
}

/// The ConfigMaps and the fields that name them: where both are given, both count.
fn names<'s>(
    document: &Document<'_>,
    spec: &'s Spec,
    problems: &mut Vec<Diagnostic>,
) -> Vec<(&'s str, &'static str)> {
    let stated = [
        (&spec.config_map, "configMap"),
        (&spec.config_map_in_lower_case, "configmap"),
    ];
    let mut names: Vec<(&str, &str)> = stated
        .into_iter()
        .filter_map(|(name, field)| Some((name.as_deref()?, field)))
        .collect();
    if names.is_empty() {
        let problem = document.error(
            Code::BadPolicy,
            &pointer("/spec"),
            "`spec` must have `configMap`",
        );
        problems
            .push(problem.help("`configMap`: the ConfigMap whose changes are to restart the pods"));
    }
    if let [(first, _), (second, _)] = names[..] {
        let message = match first == second {
            true => "the ConfigMap is named twice, as `configMap` and as `configmap`",
            false => {
                "`configMap` and `configmap` name different ConfigMaps: a change of either restarts the pods"
            }
        };
        let warning = Diagnostic::warning(Code::PartIgnored, message)
            .at(document.key_place(&pointer("/spec/configmap")), "here")
            .at(document.key_place(&pointer("/spec/configMap")), "and here");
        problems.push(
            warning.help(
                "keep `configMap`, as the CRD spells it: its operator reads `configmap` alone",
            ),
        );
        names.dedup_by_key(|(name, _)| *name);
    }
    names
}

fn check_selector(document: &Document<'_>, spec: &Spec, problems: &mut Vec<Diagnostic>) {
    if spec.pod_selector.is_empty() {
        let message = "`podSelector` is empty: it would take every workload";
        let problem = document.error(Code::BadPolicy, &pointer("/spec/podSelector"), message);
        problems.push(problem.help("name labels of the pods that read the ConfigMap"));
    }
}

/// A name that is too long for a key ends in a part of its checksum.
fn annotation(name: &str) -> String {
    let key = format!("configmap-{name}");
    match dns_label(&key) {
        Ok(short) if key.len() > MOST => format!("checksum/{short}"),
        Ok(_) | Err(_) => format!("checksum/{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_names_the_config_map() {
        assert_eq!(
            annotation("orders.config"),
            "checksum/configmap-orders.config"
        );
        let (one, other) = (annotation(&"a".repeat(80)), annotation(&"a".repeat(81)));
        assert_eq!(one.len(), "checksum/".len() + MOST);
        assert_ne!(one, other);
    }
}
