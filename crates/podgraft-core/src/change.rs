//! What a policy did to a workload, as data: an operation and its target. Reports turn it into words.

mod record_cause;
mod sentence;

use std::borrow::Cow;
use std::fmt;

pub use record_cause::RecordCause;
pub(crate) use sentence::in_sentence;

/// One change that a policy made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The operation.
    pub operation: Operation,
    /// What it was done to.
    pub target: ChangeTarget,
}

/// What is done to a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Adds something new.
    Add,
    /// Replaces the content of something that was there.
    Replace,
    /// Adds items to a list that was there.
    Extend,
    /// Joins the policy's text to one that was there.
    Join(Join),
    /// Operations of a JSON patch, each formatted as `replace /spec/replicas`.
    Patch(Vec<String>),
    /// Updates older content of the same policy.
    Update,
    /// Removes something of the manifest.
    Remove,
    /// Changes the quality of service class of the pod.
    Reclassify {
        /// The class before.
        before: &'static str,
        /// The class after.
        now: &'static str,
    },
    /// Removes what an earlier run injected.
    TakeOut,
    /// Gives the earlier value back to what an earlier run had replaced, extended or removed.
    Restore,
    /// Takes over something that was already as the policy wants it.
    Adopt,
    /// Changes only what is recorded of the policy.
    Record(RecordCause),
}

/// How a text is joined to a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Where the policy's text goes.
    pub place: JoinPlace,
    /// The renamed variable, if the original value comes from `valueFrom` or `envFrom`.
    pub original: Option<OriginalVariable>,
}

/// The position of a joined text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinPlace {
    /// After the existing text.
    Append,
    /// Before the existing text.
    Prepend,
    /// Merged key by key.
    Merge,
}

/// The variable that holds the original value of a variable that was extended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginalVariable {
    /// Its name.
    pub name: String,
    /// The original variable came from an entry of `envFrom`.
    pub is_of_env_from: bool,
}

/// The kinds by which reports group changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Something new.
    Add,
    /// Something that was there differs now.
    Change,
    /// What an earlier run injected is gone.
    TakeOut,
    /// Something that was there belongs to the policy now.
    Adopt,
}

/// The object whose labels or annotations are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MetadataOwner {
    /// The pod template.
    Pod,
    /// The workload itself.
    Workload,
}

/// What a policy changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ChangeTarget {
    /// The pod as a whole.
    Pod,
    /// A volume, container or image pull secret of the pod, with its name.
    PodItem(PodItem, String),
    /// A field of the pod spec, as its path of keys.
    PodField(Vec<String>),
    /// A field of the pod spec that had no value, as its path of keys.
    PodDefault(Vec<String>),
    /// An item in a list of a container: the container, the kind of item, and its name.
    ContainerItem(String, ContainerItem, String),
    /// A field of a container: the container, and the path of keys.
    ContainerField(String, Vec<String>),
    /// A field of a container that had no value: the container, and the path of keys.
    ContainerDefault(String, Vec<String>),
    /// A label or an annotation.
    Metadata {
        /// Whose it is.
        owner: MetadataOwner,
        /// `labels` or `annotations`.
        field: String,
        /// Its key.
        key: String,
    },
    /// The target of a patch of the policy.
    Patched {
        /// The container, if the patch is for one.
        container: Option<String>,
        /// The position of the patch in the policy, from 1.
        number: usize,
    },
    /// Another field of the workload, as its path of keys.
    Field(Vec<String>),
    /// A generated object, such as `ConfigMap shop/orders-agent`.
    Object(String),
    /// What is recorded of the policy, and nothing else.
    Record,
}

/// The kind of an item in a list of the pod spec.
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

/// The kind of an item in a list of a container.
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
    /// Returns a change of a target.
    pub fn new(operation: Operation, target: ChangeTarget) -> Self {
        Change { operation, target }
    }

    /// Returns a change of a policy's record, and of nothing else.
    pub(crate) fn of_record(cause: RecordCause) -> Self {
        Change::new(Operation::Record(cause), ChangeTarget::Record)
    }

    /// Returns the kind of the operation.
    pub(crate) fn kind(&self) -> ChangeKind {
        match self.operation {
            Operation::Add => ChangeKind::Add,
            Operation::TakeOut => ChangeKind::TakeOut,
            Operation::Adopt => ChangeKind::Adopt,
            Operation::Replace
            | Operation::Extend
            | Operation::Join(_)
            | Operation::Patch(_)
            | Operation::Update
            | Operation::Reclassify { .. }
            | Operation::Record(_)
            | Operation::Restore
            | Operation::Remove => ChangeKind::Change,
        }
    }

    /// Whether the change generates an object.
    pub(crate) fn is_generated(&self) -> bool {
        self.operation == Operation::Add && matches!(self.target, ChangeTarget::Object(_))
    }
}

/// The same words for something added, removed or adopted: `volume agent`. Other changes name the operation: `app:
/// mount /agent replaced`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = &self.target;
        match &self.operation {
            Operation::Add | Operation::TakeOut | Operation::Adopt => target.fmt(f),
            Operation::Replace => write!(f, "{target} replaced"),
            Operation::Extend => write!(f, "{target} extended"),
            Operation::Update => write!(f, "{target} updated"),
            Operation::Remove => write!(f, "{target} removed"),
            Operation::Restore => write!(f, "{target} restored"),
            Operation::Reclassify { before, now } => {
                write!(f, "{target} is {now} instead of {before}")
            }
            Operation::Patch(operations) => write!(f, "{target}: {}", operations.join(" and ")),
            Operation::Join(join) => join.write(target, f),
            // Texts that several policies join to a value change their places with the policies.
            Operation::Record(cause @ RecordCause::MovedBefore(_)) => write!(f, "the order{cause}"),
            Operation::Record(cause) => write!(f, "{target}{cause}"),
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
                write!(f, "{}: {verb} {item} {name}", title_of(container))
            }
            target => write!(f, "{verb} {target}"),
        }?;
        f.write_str(&self.source())
    }

    /// The end of a sentence about a variable whose original value has another name now.
    fn source(&self) -> String {
        match &self.original {
            Some(original) if original.is_of_env_from => {
                format!(" of envFrom, which is now {}", original.name)
            }
            Some(original) => format!(", which is now {}", original.name),
            None => String::new(),
        }
    }
}

/// The prefix of a record path's segment that is the digest of an item without a name. Escaped names never begin with it,
/// because `~` is escaped as `~0`.
pub(crate) const DIGEST: &str = "~=";

/// Undoes the escaping of a record path's segment: `~1` is `/`, `~0` is `~`.
pub(crate) fn unescape(segment: &str) -> Cow<'_, str> {
    // Segments are short: looking at each byte is faster than a search that is prepared for long texts.
    let Some(at) = segment.bytes().position(|byte| byte == b'~') else {
        return Cow::Borrowed(segment);
    };
    let mut key = String::with_capacity(segment.len());
    key.push_str(&segment[..at]);
    for part in segment[at + 1..].split('~') {
        let (char, part) = match part.as_bytes().first() {
            Some(b'1') => ('/', &part[1..]),
            Some(b'0') => ('~', &part[1..]),
            _ => ('~', part),
        };
        key.push(char);
        key.push_str(part);
    }
    Cow::Owned(key)
}

impl ChangeTarget {
    /// Returns the target that a record path names: `pod/spec/containers/app/env/X`, `pod/spec/volumes/agent`.
    pub(crate) fn from_path(path: &str) -> Self {
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
            ["pod", "metadata", field, key] => Self::metadata(MetadataOwner::Pod, field, key),
            ["metadata", field, key] => Self::metadata(MetadataOwner::Workload, field, key),
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

    /// A label or annotation; `field` is `labels` or `annotations`.
    pub fn metadata(owner: MetadataOwner, field: &str, key: &str) -> Self {
        ChangeTarget::Metadata {
            owner,
            field: field.to_owned(),
            key: key.to_owned(),
        }
    }

    /// An environment variable of a container.
    pub fn env(container: &str, name: &str) -> Self {
        ChangeTarget::ContainerItem(container.to_owned(), ContainerItem::Env, name.to_owned())
    }
}

/// What a container is called in a message. A Knative Service may leave the name of its container out.
fn title_of(container: &str) -> &str {
    match container {
        "" => "unnamed container",
        name => name,
    }
}

/// A field in words. Where only a digest identifies the item of a list, it has no name: `an item of ` and `tolerations`.
fn words_of_field(path: &[String]) -> (&'static str, String) {
    let item = path.iter().position(|key| key.starts_with(DIGEST));
    match item {
        Some(at) => ("an item of ", path[..at].join(".")),
        None => ("", path.join(".")),
    }
}

impl fmt::Display for ChangeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeTarget::Pod => f.write_str("pod"),
            ChangeTarget::PodItem(item, name) => write!(f, "{item} {name}"),
            ChangeTarget::PodField(path) => {
                let (prefix, field) = words_of_field(path);
                write!(f, "{prefix}pod {field}")
            }
            ChangeTarget::PodDefault(path) => write!(f, "pod default {}", path.join(".")),
            ChangeTarget::ContainerItem(container, item, name) => {
                write!(f, "{}: {item} {name}", title_of(container))
            }
            ChangeTarget::ContainerField(container, path) => {
                let (prefix, field) = words_of_field(path);
                write!(f, "{}: {prefix}{field}", title_of(container))
            }
            ChangeTarget::ContainerDefault(container, path) => {
                write!(f, "{}: default {}", title_of(container), path.join("."))
            }
            ChangeTarget::Metadata { owner, field, key } => {
                let owner = match owner {
                    MetadataOwner::Pod => "pod ",
                    MetadataOwner::Workload => "",
                };
                write!(f, "{owner}{} {key}", field.trim_end_matches('s'))
            }
            ChangeTarget::Patched {
                container: Some(container),
                number,
            } => write!(f, "{}: patch {number}", title_of(container)),
            ChangeTarget::Patched {
                container: None,
                number,
            } => write!(f, "patch {number}"),
            ChangeTarget::Field(path) => f.write_str(&path.join(".")),
            ChangeTarget::Object(name) => f.write_str(name),
            ChangeTarget::Record => f.write_str("only the record"),
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

/// What is left of the changes of one policy where it removes a thing and has added it before, or adds it again.
pub(crate) fn net(mut changes: Vec<Change>) -> Vec<Change> {
    let removed = changes
        .iter()
        .filter(|change| change.operation == Operation::Remove);
    let removed: Vec<ChangeTarget> = removed.map(|change| change.target.clone()).collect();
    for target in removed {
        let is_of_target = |change: &Change| change.target == target;
        let Some(first) = changes.iter().position(is_of_target) else {
            continue;
        };
        let last = changes.iter().rposition(is_of_target).unwrap_or(first);
        let was_there = changes[first].operation != Operation::Add;
        let is_there = changes[last].operation != Operation::Remove;
        changes[first].operation = match (was_there, is_there) {
            (true, true) => Operation::Replace,
            (false, _) => Operation::Add,
            (true, false) => Operation::Remove,
        };
        let mut index = 0..;
        changes.retain(|change| {
            let is_first = index.next() == Some(first);
            !is_of_target(change) || is_first && (was_there || is_there)
        });
    }
    changes
}

/// Lists changes: `volume agent, app: mount /agent`.
pub(crate) fn list(changes: &[Change]) -> String {
    let words = changes.iter().map(|change| match change.kind() {
        ChangeKind::TakeOut => format!("{change} undone"),
        ChangeKind::Add | ChangeKind::Change | ChangeKind::Adopt => change.to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Lists the removed changes of a policy that was removed as a whole.
pub(crate) fn list_removed(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "nothing was left to remove".to_owned();
    }
    let words = changes.iter().map(Change::to_string);
    words.collect::<Vec<_>>().join(", ")
}
