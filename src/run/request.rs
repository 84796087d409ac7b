//! What a command asks of a run, translated into the options of the library.

use podgraft_core::graft::Options;
use podgraft_core::options::RemovalSelection;
use podgraft_core::policy::Policy;
use podgraft_core::yaml::tree::Tree;

use crate::args;
use crate::pipeline::OutputTiming;
use crate::policies::LoadedPolicies;

/// What a command asks of a run.
#[derive(Debug, Clone)]
pub struct RunRequest<'p> {
    /// What the result is for.
    pub purpose: &'p Purpose,
    /// When the result goes to stdout. A single text is then not kept in memory. `None` if the result goes elsewhere.
    pub pipe: Option<OutputTiming>,
    /// The tree of the only text, if it is parsed already.
    pub tree: Option<&'p Tree<'p>>,
    /// Report workloads that carry injections of policies that this run is not given.
    pub report_orphans: bool,
    /// What to report. The other options follow from the flags and the purpose.
    pub options: Options,
}

impl<'p> RunRequest<'p> {
    /// Asks for all details of every workload.
    pub fn of(purpose: &'p Purpose) -> Self {
        RunRequest {
            purpose,
            pipe: None,
            tree: None,
            report_orphans: false,
            options: Options::default(),
        }
    }

    /// Like [`RunRequest::of`], and also collects the needs that the text report lists, unless `--quiet` hides it.
    pub fn for_report(purpose: &'p Purpose, output: &args::OutputArgs) -> Self {
        let mut request = RunRequest::of(purpose);
        request.options.needs = !output.quiet;
        request
    }
}

/// What the result is for.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// A stream or other files: the source stays as it is.
    Elsewhere,
    /// The result replaces the files, or shows what would replace them.
    InPlace,
    /// The manifests are only read; no policy is applied.
    Read,
    /// Nothing is injected; what earlier runs injected is removed.
    TakeOut {
        /// The policies to remove; all of them if it is empty.
        only: Vec<String>,
        /// Remove injected values even if somebody has changed them since.
        force: bool,
        /// The result replaces the files.
        in_place: bool,
    },
}

/// The options of the library for a run with the loaded policies.
pub(super) fn options_of(
    run: &args::RunArgs,
    request: &RunRequest<'_>,
    loaded: &LoadedPolicies,
) -> Options {
    let (flags, purpose, asked) = (&run.policies, request.purpose, &request.options);
    let given = || loaded.given.clone();
    let take_out = match purpose {
        Purpose::TakeOut { only, .. } if only.is_empty() => RemovalSelection::All,
        Purpose::TakeOut { only, .. } => RemovalSelection::Only(only.clone()),
        Purpose::Read => RemovalSelection::Nothing,
        Purpose::Elsewhere | Purpose::InPlace if flags.prune => RemovalSelection::NotGiven(given()),
        Purpose::Elsewhere | Purpose::InPlace => RemovalSelection::Nothing,
    };
    let is_in_place = matches!(
        purpose,
        Purpose::InPlace | Purpose::TakeOut { in_place: true, .. }
    );
    let generates = |policy: &Policy| !policy.generate.is_empty();
    Options {
        record: flags.record,
        lock: is_in_place && !flags.record && !flags.no_record,
        // A preview does not record every workload, but the records of all workloads decide which generated objects
        // are needed.
        preview: asked.preview && !loaded.policies.iter().any(generates),
        given: request.report_orphans.then(given),
        set: flags.set.clone(),
        take_out,
        force: matches!(purpose, Purpose::TakeOut { force: true, .. }),
        namespace: run.manifests.namespace.clone(),
        pod_templates: run.manifests.pod_templates.clone(),
        kube_minor: run.manifests.kube_version,
        no_marker: flags.no_marker,
        parse_all: run.manifests.parse_all,
        workloads: run.manifests.workloads.clone(),
        image_env: run.manifests.image_env.clone(),
        namespaces: flags.configured.namespaces.clone(),
        acknowledged: flags.configured.acknowledged.clone(),
        labels: !flags.configured.require.is_empty(),
        needs: asked.needs || run.output.report.is_some(),
        forbid: flags.forbid.clone(),
        ..asked.clone()
    }
}
