//! Fields of the pod spec that have no word of their own, and defaults of its security context: each value that a policy
//! states goes where nothing stands, joins a list, or meets what is there.

use serde_json::Value;
use std::sync::Arc;

use crate::change::{ChangeTarget, Operation};
use crate::diagnostic::Diagnostic;
use crate::policy::PolicyValue;
use crate::yaml::value::leaves;

use super::containers::LINUX_ONLY;
use super::draft::{DraftValue, OpenId};
use super::equality::is_same;
use super::order;
use super::planner::{PlanResult, Planner};

/// Lists of the pod spec and the fields that tell their items apart (the patchMergeKey and the listMapKeys of the
/// Kubernetes API).
const MERGE_KEYS: &[(&str, &[&str])] = &[
    ("hostAliases", &["ip"]),
    (
        "topologySpreadConstraints",
        &["topologyKey", "whenUnsatisfiable"],
    ),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("readinessGates", &["conditionType"]),
];

/// Fields of a pod's security context beside those of containers that a pod of Windows must not have.
const LINUX_ONLY_OF_PODS: [&str; 5] = [
    "fsGroup",
    "fsGroupChangePolicy",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];

/// Lists whose items are told apart by all they say.
const SETS: &[&str] = &[
    "tolerations",
    "nameservers",
    "searches",
    "supplementalGroups",
    "hostnames",
];

impl Planner<'_, '_> {
    /// The user that the pod's security context states, where the policy states no other.
    pub(super) fn user_of(&self, context: Option<&DraftValue>) -> Option<String> {
        let of_policy = self.inject.pod_spec.as_ref().map(|item| &item.value);
        let is_stated =
            of_policy.is_some_and(|fields| fields.pointer("/securityContext/runAsUser").is_some());
        let user = self.draft.text_at(context?, "runAsUser")?;
        (!is_stated).then(|| user.into_owned())
    }

    pub(super) fn pod_defaults(&mut self, item: &PolicyValue) -> PlanResult {
        let mut missing = Vec::new();
        let part = self.draft.get(&self.pod_spec_part(), "securityContext");
        let is_windows = self.is_for_windows();
        let is_root = self.user_of(part.as_ref()).as_deref() == Some("0");
        leaves(&item.value, &mut Vec::new(), &mut |path, value| {
            let is_for_linux = path.first().is_some_and(|field| {
                LINUX_ONLY.contains(&field.as_str()) || LINUX_ONLY_OF_PODS.contains(&field.as_str())
            });
            if part.as_ref().is_none_or(|part| self.is_open(part, path))
                && !(is_windows && is_for_linux)
                // A kubelet does not start root there.
                && !(is_root && path == ["runAsNonRoot"] && *value == Value::Bool(true))
            {
                missing.push((path.to_vec(), value.clone()));
            }
        });
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

    /// The pod says that it is one of Windows.
    pub(super) fn is_for_windows(&self) -> bool {
        self.draft
            .get(&self.pod_spec_part(), "os")
            .and_then(|os| self.draft.text_at(&os, "name"))
            .is_some_and(|name| name == "windows")
    }

    /// Whether nothing stands at a path, or on the way to it. An empty list says something: `drop: []` is not open.
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
            id = self
                .draft
                .open_mapping(id, key, order)
                .map_err(|refusal| self.refused(&refusal))?;
            order = &[];
        }
        self.draft
            .set(id, last, value, order)
            .map_err(|refusal| self.refused(&refusal))
    }

    pub(super) fn pod_fields(&mut self, item: &PolicyValue) -> PlanResult {
        let mut fields = Vec::new();
        leaves(&item.value, &mut Vec::new(), &mut |path, value| {
            fields.push((path.to_vec(), value.clone()))
        });
        // A `{}` is a leaf, too: of nothing, at the top.
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
        if is_same(&existing, &value) {
            let holder: Vec<&str> = std::iter::once("spec")
                .chain(path.iter().map(String::as_str))
                .collect();
            self.note_shared(&part, &holder[..holder.len() - 1], holder.last().copied());
            return Ok(());
        }
        let key = path.last().map(String::as_str).unwrap_or_default();
        if let (Value::Array(existing), Value::Array(wanted)) = (&existing, &value)
            && let Some(added) = self.union(key, existing, wanted, &part, item)?
        {
            return self.extend_pod_list(path, existing.len(), added);
        }
        if !self.replaces_existing() {
            let description = format_args!("the pod's `{}`", path.join("."));
            return self.kept_or_conflict(&part, description, item);
        }
        let pod_spec = self.open_pod_spec()?;
        self.set_leaf(pod_spec, path, value, order::POD_SPEC)?;
        self.report(Operation::Replace, || ChangeTarget::PodField(path.to_vec()));
        Ok(())
    }

    /// What `serviceAccount`, the old name of the field, says: an API server takes it where the new one is not stated.
    fn old_account(&self, path: &[String]) -> Option<DraftValue> {
        let is_account = path == ["serviceAccountName"];
        let part = self.draft.get(&self.pod_spec_part(), "serviceAccount");
        part.filter(|part| is_account && !self.draft.is_empty(part))
    }

    /// The items of ours that a list lacks; `None` for a list that is one value as a whole.
    fn union(
        &self,
        key: &str,
        existing: &[Value],
        wanted: &[Value],
        part: &DraftValue,
        item: &PolicyValue,
    ) -> Result<Option<Vec<Value>>, Box<Diagnostic>> {
        let merge_key = MERGE_KEYS
            .iter()
            .find(|(list, _)| *list == key)
            .map(|(_, fields)| *fields);
        if merge_key.is_none() && !SETS.contains(&key) {
            return Ok(None);
        }
        let mut added = Vec::new();
        for value in wanted {
            let counterpart = existing.iter().find(|candidate| match merge_key {
                Some(fields) => fields
                    .iter()
                    .all(|field| candidate.get(field) == value.get(field)),
                None => is_same(candidate, value),
            });
            match counterpart {
                None => added.push(value.clone()),
                Some(counterpart) if is_same(counterpart, value) => {}
                Some(_) if self.keeps_existing() => {}
                Some(_) if self.replaces_existing() => return Ok(None),
                Some(_) => {
                    return Err(self.conflict(
                        part,
                        format_args!("an item of the pod's `{key}`"),
                        item,
                    ));
                }
            }
        }
        Ok(Some(added))
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
            id = self
                .draft
                .open_mapping(id, key, &[])
                .map_err(|refusal| self.refused(&refusal))?;
        }
        let list = self
            .draft
            .open_list(id, last, order::POD_SPEC)
            .map_err(|refusal| self.refused(&refusal))?;
        for (at, value) in added.into_iter().enumerate() {
            self.draft.insert(list, length + at, value);
        }
        self.report(Operation::Extend, || ChangeTarget::PodField(path.to_vec()));
        Ok(())
    }
}
