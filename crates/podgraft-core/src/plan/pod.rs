//! Plans volumes and other items of the pod's lists, and labels and annotations of the pod and the workload.

use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

use crate::change::{ChangeTarget, MetadataOwner, Operation, PodItem};
use crate::diagnostic::Code;
use crate::policy::{EnvOp, PolicyValue, Position, TextChange};
use crate::record::name_field;

use super::containers::{DesiredItem, ListPlace, items_of, text_of};
use super::draft::DraftValue;
use super::env::{joins_nothing, value_of};
use super::joined::joined;
use super::order;
use super::planner::{PlanResult, Planner};

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
            (MetadataOwner::Pod, "annotations", &inject.pod_annotations),
            (MetadataOwner::Pod, "labels", &inject.pod_labels),
            (MetadataOwner::Workload, "annotations", &inject.annotations),
            (MetadataOwner::Workload, "labels", &inject.labels),
        ];
        for (owner, field, list) in texts {
            for (key, item) in list {
                self.attempt(|planner| planner.text(owner, field, key, item));
            }
        }
        for text in &inject.text_changes {
            self.attempt(|planner| planner.text_change(text));
        }
    }

    pub(super) fn volume(&mut self, item: &PolicyValue, position: &Position) -> PlanResult {
        let name = text_of(item, "name");
        let description = format_args!("the volume `{name}`");
        if let Some(claim) = self
            .claim_templates()
            .into_iter()
            .find(|(_, claim_name)| claim_name.as_deref() == Some(name))
        {
            let help = "rename the policy's volume: a claim template already creates a volume with \
                        this name";
            let kept = self.kept_or_conflict(&claim.0, description, item);
            return kept.map_err(|error| error.help(help));
        }
        self.pod_item(PodItem::Volume, "volumes", item, position)
    }

    /// Adds an item to a list of the pod, unless one of its name is there.
    pub(super) fn pod_item(
        &mut self,
        kind: PodItem,
        list: &'static str,
        item: &PolicyValue,
        position: &Position,
    ) -> PlanResult {
        let name = text_of(item, name_field(list).unwrap_or("name"));
        let found = self.item_called(list, name);
        let wanted = DesiredItem {
            item,
            description: format_args!("the {kind} `{name}`"),
            list: ListPlace::OfPod(list),
        };
        self.list_item(wanted, position, found, || {
            ChangeTarget::PodItem(kind, name.to_owned())
        })
    }

    /// The `volumeClaimTemplates` of a StatefulSet with their names. Containers mount them like volumes.
    pub(super) fn claim_templates(&self) -> Vec<(DraftValue, Option<Cow<'t, str>>)> {
        let path = ["spec", "volumeClaimTemplates"];
        let claims = self.draft.get_in(&self.draft.root(), &path);
        let claims = claims.map(|claims| self.draft.items(&claims));
        let named = claims.into_iter().flatten().map(|claim| {
            let metadata = self.draft.get(&claim, "metadata");
            let name = metadata.and_then(|metadata| self.draft.text_at(&metadata, "name"));
            (claim, name)
        });
        named.collect()
    }

    fn text_part(&self, owner: MetadataOwner, field: &str, key: &str) -> Option<DraftValue> {
        let holder = match owner {
            MetadataOwner::Pod => self.template_part(),
            MetadataOwner::Workload => self.draft.root(),
        };
        self.draft.get_in(&holder, &["metadata", field, key])
    }

    /// Sets a label or annotation, unless another value is there.
    fn text(
        &mut self,
        owner: MetadataOwner,
        field: &str,
        key: &str,
        item: &PolicyValue,
    ) -> PlanResult {
        let part = self.text_part(owner, field, key);
        if let Some(part) = &part {
            if self.draft.text(part).as_deref() == item.value.as_str() {
                let keys = ["metadata", field, key];
                self.note_shared_text(owner, part, keys);
                return Ok(());
            }
            // `onConflict: Replace` could not change this label either, so a conflict would suggest the wrong way out.
            if owner == MetadataOwner::Pod && field == "labels" && !self.keeps_existing() {
                self.refuse_selector_label(key, item)?;
            }
            if !self.replaces_existing() {
                let place = if owner == MetadataOwner::Pod {
                    "pod "
                } else {
                    ""
                };
                let singular = field.trim_end_matches('s');
                let description = format_args!("the {place}{singular} `{key}`");
                return self.kept_or_conflict(part, description, item);
            }
        }
        self.set_text(owner, field, key, item, set_operation(&part))
    }

    fn note_shared_text(&mut self, owner: MetadataOwner, part: &DraftValue, keys: [&str; 3]) {
        self.note_shared(part, |paths, _| match owner {
            MetadataOwner::Pod => paths.in_pod(&keys),
            MetadataOwner::Workload => paths.in_object(&keys),
        });
    }

    fn set_text(
        &mut self,
        owner: MetadataOwner,
        field: &str,
        key: &str,
        item: &PolicyValue,
        operation: Operation,
    ) -> PlanResult {
        if owner == MetadataOwner::Pod && field == "labels" {
            self.refuse_selector_label(key, item)?;
        }
        let holder = match owner {
            MetadataOwner::Pod => self.open_template()?,
            MetadataOwner::Workload => self.draft.open_root()?,
        };
        let order = if owner == MetadataOwner::Pod && !self.workload.pod_kind.path.is_empty() {
            order::TEMPLATE
        } else {
            order::OBJECT
        };
        let metadata = self.draft.open_mapping(holder, "metadata", order)?;
        let map = self.draft.open_mapping(metadata, field, order::METADATA)?;
        match operation {
            // The key has been looked for already.
            Operation::Add => {
                let end = self.draft.opened(map).len();
                self.draft
                    .insert_field_at(map, end, key, item.value.clone());
            }
            _ => self.draft.set(map, key, item.value.clone(), &[])?,
        }
        self.report(operation, || ChangeTarget::metadata(owner, field, key));
        Ok(())
    }

    /// Joins a text to a label or annotation, or sets it if there is none.
    fn text_change(&mut self, text: &TextChange) -> PlanResult {
        let TextChange {
            owner,
            field,
            change,
        } = text;
        if joins_nothing(change) {
            return Ok(());
        }
        let part = self.text_part(*owner, field, &change.name);
        let existing = part.as_ref().and_then(|part| self.draft.text(part));
        let addition = value_of(change).unwrap_or_default();
        let value = match existing {
            Some(_) if change.op == EnvOp::SetIfAbsent => return Ok(()),
            Some(existing) => {
                let value = joined(&existing, addition, change);
                if value == existing {
                    let part = part.filter(|part| self.draft.origin(part).is_none());
                    // The whole text is that of another policy. Of a part of one, undo could not tell the rest.
                    if let Some(part) = part.filter(|_| existing == addition) {
                        let keys = ["metadata", field, &change.name];
                        self.note_shared_text(*owner, &part, keys);
                    }
                    return Ok(());
                }
                value
            }
            None => addition.to_owned(),
        };
        let item = PolicyValue {
            value: Arc::new(Value::String(value)),
            at: change.item.at.clone(),
        };
        self.set_text(*owner, field, &change.name, &item, set_operation(&part))
    }

    /// Refuses to change a label that the workload's selector uses: the workload would lose its pods, and the API
    /// server refuses it.
    fn refuse_selector_label(&self, key: &str, item: &PolicyValue) -> PlanResult {
        let selector = self.draft.get_in(&self.draft.root(), &["spec", "selector"]);
        let Some(selector) = selector.and_then(|selector| self.draft.value(&selector)) else {
            return Ok(());
        };
        let in_map = |map: &Value| map.as_object().is_some_and(|map| map.contains_key(key));
        let has_key = |expression: &Value| expression["key"].as_str() == Some(key);
        let expressions = items_of(&selector, "matchExpressions");
        let is_used = in_map(&selector)
            || selector.get("matchLabels").is_some_and(in_map)
            || expressions.iter().any(has_key);
        if !is_used {
            return Ok(());
        }
        let message = format!(
            "the selector of {} uses the label `{key}`, so the label cannot be changed",
            self.workload.title()
        );
        Err(self.problem(Code::Invalid, message, item).into())
    }
}

/// What setting a text is, given what was there.
fn set_operation(existing: &Option<DraftValue>) -> Operation {
    match existing {
        Some(_) => Operation::Replace,
        None => Operation::Add,
    }
}
