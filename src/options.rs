//! What the user says for a whole run, beside the policies.

/// What holds for a whole run, whatever the file.
#[derive(Debug, Clone)]
pub struct Options {
    /// For objects that state no namespace.
    pub namespace: Option<String>,
    /// `--pod-template group/version/Kind=path`: more kinds that hold a pod template.
    pub pod_templates: Vec<PodTemplatePath>,
    /// The cluster's minor version (1.x), where it is stated.
    pub kube_minor: Option<u32>,
    /// Write `podgraft.dev/applied`.
    pub marker: bool,
    /// Parse documents that no policy can concern, too.
    pub parse_all: bool,
    /// `--workload kind/namespace/name`, globs: only these. Empty: all.
    pub workloads: Vec<WorkloadPattern>,
    /// Report the plan of each changed workload as an RFC 6902 patch.
    pub patches: bool,
    /// `--image-env CONTAINER:NAME=VALUE`: variables that the image sets.
    pub image_env: Vec<ImageEnv>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            namespace: None,
            pod_templates: Vec::new(),
            kube_minor: None,
            marker: true,
            parse_all: false,
            workloads: Vec::new(),
            patches: false,
            image_env: Vec::new(),
        }
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

/// A variable that a container's image sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageEnv {
    /// The container's name.
    pub container: String,
    /// The variable.
    pub name: String,
    /// Its value in the image.
    pub value: String,
}

/// `--workload kind/namespace/name`: globs.
#[derive(Debug, Clone)]
pub struct WorkloadPattern {
    /// The kind's.
    pub kind: globset::GlobMatcher,
    /// The namespace's; an unknown namespace is the empty text.
    pub namespace: globset::GlobMatcher,
    /// The name's.
    pub name: globset::GlobMatcher,
}

impl WorkloadPattern {
    /// Reads the three globs. Kinds are compared without regard to case, as `kubectl` does.
    ///
    /// # Errors
    /// A text without two slashes, or with a glob that cannot be read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('/').collect();
        let &[kind, namespace, name] = parts.as_slice() else {
            return Err("write it as kind/namespace/name".to_owned());
        };
        let glob = |text: &str| {
            let built = globset::GlobBuilder::new(text).case_insensitive(true).build();
            built.map(|glob| glob.compile_matcher()).map_err(|error| error.to_string())
        };
        Ok(WorkloadPattern { kind: glob(kind)?, namespace: glob(namespace)?, name: glob(name)? })
    }

    /// Whether a workload is meant.
    pub fn matches(&self, kind: &str, namespace: Option<&str>, name: &str) -> bool {
        self.kind.is_match(kind) && self.namespace.is_match(namespace.unwrap_or_default()) && self.name.is_match(name)
    }
}
