//! Conflicts: an item of the same identity exists with other content. Either it is kept, or a diagnostic says who put
//! it there and how to resolve the conflict.

use foldhash::HashSet;
use serde_json::Value;
use std::fmt;

use crate::diagnostic::{Code, Diagnostic};
use crate::policy::PolicyValue;
use crate::record::words::{forced_undo_command, undo_command};
use crate::record::{RECORD, identity_of_item};
use crate::wording::shell_path;
use crate::yaml::tree::NodeId;

use super::containers::ListPlace;
use super::draft::DraftValue;
use super::draft_paths::RecordedPlaces;
use super::marks::is_marked;
use super::planner::{PlanResult, Planner};

/// Who put something there.
enum ValueAuthor {
    /// The identity of a policy of an earlier run that is not given now.
    KeptPolicy(String),
    /// Perhaps the policy itself, in an earlier run that left no record.
    EarlierRun,
    Manifest,
    /// Another policy of this run.
    ThisRun,
}

impl ValueAuthor {
    fn label(&self) -> String {
        match self {
            ValueAuthor::KeptPolicy(owner) => {
                format!("injected by policy `{owner}` in an earlier run")
            }
            ValueAuthor::EarlierRun => {
                "here already, perhaps from an earlier run without a record".to_owned()
            }
            ValueAuthor::Manifest => "defined here".to_owned(),
            ValueAuthor::ThisRun => "injected by a policy of this run".to_owned(),
        }
    }
}

/// The path of a list in the pod template, and the identity of an item in it.
fn kept_key(list: ListPlace<'_>, item: &PolicyValue) -> (Vec<String>, String) {
    let path = list.path();
    let identity = identity_of_item(path.last().copied().unwrap_or_default(), &item.value);
    (path.into_iter().map(str::to_owned).collect(), identity)
}

impl Planner<'_, '_> {
    /// Keeps an existing item with other content if the rule says `onConflict: Keep`; otherwise it is a conflict.
    pub(super) fn kept_or_conflict(
        &mut self,
        part: &DraftValue,
        description: impl fmt::Display,
        item: &PolicyValue,
    ) -> PlanResult {
        if !self.keeps_existing() {
            return Err(self.conflict(part, description, item).into());
        }
        self.is_partial = true;
        if !self.options.brief {
            let message = format!("kept: {description} of {}", self.workload.title());
            let note = Diagnostic::note(Code::Kept, message);
            let note = self.disputed(note, part, "left unchanged", item);
            self.problems.push(note);
        }
        Ok(())
    }

    /// Notes that the rule's item does not go into the list.
    pub(super) fn note_kept(&mut self, list: ListPlace<'_>, item: &PolicyValue) {
        self.kept.insert(kept_key(list, item));
    }

    /// Whether the workload keeps its own item in place of the rule's. What is not injected is not checked.
    pub(super) fn is_kept(&self, list: ListPlace<'_>, item: &PolicyValue) -> bool {
        !self.kept.is_empty() && self.kept.contains(&kept_key(list, item))
    }

    /// Whether this policy injected the part in an earlier run and somebody has changed it, or something in it, since.
    fn was_changed(&self, part: &DraftValue) -> bool {
        let node = self.draft.origin(part);
        node.is_some_and(|node| self.changed_nodes().contains(&node))
    }

    /// The nodes of what somebody changed since this policy injected it, and of what holds it.
    fn changed_nodes(&self) -> &HashSet<NodeId> {
        self.changed_nodes
            .get_or_init(|| self.find_changed_nodes().unwrap_or_default())
    }

    fn find_changed_nodes(&self) -> Option<HashSet<NodeId>> {
        let earlier = self.earlier?;
        let (tree, node) = (self.workload.tree, self.workload.object.node);
        let places = RecordedPlaces::of(tree, node, earlier.record.paths());
        let changed = earlier.taken.changed.iter();
        let changed = changed.filter(|drift| drift.policy == self.policy.identity);
        Some(
            changed
                .flat_map(|drift| places.nodes_to(&drift.path))
                .collect(),
        )
    }

    /// The recorded policy that added an item of this name and is not among the given ones.
    fn kept_owner(&self, part: &DraftValue) -> Option<String> {
        let given = self.options.given.as_ref()?;
        let value = self.draft.value(part)?;
        let name = value.get("name").and_then(Value::as_str)?;
        let policies = &self.earlier?.record.policies;
        let has_put = |path: &String| path.rsplit('/').next() == Some(name);
        let owner = policies.iter().find(|policy| {
            !given.contains(&policy.policy) && policy.effects.added.keys().any(has_put)
        });
        owner.map(|policy| policy.policy.clone())
    }

    /// Whether the workload is marked as injected by this policy and has no record of what was injected.
    fn was_injected_without_record(&self) -> bool {
        is_marked(&self.draft, &self.policy.identity) && !self.workload.has_annotation(RECORD)
    }

    /// Adds two places to a diagnostic: the existing value, and the item of the policy that wants another.
    fn disputed(
        &self,
        problem: Diagnostic,
        existing: &DraftValue,
        label: impl Into<String>,
        item: &PolicyValue,
    ) -> Diagnostic {
        let place = match self.draft.origin(existing) {
            Some(node) => self.workload.place(node),
            None => self.workload.name_place(),
        };
        self.wanted(problem.at(place, label), item)
    }

    /// The error for an existing item with other content.
    pub(super) fn conflict(
        &self,
        part: &DraftValue,
        description: impl fmt::Display,
        item: &PolicyValue,
    ) -> Diagnostic {
        let title = self.workload.title();
        if self.was_changed(part) {
            let policy = &self.policy.identity;
            let message =
                format!("{description} of {title} was changed after policy `{policy}` injected it");
            let problem = Diagnostic::error(Code::Conflict, message);
            let problem = self.disputed(problem, part, "changed here", item);
            let command = forced_undo_command(policy, &self.workload.source.name);
            return problem.help(format!(
                "revert the change, or make it in the policy as well; to discard the change: \
                 {command}, and apply again"
            ));
        }
        let message = format!("{description} already exists in {title} with different content");
        let problem = Diagnostic::error(Code::Conflict, message);
        let author = self.author_of(part);
        let problem = self.disputed(problem, part, author.label(), item);
        problem.help(self.way_out(&author))
    }

    fn author_of(&self, existing: &DraftValue) -> ValueAuthor {
        if self.draft.origin(existing).is_some() {
            return match self.was_injected_without_record() {
                true => ValueAuthor::EarlierRun,
                false => ValueAuthor::Manifest,
            };
        }
        match self.kept_owner(existing) {
            Some(owner) => ValueAuthor::KeptPolicy(owner),
            None => ValueAuthor::ThisRun,
        }
    }

    fn way_out(&self, author: &ValueAuthor) -> String {
        match author {
            ValueAuthor::KeptPolicy(owner) => {
                let command = undo_command(owner, &self.workload.source.name);
                return format!(
                    "remove what it injected with `{command}`, or pass it as well and make them \
                     identical"
                );
            }
            ValueAuthor::EarlierRun => {
                return "if an earlier run injected it, start again from the manifest without the \
                        injection: `apply --in-place` and `apply --record` write a record, with \
                        which a policy can update what it injected; if not, make them identical, \
                        or remove one"
                    .to_owned();
            }
            ValueAuthor::Manifest | ValueAuthor::ThisRun => {}
        }
        // `onConflict` exists only in InjectionPolicies, not in the resources of other operators.
        match self.policy.kind() {
            None => {
                "make them identical, remove one, or let the policy override it with `onConflict: \
                 Replace`"
                    .to_owned()
            }
            Some(kind) => format!(
                "make them identical, or remove one; a {kind} cannot override existing content, \
                 but an InjectionPolicy with `onConflict: Replace` can (`podgraft policy convert \
                 {}` converts it)",
                shell_path(&self.policy.text.name)
            ),
        }
    }
}
