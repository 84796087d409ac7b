//! Plans init containers, sidecars, and what goes into the chosen containers, except environment variables.

use serde_json::Value;
use std::borrow::Cow;
use std::fmt;

use crate::change::{ChangeTarget, ContainerItem, Operation, PodItem};
use crate::diagnostic::Code;
use crate::manifest::pod::{Container, ContainerListKey};
use crate::policy::{PolicyValue, Position, SidecarType};
use crate::record::{identity_of_item, name_field};
use crate::wording::shell_path;
use crate::yaml::value::field;

use super::draft::DraftValue;
use super::equality::is_same;
use super::planner::{PlanError, PlanResult, Planner};
use super::reconcile;

/// Kubernetes 1.29 is the first that runs native sidecars by default (KEP-753).
const NATIVE_SIDECARS_SINCE: u32 = 29;

/// Kubernetes 1.35 is the first that accepts `OnFailure` and `Never` for a container by default (KEP-5307).
const RESTART_POLICIES_SINCE: u32 = 35;

const PORT_CLASH: &str = "choose a different port, or select one container with `containers`: port \
                          numbers and names must be unique in a pod";

const ONE_NAME_SPACE: &str =
    "rename one of them: init containers and app containers must have different names";

const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

impl<'t> Planner<'_, 't> {
    pub(super) fn sidecar(
        &mut self,
        item: &PolicyValue,
        kind: SidecarType,
        position: &Position,
    ) -> PlanResult {
        let name = text_of(item, "name");
        let list = list_of(kind);
        match kind {
            _ if self.keeps_container(name) => self.container(list, item, position),
            SidecarType::Native => {
                if let Some(minor) = self
                    .options
                    .kube_minor
                    .filter(|minor| *minor < NATIVE_SIDECARS_SINCE)
                {
                    let message = format!(
                        "Kubernetes 1.{minor} does not support native sidecars, and `{name}` is one"
                    );
                    let help = "use `type: Container`, or Kubernetes 1.29 or later";
                    return Err(self.problem(Code::Invalid, message, item).help(help).into());
                }
                self.container(list, item, position)
            }
            SidecarType::Container if self.workload.pod_kind.completes => {
                let message = format!(
                    "{} would never complete with the sidecar `{name}` among its containers",
                    self.workload.title()
                );
                // Only an InjectionPolicy has the field `type`, not the resources of other operators.
                let help = match self.policy.kind() {
                    None => {
                        "use `type: Native`, which stops when the other containers end".to_owned()
                    }
                    Some(_) => format!(
                        "use an InjectionPolicy with `type: Native`, which stops when the other \
                         containers end: `podgraft policy convert {}`, with the same flags, \
                         creates one",
                        shell_path(&self.policy.text.name)
                    ),
                };
                Err(self.problem(Code::Invalid, message, item).help(help).into())
            }
            SidecarType::Container => self.container(list, item, position),
        }
    }

    /// Adds a container to a list. Its name must be free in both lists: init and app containers share one name space.
    pub(super) fn container(
        &mut self,
        list: ContainerListKey,
        item: &PolicyValue,
        position: &Position,
    ) -> PlanResult {
        let name = text_of(item, "name");
        if !self.keeps_container(name) {
            self.check_restart_policy(item)?;
        }
        let place = ListPlace::OfPod(list.key());
        let description = format_args!("the container `{name}`");
        let target = || ChangeTarget::PodItem(kind_of(list, item), name.to_owned());
        let other_list = match list {
            ContainerListKey::Containers => ContainerListKey::InitContainers,
            ContainerListKey::InitContainers => ContainerListKey::Containers,
        };
        if let Some((_, existing)) = self.item_called(other_list.key(), name) {
            let kept = self.kept_or_conflict(&existing, description, item);
            kept.map_err(|error| error.help(ONE_NAME_SPACE))?;
            self.note_kept(place, item);
            return Ok(());
        }
        let found = self.item_called(list.key(), name);
        if let Some((_, existing)) = &found {
            let node = self.draft.origin(existing);
            let made = node.and_then(|node| self.base.injected.get(&self.draft.tree.follow(node)));
            // The container is as this policy made it, before later policies changed it.
            if made.is_some_and(|made| is_same(&made.added, &item.value)) {
                self.note_shared_item(existing, &place.path());
                return Ok(());
            }
        } else if list == ContainerListKey::Containers
            && self.index_for(position, place, item)? == 0
        {
            self.check_default_container(item)?;
        }
        let wanted = DesiredItem {
            item,
            description,
            list: place,
        };
        self.list_item(wanted, position, found, target)
    }

    /// The item of a list of the pod that has this name, with its index.
    pub(super) fn item_called(&self, list: &str, name: &str) -> Option<(usize, DraftValue)> {
        let part = self.list_part(ListPlace::OfPod(list))?;
        let key = name_field(list).unwrap_or("name");
        self.draft.item_by(&part, key, name)
    }

    /// Whether the workload keeps a container of this name, and does not get the rule's.
    fn keeps_container(&self, name: &str) -> bool {
        let mut lists = ContainerListKey::ALL.into_iter();
        self.keeps_existing() && lists.any(|list| self.item_called(list.key(), name).is_some())
    }

    /// Adds an item to a list, unless one of the same identity was found there.
    pub(super) fn list_item(
        &mut self,
        wanted: DesiredItem<'_>,
        position: &Position,
        found: Option<(usize, DraftValue)>,
        target: impl FnOnce() -> ChangeTarget,
    ) -> PlanResult {
        let DesiredItem { item, list, .. } = wanted;
        if let Some((at, existing)) = found {
            return self.same_or_replace(&existing, wanted, target, |planner| {
                let opened = planner.open_list(list)?;
                let draft = &mut planner.draft;
                Ok(reconcile::replace_item(draft, opened, at, &item.value)?)
            });
        }
        let neighbour = match position {
            Position::Last => None,
            _ => Some(self.index_for(position, list, item)?),
        };
        let opened = self.open_list(list)?;
        let at = neighbour.unwrap_or_else(|| self.draft.raw_items(opened).len());
        self.draft.insert(opened, at, item.value.clone());
        self.note_inserted(list, position, text_of(item, "name"));
        self.report(Operation::Add, target);
        Ok(())
    }

    /// Refuses restart policies that the target version does not know. `Always` makes a native sidecar, which is
    /// checked elsewhere.
    fn check_restart_policy(&self, item: &PolicyValue) -> PlanResult {
        let is_stated = matches!(text_of(item, "restartPolicy"), "OnFailure" | "Never");
        let Some(minor) = self
            .options
            .kube_minor
            .filter(|minor| is_stated && *minor < RESTART_POLICIES_SINCE)
        else {
            return Ok(());
        };
        let message = format!(
            "Kubernetes 1.{minor} does not accept the `restartPolicy` of the container `{}`",
            text_of(item, "name")
        );
        let help = "remove it, or use Kubernetes 1.35 or later";
        Err(self.problem(Code::Invalid, message, item).help(help).into())
    }

    /// Refuses a sidecar as the first container unless an annotation names the default container: `kubectl logs` and
    /// `exec` would go to it.
    fn check_default_container(&self, item: &PolicyValue) -> PlanResult {
        let path = ["metadata", "annotations", DEFAULT_CONTAINER];
        let is_stated = self.draft.get_in(&self.template_part(), &path).is_some();
        let is_planned = self
            .inject
            .pod_annotations
            .iter()
            .any(|(key, _)| key == DEFAULT_CONTAINER);
        if is_stated || is_planned {
            return Ok(());
        }
        let message = format!(
            "the sidecar `{}` would become the first container, which kubectl uses by default",
            text_of(item, "name")
        );
        let help = format!("place it last, or add the pod annotation `{DEFAULT_CONTAINER}`");
        Err(self.problem(Code::Invalid, message, item).help(help).into())
    }

    /// Handles an existing item of the same identity: nothing to do if it is the same; otherwise it is kept, replaced,
    /// or a conflict, as `onConflict` says.
    pub(super) fn same_or_replace(
        &mut self,
        part: &DraftValue,
        DesiredItem {
            item,
            description,
            list,
        }: DesiredItem<'_>,
        target: impl FnOnce() -> ChangeTarget,
        replace: impl FnOnce(&mut Self) -> PlanResult,
    ) -> PlanResult {
        let existing = self.draft.value(part).unwrap_or(Value::Null);
        if is_same(&existing, &item.value) {
            self.note_shared_item(part, &list.path());
            return Ok(());
        }
        if !self.replaces_existing() {
            self.kept_or_conflict(part, description, item)?;
            self.note_kept(list, item);
            return Ok(());
        }
        replace(self)?;
        self.report(Operation::Replace, target);
        Ok(())
    }

    pub(super) fn volume_mount(
        &mut self,
        container: &Container<'_>,
        item: &PolicyValue,
    ) -> PlanResult {
        let path = text_of(item, "mountPath");
        self.container_item(
            container,
            "volumeMounts",
            item,
            ContainerItem::Mount,
            path,
            |planner, mounts| planner.draft.find_mount(mounts, path),
        )
    }

    pub(super) fn env_from(&mut self, container: &Container<'_>, item: &PolicyValue) -> PlanResult {
        let identity = env_from_identity(&item.value);
        self.container_item(
            container,
            "envFrom",
            item,
            ContainerItem::EnvFrom,
            &identity.1,
            |planner, sources| {
                let of = |part: &DraftValue| planner.draft.value(part);
                let is_same = |source| env_from_identity(&source) == identity;
                let draft = &planner.draft;
                draft.find_item(sources, |part| of(part).is_some_and(is_same))
            },
        )
    }

    pub(super) fn port(&mut self, container: &Container<'_>, item: &PolicyValue) -> PlanResult {
        let wanted = port_of(&item.value);
        let number = &wanted.0;
        let name = item.value.get("name").and_then(Value::as_str);
        for list in [
            ContainerListKey::Containers,
            ContainerListKey::InitContainers,
        ] {
            for (sibling, _) in self.pod_items(list.key()) {
                // The containers of a pod share one network namespace, so two of them cannot listen on the same port.
                let is_chosen_container = self.is_container(&sibling, container);
                let ports = self.draft.get(&sibling, "ports");
                for (port, port_name) in self.named_items(ports.as_ref()) {
                    let is_same_number = self.port_identity(&port) == wanted;
                    let is_same_name = name.is_some() && port_name.as_deref() == name;
                    let is_same_port = is_chosen_container && is_same_number;
                    if !is_same_port && list == ContainerListKey::Containers {
                        self.check_host_port(&item.value, &port, item)?;
                    }
                    if !is_same_port && (is_same_number || is_same_name) {
                        if is_same_number {
                            let clash =
                                self.kept_or_conflict(&port, format!("port {number}"), item);
                            return clash.map_err(|error| self.port_taken(error, number, &sibling));
                        }
                        let name = name.unwrap_or_default();
                        let description = format!("the port name `{name}`");
                        return Err(self.port_clash(&port, description, item));
                    }
                }
            }
        }
        self.container_item(
            container,
            "ports",
            item,
            ContainerItem::Port,
            &identity_of_item("ports", &item.value),
            |planner, ports| {
                let is_same = |part: &DraftValue| planner.port_identity(part) == wanted;
                planner.draft.find_item(ports, is_same)
            },
        )
    }

    /// Says which container has the port already.
    fn port_taken(&self, error: PlanError, number: &str, owner: &DraftValue) -> PlanError {
        let owner = self.draft.text_at(owner, "name").unwrap_or_default();
        let message = format!(
            "port {number} is already a port of the container `{owner}` in {}",
            self.workload.title()
        );
        error.message(message).help(PORT_CLASH)
    }

    pub(super) fn port_clash(
        &self,
        part: &DraftValue,
        description: impl fmt::Display,
        item: &PolicyValue,
    ) -> PlanError {
        let conflict = self.conflict(part, description, item);
        conflict.help(PORT_CLASH).into()
    }

    pub(super) fn port_identity(&self, port: &DraftValue) -> (Cow<'t, str>, Cow<'t, str>) {
        let number = self
            .draft
            .text_at(port, "containerPort")
            .unwrap_or_default();
        (
            number,
            self.draft
                .text_at(port, "protocol")
                .unwrap_or(Cow::Borrowed("TCP")),
        )
    }

    /// Adds an item to a list of a container, unless `find` finds one of the same identity there.
    fn container_item(
        &mut self,
        container: &Container<'_>,
        list: &str,
        item: &PolicyValue,
        kind: ContainerItem,
        name: &str,
        find: impl Fn(&Self, &DraftValue) -> Option<(usize, DraftValue)>,
    ) -> PlanResult {
        let list = ListPlace::OfContainer(container, list);
        let found = self.list_part(list).and_then(|items| find(self, &items));
        let wanted = DesiredItem {
            item,
            description: format_args!("{}: {kind} {name}", container.name),
            list,
        };
        self.list_item(wanted, &Position::Last, found, || {
            ChangeTarget::ContainerItem(container.name.to_owned(), kind, name.to_owned())
        })
    }
}

/// The list that a sidecar goes into.
pub(super) fn list_of(kind: SidecarType) -> ContainerListKey {
    match kind {
        SidecarType::Native => ContainerListKey::InitContainers,
        SidecarType::Container => ContainerListKey::Containers,
    }
}

/// The role of a new container: it depends on the list, and on `restartPolicy`.
fn kind_of(list: ContainerListKey, item: &PolicyValue) -> PodItem {
    match list {
        ContainerListKey::Containers => PodItem::Sidecar,
        ContainerListKey::InitContainers if text_of(item, "restartPolicy") == "Always" => {
            PodItem::NativeSidecar
        }
        ContainerListKey::InitContainers => PodItem::InitContainer,
    }
}

/// A list that policies put items into.
#[derive(Clone, Copy)]
pub(super) enum ListPlace<'l> {
    OfPod(&'l str),
    OfContainer(&'l Container<'l>, &'l str),
}

impl<'l> ListPlace<'l> {
    /// The path in the pod template. A container is given by its name.
    pub(super) fn path(self) -> Vec<&'l str> {
        match self {
            ListPlace::OfPod(list) => vec!["spec", list],
            ListPlace::OfContainer(container, list) => {
                vec!["spec", container.list.key(), container.name, list]
            }
        }
    }
}

/// An item that a policy wants in a list.
pub(super) struct DesiredItem<'w> {
    pub item: &'w PolicyValue,
    /// How messages name it.
    pub description: fmt::Arguments<'w>,
    pub list: ListPlace<'w>,
}

/// The items of the list under a key; empty for anything else.
pub(super) fn items_of<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let items = field(value, key).and_then(Value::as_array);
    items.map(Vec::as_slice).unwrap_or_default()
}

/// The text under a key of an item.
pub(super) fn text_of<'i>(item: &'i PolicyValue, key: &str) -> &'i str {
    field(&item.value, key)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn text_or(value: Option<&Value>, default: &str) -> String {
    value.and_then(Value::as_str).unwrap_or(default).to_owned()
}

/// The number and protocol of a ContainerPort: its identity in a list.
pub(super) fn port_of(port: &Value) -> (Cow<'static, str>, Cow<'static, str>) {
    let number = port
        .get("containerPort")
        .map(Value::to_string)
        .unwrap_or_default();
    (
        Cow::Owned(number),
        Cow::Owned(text_or(port.get("protocol"), "TCP")),
    )
}

/// The identity of an EnvFromSource: its prefix, and its kind and name.
fn env_from_identity(value: &Value) -> (String, String) {
    let named = |kind: &str| {
        Some(format!(
            "{kind} {}",
            value.get(kind)?.get("name")?.as_str()?
        ))
    };
    let source = named("configMapRef")
        .or_else(|| named("secretRef"))
        .unwrap_or_default();
    (text_or(value.get("prefix"), ""), source)
}
