//! Validates volumes and their sources.

use super::container::PULL_POLICIES;
use super::{Checker, check_descending, check_no_backsteps, text_at};
use crate::policy::{names, quantity};
use crate::yaml::view::View;

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "DirectoryOrCreate",
    "Directory",
    "FileOrCreate",
    "File",
    "Socket",
    "CharDevice",
    "BlockDevice",
];
/// The sources that are checked, in this order.
const SOURCES: [&str; 11] = [
    "emptyDir",
    "hostPath",
    "configMap",
    "secret",
    "persistentVolumeClaim",
    "downwardAPI",
    "csi",
    "nfs",
    "ephemeral",
    "image",
    "projected",
];
const PROJECTED: [&str; 6] = [
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
];
/// Fields that the downward API offers to files (`validVolumeDownwardAPIFieldPathExpressions`).
const FIELDS: [&str; 5] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.labels",
    "metadata.annotations",
    "metadata.uid",
];

impl<'v> Checker<'v> {
    /// Checks that a volume has exactly one source, and the source itself.
    /// <https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/volume/>
    pub(super) fn volume(&mut self, volume: &'v View<'v>) {
        let name = text_at(volume, "name");
        match volume.get("name") {
            Some(_) => self.text(volume, "name", names::check_dns_label),
            None => self.add("a volume needs a `name`"),
        }
        let fields = volume.as_object().into_iter().flatten();
        let sources: Vec<&str> = fields
            .filter(|(key, source)| *key != "name" && !source.is_null())
            .map(|(key, _)| &**key)
            .collect();
        match sources.as_slice() {
            [_] => {}
            // The API server defaults it to an `emptyDir`, which is most likely not what was meant.
            [] => self.report_likely_mistake(format!(
                "the volume `{name}` has no source, such as `emptyDir: {{}}`"
            )),
            several => self.add(format!(
                "the volume `{name}` has several sources: {}",
                several.join(", ")
            )),
        }
        for kind in SOURCES {
            self.visit_key(volume, kind, |checker, source| {
                checker.volume_source(kind, source);
            });
        }
    }

    fn volume_source(&mut self, kind: &str, source: &'v View<'v>) {
        match kind {
            "emptyDir" => self.visit_key(source, "sizeLimit", |checker, limit| {
                if quantity::of_view(limit).is_none_or(|limit| limit < 0) {
                    checker.report_rule("must be an amount such as `64Mi`");
                }
            }),
            "hostPath" => {
                self.required_text(source, "path", check_no_backsteps);
                self.word(source, "type", &HOST_PATH_TYPES);
            }
            "configMap" => {
                self.object(source);
                self.files(source);
            }
            "secret" => {
                self.required_text(source, "secretName", names::check_dns_subdomain);
                self.files(source);
            }
            "persistentVolumeClaim" => {
                self.required_text(source, "claimName", names::check_dns_subdomain);
            }
            "downwardAPI" => self.fields_as_files(source),
            "csi" => self.required_text(source, "driver", |driver| {
                names::check_dns_subdomain(&driver.to_ascii_lowercase())
            }),
            "nfs" => {
                self.needs_text(source, "server");
                self.text(source, "path", |path| match path.starts_with('/') {
                    true => Ok(()),
                    false => Err("must begin with `/`"),
                });
            }
            "ephemeral" => self.volume_claim(&source["volumeClaimTemplate"]["spec"]),
            "image" => self.word(source, "pullPolicy", &PULL_POLICIES),
            _ => self.projected(source),
        }
    }

    fn volume_claim(&mut self, spec: &View<'_>) {
        if spec["resources"]["requests"].get("storage").is_none() {
            self.report_rule(
                "needs an amount of `storage` in `volumeClaimTemplate.spec.resources.requests`",
            );
        }
    }

    fn projected(&mut self, source: &'v View<'v>) {
        self.mode(source, "defaultMode");
        self.each(source, "sources", |checker, source| {
            if let Some(kind) = checker.one_of(source, &PROJECTED, "a projected source") {
                checker.visit_key(source, kind, |checker, source| {
                    checker.projected_source(kind, source);
                });
            }
        });
    }

    fn projected_source(&mut self, kind: &str, source: &'v View<'v>) {
        if matches!(kind, "secret" | "configMap") {
            self.object(source);
        }
        if kind == "serviceAccountToken" {
            self.required_text(source, "path", check_descending);
            self.number(source, "expirationSeconds", 600..=1 << 32);
        }
        match kind {
            "downwardAPI" => self.fields_as_files(source),
            _ => self.files(source),
        }
    }

    /// Checks the files of the downward API (`validateDownwardAPIVolumeFile` of Kubernetes).
    fn fields_as_files(&mut self, source: &'v View<'v>) {
        self.files(source);
        self.each(source, "items", |checker, item| {
            let kinds = ["fieldRef", "resourceFieldRef"];
            match checker.one_of(item, &kinds, "a file of the downward API") {
                Some("fieldRef") => checker.visit_key(item, "fieldRef", Self::field_as_file),
                Some(kind) => checker.visit_key(item, kind, |checker, source| {
                    checker.needs_text(source, "containerName");
                    checker.resource_of_container(source);
                }),
                None => {}
            }
        });
    }

    fn field_as_file(&mut self, source: &'v View<'v>) {
        let path = text_at(source, "fieldPath");
        let is_part = ["metadata.labels['", "metadata.annotations['"]
            .iter()
            .any(|begin| path.starts_with(begin));
        if !is_part && !FIELDS.contains(&path) {
            let fields = FIELDS.join(", ");
            self.report_rule(format!("must be one of {fields}, not `{path}`"));
        }
    }

    /// Checks file permissions. JSON has no octal numbers, so a decimal 777 is out of range.
    fn mode(&mut self, holder: &'v View<'v>, key: &'static str) {
        self.visit_key(holder, key, |checker, mode| {
            if let Some(mode) = mode.as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
                checker.report_rule(format!(
                    "must be between 0 and 0777 (octal, which is 511), not {mode}"
                ));
            }
        });
    }

    /// Checks `items`, which map keys to files.
    fn files(&mut self, source: &'v View<'v>) {
        self.mode(source, "defaultMode");
        self.each(source, "items", |checker, item| {
            checker.text(item, "key", names::check_config_key);
            checker.required_text(item, "path", check_descending);
            checker.mode(item, "mode");
        });
    }
}
