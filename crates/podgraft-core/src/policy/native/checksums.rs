//! Reads `checksums`: which ConfigMaps and Secrets are hashed, and the annotation that gets the hash.

use serde_json::Value;
use std::sync::Arc;

use super::PolicyReader;
use super::types::{self, OnMissing, ReferenceKind};
use crate::policy::{ChecksumAnnotation, ChecksumKey, names};
use crate::yaml::value::Path;

impl PolicyReader<'_, '_> {
    pub(super) fn checksum(&mut self, entry: types::Checksum, at: &Path) -> ChecksumAnnotation {
        let key_at = at.key("annotation");
        let of_each = self
            .unfilled
            .of_each
            .iter()
            .find(|(path, _)| *path == key_at);
        let annotation = match of_each {
            Some((_, template)) => ChecksumKey::OfEach(Arc::clone(template)),
            None => ChecksumKey::Text(entry.annotation.clone()),
        };
        if let ChecksumKey::Text(key) = &annotation {
            self.report_invalid(&key_at, names::check_key(key));
            if !entry.references.is_empty() {
                let message = "with `references`, the annotation must be different for each object";
                let help =
                    "include the object in the key, such as `checksum/${ref.kind}-${ref.name}`";
                self.report_error(&key_at, message, help);
            }
        } else if entry.references.is_empty() {
            let help = "write a fixed key; `ref` is each of the objects that `references` finds";
            self.report_error(&key_at, "`ref` is only available with `references`", help);
        }
        self.check_names_of_objects(&entry, at);
        ChecksumAnnotation {
            at: self.document.span(at),
            annotation,
            config_maps: entry.config_maps,
            secrets: entry.secrets,
            all_config_maps: entry.references.contains(&ReferenceKind::ConfigMap),
            all_secrets: entry.references.contains(&ReferenceKind::Secret),
            keys: entry.keys,
            skips_missing: entry.on_missing == OnMissing::Skip,
        }
    }

    fn check_names_of_objects(&mut self, entry: &types::Checksum, at: &Path) {
        if entry.config_maps.is_empty() && entry.secrets.is_empty() && entry.references.is_empty() {
            self.report_error(
                at,
                "the checksum covers no objects",
                "list objects under `configMaps`, `secrets`, or `references`",
            );
        }
        for list in [at.key("configMaps"), at.key("secrets")] {
            for path in self.paths(&list) {
                let name = path
                    .get(&self.document.value)
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                self.report_invalid(&path, names::check_dns_subdomain(name));
            }
        }
    }
}
