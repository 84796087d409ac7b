//! Validates volumes and their sources.

use super::container::PULL_POLICIES;
use super::{Checker, check_descending, check_no_backsteps};
use crate::policy::names::{self, require};
use crate::policy::quantity;

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
const ONE_POD: &str = "ReadWriteOncePod";
const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", ONE_POD];
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
    pub(crate) fn volume(&mut self) {
        let name = self.text_at("name");
        match self.get("name") {
            Some(_) => self.text("name", names::check_dns_label),
            None => self.add("a volume must have a `name`"),
        }
        let fields = self.value.as_object().into_iter().flatten();
        let sources: Vec<&str> = fields
            .filter(|(key, source)| *key != "name" && !source.is_null())
            .map(|(key, _)| &**key)
            .collect();
        match sources.as_slice() {
            [_] => {}
            // The API server defaults it to an `emptyDir`, which is most likely not what was meant.
            [] => self.likely_mistakes(|checker| {
                checker.add(format!(
                    "the volume `{name}` has no source, such as `emptyDir: {{}}`"
                ));
            }),
            several => self.add(format!(
                "the volume `{name}` has several sources: {}",
                several.join(", ")
            )),
        }
        for kind in SOURCES {
            self.visit_key(kind, |checker| checker.volume_source(kind));
        }
    }

    fn volume_source(&mut self, kind: &str) {
        match kind {
            "emptyDir" => self.visit_key("sizeLimit", |checker| {
                if quantity::of_view(checker.value).is_none_or(|limit| limit < 0) {
                    checker.report_rule("must be a quantity such as `64Mi`");
                }
            }),
            "hostPath" => {
                self.required_text("path", check_no_backsteps);
                self.word("type", &HOST_PATH_TYPES);
            }
            "configMap" => {
                self.object_name("name");
                self.keys_as_files();
            }
            "secret" => {
                self.object_name("secretName");
                self.keys_as_files();
            }
            "persistentVolumeClaim" => {
                self.object_name("claimName");
            }
            "downwardAPI" => self.fields_as_files(),
            "csi" => self.required_text("driver", |driver| {
                names::check_dns_subdomain(&driver.to_ascii_lowercase())
            }),
            "nfs" => {
                self.needs_text("server");
                self.required_text("path", |path| {
                    require(path.starts_with('/'), "must start with `/`")
                });
            }
            "ephemeral" => self.volume_claim(),
            "image" => {
                // Only a Pod by itself needs it; without it, none of a template's starts.
                self.likely_mistakes(|checker| checker.needs_text("reference"));
                self.word("pullPolicy", &PULL_POLICIES);
            }
            _ => self.projected(),
        }
    }

    fn volume_claim(&mut self) {
        let spec = &self.value["volumeClaimTemplate"]["spec"];
        if spec.list("accessModes").is_empty() {
            self.report_rule("must have an entry in `volumeClaimTemplate.spec.accessModes`");
        }
        if spec["resources"]["requests"].get("storage").is_none() {
            self.report_rule(
                "must have a quantity of `storage` in \
                 `volumeClaimTemplate.spec.resources.requests`",
            );
        }
        self.visit_key("volumeClaimTemplate", |checker| {
            checker.visit_key("spec", |checker| {
                checker.access_modes();
                checker.visit_key("resources", Self::claimed_amounts);
            });
        });
    }

    /// Checks the access modes of a volume claim (`ValidatePersistentVolumeClaimSpec` of Kubernetes).
    fn access_modes(&mut self) {
        self.each("accessModes", |checker| checker.this_word(&ACCESS_MODES));
        let modes = self.list("accessModes");
        let is_of_one_pod = modes.iter().any(|mode| *mode == ONE_POD);
        if is_of_one_pod && modes.iter().any(|mode| *mode != ONE_POD) {
            self.visit_key("accessModes", |checker| {
                checker.report_rule("cannot have `ReadWriteOncePod` with other access modes");
            });
        }
    }

    /// Checks the quantities of a volume claim (`ValidatePersistentVolumeClaimSpec` of Kubernetes).
    fn claimed_amounts(&mut self) {
        for kind in ["requests", "limits"] {
            self.amounts(kind);
        }
        self.visit_key("requests", |checker| {
            checker.visit_key("storage", |checker| {
                if quantity::of_view(checker.value) == Some(0) {
                    checker.add("the quantity of storage must be greater than zero");
                }
            });
        });
    }

    fn projected(&mut self) {
        self.mode("defaultMode");
        self.each("sources", |checker| {
            match PROJECTED.iter().any(|kind| checker.is_stated(kind)) {
                true => checker.source_of_projected(),
                false => checker.likely_mistakes(Self::source_of_projected),
            }
        });
    }

    fn source_of_projected(&mut self) {
        if let Some(kind) = self.one_of(&PROJECTED, "a projected source") {
            self.visit_key(kind, |checker| checker.projected_source(kind));
        }
    }

    fn projected_source(&mut self, kind: &str) {
        if matches!(kind, "secret" | "configMap") {
            self.object_name("name");
        }
        if kind == "serviceAccountToken" {
            self.required_text("path", check_descending);
            self.number("expirationSeconds", 600..=1 << 32);
        }
        match kind {
            "downwardAPI" => self.fields_as_files(),
            _ => self.keys_as_files(),
        }
    }

    /// Checks the files of the downward API (`validateDownwardAPIVolumeFile` of Kubernetes).
    fn fields_as_files(&mut self) {
        self.files();
        self.each("items", Self::file_of_downward_api);
    }

    fn file_of_downward_api(&mut self) {
        let kinds = ["fieldRef", "resourceFieldRef"];
        match self.one_of(&kinds, "a file of the downward API") {
            Some("fieldRef") => self.visit_key("fieldRef", Self::field_as_file),
            Some(kind) => self.visit_key(kind, |checker| {
                checker.needs_text("containerName");
                checker.resource_of_container();
            }),
            None => {}
        }
    }

    fn field_as_file(&mut self) {
        let path = self.text_at("fieldPath");
        let is_part = ["metadata.labels['", "metadata.annotations['"]
            .iter()
            .any(|begin| path.starts_with(begin));
        if !is_part && !FIELDS.contains(&path) {
            let fields = FIELDS.join(", ");
            self.report_rule(format!("must be one of {fields}, not `{path}`"));
        }
    }

    /// Checks file permissions. JSON has no octal numbers, so a decimal 777 is out of range.
    fn mode(&mut self, key: &'static str) {
        self.visit_key(key, |checker| {
            let mode = checker.value.as_i64();
            if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
                checker.report_rule(format!(
                    "must be between 0 and 0777 (octal, 511 in decimal), not {mode}"
                ));
            }
        });
    }

    /// Checks the name of an object, of which the API server asks only that there is one.
    fn object_name(&mut self, key: &'static str) {
        self.needs_text(key);
        self.likely_text(key, names::check_dns_subdomain);
    }

    /// Checks `items` that map keys to files.
    fn keys_as_files(&mut self) {
        self.files();
        self.each("items", |checker| {
            checker.needs_text("key");
            checker.likely_text("key", names::check_config_key);
        });
    }

    /// Checks the files of `items`.
    fn files(&mut self) {
        self.mode("defaultMode");
        self.each("items", |checker| {
            checker.required_text("path", check_descending);
            checker.mode("mode");
        });
    }
}
