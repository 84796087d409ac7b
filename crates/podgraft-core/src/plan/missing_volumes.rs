//! Refuses mounts of volumes that the pod does not have. A later rule or policy may bring the volume, so this is decided
//! when all policies have been applied.

use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::Workload;
use crate::outcome::Outcome;
use crate::policy::PolicyValue;
use crate::yaml::value::field;

use super::apply::failed;
use super::draft::Draft;
use super::planner::Planner;
use super::{LateFailure, PlanContext, PlanInProgress};

/// A volume that a mount of a rule refers to and that the pod does not have so far.
pub(super) struct MissingVolume {
    name: String,
    problem: Diagnostic,
}

impl MissingVolume {
    /// Whether the pod does not have it in this draft either.
    pub(super) fn is_missing(&self, workload: &Workload<'_>, draft: &Draft<'_>) -> bool {
        !has_volume(workload, draft, &self.name)
    }
}

/// Whether a pod has a volume of this name, or its workload a claim template, which creates one.
fn has_volume(workload: &Workload<'_>, draft: &Draft<'_>, name: &str) -> bool {
    let template = draft.template(&workload.pod_kind.path);
    let volumes = draft.get_in(&template, &["spec", "volumes"]);
    if volumes.is_some_and(|volumes| draft.item_by(&volumes, "name", name).is_some()) {
        return true;
    }
    let claims = draft.get_in(&draft.root(), &["spec", "volumeClaimTemplates"]);
    let claims = claims.map_or_else(Vec::new, |claims| draft.items(&claims));
    claims.iter().any(|claim| {
        let metadata = draft.get(claim, "metadata");
        metadata.is_some_and(|metadata| draft.is_text_at(&metadata, "name", name))
    })
}

impl Planner<'_, '_> {
    /// Notes the volume of a mount if the pod does not have it.
    pub(super) fn note_mount(&mut self, mount: &Value, item: &PolicyValue) {
        let name = field(mount, "name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        if has_volume(self.workload, &self.draft, name) {
            return;
        }
        let message = format!(
            "a mount refers to the volume `{name}`, which {} does not have",
            self.workload.title()
        );
        let problem = self.problem(Code::Invalid, message, item);
        self.missing_volumes.push(MissingVolume {
            name: name.to_owned(),
            problem: problem.help("add the volume to the policy's `inject.volumes`"),
        });
    }
}

impl PlanContext<'_, '_> {
    /// Refuses the mounts of which no policy has brought the volume.
    ///
    /// # Errors
    /// The problems of the first policy that has not failed already.
    pub(super) fn check_volumes(
        &self,
        applying: &mut PlanInProgress<'_, '_>,
    ) -> Result<(), LateFailure> {
        let planned = &mut applying.planned;
        for (at, missing) in std::mem::take(&mut applying.missing_volumes) {
            let missing = missing.into_iter();
            let missing = missing.filter(|volume| volume.is_missing(self.workload, &planned.draft));
            let problems: Vec<Diagnostic> = missing.map(|volume| volume.problem).collect();
            if problems.is_empty() {
                continue;
            }
            let report = &planned.policies[at];
            if !matches!(report.outcome, Outcome::Failed(_)) {
                return Err((at, problems));
            }
            let owner = report.policy.clone();
            let owned = problems.into_iter().map(|problem| Diagnostic {
                policy: Some(owner.clone()),
                ..problem
            });
            failed(&self.policies[at], owned.collect(), planned);
        }
        Ok(())
    }
}
