//! What a policy did to a workload, as data: an operation and its target. Reports say it in words.

use std::borrow::Cow;
use std::fmt;

/// One thing that a policy did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What was done.
    pub operation: Operation,
    /// To what.
    pub target: ChangeTarget,
}

/// What is done to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// It was not there.
    Add,
    /// It was there, and has the policy's content now.
    Replace,
    /// It is a list that was there, and has more items now.
    Extend,
    /// It is a text that was there, and the policy's is joined to it.
    Join(Join),
    /// Operations of a JSON patch, each as `replace /spec/replicas`.
    Patch(Vec<String>),
    /// It was there with other content of the policy.
    Update,
    /// It was there, and the policy removed it.
    Remove,
    /// It is of another quality of service class.
    Reclassify {
        /// The class before.
        before: &'static str,
        /// The class after.
        now: &'static str,
    },
    /// An earlier run had put it there, and it is gone.
    TakeOut,
    /// It was there as the policy wants it, and is the policy's own now.
    Adopt,
}

/// How a text is joined to a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Where it goes.
    pub place: JoinPlace,
    /// Where the variable's own text comes from elsewhere.
    pub original: Option<OriginalVariable>,
}

/// Where a text goes that is joined to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinPlace {
    /// Behind what is there.
    Append,
    /// Before what is there.
    Prepend,
    /// Key by key.
    Merge,
}

/// The variable that keeps the original value of a variable that was extended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalVariable {
    /// Its name.
    pub name: String,
    /// An entry of `envFrom` had brought it.
    pub is_of_env_from: bool,
}

/// The verb of a change in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeVerb {
    /// It was not there.
    Add,
    /// It was there, and is another now.
    Change,
    /// An earlier run had put it there, and it is gone.
    TakeOut,
    /// It is the policy's own now.
    Adopt,
}

/// What a policy changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChangeTarget {
    /// The pod.
    Pod,
    /// A volume, a container, an image pull secret of a pod.
    PodItem(PodItem, String),
    /// A field of a pod's spec, key by key.
    PodField(Vec<String>),
    /// A field of a pod's spec that was left open.
    PodDefault(Vec<String>),
    /// An item of a list of a container.
    ContainerItem(String, ContainerItem, String),
    /// A field of a container, key by key.
    ContainerField(String, Vec<String>),
    /// A field of a container that was left open.
    ContainerDefault(String, Vec<String>),
    /// A label or an annotation.
    Metadata {
        /// Of the pod template, not of the workload.
        is_of_pod: bool,
        /// `labels` or `annotations`.
        field: String,
        /// Its key.
        key: String,
    },
    /// What a patch of a policy names.
    Patched {
        /// The container, where it is a container's.
        container: Option<String>,
        /// The place of the patch in the policy, from 1.
        number: usize,
    },
    /// Another field of the workload, key by key.
    Field(Vec<String>),
    /// An object beside the workload, as `ConfigMap shop/orders-agent`.
    Object(String),
}

/// An item of a list of a pod's spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PodItem {
    /// Of `volumes`.
    Volume,
    /// Of `initContainers`.
    InitContainer,
    /// Of `initContainers`, with `restartPolicy: Always`.
    NativeSidecar,
    /// Of `containers`.
    Sidecar,
    /// Of `containers`, written by another program.
    Container,
    /// Of `imagePullSecrets`.
    ImagePullSecret,
}

/// An item of a list of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContainerItem {
    /// Of `env`, by name.
    Env,
    /// Of `volumeMounts`, by path.
    Mount,
    /// Of `ports`, by number.
    Port,
    /// Of `envFrom`, as `configMapRef settings`.
    EnvFrom,
}

impl Change {
    /// Something is done to a target.
    pub fn new(operation: Operation, target: ChangeTarget) -> Self {
        Change { operation, target }
    }

    /// What the operation comes to.
    pub fn verb(&self) -> ChangeVerb {
        match self.operation {
            Operation::Add => ChangeVerb::Add,
            Operation::TakeOut => ChangeVerb::TakeOut,
            Operation::Adopt => ChangeVerb::Adopt,
            Operation::Replace
            | Operation::Extend
            | Operation::Join(_)
            | Operation::Patch(_)
            | Operation::Update
            | Operation::Reclassify { .. }
            | Operation::Remove => ChangeVerb::Change,
        }
    }

    /// Whether an object beside the workload is new.
    pub fn is_generated(&self) -> bool {
        self.operation == Operation::Add && matches!(self.target, ChangeTarget::Object(_))
    }

    /// What it is, behind its [`ChangeVerb`]: `volume agent`, `app: appended to env JAVA_TOOL_OPTIONS`.
    pub fn object_of_verb(&self) -> String {
        match self.operation {
            Operation::Update => self.target.to_string(),
            _ => self.to_string(),
        }
    }
}

/// In words that do not say whether it was added, taken out or adopted: `volume agent`, `app: mount /agent replaced`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = &self.target;
        match &self.operation {
            Operation::Add | Operation::TakeOut | Operation::Adopt => target.fmt(f),
            Operation::Replace => write!(f, "{target} replaced"),
            Operation::Extend => write!(f, "{target} extended"),
            Operation::Update => write!(f, "{target} updated"),
            Operation::Remove => write!(f, "{target} removed"),
            Operation::Reclassify { before, now } => {
                write!(f, "{target} is {now} instead of {before}")
            }
            Operation::Patch(operations) => write!(f, "{target}: {}", operations.join(" and ")),
            Operation::Join(join) => join.write(target, f),
        }
    }
}

impl Join {
    fn write(&self, target: &ChangeTarget, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.place {
            JoinPlace::Append => "appended to",
            JoinPlace::Prepend => "prepended to",
            JoinPlace::Merge => "merged into",
        };
        match target {
            ChangeTarget::ContainerItem(container, item, name) => {
                write!(f, "{container}: {verb} {item} {name}")
            }
            target => write!(f, "{verb} {target}"),
        }?;
        let Some(OriginalVariable {
            name,
            is_of_env_from,
        }) = &self.original
        else {
            return Ok(());
        };
        let source = if *is_of_env_from { " of envFrom" } else { "" };
        write!(f, "{source}, which is {name} now")
    }
}

impl ChangeVerb {
    /// In the imperative.
    pub fn word(self) -> &'static str {
        match self {
            ChangeVerb::Add => "add",
            ChangeVerb::Change => "change",
            ChangeVerb::TakeOut => "take out",
            ChangeVerb::Adopt => "adopt",
        }
    }

    /// As what a policy does.
    pub fn third_person(self) -> &'static str {
        match self {
            ChangeVerb::Add => "adds",
            ChangeVerb::Change => "changes",
            ChangeVerb::TakeOut => "takes out",
            ChangeVerb::Adopt => "adopts",
        }
    }
}

/// A segment of a record's path as the key that it is.
pub fn unescape(segment: &str) -> Cow<'_, str> {
    match segment.contains('~') {
        true => Cow::Owned(segment.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(segment),
    }
}

impl ChangeTarget {
    /// What a record's path names: `pod/spec/containers/app/env/X`, `pod/spec/volumes/agent`.
    pub fn from_path(path: &str) -> Self {
        let keys: Vec<Cow<'_, str>> = path.split('/').map(unescape).collect();
        let parts: Vec<&str> = keys.iter().map(|key| &**key).collect();
        let owned = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect();
        let pod_item = |item: PodItem, name: &str| ChangeTarget::PodItem(item, name.to_owned());
        match parts.as_slice() {
            [
                "pod",
                "spec",
                "containers" | "initContainers",
                name,
                rest @ ..,
            ] if !rest.is_empty() => Self::in_container(name, rest),
            ["pod", "spec", "containers", name] => pod_item(PodItem::Sidecar, name),
            ["pod", "spec", "initContainers", name] => pod_item(PodItem::InitContainer, name),
            ["pod", "spec", "volumes", name] => pod_item(PodItem::Volume, name),
            ["pod", "spec", "imagePullSecrets", name] => pod_item(PodItem::ImagePullSecret, name),
            ["pod", "spec", rest @ ..] => ChangeTarget::PodField(owned(rest)),
            ["pod", "metadata", field, key] => Self::metadata(true, field, key),
            ["metadata", field, key] => Self::metadata(false, field, key),
            field_path => ChangeTarget::Field(owned(field_path)),
        }
    }

    fn in_container(container: &str, parts: &[&str]) -> Self {
        let item = |item: ContainerItem, name: String| {
            ChangeTarget::ContainerItem(container.to_owned(), item, name)
        };
        match parts {
            ["env", name, ..] => item(ContainerItem::Env, (*name).to_owned()),
            ["volumeMounts", path, ..] => item(ContainerItem::Mount, (*path).to_owned()),
            ["ports", port, ..] => item(ContainerItem::Port, (*port).to_owned()),
            ["envFrom", source, ..] => item(ContainerItem::EnvFrom, source.replacen('-', " ", 1)),
            field_path => {
                let keys = field_path.iter().map(|&key| key.to_owned());
                ChangeTarget::ContainerField(container.to_owned(), keys.collect())
            }
        }
    }

    /// A label or an annotation; `field` is `labels` or `annotations`.
    pub fn metadata(is_of_pod: bool, field: &str, key: &str) -> Self {
        ChangeTarget::Metadata {
            is_of_pod,
            field: field.to_owned(),
            key: key.to_owned(),
        }
    }

    /// A variable of a container.
    pub fn env(container: &str, name: &str) -> Self {
        ChangeTarget::ContainerItem(container.to_owned(), ContainerItem::Env, name.to_owned())
    }
}

impl fmt::Display for ChangeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeTarget::Pod => f.write_str("pod"),
            ChangeTarget::PodItem(item, name) => write!(f, "{item} {name}"),
            ChangeTarget::PodField(path) => write!(f, "pod {}", path.join(".")),
            ChangeTarget::PodDefault(path) => write!(f, "pod default {}", path.join(".")),
            ChangeTarget::ContainerItem(container, item, name) => {
                write!(f, "{container}: {item} {name}")
            }
            ChangeTarget::ContainerField(container, path) => {
                write!(f, "{container}: {}", path.join("."))
            }
            ChangeTarget::ContainerDefault(container, path) => {
                write!(f, "{container}: default {}", path.join("."))
            }
            ChangeTarget::Metadata {
                is_of_pod,
                field,
                key,
            } => {
                let owner = if *is_of_pod { "pod " } else { "" };
                write!(f, "{owner}{} {key}", field.trim_end_matches('s'))
            }
            ChangeTarget::Patched {
                container: Some(container),
                number,
            } => write!(f, "{container}: patch {number}"),
            ChangeTarget::Patched {
                container: None,
                number,
            } => write!(f, "patch {number}"),
            ChangeTarget::Field(path) => f.write_str(&path.join(".")),
            ChangeTarget::Object(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for PodItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PodItem::Volume => "volume",
            PodItem::InitContainer => "init container",
            PodItem::NativeSidecar => "native sidecar",
            PodItem::Sidecar => "sidecar",
            PodItem::Container => "container",
            PodItem::ImagePullSecret => "image pull secret",
        })
    }
}

impl fmt::Display for ContainerItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ContainerItem::Env => "env",
            ContainerItem::Mount => "mount",
            ContainerItem::Port => "port",
            ContainerItem::EnvFrom => "envFrom",
        })
    }
}

/// `volume agent, app: mount /agent`.
pub(crate) fn list(changes: &[Change]) -> String {
    let words = changes.iter().map(|change| match change.verb() {
        ChangeVerb::TakeOut => format!("{change} taken out"),
        ChangeVerb::Add | ChangeVerb::Change | ChangeVerb::Adopt => change.to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Of what was taken out as a whole.
pub(crate) fn list_removed(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing was left of it".to_owned();
    }
    let words = changes.iter().map(Change::to_string);
    words.collect::<Vec<_>>().join(", ")
}

/// `add volume agent, app: mount /agent and change app: env X`.
pub(crate) fn in_sentence(changes: &[Change]) -> String {
    let verbs = [
        ChangeVerb::Add,
        ChangeVerb::Change,
        ChangeVerb::TakeOut,
        ChangeVerb::Adopt,
    ];
    let parts = verbs.into_iter().filter_map(|verb| {
        let matching = changes.iter().filter(|change| change.verb() == verb);
        let objects: Vec<String> = matching.map(Change::object_of_verb).collect();
        (!objects.is_empty()).then(|| format!("{} {}", verb.word(), objects.join(", ")))
    });
    parts.collect::<Vec<_>>().join(" and ")
}
