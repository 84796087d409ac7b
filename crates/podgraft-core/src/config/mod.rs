//! Reads `podgraft.yaml` and the functionConfig of `podgraft fn`: policies, parameters and settings of a repository.
//! Takes a text; returns the settings with their places, or all errors.

mod acknowledge;
mod overlay;
mod params;
mod read;
pub mod require;
pub mod types;

use globset::GlobMatcher;

use crate::dangers::Danger;
use crate::options::{Acknowledgement, ImageEnv, PodTemplatePath};
use crate::policy::images::ImageMirror;
use crate::policy::names::check_dns_label;
use crate::policy::opentelemetry::release;
use crate::policy::params::ParamSetting;
use crate::source::Place;

pub use acknowledge::unused;
pub use overlay::PolicyUse;
pub use params::{PolicySource, choose};
pub(crate) use read::{FUNCTION_KIND, check_kind, misfits, typed};
pub use read::{read, read_application, read_function};
pub use require::CoverageRequirement;
pub use types::{FunctionMode, RecordMode};

/// The file name by which a configuration is found.
pub const FILE_NAME: &str = "podgraft.yaml";

/// A configuration, as read. Paths are as written, relative to the configuration's folder.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The policies, with the fields that replace those in their files.
    pub policies: Vec<PolicyUse>,
    /// Parameter values, each for one policy.
    pub params: Vec<ConfigParam>,
    /// Paths of manifests that are only looked up, never changed, with their places.
    pub context: Vec<(String, Place)>,
    /// The name of this set of policies, for `--prune`.
    pub set: Option<String>,
    /// When and where the record of what was injected is written.
    pub record: Option<RecordMode>,
    /// Dangers that no policy may inject.
    pub forbid: Vec<Danger>,
    /// Globs of files to read in input folders.
    pub include: Vec<String>,
    /// Globs of files and folders to leave out.
    pub exclude: Vec<String>,
    /// More kinds with a pod template, and its path in them.
    pub pod_templates: Vec<PodTemplatePath>,
    /// The minor version of the cluster, as in 1.x.
    pub kube_minor: Option<u32>,
    /// Replacements for the names of injected images.
    pub image_mirrors: Vec<ImageMirror>,
    /// The settings of the OpenTelemetry Operator that is imitated.
    pub opentelemetry: release::OperatorSettings,
    /// Folder globs, each with the namespace of objects below it that state none. The first match counts.
    pub namespaces: Vec<(GlobMatcher, String)>,
    /// The namespace of objects that state none.
    pub namespace: Option<String>,
    /// Variables that are set by images, not by manifests.
    pub image_env: Vec<ImageEnv>,
    /// Treats warnings as errors.
    pub strict: bool,
    /// Coverage that the run must reach, over all workloads.
    pub require: Vec<CoverageRequirement>,
    /// Findings that are accepted.
    pub acknowledged: Vec<Acknowledgement>,
    /// Allows a configuration in an application's folder to set parameters that a policy marks `overridable`.
    pub allow_application_config: bool,
}

/// A parameter of a configuration and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigParam {
    /// The policy, the name and the value.
    pub setting: ParamSetting,
    /// The place of the name; that of the value is in `setting`.
    pub at: Place,
    /// The place of the policy's name, where there is one.
    pub policy_at: Option<Place>,
}

/// Checks the name of a Namespace: an RFC 1123 label.
///
/// # Errors
/// If the text is no such name.
pub fn parse_namespace(text: &str) -> Result<String, String> {
    check_dns_label(text)
        .map(|()| text.to_owned())
        .map_err(|rule| format!("a namespace name {rule}"))
}
