//! Policies of `opentelemetry.io Instrumentation`: does to manifests what the OpenTelemetry Operator's webhook does to
//! pods.
//!
//! The behaviour is that of `internal/instrumentation` in
//! <https://github.com/open-telemetry/opentelemetry-operator>, release 0.158.0. Odd results of the operator are
//! kept and reported.

mod admission;
mod agents;
mod annotations;
mod attributes;
mod catalog;
mod conversion;
mod env;
mod go;
mod go_slice;
mod image;
mod injector;
pub mod language;
mod named;
mod odd_results;
mod operator;
mod parts;
mod pod;
pub mod release;
mod resource;
mod sampler;
mod web;

use std::sync::Arc;

use super::conversion::ReadOptions;
use super::document::Document;
use super::{FailurePolicy, Hooks, Policy, PolicyFile, WorkloadFilter};
use crate::diagnostic::{Code, Diagnostic};
use catalog::Catalog;
pub use conversion::convert;
pub(crate) use operator::InstrumentationMutation;
use resource::Instrumentation;

/// Makes one policy for each resource. All are needed at once, because a pod may request any of them by name.
pub fn join(documents: Vec<Document<'_>>, reading: &ReadOptions) -> (Vec<Policy>, Vec<Diagnostic>) {
    let settings = &reading.opentelemetry;
    let (mut resources, mut texts) = (Vec::new(), Vec::new());
    let mut problems = Vec::new();
    for document in documents {
        match Instrumentation::read(&document, settings, &mut problems) {
            Ok(resource) => {
                resources.push(resource);
                texts.push(document.file);
            }
            Err(found) => problems.extend(found),
        }
    }
    let catalog = Arc::new(Catalog::new(resources, settings.clone()));
    let texts = texts.iter().enumerate();
    let policies = texts.map(|(at, text)| policy_for(&catalog, at, text));
    (policies.collect(), problems)
}

/// The policy for a resource, by its index, which stands in a text.
fn policy_for(catalog: &Arc<Catalog>, at: usize, text: &Arc<PolicyFile>) -> Policy {
    let (settings, resource) = (&catalog.settings, &catalog.resources[at]);
    let mutation = Arc::new(InstrumentationMutation {
        catalog: Arc::clone(catalog),
        at,
        mirrors: Arc::default(),
    });
    let selects = WorkloadFilter {
        at: resource.at.clone(),
        hooks: Some(Hooks::Include),
        ..WorkloadFilter::default()
    };
    let release = Diagnostic::note(Code::OperatorRelease, settings.title())
        .at(
            text.place(resource.at.clone()),
            "applied as in this release",
        )
        .help(
            "to change this, use --otel-operator-release, --otel-image, --otel-enable, or \
             --otel-disable",
        );
    Policy {
        selects,
        failure_policy: FailurePolicy::Fail,
        effects: vec![release],
        mutation: Some(mutation),
        description: Some(format!(
            "Instrument pods that request it, as the {} does.",
            settings.title()
        )),
        identity: resource.identity.clone(),
        text: Arc::clone(text),
        ..Policy::default()
    }
}
