//! Rules for Windows and Linux pods: which fields they must not have, and what Windows host processes need.
//! Sources: `validateWindows`, `validateLinux` and `validateWindowsHostProcessPod` of Kubernetes.

use crate::yaml::value::Path;
use crate::yaml::view::View;

use super::defaults::LINUX_ONLY;

/// Fields of a pod spec that are invalid in a Windows pod.
const SPEC_LINUX_ONLY: [&str; 3] = ["hostUsers", "shareProcessNamespace", "resources"];

/// Fields of a pod's security context that are invalid in a Windows pod.
const POD_LINUX_ONLY: [&str; 11] = [
    "appArmorProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "runAsGroup",
    "runAsUser",
    "seLinuxChangePolicy",
    "seLinuxOptions",
    "seccompProfile",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "sysctls",
];

const OPTIONS: &str = "windowsOptions";

/// The list of the pod spec, and the index in it.
#[derive(Clone, Copy)]
pub(super) struct FieldPlace(pub &'static str, pub usize);

impl FieldPlace {
    pub(super) fn path(self) -> Path {
        Path::of(&[self.0]).index(self.1)
    }
}

/// The items of a list of the pod spec, with their places.
pub(super) fn entries<'v>(
    spec: &'v View<'v>,
    key: &'static str,
) -> impl Iterator<Item = (FieldPlace, &'v View<'v>)> {
    let entries = spec.list(key).iter().enumerate();
    entries.map(move |(index, entry)| (FieldPlace(key, index), entry))
}

/// All containers and init containers, with their places.
pub(super) fn containers<'v>(
    spec: &'v View<'v>,
) -> impl Iterator<Item = (FieldPlace, &'v View<'v>)> {
    let lists = ["initContainers", "containers"].into_iter();
    lists.flat_map(|list| entries(spec, list))
}

/// Returns what is refused, in the form of [`super::pod_rules::refused`].
pub(super) fn refused(spec: &View<'_>) -> Vec<(Path, String)> {
    let mut found = match spec["os"]["name"].as_str() {
        Some("windows") => of_windows(spec),
        Some("linux") => of_linux(spec),
        _ => Vec::new(),
    };
    found.extend(host_processes(spec));
    found
}

fn of_windows(spec: &View<'_>) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    let mut add = |at: Path, field: String| {
        found.push((at, format!("a Windows pod cannot have {field}")));
    };
    for field in ["hostPID", "hostIPC"] {
        if spec[field] == true {
            add(Path::of(&[field]), format!("`{field}: true`"));
        }
    }
    for field in SPEC_LINUX_ONLY {
        if !spec[field].is_null() {
            add(Path::of(&[field]), format!("`{field}`"));
        }
    }
    for field in POD_LINUX_ONLY {
        let value = &spec["securityContext"][field];
        if !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()) {
            let at = Path::of(&["securityContext", field]);
            add(at, format!("`securityContext.{field}`"));
        }
    }
    for (at, container) in containers(spec) {
        for field in LINUX_ONLY {
            if !container["securityContext"][field].is_null() {
                let message = format!(
                    "`securityContext.{field}` in container `{}`",
                    container.text("name")
                );
                add(at.path().key("securityContext").key(field), message);
            }
        }
    }
    found
}

fn of_linux(spec: &View<'_>) -> Vec<(Path, String)> {
    let root = Path::default();
    let pod = Some((root, spec, String::new()));
    let containers_with_paths = containers(spec).map(|(at, container)| {
        (
            at.path(),
            container,
            format!(" in container `{}`", container.text("name")),
        )
    });
    let holders = pod.into_iter().chain(containers_with_paths);
    holders
        .filter(|(_, holder, _)| !holder["securityContext"][OPTIONS].is_null())
        .map(|(at, _, place)| {
            let message = format!("a Linux pod cannot have `securityContext.{OPTIONS}`{place}");
            (at.key("securityContext").key(OPTIONS), message)
        })
        .collect()
}

fn host_processes(spec: &View<'_>) -> Vec<(Path, String)> {
    let stated = |holder: &View<'_>| holder["securityContext"][OPTIONS]["hostProcess"].as_bool();
    let of_pod = stated(spec);
    let is_host = |container: &View<'_>| stated(container).or(of_pod) == Some(true);
    let mut found = Vec::new();
    for (at, container) in containers(spec) {
        if of_pod.is_some()
            && stated(container).is_some_and(|of_container| Some(of_container) != of_pod)
        {
            let message = format!(
                "container `{}` has a different `windowsOptions.hostProcess` than the pod",
                container.text("name")
            );
            found.push((at.path(), message));
        }
    }
    if !containers(spec).any(|(_, container)| is_host(container)) {
        return found;
    }
    if let Some((at, container)) = containers(spec).find(|(_, container)| !is_host(container)) {
        let message = format!(
            "container `{}` must be a Windows host process (`windowsOptions.hostProcess`) like the \
             others of the pod",
            container.text("name")
        );
        found.push((at.path(), message));
    }
    if spec["hostNetwork"] != true {
        let message = "Windows host processes require `hostNetwork: true`".to_owned();
        found.push((Path::of(&["hostNetwork"]), message));
    }
    found
}
