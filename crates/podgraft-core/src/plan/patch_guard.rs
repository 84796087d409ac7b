//! What a patch must leave intact: the names by which podgraft finds things, and the validity of the object.

use serde_json::Value;
use std::borrow::Cow;

use crate::change::ChangeTarget;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::PatchEntry;
use crate::policy::objects::schema_of;
use crate::policy::schema::{POD_TEMPLATE, TemplateMode};
use crate::record::{RECORD, aligned_lists, below, identity_of_item};
use crate::yaml::tree::NodeId;

use super::draft::DraftValue;
use super::faults::{self, FaultOrigin};
use super::planner::{PlanResult, Planner};

/// Lists whose items other policies and the record find by name.
const LISTS: [(&str, &str); 3] = [
    ("containers", "container"),
    ("initContainers", "init container"),
    ("volumes", "volume"),
];

/// Fields that identify the object, and podgraft's own annotations.
const TEXTS: [&[&str]; 7] = [
    &["apiVersion"],
    &["kind"],
    &["metadata", "name"],
    &["metadata", "generateName"],
    &["metadata", "namespace"],
    &["metadata", "annotations", super::MARKER],
    &["metadata", "annotations", RECORD],
];

/// The parts of a workload that a patch must not change.
pub(super) struct ProtectedParts {
    items: [Vec<ProtectedItem>; 3],
    texts: [Option<String>; 7],
}

/// An item of another list that a policy of this run added or changed.
#[derive(PartialEq)]
pub(super) struct InjectedItem {
    /// As a record names it.
    path: String,
    value: Value,
}

/// A container or volume: its name, its node in the input, and, if a policy of this run added it, its value.
#[derive(PartialEq)]
struct ProtectedItem {
    name: String,
    origin: Option<NodeId>,
    planned: Option<Value>,
}

impl<'t> Planner<'_, 't> {
    pub(super) fn identity(&self) -> ProtectedParts {
        let items = LISTS.map(|(list, _)| {
            let items = self.pod_items(list).into_iter();
            items
                .map(|(part, name)| self.protected(&part, name))
                .collect()
        });
        let texts = TEXTS.map(|path| {
            let (last, parents) = path.split_last()?;
            let part = self.draft.get_in(&self.draft.root(), parents)?;
            self.draft
                .text_at(&part, last)
                .map(|text| text.into_owned())
        });
        ProtectedParts { items, texts }
    }

    /// The items that policies of this run added or changed in lists of the pod and of the manifest's containers.
    pub(super) fn injected_items(&self) -> Vec<InjectedItem> {
        let spec = self.pod_spec_part();
        let mut holders = vec![("pod/spec".to_owned(), spec.clone())];
        for field in ["dnsConfig", "securityContext"] {
            let part = self.draft.get(&spec, field);
            holders.extend(part.map(|part| (format!("pod/spec/{field}"), part)));
        }
        for list in ["containers", "initContainers"] {
            let containers = self.pod_items(list).into_iter();
            let in_manifest = containers.filter(|(part, _)| self.draft.origin(part).is_some());
            holders.extend(in_manifest.map(|(part, name)| {
                let name = name.unwrap_or_default();
                (below(&format!("pod/spec/{list}"), &name), part)
            }));
        }
        let mut found = Vec::new();
        for (path, holder) in &holders {
            let lists = aligned_lists().filter(|key| LISTS.iter().all(|(list, _)| list != key));
            for key in lists {
                let list = self.draft.get(holder, key);
                let items = list.map(|list| self.draft.items(&list)).unwrap_or_default();
                let changed = items.iter().filter(|item| self.is_changed_item(item));
                found.extend(changed.filter_map(|item| {
                    let value = self.draft.value(item)?;
                    let path = format!("{path}/{key}/{}", identity_of_item(key, &value));
                    Some(InjectedItem { path, value })
                }));
            }
        }
        found
    }

    /// Whether an item of a list is new, or has another value than in the manifest, such as a variable with a joined text.
    fn is_changed_item(&self, item: &DraftValue) -> bool {
        let origin = self.draft.origin(item);
        origin.is_none_or(|node| !self.draft.is_same(node, item))
    }

    fn protected(&self, part: &DraftValue, name: Option<Cow<'_, str>>) -> ProtectedItem {
        let origin = self.draft.origin(part);
        let planned = match origin {
            Some(_) => None,
            None => self.draft.value(part),
        };
        ProtectedItem {
            name: name.unwrap_or_default().into_owned(),
            origin,
            planned,
        }
    }

    /// Refuses a patch that changes the object's identity or podgraft's annotations, or that removes, renames or
    /// reorders containers or volumes.
    pub(super) fn check_identity(&self, before: &ProtectedParts, entry: &PatchEntry) -> PlanResult {
        let after = self.identity();
        let texts = TEXTS.iter().zip(before.texts.iter().zip(&after.texts));
        for (path, (old, new)) in texts {
            if old != new {
                let message = format!("a patch must not change `{}`", path.join("."));
                let help = "remove the operation: podgraft and the cluster identify the object by \
                            this field";
                let problem = self.problem(Code::BadPatch, message, &entry.item);
                return Err(problem.help(help).into());
            }
        }
        for ((_, word), (old, new)) in LISTS.iter().zip(before.items.iter().zip(&after.items)) {
            let mut rest = new.iter();
            let lost = old
                .iter()
                .find(|item| !rest.any(|candidate| candidate == *item));
            let Some(ProtectedItem { name, planned, .. }) = lost else {
                continue;
            };
            let stays = new.iter().any(|item| item.name == *name);
            let (message, help) = match planned.is_some() && stays {
                true => (
                    format!(
                        "a patch must not change the {word} `{name}`, which a policy of this run \
                         injects"
                    ),
                    "make the change in the policy that injects it: the next run would not \
                     recognize a patched one",
                ),
                false => (
                    format!("a patch must not remove, rename, or move the {word} `{name}`"),
                    "change its fields instead, or remove it from the manifest",
                ),
            };
            let problem = self.problem(Code::BadPatch, message, &entry.item);
            return Err(problem.help(help).into());
        }
        Ok(())
    }

    /// Refuses a patch that removes or changes items that policies added or changed before the patches of the rule.
    pub(super) fn refuse_lost_items(
        &self,
        injected: &[InjectedItem],
        entry: &PatchEntry,
    ) -> PlanResult {
        let present = self.injected_items();
        let Some(lost) = injected.iter().find(|item| !present.contains(item)) else {
            return Ok(());
        };
        let message = format!(
            "a patch must not remove or change `{}`, which a policy of this run injects",
            ChangeTarget::from_path(&lost.path)
        );
        let help = "expressions see the pod before all policies: add single items (`/env/-`) instead of \
                    writing the whole list, or make the change where the item is injected";
        let problem = self.problem(Code::BadPatch, message, &entry.item);
        Err(problem.help(help).into())
    }

    /// The faults of the draft: what an API server would refuse.
    pub(super) fn faults(&self) -> Vec<String> {
        let found = faults::faults(
            &self.draft,
            &self.template_part(),
            self.workload.pod_kind,
            FaultOrigin::Policy,
        )
        .into_iter();
        found
            .map(|fault| fault.message)
            .chain(self.faults_of_types())
            .collect()
    }

    /// Unknown fields, and values of the wrong type.
    fn faults_of_types(&self) -> Vec<String> {
        let object = &self.workload.object;
        let (part, schema) = match schema_of(&object.api_version, &object.kind) {
            Some(schema) => (self.draft.root(), schema),
            None => (self.template_part(), &POD_TEMPLATE),
        };
        let found = self
            .draft
            .value(&part)
            .map(|value| schema.check(&value, TemplateMode::Filled));
        found
            .into_iter()
            .flatten()
            .map(|problem| format!("`{}`: {}", problem.path, problem.message))
            .collect()
    }

    /// Refuses a patch that introduces faults which are not in `before`.
    pub(super) fn refuse_new_faults(
        &mut self,
        before: &[String],
        entry: &PatchEntry,
    ) -> PlanResult {
        let mut new: Vec<String> = self
            .faults()
            .into_iter()
            .filter(|fault| !before.contains(fault))
            .collect();
        let Some(last) = new.pop() else { return Ok(()) };
        for fault in new {
            self.problems.push(self.refuse_fault(&fault, entry));
        }
        Err(self.refuse_fault(&last, entry).into())
    }

    fn refuse_fault(&self, fault: &str, entry: &PatchEntry) -> Diagnostic {
        let message = format!(
            "the API server would reject {} with this patch: {fault}",
            self.workload.title()
        );
        self.problem(Code::Invalid, message, &entry.item)
    }
}
