//! Plans the defaults of the chosen containers: fields that a container does not state, and that no other field decides.

use serde_json::Value;

use crate::change::{ChangeTarget, Operation};
use crate::manifest::pod::Container;
use crate::policy::PolicyValue;
use crate::yaml::value::leaves;

use super::draft::DraftValue;
use super::order;
use super::planner::{PlanResult, Planner};
use super::pod_rules::APP_ARMOR;

impl Planner<'_, '_> {
    /// Sets the fields of the defaults that the container does not state.
    pub(super) fn container_defaults(
        &mut self,
        container: &Container<'_>,
        item: &PolicyValue,
    ) -> PlanResult {
        let (mut missing, mut is_partial) = (Vec::new(), false);
        let part = self.container_part(container);
        leaves(&item.value, &mut Vec::new(), &mut |path, value| {
            if part.as_ref().is_none_or(|part| self.is_open(part, path))
                && !self.is_decided_elsewhere(part.as_ref(), path, value)
            {
                missing.push((path.to_vec(), value.clone()));
            } else {
                is_partial = true;
            }
        });
        self.is_partial |= is_partial;
        for (path, value) in missing {
            let opened = self.open_container(container)?;
            self.set_leaf(opened, &path, value, order::CONTAINER)?;
            self.report(Operation::Add, || {
                ChangeTarget::ContainerDefault(container.name.to_owned(), path)
            });
        }
        Ok(())
    }

    /// Whether other fields decide against a default of a container: a field of the pod that the default would
    /// override, a root user, which contradicts `runAsNonRoot`, or privileges, which contradict
    /// `allowPrivilegeEscalation: false`.
    fn is_decided_elsewhere(
        &self,
        part: Option<&DraftValue>,
        path: &[String],
        value: &Value,
    ) -> bool {
        let [first, field, rest @ ..] = path else {
            return false;
        };
        // A limit without a request is also the request. Another request would cost the pod its QoS class `Guaranteed`.
        if let ("resources", "requests", [resource]) = (first.as_str(), field.as_str(), rest) {
            let limit = ["resources", "limits", resource];
            return part.is_some_and(|part| self.draft.get_in(part, &limit).is_some());
        }
        if first != "securityContext" {
            return false;
        }
        // Before the field existed, an annotation had the profile. If both are there, they must agree.
        if field == "appArmorProfile" && self.has_profile_by_annotation(part) {
            return true;
        }
        if self.is_for_windows() && LINUX_ONLY.contains(&field.as_str()) {
            return true;
        }
        let pod = self.draft.get(&self.pod_spec_part(), "securityContext");
        if FIELDS_OF_POD_TOO.contains(&field.as_str())
            && pod
                .as_ref()
                .is_some_and(|pod| self.draft.get(pod, field).is_some())
        {
            return true;
        }
        // The kubelet does not start a container as root if `runAsNonRoot` is true.
        let context = part.and_then(|part| self.draft.get(part, first));
        if field == "runAsUser" && *value == 0 {
            let own = context
                .as_ref()
                .map(|context| self.draft.text_at(context, "runAsNonRoot"));
            let of_pod = || self.draft.text_at(pod.as_ref()?, "runAsNonRoot");
            return own.flatten().or_else(of_pod).as_deref() == Some("true");
        }
        if field == "runAsNonRoot" && *value == Value::Bool(true) {
            let user = context.and_then(|context| self.draft.text_at(&context, "runAsUser"));
            let user = user.map_or_else(
                || self.user_of(pod.as_ref()),
                |user| Some(user.into_owned()),
            );
            return user.as_deref() == Some("0");
        }
        field == "allowPrivilegeEscalation"
            && *value == Value::Bool(false)
            && part.is_some_and(|part| self.needs_escalation(part))
    }

    /// Whether a container is privileged or may become so, which `allowPrivilegeEscalation: false` contradicts.
    fn needs_escalation(&self, container: &DraftValue) -> bool {
        let context = self.draft.get(container, "securityContext");
        let context = context.and_then(|context| self.draft.value(&context));
        let context = context.unwrap_or_default();
        let added = context["capabilities"]["add"].as_array();
        context["privileged"] == true
            || added
                .is_some_and(|added| added.iter().any(|capability| capability == "CAP_SYS_ADMIN"))
    }

    fn has_profile_by_annotation(&self, container: Option<&DraftValue>) -> bool {
        let name = container.and_then(|part| self.draft.text_at(part, "name"));
        let key = format!("{APP_ARMOR}{}", name.unwrap_or_default());
        let path = ["metadata", "annotations", &key];
        self.draft.get_in(&self.template_part(), &path).is_some()
    }
}

/// Fields of a container's security context that the pod's security context can set for all containers.
const FIELDS_OF_POD_TOO: [&str; 7] = [
    "runAsUser",
    "runAsGroup",
    "runAsNonRoot",
    "seLinuxOptions",
    "seccompProfile",
    "appArmorProfile",
    "windowsOptions",
];

/// Fields of a container's security context that are invalid in a Windows pod (`validateWindows` of Kubernetes).
pub(super) const LINUX_ONLY: [&str; 10] = [
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "capabilities",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsGroup",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
];
