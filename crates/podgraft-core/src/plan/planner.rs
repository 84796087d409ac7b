//! Plans one rule of a policy on one workload: the order of the steps, and how all of them access the draft.

use foldhash::HashSet;
use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use crate::change::{Change, ChangeTarget, Operation, PodItem};
use crate::diagnostic::{Code, Diagnostic};
use crate::manifest::pod::{Container, ContainerListKey, Workload};
use crate::policy::parts::FormedPart;
use crate::policy::{Injection, OnConflict, Position, Rule};
use crate::yaml::tree::NodeId;

use super::containers::ListPlace;
use super::draft::{Draft, DraftValue, OpenId, Refusal, RefusalReason};
use super::env::VariableChange;
use super::expand::ExpandedInjection;
use super::missing_volumes::MissingVolume;
use super::patch_limits::PatchGrowth;
use super::positions::InsertedItem;
use super::recording::RuleNotes;
use super::{RuleContext, order};

/// The result of a planning step.
pub(super) type PlanResult<T = ()> = Result<T, PlanError>;

/// Why a planning step fails.
pub(super) enum PlanError {
    /// Something that must change may not be edited.
    Refused(Refusal),
    Problem(Box<Diagnostic>),
}

impl From<Refusal> for PlanError {
    fn from(refusal: Refusal) -> Self {
        PlanError::Refused(refusal)
    }
}

impl From<Diagnostic> for PlanError {
    fn from(problem: Diagnostic) -> Self {
        PlanError::Problem(Box::new(problem))
    }
}

impl PlanError {
    /// Replaces the message of a problem.
    pub(super) fn message(self, message: String) -> Self {
        match self {
            PlanError::Problem(problem) => Diagnostic {
                message,
                ..*problem
            }
            .into(),
            PlanError::Refused(refusal) => PlanError::Refused(refusal),
        }
    }

    /// Adds advice to a problem.
    pub(super) fn help(self, text: &str) -> Self {
        match self {
            PlanError::Problem(problem) => problem.help(text).into(),
            PlanError::Refused(refusal) => PlanError::Refused(refusal),
        }
    }
}

pub(super) struct Planner<'c, 't> {
    pub subject: RuleContext<'c, 't>,
    pub rule: &'c Rule,
    /// What the rule injects into the pod, and into each container that has nothing of its own.
    pub inject: &'c Injection,
    pub expanded: &'c ExpandedInjection<'c>,
    pub chosen: Vec<Container<'c>>,
    pub draft: Draft<'t>,
    /// The pod template and the pod spec, once they are opened.
    opened: Option<(OpenId, Option<OpenId>)>,
    /// The index at which the last container was found. The next search begins there: it is mostly for the same
    /// container or the next one.
    last_found: Cell<usize>,
    /// Where somebody changed what an earlier run of the policy injected, found on first use.
    pub changed_nodes: OnceCell<HashSet<NodeId>>,
    /// Whether the rule changed anything.
    pub is_done: bool,
    /// Whether the workload keeps what it has in place of something that the rule states.
    pub is_partial: bool,
    /// The changes; empty unless the run reports details.
    pub done: Vec<Change>,
    pub problems: Vec<Diagnostic>,
    /// The items that the workload keeps in place of the rule's: the path of each list, and the identity in the list.
    pub kept: BTreeSet<(Vec<String>, String)>,
    /// The volumes of the rule's mounts that the pod does not have.
    pub missing_volumes: Vec<MissingVolume>,
    /// What the rule put first, or after another item.
    pub inserted: Vec<InsertedItem>,
    /// Whether each patch applies to at least one of its targets, by its index.
    pub patch_results: BTreeMap<usize, bool>,
    /// What the `copy` and `move` operations of patches write.
    pub copied: Vec<FormedPart>,
    /// The draft before the patches, where the workload keeps what it has in place of something.
    pub unpatched: Option<Draft<'t>>,
    /// The bytes that patches have added so far.
    pub growth: PatchGrowth,
    /// What the record needs beyond the changes themselves.
    pub notes: RuleNotes,
}

impl<'c, 't> Deref for Planner<'c, 't> {
    type Target = RuleContext<'c, 't>;

    fn deref(&self) -> &Self::Target {
        &self.subject
    }
}

impl<'c, 't> Planner<'c, 't> {
    /// Returns a planner that has planned nothing yet.
    pub(super) fn new(
        subject: RuleContext<'c, 't>,
        rule: &'c Rule,
        expanded: &'c ExpandedInjection<'c>,
        chosen: Vec<Container<'c>>,
        draft: Draft<'t>,
    ) -> Self {
        Planner {
            subject,
            rule,
            inject: &expanded.inject,
            expanded,
            chosen,
            draft,
            opened: None,
            last_found: Cell::new(0),
            changed_nodes: OnceCell::new(),
            is_done: false,
            is_partial: false,
            done: vec![],
            problems: vec![],
            kept: BTreeSet::new(),
            missing_volumes: vec![],
            inserted: vec![],
            patch_results: BTreeMap::new(),
            copied: vec![],
            unpatched: None,
            growth: PatchGrowth::default(),
            notes: RuleNotes::default(),
        }
    }

    /// Plans all that the rule injects. A failed step does not stop the others, so that one run finds all problems.
    pub(super) fn run(mut self) -> Self {
        let inject = self.inject;
        let class = self.qos_class_before();
        for (item, position) in &inject.volumes {
            self.attempt(|planner| planner.volume(item, position));
        }
        for (item, position) in &inject.init_containers {
            self.attempt(|planner| {
                planner.container(ContainerListKey::InitContainers, item, position)
            });
        }
        for (item, kind, position) in &inject.sidecars {
            self.attempt(|planner| planner.sidecar(item, *kind, position));
        }
        for item in &inject.image_pull_secrets {
            let (kind, list) = (PodItem::ImagePullSecret, "imagePullSecrets");
            self.attempt(|planner| planner.pod_item(kind, list, item, &Position::Last));
        }
        for (container, inject) in self.chosen.clone().iter().zip(self.container_injects()) {
            self.container_level(container, inject);
        }
        self.report_qos_class(class);
        self.pod_level();
        // Patches see the result of all other steps, and the checks see everything.
        self.patches();
        self.check_result();
        self
    }

    /// The pod's QoS class before anything is added. `None` if nothing that the rule adds can change it, or nothing is
    /// reported.
    fn qos_class_before(&self) -> Option<&'static str> {
        let has_resources = |inject: &Injection| {
            let defaults = inject.container_defaults.as_ref();
            defaults.is_some_and(|item| item.value.get("resources").is_some())
        };
        let adds_resources = self.expanded.injects().any(has_resources);
        let adds_containers =
            !self.inject.init_containers.is_empty() || !self.inject.sidecars.is_empty();
        let is_asked = !self.options.brief && (adds_containers || adds_resources);
        let class = is_asked.then(|| self.qos_class()).flatten();
        // Whatever containers a burstable pod gets in addition, it stays one.
        let may_change = adds_resources || self.replaces_existing();
        class.filter(|class| may_change || *class != "Burstable")
    }

    fn report_qos_class(&mut self, before: Option<&'static str>) {
        let Some(before) = before else { return };
        if let Some(now) = self.qos_class().filter(|now| *now != before) {
            self.report(Operation::Reclassify { before, now }, || ChangeTarget::Pod);
        }
    }

    /// What goes into each chosen container, in the order of `chosen`.
    pub(super) fn container_injects(&self) -> Vec<&'c Injection> {
        let of_containers = &self.expanded.of_containers;
        (0..self.chosen.len())
            .map(|at| of_containers.get(at).unwrap_or(self.inject))
            .collect()
    }

    fn container_level(&mut self, container: &Container<'_>, inject: &'c Injection) {
        for item in &inject.ports {
            self.attempt(|planner| planner.port(container, item));
        }
        for item in &inject.env_from {
            self.attempt(|planner| planner.env_from(container, item));
        }
        let removed = self.removed_variables(container, inject);
        // `envFrom` comes before `env`, because a text may be joined to a variable that an injected source brings.
        for entry in super::env_order::in_order_of_use(&inject.env) {
            self.attempt(|planner| planner.env(VariableChange { container, entry }));
        }
        for entry in removed {
            self.warn_of_users(VariableChange { container, entry });
        }
        for item in &inject.volume_mounts {
            self.attempt(|planner| planner.volume_mount(container, item));
        }
        if let Some(item) = &inject.container_defaults {
            self.attempt(|planner| planner.container_defaults(container, item));
        }
    }

    pub(super) fn attempt(&mut self, step: impl FnOnce(&mut Self) -> PlanResult) {
        let problem = match step(self) {
            Ok(()) => return,
            Err(PlanError::Problem(problem)) => *problem,
            Err(PlanError::Refused(refusal)) => refusal_diagnostic(&refusal, self.workload),
        };
        self.problems.push(problem);
    }

    /// Notes a change. Its target is computed only if the run reports details.
    pub(super) fn report(&mut self, operation: Operation, target: impl FnOnce() -> ChangeTarget) {
        self.is_done = true;
        if !self.options.brief {
            self.done.push(Change::new(operation, target()));
        }
    }

    pub(super) fn replaces_existing(&self) -> bool {
        self.rule.on_conflict == OnConflict::Replace
    }

    pub(super) fn keeps_existing(&self) -> bool {
        self.rule.on_conflict == OnConflict::Keep
    }

    /// Continues with another draft and returns the current one.
    pub(super) fn replace_draft(&mut self, draft: Draft<'t>) -> Draft<'t> {
        self.invalidate_opened();
        std::mem::replace(&mut self.draft, draft)
    }

    /// Forgets the opened pod template and pod spec. Needed when another collection may have taken their place.
    pub(super) fn invalidate_opened(&mut self) {
        self.opened = None;
    }

    pub(super) fn template_part(&self) -> DraftValue {
        if let Some((template, _)) = self.opened {
            return DraftValue::Open(template);
        }
        if !self.draft.is_changed() {
            return DraftValue::Node(self.workload.template);
        }
        self.template_in(&self.draft)
    }

    pub(super) fn pod_spec_part(&self) -> DraftValue {
        if let Some((_, Some(pod_spec))) = self.opened {
            return DraftValue::Open(pod_spec);
        }
        if !self.draft.is_changed() {
            return DraftValue::Node(self.workload.pod_spec);
        }
        let template = self.template_part();
        self.draft.get(&template, "spec").unwrap_or(template)
    }

    pub(super) fn open_template(&mut self) -> Result<OpenId, Refusal> {
        if let Some((template, _)) = self.opened {
            return Ok(template);
        }
        let template = self.draft.open_path(&self.subject.workload.pod_kind.path)?;
        self.opened = Some((template, None));
        Ok(template)
    }

    pub(super) fn open_pod_spec(&mut self) -> Result<OpenId, Refusal> {
        if let Some((_, Some(pod_spec))) = self.opened {
            return Ok(pod_spec);
        }
        let template = self.open_template()?;
        let pod_spec = self.draft.open_mapping(template, "spec", order::TEMPLATE)?;
        self.opened = Some((template, Some(pod_spec)));
        Ok(pod_spec)
    }

    /// A list that policies put items into, in the draft.
    pub(super) fn list_part(&self, list: ListPlace<'_>) -> Option<DraftValue> {
        match list {
            ListPlace::OfPod(key) => self.draft.get(&self.pod_spec_part(), key),
            ListPlace::OfContainer(container, key) => {
                self.draft.get(&self.container_part(container)?, key)
            }
        }
    }

    pub(super) fn open_list(&mut self, list: ListPlace<'_>) -> PlanResult<OpenId> {
        match list {
            ListPlace::OfPod(key) => {
                let pod_spec = self.open_pod_spec()?;
                Ok(self.draft.open_list(pod_spec, key, order::POD_SPEC)?)
            }
            ListPlace::OfContainer(container, key) => {
                let container = self.open_container(container)?;
                Ok(self.draft.open_list(container, key, order::CONTAINER)?)
            }
        }
    }

    /// The index of the first item that has this text under a key.
    pub(super) fn position_by(
        &self,
        list: Option<&DraftValue>,
        key: &'static str,
        text: &str,
    ) -> Option<usize> {
        let (at, _) = self.draft.item_by(list?, key, text)?;
        Some(at)
    }

    /// The items of a list of the pod spec, each with its name.
    pub(super) fn pod_items(&self, list: &str) -> Vec<(DraftValue, Option<Cow<'t, str>>)> {
        let list = self.list_part(ListPlace::OfPod(list));
        self.named_items(list.as_ref())
    }

    /// The items of a list, each with its name.
    pub(super) fn named_items(
        &self,
        list: Option<&DraftValue>,
    ) -> Vec<(DraftValue, Option<Cow<'t, str>>)> {
        let items = list.map(|list| self.draft.items(list)).unwrap_or_default();
        items
            .into_iter()
            .map(|item| {
                let text = self.draft.text_at(&item, "name");
                (item, text)
            })
            .collect()
    }

    /// A chosen container as it is in the draft.
    pub(super) fn container_part(&self, container: &Container<'_>) -> Option<DraftValue> {
        match self.list_part(ListPlace::OfPod(container.list.key()))? {
            // The draft has not changed this list, so the container's node is still valid.
            DraftValue::Node(_) => Some(DraftValue::Node(container.node)),
            DraftValue::Open(id) => {
                let items = self.draft.raw_items(id);
                Some(items[self.position_of(container, items)?].clone())
            }
            DraftValue::New(_) | DraftValue::Instead { .. } => None,
        }
    }

    /// The index of a container among the items of its list.
    fn position_of(&self, container: &Container<'_>, items: &[DraftValue]) -> Option<usize> {
        let from = self.last_found.get().min(items.len());
        let is_match = |at: &usize| self.is_container(&items[*at], container);
        let found = (from..items.len()).chain(0..from).find(is_match)?;
        self.last_found.set(found);
        Some(found)
    }

    pub(super) fn is_container(&self, item: &DraftValue, container: &Container<'_>) -> bool {
        match self.draft.origin(item) {
            Some(node) => self.draft.tree.follow(node) == container.node,
            None => {
                // Containers that this run added have no node of the input; their name identifies them.
                container.added.is_some() && self.draft.is_text_at(item, "name", container.name)
            }
        }
    }

    pub(super) fn open_container(&mut self, container: &Container<'_>) -> PlanResult<OpenId> {
        let list = self.open_list(ListPlace::OfPod(container.list.key()))?;
        // Raw items: an alias must not be followed here, so that opening it is refused.
        let Some(at) = self.position_of(container, self.draft.raw_items(list)) else {
            let message = format!("the container `{}` is gone from the plan", container.name);
            return Err(Diagnostic::error(Code::Internal, message).into());
        };
        Ok(self.draft.open_item(list, at)?)
    }
}

/// Returns the code, explanation and help of a refusal.
pub fn explain(reason: RefusalReason) -> (Code, &'static str, &'static str) {
    match reason {
        RefusalReason::IsShown => (
            Code::SharedNode,
            "the value comes from an alias or a merge key",
            "write the value here instead of the alias or merge key",
        ),
        RefusalReason::IsShared => (
            Code::SharedNode,
            "an alias uses the value elsewhere as well, so an edit would change both",
            "replace the alias with the value",
        ),
        RefusalReason::NoMapping => (
            Code::WrongType,
            "it is not a mapping",
            "add fields to it, or remove it",
        ),
        RefusalReason::NoList => (
            Code::WrongType,
            "it is not a list",
            "write it as a list, or remove it",
        ),
        RefusalReason::DuplicateKey => (
            Code::DuplicateKey,
            "this key is defined twice, and YAML readers disagree about which one counts",
            "remove one of them",
        ),
        RefusalReason::Tagged => (
            Code::CannotEdit,
            "its tag gives it a different type",
            "remove the tag",
        ),
    }
}

/// Returns the diagnostic for a place of a workload that cannot be edited.
pub(crate) fn refusal_diagnostic(refusal: &Refusal, workload: &Workload<'_>) -> Diagnostic {
    let (code, explanation, help) = explain(refusal.reason);
    let message = format!("{} cannot be edited here: {explanation}", workload.title());
    let code = match code {
        Code::WrongType => Code::Invalid,
        code => code,
    };
    Diagnostic::error(code, message)
        .at(workload.place(refusal.node), "here")
        .help(help)
}
