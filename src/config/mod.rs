//! `podgraft.yaml`, and its words elsewhere: the policies, their parameters and the settings of a place where podgraft
//! runs. A text in; settings with their places, or all that is wrong with it, out.

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
use crate::policy::opentelemetry::release;
use crate::policy::params::ParamSetting;
use crate::source::Place;

pub use acknowledge::unused;
pub use overlay::PolicyUse;
pub use params::{PolicySource, choose};
pub use read::{FUNCTION_KIND, read, read_application, read_function};
pub use require::CoverageRequirement;
pub use types::{FunctionMode, RecordMode};

/// The name by which the file is found.
pub const FILE_NAME: &str = "podgraft.yaml";

/// What a configuration says. Paths are as they are written there: from its own folder.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// With what is other than in their files.
    pub policies: Vec<PolicyUse>,
    /// Values of parameters, each for one policy.
    pub params: Vec<ConfigParam>,
    /// Manifests that are read for facts only.
    pub context: Vec<String>,
    /// The name of this set of policies.
    pub set: Option<String>,
    /// When the record is written.
    pub record: Option<RecordMode>,
    /// What no policy may inject.
    pub forbid: Vec<Danger>,
    /// Globs of files to read in folders.
    pub include: Vec<String>,
    /// Globs of files and folders to leave out.
    pub exclude: Vec<String>,
    /// More kinds that hold a pod template.
    pub pod_templates: Vec<PodTemplatePath>,
    /// The cluster's minor version (1.x).
    pub kube_minor: Option<u32>,
    /// Other places for the images that are injected.
    pub image_mirrors: Vec<ImageMirror>,
    /// How the OpenTelemetry Operator is set up.
    pub opentelemetry: release::OperatorSettings,
    /// Globs of folders and the namespace of what states none there; the first that fits counts.
    pub namespaces: Vec<(GlobMatcher, String)>,
    /// The namespace of objects that state none.
    pub namespace: Option<String>,
    /// Variables that images set.
    pub image_env: Vec<ImageEnv>,
    /// Warnings fail.
    pub strict: bool,
    /// What must be true of all workloads together.
    pub require: Vec<CoverageRequirement>,
    /// Findings that are accepted.
    pub acknowledged: Vec<Acknowledgement>,
    /// An application's own folder may set the parameters that a policy marks `overridable`.
    pub allow_application_config: bool,
}

/// A parameter's value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigParam {
    /// The value.
    pub setting: ParamSetting,
    /// In the configuration.
    pub at: Place,
}

#[cfg(test)]
mod tests;
