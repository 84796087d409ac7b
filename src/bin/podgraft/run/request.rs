//! What a command wants of a run, as the options of the library.

use podgraft::graft::Options;
use podgraft::options::RemovalSelection;
use podgraft::policy::Policy;

use crate::args;
use crate::pipeline::OutputTiming;
use crate::policies::LoadedPolicies;

/// What a command asks of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunRequest<'p> {
    /// What the result is for.
    pub purpose: &'p Purpose,
    /// Every workload with words about it.
    pub details: bool,
    /// The result goes to stdout, so one text need not be kept.
    pub pipe: Option<OutputTiming>,
    /// What is to be known beside.
    pub ask: fn(&mut Options),
    /// Workloads that were injected by policies which are not given are named.
    pub orphans: bool,
}

impl<'p> RunRequest<'p> {
    /// Everything about every workload.
    pub fn of(purpose: &'p Purpose) -> Self {
        RunRequest {
            purpose,
            details: true,
            pipe: None,
            ask: |_| {},
            orphans: false,
        }
    }

    /// With what the report for people says, unless nobody is told.
    pub fn for_report(purpose: &'p Purpose, output: &args::OutputArgs) -> Self {
        let configure = if output.quiet {
            |_: &mut Options| {}
        } else {
            |options: &mut Options| options.needs = true
        };
        RunRequest {
            ask: configure,
            ..RunRequest::of(purpose)
        }
    }
}

/// What the result is for.
#[derive(Debug, Clone)]
pub enum Purpose {
    /// A stream or other files: the source stays as it is.
    Elsewhere,
    /// It takes the place of the files, or shows what would.
    InPlace,
    /// Only to be looked at: no policy is asked.
    Read,
    /// Nothing is injected, and what an earlier run injected goes.
    TakeOut {
        /// Only these policies; all when it is empty.
        only: Vec<String>,
        /// What somebody changed, too.
        force: bool,
        /// The result takes the place of the files.
        in_place: bool,
    },
}

/// The options of a run with these policies.
pub(super) fn options_of(
    run: &args::RunArgs,
    wish: RunRequest<'_>,
    loaded: &LoadedPolicies,
) -> Options {
    let mut options = Options {
        details: wish.details,
        ..options(run, wish.purpose, loaded.given.clone())
    };
    (wish.ask)(&mut options);
    // Which generated objects are needed is known from what is recorded of all workloads.
    let generates = |policy: &Policy| !policy.generate.is_empty();
    options.preview &= !loaded.policies.iter().any(generates);
    options.given = wish.orphans.then(|| loaded.given.clone());
    options
}

fn options(run: &args::RunArgs, purpose: &Purpose, given: Vec<String>) -> Options {
    let flags = &run.policies;
    let take_out = match purpose {
        Purpose::TakeOut { only, .. } if only.is_empty() => RemovalSelection::All,
        Purpose::TakeOut { only, .. } => RemovalSelection::Only(only.clone()),
        Purpose::Read => RemovalSelection::Nothing,
        Purpose::Elsewhere | Purpose::InPlace if flags.prune => RemovalSelection::NotGiven(given),
        Purpose::Elsewhere | Purpose::InPlace => RemovalSelection::Nothing,
    };
    let is_in_place = matches!(
        purpose,
        Purpose::InPlace | Purpose::TakeOut { in_place: true, .. }
    );
    Options {
        record: flags.record,
        lock: is_in_place && !flags.record && !flags.no_record,
        set: flags.set.clone(),
        take_out,
        force: matches!(purpose, Purpose::TakeOut { force: true, .. }),
        namespace: run.manifests.namespace.clone(),
        pod_templates: run.manifests.pod_templates.clone(),
        kube_minor: run.manifests.kube_version,
        marker: !run.policies.no_marker,
        ephemeral_containers: run.ephemeral_containers,
        parse_all: run.manifests.parse_all,
        workloads: run.manifests.workloads.clone(),
        image_env: run.manifests.image_env.clone(),
        namespaces: run.policies.configured.namespaces.clone(),
        acknowledged: run.policies.configured.acknowledged.clone(),
        labels: !run.policies.configured.require.is_empty(),
        details: true,
        needs: run.output.report.is_some(),
        forbid: run.policies.forbid.clone(),
        ..Options::default()
    }
}
