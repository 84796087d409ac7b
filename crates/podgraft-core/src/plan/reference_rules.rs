//! Checks names in containers that the pod must define, and resources of containers that must fit those of the pod.
//! Sources: `validateResourceClaimNames`, `ValidateVolumeDevices`, `validateFileKeyRefVolumes`,
//! `validatePodResourceConsistency`, `validateResizePolicy` and `ValidateSecurityContext` of Kubernetes.

use std::collections::BTreeMap;

use crate::policy::quantity;
use crate::yaml::value::Path;
use crate::yaml::view::View;

use super::os_rules::containers;

/// Volume sources that a container can use as a block device.
const DEVICES: [&str; 2] = ["persistentVolumeClaim", "ephemeral"];

/// Returns what is refused, in the form of [`super::pod_rules::refused`]. `has_claims` if the workload may have claim
/// templates, which define volumes, too.
pub(super) fn refused(spec: &View<'_>, has_claims: bool) -> Vec<(Path, String)> {
    let mut found = Vec::new();
    for (at, container) in containers(spec) {
        found.extend(claims(spec, container).map(|message| (at.path().key("resources"), message)));
        found.extend(
            devices(spec, container, has_claims)
                .map(|message| (at.path().key("volumeDevices"), message)),
        );
        found.extend(files(spec, container).map(|message| (at.path().key("env"), message)));
        found.extend(container_rules(spec, container).map(|message| (at.path(), message)));
    }
    found.extend(pod_level_resources(spec));
    found
}

fn find_named<'v>(spec: &'v View<'v>, key: &str, wanted: &str) -> Option<&'v View<'v>> {
    let mut items = spec.list(key).iter();
    items.find(|item| item.text("name") == wanted)
}

fn claims<'v>(
    spec: &'v View<'v>,
    container: &'v View<'v>,
) -> impl Iterator<Item = String> + use<'v> {
    let unknown =
        |claim: &&View<'_>| find_named(spec, "resourceClaims", claim.text("name")).is_none();
    let claims = container["resources"].list("claims").iter();
    claims.filter(unknown).map(|claim| {
        format!(
            "container `{}` claims `{}`, which is not in the pod's `resourceClaims`",
            container.text("name"),
            claim.text("name")
        )
    })
}

fn devices<'v>(
    spec: &'v View<'v>,
    container: &'v View<'v>,
    has_claims: bool,
) -> impl Iterator<Item = String> + use<'v> {
    let devices = container.list("volumeDevices").iter();
    devices.filter_map(move |device| {
        let fault = device_fault(spec, container, device, has_claims)?;
        Some(format!(
            "container `{}` has {fault}",
            container.text("name")
        ))
    })
}

fn device_fault(
    spec: &View<'_>,
    container: &View<'_>,
    device: &View<'_>,
    has_claims: bool,
) -> Option<String> {
    let (volume, path) = (device.text("name"), device.text("devicePath"));
    if spec["hostUsers"] == false {
        return Some("a device, which cannot be combined with `hostUsers: false`".to_owned());
    }
    match find_named(spec, "volumes", volume) {
        None if !has_claims => {
            return Some(format!(
                "the volume `{volume}` as a device, which the pod does not have"
            ));
        }
        Some(found) if DEVICES.iter().all(|source| found[*source].is_null()) => {
            return Some(format!(
                "the volume `{volume}` as a device, which is not a volume claim"
            ));
        }
        _ => {}
    }
    container
        .list("volumeMounts")
        .iter()
        .any(|mount| mount.text("name") == volume || mount.text("mountPath") == path)
        .then(|| format!("the volume `{volume}` or its path `{path}` as both a device and a mount"))
}

fn files<'v>(
    spec: &'v View<'v>,
    container: &'v View<'v>,
) -> impl Iterator<Item = String> + use<'v> {
    let sources = container
        .list("env")
        .iter()
        .map(|variable| &variable["valueFrom"]["fileKeyRef"]);
    sources
        .filter(|source| !source.is_null())
        .filter_map(|source| {
            let volume = source.text("volumeName");
            let is_valid = find_named(spec, "volumes", volume)
                .is_some_and(|volume| !volume["emptyDir"].is_null());
            (!is_valid).then(|| {
                format!(
                    "container `{}` reads a variable from a file in the volume `{volume}`, but \
                     the pod has no `emptyDir` with that name",
                    container.text("name")
                )
            })
        })
}

/// Rules of a container that depend on fields of the pod.
fn container_rules(spec: &View<'_>, container: &View<'_>) -> impl Iterator<Item = String> + use<> {
    let (owner, context) = (container.text("name"), &container["securityContext"]);
    let mut found = Vec::new();
    if context["procMount"] == "Unmasked" && spec["hostUsers"] != false {
        found.push(format!(
            "container `{owner}` has `procMount: Unmasked`, which requires `hostUsers: false`"
        ));
    }
    let restarts = |policy: &View<'_>| policy["restartPolicy"] == "RestartContainer";
    if spec["restartPolicy"] == "Never" && container.list("resizePolicy").iter().any(restarts) {
        found.push(format!(
            "container `{owner}` has `resizePolicy` with `RestartContainer`, which cannot be \
             combined with the pod's `restartPolicy: Never`"
        ));
    }
    found.into_iter()
}

type ResourceAmounts<'v> = BTreeMap<&'v str, i128>;

fn amounts<'v>(resources: &'v View<'v>, kind: &str) -> ResourceAmounts<'v> {
    let quantities = resources.get(kind).and_then(View::as_object);
    quantities
        .into_iter()
        .flatten()
        .filter_map(|(resource, amount)| Some((&**resource, quantity::of_view(amount)?)))
        .collect()
}

/// What a container requests. A limit without a request is also the request.
fn requests<'v>(container: &'v View<'v>) -> ResourceAmounts<'v> {
    let mut total = amounts(&container["resources"], "limits");
    total.extend(amounts(&container["resources"], "requests"));
    total
}

fn add<'v>(sum: &mut ResourceAmounts<'v>, more: &ResourceAmounts<'v>) {
    for (resource, amount) in more {
        let sum = sum.entry(resource).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// Refuses resources of the pod that are less than what its containers request together at any time.
fn pod_level_resources(spec: &View<'_>) -> Vec<(Path, String)> {
    let whole = &spec["resources"];
    if whole.is_null() {
        return Vec::new();
    }
    let peak = most_requested(spec);
    let (requested, limits) = (amounts(whole, "requests"), amounts(whole, "limits"));
    let is_above = |amounts: &ResourceAmounts<'_>, resource: &str, bound: &i128| {
        amounts.get(resource).is_some_and(|amount| amount > bound)
    };
    let mut found = Vec::new();
    for (resource, amount) in &requested {
        if is_above(&peak, resource, amount) {
            found.push(format!(
                "the containers together request more {resource} than `resources.requests` of the \
                 pod"
            ));
        }
    }
    for (resource, limit) in &limits {
        // Without a request of the pod, those of its containers count.
        let requests = match requested.contains_key(resource) {
            true => &requested,
            false => &peak,
        };
        if is_above(requests, resource, limit) {
            found.push(format!(
                "the pod requests more {resource} than its limit in `resources`"
            ));
        }
        for container in spec.list("containers") {
            let container_limits = amounts(&container["resources"], "limits");
            if is_above(&container_limits, resource, limit) {
                found.push(format!(
                    "the {resource} limit of container `{}` is higher than that of the pod",
                    container.text("name")
                ));
            }
        }
    }
    let at = |message| (Path::of(&["resources"]), message);
    found.into_iter().map(at).collect()
}

/// The most that the containers request at any time. Native sidecars run beside all containers behind them; other init
/// containers run one at a time.
fn most_requested<'v>(spec: &'v View<'v>) -> ResourceAmounts<'v> {
    let (mut beside, mut most) = (ResourceAmounts::new(), ResourceAmounts::new());
    for container in spec.list("initContainers") {
        let mut now = requests(container);
        if container.text("restartPolicy") == "Always" {
            add(&mut beside, &now);
            now = beside.clone();
        } else {
            add(&mut now, &beside);
        }
        raise_to(&mut most, now);
    }
    for container in spec.list("containers") {
        add(&mut beside, &requests(container));
    }
    raise_to(&mut most, beside);
    most
}

fn raise_to<'v>(peak: &mut ResourceAmounts<'v>, current: ResourceAmounts<'v>) {
    for (resource, amount) in current {
        let peak = peak.entry(resource).or_default();
        *peak = amount.max(*peak);
    }
}
