//! Finds mounts that would lose their volume, because the volume is removed with its policy and the mount stays.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::manifest::pod::Workload;
use crate::record::words::words_of;
use crate::record::{Record, escape};

/// Returns an error for each mount that would lose its volume in this run, a warning with `force`. Also a warning for
/// each restored mount whose volume is missing.
pub(super) fn dangling_mounts(
    workload: &Workload<'_>,
    current: &Value,
    target: &Value,
    record: &Record,
    force: bool,
) -> Vec<Diagnostic> {
    let path = &workload.pod_kind.path;
    let is_among = |name: &Value, volumes: &[Value]| {
        volumes
            .iter()
            .any(|target_volume| target_volume["name"] == *name)
    };
    let stay = items(spec_of(target, path), "volumes");
    let were = items(spec_of(current, path), "volumes");
    if were.iter().all(|volume| is_among(&volume["name"], stay)) {
        return Vec::new();
    }
    let mut dangling = mounts_of(target, path);
    dangling.retain(|_, mount| !mount.has_volume);
    if dangling.is_empty() {
        return Vec::new();
    }
    let before = mounts_of(current, path);
    dangling.retain(|path, _| before.get(path).is_some_and(|mount| mount.has_volume));
    let severity = match force {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let problem = |(path, mount): (String, VolumeMountUse)| match is_among(
        &Value::from(mount.volume.as_str()),
        were,
    ) {
        true => loses_volume(workload, &path, &mount, record).with_severity(severity),
        false => has_no_volume(workload, &path, &mount),
    };
    dangling.into_iter().map(problem).collect()
}

fn has_no_volume(workload: &Workload<'_>, path: &str, mount: &VolumeMountUse) -> Diagnostic {
    let message = format!(
        "{} of {} comes back, and the volume `{}` that it mounts is not there",
        words_of(path),
        workload.title(),
        mount.volume
    );
    Diagnostic::warning(Code::Invalid, message)
        .at(workload.name_place(), "this workload")
        .help("add the volume, or take the mount out")
}

fn loses_volume(
    workload: &Workload<'_>,
    path: &str,
    mount: &VolumeMountUse,
    record: &Record,
) -> Diagnostic {
    let mut policies = record.policies.iter();
    let owner = policies.find(|policy| policy.effects.added.contains_key(path));
    let of_policy = owner.map_or(String::new(), |policy| {
        format!(" of policy `{}`", policy.policy)
    });
    let message = format!(
        "{}{of_policy} needs the volume `{}` of {}, which would be taken out",
        words_of(path),
        mount.volume,
        workload.title()
    );
    let help = match owner {
        Some(owner) => format!(
            "take `{}` out, too, or let it bring the volume itself",
            owner.policy
        ),
        None => "take the mount out, or add a volume of this name".to_owned(),
    };
    Diagnostic::error(Code::Invalid, message)
        .at(workload.name_place(), "this workload")
        .help(help)
}

struct VolumeMountUse {
    volume: String,
    has_volume: bool,
}

/// Returns the volume mounts and volume devices of a pod, by their record paths.
fn mounts_of(object: &Value, template: &[String]) -> BTreeMap<String, VolumeMountUse> {
    let spec = spec_of(object, template);
    let mut found = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            let name = container["name"].as_str().unwrap_or_default();
            for (mounts, key) in [
                ("volumeMounts", "mountPath"),
                ("volumeDevices", "devicePath"),
            ] {
                for mount in items(Some(container), mounts) {
                    let (Some(volume), Some(at)) = (mount["name"].as_str(), mount[key].as_str())
                    else {
                        continue;
                    };
                    let at = escape(at);
                    let path = format!("pod/spec/{list}/{name}/{mounts}/{at}");
                    let mut volumes = items(spec, "volumes").iter();
                    let mount = VolumeMountUse {
                        volume: volume.to_owned(),
                        has_volume: volumes.any(|pod_volume| pod_volume["name"] == volume),
                    };
                    found.insert(path, mount);
                }
            }
        }
    }
    found
}

fn spec_of<'v>(object: &'v Value, template: &[String]) -> Option<&'v Value> {
    let mut keys = template.iter().map(String::as_str).chain(["spec"]);
    keys.try_fold(object, |value, key| value.get(key))
}

fn items<'v>(value: Option<&'v Value>, list: &str) -> &'v [Value] {
    let items = value
        .and_then(|value| value.get(list))
        .and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}
