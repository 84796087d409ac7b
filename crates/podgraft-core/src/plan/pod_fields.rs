//! Plans fields of the pod spec that have no word of their own in `inject`, and defaults of the pod's security context.
//! Each value is set where there is none, merged into a list, or compared with the existing value.

use serde_json::{Map, Value};
use std::sync::Arc;

use crate::change::{ChangeTarget, Operation};
use crate::policy::PolicyValue;
use crate::record::{is_aligned, name_field};
use crate::yaml::value::leaves;

use super::defaults::LINUX_ONLY;
use super::draft::{DraftValue, OpenId};
use super::equality::is_same;
use super::planner::{PlanResult, Planner};
use super::{order, reconcile};

/// Fields that are invalid in the security context of a Windows pod, in addition to those of containers.
const LINUX_ONLY_OF_PODS: [&str; 5] = [
    "fsGroup",
    "fsGroupChangePolicy",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];

impl Planner<'_, '_> {
    /// The user in the pod's security context. `None` if it states none, or the policy states one.
    pub(super) fn user_of(&self, context: Option<&DraftValue>) -> Option<String> {
        let of_policy = self.inject.pod_spec.as_ref().map(|item| &item.value);
        let is_stated =
            of_policy.is_some_and(|fields| fields.pointer("/securityContext/runAsUser").is_some());
        let user = self.draft.text_at(context?, "runAsUser")?;
        (!is_stated).then(|| user.into_owned())
    }

    pub(super) fn pod_defaults(&mut self, item: &PolicyValue) -> PlanResult {
        let (mut missing, mut is_partial) = (Vec::new(), false);
        let part = self.draft.get(&self.pod_spec_part(), "securityContext");
        let is_windows = self.is_for_windows();
        let is_root = self.user_of(part.as_ref()).as_deref() == Some("0")
            || self.has_container_with("runAsUser", "0", "runAsNonRoot");
        let is_not_root = self.has_container_with("runAsNonRoot", "true", "runAsUser");
        leaves(&item.value, &mut Vec::new(), &mut |path, value| {
            let is_for_linux = path.first().is_some_and(|field| {
                LINUX_ONLY.contains(&field.as_str()) || LINUX_ONLY_OF_PODS.contains(&field.as_str())
            });
            if part.as_ref().is_none_or(|part| self.is_open(part, path))
                && !(is_windows && is_for_linux)
                // The kubelet does not start a container as root with `runAsNonRoot: true`.
                && !(is_root && path == ["runAsNonRoot"] && *value == Value::Bool(true))
                && !(is_not_root && path == ["runAsUser"] && *value == 0)
            {
                missing.push((path.to_vec(), value.clone()));
            } else {
                is_partial = true;
            }
        });
        self.is_partial |= is_partial;
        for (path, value) in missing {
            let pod_spec = self.open_pod_spec()?;
            let full: Vec<String> = std::iter::once("securityContext".to_owned())
                .chain(path)
                .collect();
            self.set_leaf(pod_spec, &full, value, order::POD_SPEC)?;
            self.report(Operation::Add, || ChangeTarget::PodDefault(full));
        }
        Ok(())
    }

    /// Whether a container states this of its security context, and leaves another field of it to the pod.
    fn has_container_with(&self, field: &str, value: &str, open_field: &str) -> bool {
        let spec = self.pod_spec_part();
        let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
        let mut containers = lists
            .filter_map(|list| self.draft.get(&spec, list))
            .flat_map(|list| self.draft.items(&list));
        containers.any(|container| {
            let context = self.draft.get(&container, "securityContext");
            context.is_some_and(|context| {
                self.draft.is_text_at(&context, field, value)
                    && self.draft.get(&context, open_field).is_none()
            })
        })
    }

    /// Whether the pod states `os.name: windows`.
    pub(super) fn is_for_windows(&self) -> bool {
        self.draft
            .get(&self.pod_spec_part(), "os")
            .and_then(|os| self.draft.text_at(&os, "name"))
            .is_some_and(|name| name == "windows")
    }

    /// Whether a path has no value, so that a default may be set. An empty list is a value: `drop: []` is a decision.
    pub(super) fn is_open(&self, part: &DraftValue, path: &[String]) -> bool {
        let mut part = part.clone();
        for (depth, key) in path.iter().enumerate() {
            match self.draft.get(&part, key) {
                None => return true,
                Some(inner) if self.draft.is_empty(&inner) => {
                    let is_list = || matches!(self.draft.value(&inner), Some(Value::Array(_)));
                    return depth + 1 < path.len()
                        || self.draft.text(&inner).is_none() && !is_list();
                }
                Some(inner) => part = inner,
            }
        }
        false
    }

    pub(super) fn set_leaf(
        &mut self,
        within: OpenId,
        path: &[String],
        value: Value,
        order: &[&str],
    ) -> PlanResult {
        let Some((last, parents)) = path.split_last() else {
            return Ok(());
        };
        let mut id = within;
        let mut order = order;
        for key in parents {
            id = self.draft.open_mapping(id, key, order)?;
            order = &[];
        }
        Ok(reconcile::set_field(
            &mut self.draft,
            id,
            last,
            value,
            order,
        )?)
    }

    pub(super) fn pod_fields(&mut self, item: &PolicyValue) -> PlanResult {
        let mut fields = Vec::new();
        leaves(&item.value, &mut Vec::new(), &mut |path, value| {
            fields.push((path.to_vec(), value.clone()))
        });
        // An empty mapping is a leaf, too. If it is the whole value, its path is empty and there is nothing to set.
        fields.retain(|(path, _)| !path.is_empty());
        for (path, value) in fields {
            let at = self.inject.pod_spec_places.get(&path).cloned();
            let field_item = PolicyValue {
                value: Arc::clone(&item.value),
                at: at.unwrap_or_else(|| item.at.clone()),
            };
            self.attempt(|planner| planner.pod_field(&path, value, &field_item));
        }
        Ok(())
    }

    fn pod_field(&mut self, path: &[String], value: Value, item: &PolicyValue) -> PlanResult {
        let mut part = Some(self.pod_spec_part());
        for key in path {
            part = part.and_then(|part| self.draft.get(&part, key));
        }
        let part = part.filter(|part| !self.draft.is_empty(part));
        let part = part.or_else(|| self.old_account(path));
        let Some(part) = part else {
            let pod_spec = self.open_pod_spec()?;
            self.set_leaf(pod_spec, path, value, order::POD_SPEC)?;
            self.report(Operation::Add, || ChangeTarget::PodField(path.to_vec()));
            return Ok(());
        };
        let existing = self.draft.value(&part).unwrap_or(Value::Null);
        // Mappings are merged, so an empty one adds nothing.
        let is_nothing = |value: &Value| value.as_object().is_some_and(Map::is_empty);
        if existing.is_object() && is_nothing(&value) {
            return Ok(());
        }
        if is_same(&existing, &value) {
            let holder: Vec<&str> = std::iter::once("spec")
                .chain(path.iter().map(String::as_str))
                .collect();
            self.note_shared(&part, |paths, _| paths.in_pod(&holder));
            return Ok(());
        }
        let key = path.last().map(String::as_str).unwrap_or_default();
        let wanted = match (&existing, value) {
            (Value::Array(existing), Value::Array(wanted)) if is_aligned(key) => {
                let merged = self.merged_list(key, existing, &wanted, &part, item)?;
                // Without a replaced item, the list only grows.
                if merged.starts_with(existing) {
                    let added = merged[existing.len()..].to_vec();
                    return self.extend_pod_list(path, existing.len(), added);
                }
                Value::Array(merged)
            }
            (_, value) if self.replaces_existing() => value,
            _ => {
                let description = format_args!("the pod's `{}`", path.join("."));
                return self.kept_or_conflict(&part, description, item);
            }
        };
        let pod_spec = self.open_pod_spec()?;
        self.set_leaf(pod_spec, path, wanted, order::POD_SPEC)?;
        self.report(Operation::Replace, || ChangeTarget::PodField(path.to_vec()));
        Ok(())
    }

    /// The value of `serviceAccount`, the deprecated name of `serviceAccountName`. An API server uses it if the new
    /// field is missing.
    fn old_account(&self, path: &[String]) -> Option<DraftValue> {
        let is_account = path == ["serviceAccountName"];
        let part = self.draft.get(&self.pod_spec_part(), "serviceAccount");
        part.filter(|part| is_account && !self.draft.is_empty(part))
    }

    /// An existing list with the wanted items: those that it lacks at its end, the others in place of their counterparts.
    fn merged_list(
        &self,
        key: &str,
        existing: &[Value],
        wanted: &[Value],
        part: &DraftValue,
        item: &PolicyValue,
    ) -> PlanResult<Vec<Value>> {
        let mut merged = existing.to_vec();
        for value in wanted {
            let is_equal_in = |candidate: &Value, field| candidate.get(field) == value.get(field);
            let counterpart = existing.iter().position(|candidate| match name_field(key) {
                Some(field) => is_equal_in(candidate, field),
                None if key == "topologySpreadConstraints" => ["topologyKey", "whenUnsatisfiable"]
                    .into_iter()
                    .all(|field| is_equal_in(candidate, field)),
                None => is_same(candidate, value),
            });
            match counterpart {
                None => merged.push(value.clone()),
                Some(at) if is_same(&existing[at], value) => {}
                Some(_) if self.keeps_existing() => {}
                Some(at) if self.replaces_existing() => merged[at] = value.clone(),
                Some(_) => {
                    let description = format_args!("an item of the pod's `{key}`");
                    return Err(self.conflict(part, description, item).into());
                }
            }
        }
        Ok(merged)
    }

    fn extend_pod_list(&mut self, path: &[String], length: usize, added: Vec<Value>) -> PlanResult {
        let Some((last, parents)) = path.split_last() else {
            return Ok(());
        };
        if added.is_empty() {
            return Ok(());
        }
        let mut id = self.open_pod_spec()?;
        for key in parents {
            id = self.draft.open_mapping(id, key, &[])?;
        }
        let list = self.draft.open_list(id, last, order::POD_SPEC)?;
        for (at, value) in added.into_iter().enumerate() {
            self.draft.insert(list, length + at, value);
        }
        self.report(Operation::Extend, || ChangeTarget::PodField(path.to_vec()));
        Ok(())
    }
}
