//! What the user says for a whole run, beside the policies.

mod acknowledge;
mod namespaces;
mod workloads;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dangers::Danger;

pub use acknowledge::Acknowledgement;
pub use namespaces::FolderNamespaces;
pub use workloads::WorkloadPattern;

/// What holds for a whole run, whatever the file.
#[derive(Debug, Clone)]
pub struct Options {
    /// For objects that state no namespace.
    pub namespace: Option<String>,
    /// For objects that state none, by the folder of their file; they win over `namespace`.
    pub namespaces: Option<FolderNamespaces>,
    /// `--pod-template group/version/Kind=path`: more kinds that hold a pod template.
    pub pod_templates: Vec<PodTemplatePath>,
    /// The cluster's minor version (1.x), where it is stated.
    pub kube_minor: Option<u32>,
    /// Write `podgraft.dev/applied`.
    pub marker: bool,
    /// Write `podgraft.dev/record` beside it. A record that is there is kept true whatever this says.
    pub record: bool,
    /// Report what was done to each workload for the lock file ([`FileReport::records`](crate::outcome::FileReport)).
    /// Records that stand in annotations are taken out of these.
    pub lock: bool,
    /// Nothing is written: what is done is recorded only where a record that is there decides what comes out. Not beside
    /// policies that generate objects, for which of these are needed is known from the records of all workloads.
    pub preview: bool,
    /// Injects nothing: what stands in a workload as a policy wants it becomes the policy's own.
    pub adopt: bool,
    /// `--policy-set`: noted with the policies, and the set of `--prune`.
    pub set: Option<String>,
    /// Which policies of a workload's record are taken out, beside the given ones that no longer apply.
    pub take_out: RemovalSelection,
    /// Take out what somebody changed since it was put there, too.
    pub force: bool,
    /// Parse documents that no policy can concern, too.
    pub parse_all: bool,
    /// `--workload`: only these. Empty: all.
    pub workloads: Vec<WorkloadPattern>,
    /// Report the plan of each changed workload as an RFC 6902 patch.
    pub patches: bool,
    /// Report the ephemeral containers for each workload.
    pub ephemeral_containers: bool,
    /// `--image-env CONTAINER:NAME=VALUE`: variables that the image sets.
    pub image_env: Vec<ImageEnv>,
    /// `--forbid`: what no policy may put anywhere.
    pub forbid: Vec<Danger>,
    /// Report every workload, say in words what was done to it, and warn of variables that may hide an image's. Without it
    /// a report has edits, counts and problems.
    pub details: bool,
    /// Report what the injections need from a cluster.
    pub needs: bool,
    /// Report the places of the conditions that do not hold.
    pub places: bool,
    /// Report what each workload is made of.
    pub views: bool,
    /// Report which policy wrote each line.
    pub authors: bool,
    /// Look at objects that are no workloads, too, for mistakes that are not injection's.
    pub lint: bool,
    /// Warnings that are not to be said.
    pub acknowledged: Vec<Acknowledgement>,
    /// Report the labels of each pod template.
    pub labels: bool,
    /// The identities of all given policies, where workloads that others injected are to be named.
    pub given: Option<Vec<String>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            namespace: None,
            namespaces: None,
            pod_templates: Vec::new(),
            kube_minor: None,
            marker: true,
            record: false,
            lock: false,
            preview: false,
            adopt: false,
            set: None,
            take_out: RemovalSelection::Nothing,
            force: false,
            parse_all: false,
            workloads: Vec::new(),
            patches: false,
            ephemeral_containers: false,
            image_env: Vec::new(),
            forbid: Vec::new(),
            details: true,
            needs: false,
            places: false,
            views: false,
            authors: false,
            lint: false,
            acknowledged: Vec::new(),
            labels: false,
            given: None,
        }
    }
}

impl Options {
    /// Whether what is done is written down.
    pub fn is_recording(&self) -> bool {
        self.marker && (self.record || self.lock && !self.preview)
    }

    /// Whether a record belongs into an annotation, where an earlier one stands there or not.
    pub fn annotates(&self, is_annotated: bool) -> bool {
        self.record || is_annotated && !self.lock
    }

    /// The namespace of what states none in a file.
    pub fn namespace_in(&self, file: &str) -> Option<&str> {
        let of_folder = self
            .namespaces
            .as_ref()
            .and_then(|folders| folders.find(file));
        of_folder.or(self.namespace.as_deref())
    }
}

/// The recorded policies that are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RemovalSelection {
    /// None: what is not given stays.
    #[default]
    Nothing,
    /// `undo`: all.
    All,
    /// `undo --only`: these.
    Only(Vec<String>),
    /// `--prune`: those of the run's set that are not among these.
    NotGiven(Vec<String>),
}

impl RemovalSelection {
    /// Whether the run is there for nothing but taking out.
    pub fn is_undo(&self) -> bool {
        matches!(self, RemovalSelection::All | RemovalSelection::Only(_))
    }
}

/// A kind and where its pod template stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodTemplatePath {
    /// `argoproj.io/v1alpha1`.
    pub api_version: String,
    /// `Rollout`.
    pub kind: String,
    /// `spec.template`.
    pub path: Vec<String>,
}

impl PodTemplatePath {
    /// Reads `group/version/Kind=path`. A path of a single dot is the object itself, as with a Pod.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str =
            "wanted group/version/Kind=path, such as argoproj.io/v1alpha1/Rollout=spec.template";
        let (kind, path) = text.split_once('=').ok_or(WANTED)?;
        let (api_version, kind) = kind.rsplit_once('/').ok_or(WANTED)?;
        let keys = path
            .strip_prefix('.')
            .unwrap_or(path)
            .split('.')
            .map(str::to_owned);
        let path: Vec<String> = if path == "." {
            Vec::new()
        } else {
            keys.collect()
        };
        let is_version =
            !api_version.is_empty() && api_version.split('/').all(|part| !part.is_empty());
        if !is_version
            || api_version.matches('/').count() > 1
            || kind.is_empty()
            || path.iter().any(String::is_empty)
        {
            return Err(WANTED.to_owned());
        }
        Ok(PodTemplatePath {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            path,
        })
    }
}

/// The minor version of a cluster's version `1.N`, as clusters and providers write it (`1.29+`, `v1.33.1-eks-1234`).
///
/// # Errors
/// Anything else.
pub fn parse_kube_version(text: &str) -> Result<u32, String> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
    let major = parts.next();
    let minor = parts
        .next()
        .map(|minor| minor.split(['+', '-']).next().unwrap_or(minor));
    match (major, minor.map(str::parse)) {
        (Some("1"), Some(Ok(minor))) => Ok(minor),
        _ => Err("wanted a version such as 1.33".to_owned()),
    }
}

impl ImageEnv {
    /// Reads `CONTAINER:NAME=VALUE`.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "wanted CONTAINER:NAME=VALUE";
        let (target, value) = text.split_once('=').ok_or(WANTED)?;
        let (container, name) = target.split_once(':').ok_or(WANTED)?;
        if container.is_empty() || name.is_empty() {
            return Err(WANTED.to_owned());
        }
        Ok(ImageEnv {
            container: container.to_owned(),
            name: name.to_owned(),
            value: value.to_owned(),
            is_configured: false,
            is_met: Arc::default(),
        })
    }

    /// Whether it is about a container of this name; then it is met.
    pub fn match_container(&self, container: &str) {
        if self.container == container {
            self.is_met.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a workload that a policy was asked about has the container.
    pub fn is_met(&self) -> bool {
        self.is_met.load(Ordering::Relaxed)
    }
}

/// A variable that a container's image sets.
#[derive(Debug, Clone)]
pub struct ImageEnv {
    /// The container's name.
    pub container: String,
    /// The variable.
    pub name: String,
    /// Its value in the image.
    pub value: String,
    /// It is from `podgraft.yaml`, which may be for more manifests than those of a run.
    pub is_configured: bool,
    /// Shared by the threads of a run.
    is_met: Arc<AtomicBool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_template_of_the_core_group_has_no_group() {
        let rollout = PodTemplatePath::parse("argoproj.io/v1alpha1/Rollout=spec.template").unwrap();
        assert_eq!(
            (&*rollout.api_version, &*rollout.kind),
            ("argoproj.io/v1alpha1", "Rollout")
        );
        assert_eq!(
            PodTemplatePath::parse("v1/PodTemplate=template")
                .unwrap()
                .api_version,
            "v1"
        );
        for bad in [
            "Rollout=spec",
            "a/b/c/D=x",
            "v1/X=",
            "v1/=x",
            "/X=x",
            "v1/X",
        ] {
            assert!(PodTemplatePath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn versions_are_read_as_clusters_write_them() {
        for text in ["1.29", "v1.29.3", "1.29+", "v1.29.1-eks-12"] {
            assert_eq!(parse_kube_version(text), Ok(29), "{text}");
        }
        assert!(parse_kube_version("2.0").is_err());
        assert!(parse_kube_version("29").is_err());
    }
}
