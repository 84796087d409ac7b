//! What goes into the pod spec, its metadata and the workload's: volumes, labels, annotations, other fields.

use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::change::{Operation, PodItem, Target};
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::{EnvOp, Item, Position, TextChange};
use crate::yaml::value::leaves;

use super::containers::{LINUX_ONLY, Wanted, text_of};
use super::draft::{OpenId, Part};
use super::env::{joined, value_of};
use super::order;
use super::planner::{Planner, Step};
use super::same::is_same;

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

/// Whose metadata a text goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    Pod,
    Workload,
}

impl<'t> Planner<'_, 't> {
    pub(super) fn pod_level(&mut self) {
        let inject = self.inject;
        if let Some(item) = &inject.pod_security_context {
            self.attempt(|planner| planner.pod_defaults(item));
        }
        if let Some(item) = &inject.pod_spec {
            self.attempt(|planner| planner.pod_fields(item));
        }
        let texts = [
            (Whose::Pod, "annotations", &inject.pod_annotations),
            (Whose::Pod, "labels", &inject.pod_labels),
            (Whose::Workload, "annotations", &inject.annotations),
            (Whose::Workload, "labels", &inject.labels),
        ];
        for (whose, field, list) in texts {
            for (key, item) in list {
                self.attempt(|planner| planner.text(whose, field, key, item));
            }
        }
        for text in &inject.text_changes {
            self.attempt(|planner| planner.text_change(text));
        }
    }

    pub(super) fn volume(&mut self, item: &Item, position: &Position) -> Step {
        let name = text_of(item, "name");
        let what = format_args!("the volume `{name}`");
        if let Some(claim) = self
            .claim_templates()
            .into_iter()
            .find(|(_, own)| own.as_deref() == Some(name))
        {
            let help = "a claim template makes a volume of its name: rename the policy's volume";
            return self
                .kept_or_conflict(&claim.0, what, item)
                .map_err(|problem| Box::new(problem.help(help)));
        }
        self.pod_list_item(("volumes", position), item, name, what, PodItem::Volume)
    }

    pub(super) fn image_pull_secret(&mut self, item: &Item) -> Step {
        let name = text_of(item, "name");
        self.pod_list_item(
            ("imagePullSecrets", &Position::Last),
            item,
            name,
            format_args!("the image pull secret `{name}`"),
            PodItem::ImagePullSecret,
        )
    }

    fn pod_list_item(
        &mut self,
        (list, position): (&str, &Position),
        item: &Item,
        name: &str,
        what: fmt::Arguments<'_>,
        kind: PodItem,
    ) -> Step {
        let target = || Target::PodItem(kind, name.to_owned());
        let own = self.pod_list(list);
        if let Some(at) = self.position_by(own.as_ref(), "name", name)
            && let Some(there) = own.as_ref().and_then(|own| self.draft.item(own, at))
        {
            let wanted = Wanted {
                item,
                what,
                list: &["spec", list],
            };
            return self.same_or_replace(&there, wanted, target, |planner| {
                let opened = planner.open_pod_list(list)?;
                let replaced = planner.draft.replace(opened, at, item.value.clone());
                replaced.map_err(|refusal| planner.refused(&refusal))
            });
        }
        let at = self.index_for(position, own.as_ref(), item)?;
        let opened = self.open_pod_list(list)?;
        self.draft.insert(opened, at, item.value.clone());
        self.report(Operation::Add, target);
        Ok(())
    }

    /// A StatefulSet's volumeClaimTemplates, which its containers mount like volumes, with their names.
    pub(super) fn claim_templates(&self) -> Vec<(Part, Option<Cow<'t, str>>)> {
        let spec = self.draft.get(&self.draft.root(), "spec");
        let claims = spec.and_then(|spec| self.draft.get(&spec, "volumeClaimTemplates"));
        let claims = claims
            .map(|claims| self.draft.items(&claims))
            .unwrap_or_default();
        let named = |claim: Part| {
            let name = self
                .draft
                .get(&claim, "metadata")
                .and_then(|metadata| self.draft.text_at(&metadata, "name"));
            (claim, name)
        };
        claims.into_iter().map(named).collect()
    }

    fn text_there(&self, whose: Whose, field: &str, key: &str) -> Option<Part> {
        let holder = match whose {
            Whose::Pod => self.template_part(),
            Whose::Workload => self.draft.root(),
        };
        let metadata = self.draft.get(&holder, "metadata")?;
        self.draft.get(&self.draft.get(&metadata, field)?, key)
    }

    /// A label or annotation.
    fn text(&mut self, whose: Whose, field: &str, key: &str, item: &Item) -> Step {
        let there = self.text_there(whose, field, key);
        if let Some(there) = &there {
            if self.draft.text(there).as_deref() == item.value.as_str() {
                if whose == Whose::Pod {
                    self.note_shared(there, &["metadata", field], Some(key));
                }
                return Ok(());
            }
            // No policy may win here, so there is no use in saying that one could.
            if whose == Whose::Pod && field == "labels" && !self.keeps() {
                self.refuse_selector_label(key, item)?;
            }
            if !self.replaces() {
                let place = if whose == Whose::Pod { "pod " } else { "" };
                let one = field.trim_end_matches('s');
                let what = format_args!("the {place}{one} `{key}`");
                return self.kept_or_conflict(there, what, item);
            }
        }
        self.set_text(whose, field, key, item)
    }

    fn set_text(&mut self, whose: Whose, field: &str, key: &str, item: &Item) -> Step {
        let there = self.text_there(whose, field, key);
        if there
            .as_ref()
            .and_then(|there| self.draft.text(there))
            .as_deref()
            == item.value.as_str()
        {
            return Ok(());
        }
        if whose == Whose::Pod && field == "labels" {
            self.refuse_selector_label(key, item)?;
        }
        let holder = match whose {
            Whose::Pod => self.open_template()?,
            Whose::Workload => self
                .draft
                .open_root()
                .map_err(|refusal| self.refused(&refusal))?,
        };
        let order = if whose == Whose::Pod && !self.workload.pod_kind.path.is_empty() {
            order::TEMPLATE
        } else {
            order::OBJECT
        };
        let set = self
            .draft
            .open_mapping(holder, "metadata", order)
            .and_then(|metadata| self.draft.open_mapping(metadata, field, order::METADATA))
            .and_then(|map| self.draft.set(map, key, item.value.clone(), &[]));
        set.map_err(|refusal| self.refused(&refusal))?;
        let operation = match there {
            Some(_) => Operation::Replace,
            None => Operation::Add,
        };
        self.report(operation, || {
            Target::metadata(whose == Whose::Pod, field, key)
        });
        Ok(())
    }

    /// A label or annotation that is joined with what is there, or set where nothing is.
    fn text_change(&mut self, text: &TextChange) -> Step {
        let TextChange {
            is_of_workload,
            field,
            change,
        } = text;
        let whose = match is_of_workload {
            true => Whose::Workload,
            false => Whose::Pod,
        };
        let there = self.text_there(whose, field, &change.name);
        let there = there.and_then(|there| self.draft.text(&there).map(Cow::into_owned));
        let ours = value_of(change).unwrap_or_default();
        let value = match there {
            Some(_) if change.op == EnvOp::SetIfAbsent => return Ok(()),
            Some(own) => joined(&own, ours, change),
            None => ours.to_owned(),
        };
        let item = Item {
            value: Arc::new(Value::String(value)),
            at: change.item.at.clone(),
        };
        self.set_text(whose, field, &change.name, &item)
    }

    /// A changed label that the workload's selector uses would cut the workload off from its pods; the API server
    /// refuses it.
    fn refuse_selector_label(&self, key: &str, item: &Item) -> Step {
        let spec = self.draft.get(&self.draft.root(), "spec");
        let selector = spec
            .and_then(|spec| self.draft.get(&spec, "selector"))
            .and_then(|selector| self.draft.value(&selector));
        let Some(selector) = selector else {
            return Ok(());
        };
        let in_map = |map: &Value| map.as_object().is_some_and(|map| map.contains_key(key));
        let expressions = selector
            .get("matchExpressions")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_used = in_map(&selector)
            || selector.get("matchLabels").is_some_and(in_map)
            || expressions
                .iter()
                .any(|expression| expression.get("key").and_then(Value::as_str) == Some(key));
        if !is_used {
            return Ok(());
        }
        let message = format!(
            "the selector of {} uses the label `{key}`, so it must not be changed",
            self.workload.title()
        );
        Err(Box::new(self.problem(Code::Invalid, message, item)))
    }

    /// The user that the pod's security context states, where the policy states no other.
    pub(super) fn user_of(&self, context: Option<&Part>) -> Option<String> {
        let of_policy = self.inject.pod_spec.as_ref().map(|item| &item.value);
        let is_stated =
            of_policy.is_some_and(|fields| fields.pointer("/securityContext/runAsUser").is_some());
        let user = self.draft.text_at(context?, "runAsUser")?;
        (!is_stated).then(|| user.into_owned())
    }

    fn pod_defaults(&mut self, item: &Item) -> Step {
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
            self.report(Operation::Add, || Target::PodDefault(full));
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
    pub(super) fn is_open(&self, part: &Part, path: &[String]) -> bool {
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
    ) -> Step {
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

    fn pod_fields(&mut self, item: &Item) -> Step {
        let mut fields = Vec::new();
        leaves(&item.value, &mut Vec::new(), &mut |path, value| {
            fields.push((path.to_vec(), value.clone()))
        });
        // A `{}` is a leaf, too: of nothing, at the top.
        fields.retain(|(path, _)| !path.is_empty());
        for (path, value) in fields {
            let at = self.inject.pod_spec_places.get(&path).cloned();
            let own = Item {
                value: Arc::clone(&item.value),
                at: at.unwrap_or_else(|| item.at.clone()),
            };
            self.attempt(|planner| planner.pod_field(&path, value, &own));
        }
        Ok(())
    }

    fn pod_field(&mut self, path: &[String], value: Value, item: &Item) -> Step {
        let mut there = Some(self.pod_spec_part());
        for key in path {
            there = there.and_then(|part| self.draft.get(&part, key));
        }
        let there = there.filter(|part| !self.draft.is_empty(part));
        let there = there.or_else(|| self.old_account(path));
        let Some(there) = there else {
            let pod_spec = self.open_pod_spec()?;
            self.set_leaf(pod_spec, path, value, order::POD_SPEC)?;
            self.report(Operation::Add, || Target::PodField(path.to_vec()));
            return Ok(());
        };
        let existing = self.draft.value(&there).unwrap_or(Value::Null);
        if is_same(&existing, &value) {
            let holder: Vec<&str> = std::iter::once("spec")
                .chain(path.iter().map(String::as_str))
                .collect();
            self.note_shared(&there, &holder[..holder.len() - 1], holder.last().copied());
            return Ok(());
        }
        let key = path.last().map(String::as_str).unwrap_or_default();
        if let (Value::Array(own), Value::Array(wanted)) = (&existing, &value)
            && let Some(added) = self.union(key, own, wanted, &there, item)?
        {
            return self.extend_pod_list(path, own.len(), added);
        }
        if !self.replaces() {
            let what = format_args!("the pod's `{}`", path.join("."));
            return self.kept_or_conflict(&there, what, item);
        }
        let pod_spec = self.open_pod_spec()?;
        self.set_leaf(pod_spec, path, value, order::POD_SPEC)?;
        self.report(Operation::Replace, || Target::PodField(path.to_vec()));
        Ok(())
    }

    /// What `serviceAccount`, the old name of the field, says: an API server takes it where the new one is not stated.
    fn old_account(&self, path: &[String]) -> Option<Part> {
        let is_account = path == ["serviceAccountName"];
        let there = self.draft.get(&self.pod_spec_part(), "serviceAccount");
        there.filter(|part| is_account && !self.draft.is_empty(part))
    }

    /// The items of ours that a list lacks; `None` for a list that is one value as a whole.
    fn union(
        &self,
        key: &str,
        own: &[Value],
        wanted: &[Value],
        there: &Part,
        item: &Item,
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
            let twin = own.iter().find(|other| match merge_key {
                Some(fields) => fields
                    .iter()
                    .all(|field| other.get(field) == value.get(field)),
                None => is_same(other, value),
            });
            match twin {
                None => added.push(value.clone()),
                Some(twin) if is_same(twin, value) => {}
                Some(_) if self.keeps() => {}
                Some(_) if self.replaces() => return Ok(None),
                Some(_) => {
                    return Err(self.conflict(
                        there,
                        format_args!("an item of the pod's `{key}`"),
                        item,
                    ));
                }
            }
        }
        Ok(Some(added))
    }

    fn extend_pod_list(&mut self, path: &[String], length: usize, added: Vec<Value>) -> Step {
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
        self.report(Operation::Extend, || Target::PodField(path.to_vec()));
        Ok(())
    }
}
