//! The settings of a whole run, beside the policies.

mod acknowledge;
mod namespaces;
mod workloads;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dangers::Danger;

pub use acknowledge::Acknowledgement;
pub use namespaces::FolderNamespaces;
pub use workloads::WorkloadPattern;

/// Settings that hold for all files of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The namespace of objects that state none.
    pub namespace: Option<String>,
    /// The namespace of objects that state none, by the folder of their file. It wins over `namespace`.
    pub namespaces: Option<FolderNamespaces>,
    /// `--pod-template group/version/Kind=path`: additional kinds with a pod template.
    pub pod_templates: Vec<PodTemplatePath>,
    /// The minor version of the cluster (the `x` of 1.x); `None` if it is not stated.
    pub kube_minor: Option<u32>,
    /// Do not write the annotation `podgraft.dev/applied`.
    pub no_marker: bool,
    /// Write the annotation `podgraft.dev/record` beside it. An existing record is updated even without this option.
    pub record: bool,
    /// Report the record of each workload for the lock file ([`FileReport::records`](crate::outcome::FileReport)).
    /// Records in annotations move there.
    pub lock: bool,
    /// Nothing is written, so a workload is recorded only if an earlier record decides the result. Not for policies
    /// that generate objects: which of these are needed follows from the records of all workloads.
    pub preview: bool,
    /// Inject nothing. Values that a workload already has as a policy wants them are recorded as injected by the
    /// policy.
    pub adopt: bool,
    /// `--policy-set`: recorded with the policies. `--prune` removes within this set.
    pub set: Option<String>,
    /// The recorded policies to remove from each workload. Given policies that no longer apply are always removed.
    pub take_out: RemovalSelection,
    /// Remove injected values even if somebody has changed them since.
    pub force: bool,
    /// Also parse documents that no policy can concern.
    pub parse_all: bool,
    /// `--workload`: only the matching workloads; all of them if it is empty.
    pub workloads: Vec<WorkloadPattern>,
    /// Report the plan of each changed workload as an RFC 6902 patch.
    pub patches: bool,
    /// Report the ephemeral containers for each workload.
    pub ephemeral_containers: bool,
    /// `--image-env CONTAINER:NAME=VALUE`: variables that images set.
    pub image_env: Vec<ImageEnv>,
    /// How the caller says so, before the text that `--image-env` takes, if not by that flag.
    pub image_env_words: Option<&'static str>,
    /// `--forbid`: what no policy may inject.
    pub forbid: Vec<Danger>,
    /// Report only edits, counts and problems, not every workload with its changes in words, and do not warn of variables
    /// that may hide those of an image.
    pub brief: bool,
    /// Report what the injections need from a cluster.
    pub needs: bool,
    /// Report the places of the conditions that do not hold, in the policy and in the manifest.
    pub places: bool,
    /// Report the containers, volumes and ports of each workload.
    pub views: bool,
    /// Report which policy wrote each line.
    pub authors: bool,
    /// Also look for mistakes of the manifests that have nothing to do with an injection: pods that no API server takes, and
    /// objects that are no workloads.
    pub lint: bool,
    /// Warnings that are accepted and not reported.
    pub acknowledged: Vec<Acknowledgement>,
    /// Report the labels of each pod template.
    pub labels: bool,
    /// The identities of all given policies, to report workloads that other policies injected. `None`: these are not
    /// reported.
    pub given: Option<Vec<String>>,
}

impl Options {
    /// Whether injections are recorded, in an annotation or a lock file.
    pub fn is_recording(&self) -> bool {
        self.is_recorded_when_written() && (self.record || !self.preview)
    }

    /// Whether this run, or the one that it previews, records what it injects.
    pub(crate) fn is_recorded_when_written(&self) -> bool {
        !self.no_marker && (self.record || self.lock)
    }

    /// Whether a recorded policy of this name and set is to be removed where it is not given.
    pub(crate) fn removes(&self, policy: &str, set: Option<&String>) -> bool {
        let is_in = |names: &[String]| names.iter().any(|name| name == policy);
        match &self.take_out {
            RemovalSelection::Nothing => false,
            RemovalSelection::All => true,
            RemovalSelection::Only(names) => is_in(names),
            RemovalSelection::NotGiven(given) => {
                set.is_some() && set == self.set.as_ref() && !is_in(given)
            }
        }
    }

    /// Whether the record of a workload goes into an annotation. `is_annotated`: its earlier record is in one.
    pub(crate) fn annotates(&self, is_annotated: bool) -> bool {
        self.record || is_annotated && !self.lock
    }

    /// The namespace of objects that state none in a file.
    pub(crate) fn namespace_in(&self, file: &str) -> Option<&str> {
        let of_folder = self
            .namespaces
            .as_ref()
            .and_then(|folders| folders.find(file));
        of_folder.or(self.namespace.as_deref())
    }
}

/// The recorded policies that a run removes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RemovalSelection {
    /// None: policies that are not given stay.
    #[default]
    Nothing,
    /// `undo`: all policies.
    All,
    /// `undo --only`: these policies.
    Only(Vec<String>),
    /// `--prune`: the policies of the run's set that are not in this list.
    NotGiven(Vec<String>),
}

impl RemovalSelection {
    /// Whether the run only removes and injects nothing.
    pub fn is_undo(&self) -> bool {
        matches!(self, RemovalSelection::All | RemovalSelection::Only(_))
    }
}

/// A kind, and the path to its pod template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodTemplatePath {
    /// The group and version: `argoproj.io/v1alpha1`.
    pub api_version: String,
    /// The kind: `Rollout`.
    pub kind: String,
    /// The keys of the path: `spec.template`.
    pub path: Vec<String>,
}

impl PodTemplatePath {
    /// Parses `group/version/Kind=path`. The path `.` is the object itself, as with a Pod.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "expected [GROUP/]VERSION/KIND=PATH, such as argoproj.io/v1alpha1/Rollout=spec.template";
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

impl PodTemplatePath {
    /// Whether both are paths of the same kind.
    pub fn has_kind_of(&self, other: &Self) -> bool {
        let group = |path: &Self| {
            path.api_version
                .split_once('/')
                .map(|(group, _)| group.to_owned())
        };
        group(self) == group(other) && self.kind == other.kind
    }

    /// The first path that contradicts an earlier one, with the reason: an object has one pod template.
    pub fn contradiction(paths: &[Self]) -> Option<(usize, String)> {
        let mut paths_and_earlier = paths.iter().enumerate();
        paths_and_earlier
            .find_map(|(index, path)| Some((index, path.contradicts(&paths[..index])?)))
    }

    fn contradicts(&self, earlier: &[Self]) -> Option<String> {
        let mut earlier = earlier.iter();
        let other = earlier.find(|other| other.has_kind_of(self) && other.path != self.path)?;
        Some(format!(
            "{} has two pod templates, `{}` and `{}`, and podgraft changes only one",
            self.kind,
            other.path.join("."),
            self.path.join(".")
        ))
    }
}

/// Parses a Kubernetes version `1.N` and returns `N`. Clusters and providers write it in several ways (`1.29+`,
/// `v1.33.1-eks-1234`).
///
/// # Errors
/// If the text has another form, or the major version is not 1.
pub fn parse_kube_version(text: &str) -> Result<u32, String> {
    let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
    let major = parts.next();
    let minor = parts
        .next()
        .map(|minor| minor.split(['+', '-']).next().unwrap_or(minor));
    match (major, minor.map(str::parse)) {
        (Some("1"), Some(Ok(minor))) => Ok(minor),
        _ => Err("expected a version such as 1.33".to_owned()),
    }
}

impl ImageEnv {
    /// Parses `CONTAINER:NAME=VALUE`. An empty name of the container is for one that has none, as in a Knative Service.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<Self, String> {
        const WANTED: &str = "expected CONTAINER:NAME=VALUE";
        let (target, value) = text.split_once('=').ok_or(WANTED)?;
        let (container, name) = target.split_once(':').ok_or(WANTED)?;
        if name.is_empty() {
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

    /// Marks it as met if the container has this name.
    pub(crate) fn match_container(&self, container: &str) {
        if self.container == container {
            self.is_met.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a workload that a policy looked at has the container.
    pub fn is_met(&self) -> bool {
        self.is_met.load(Ordering::Relaxed)
    }
}

/// A variable that the image of a container sets.
#[derive(Debug, Clone)]
pub struct ImageEnv {
    /// The container's name.
    pub container: String,
    /// The name of the variable.
    pub name: String,
    /// The value of the variable in the image.
    pub value: String,
    /// It comes from `podgraft.yaml`, which may be for more manifests than those of a run. So it is no mistake if no
    /// container has the name.
    pub is_configured: bool,
    /// Shared by the threads of a run, and by clones.
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
    fn a_variable_of_an_image_may_be_for_a_container_without_a_name() {
        let unnamed = ImageEnv::parse(":JAVA_TOOL_OPTIONS=-Xmx1g").unwrap();
        assert_eq!(unnamed.container, "");
        assert!(ImageEnv::parse("app:=x").is_err());
        assert!(ImageEnv::parse("A=x").is_err());
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
