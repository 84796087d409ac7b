//! What goes into the pod spec, its metadata and the workload's: volumes, labels, annotations, other fields.

use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::change::{Operation, PodItem, Target};
use crate::diagnostic::Code;
use crate::policy::{EnvOp, Item, Position, TextChange};

use super::containers::{Wanted, text_of};
use super::draft::Part;
use super::env::value_of;
use super::joined::joined;
use super::order;
use super::planner::{Planner, Step};

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
        self.draft.get_in(&holder, &["metadata", field, key])
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
}
