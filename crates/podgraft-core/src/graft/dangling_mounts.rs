//! Finds mounts that would lose their volume, because the volume is removed with its policy and the mount stays.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::manifest::pod::Workload;
use crate::plan::draft::{Draft, DraftValue};
use crate::record::words::words_of;
use crate::record::{Record, as_stated, below, escape};

/// Returns an error for each mount that would lose its volume in this run, a warning with `force`. Also a warning for
/// each restored mount whose volume is missing.
pub(super) fn dangling_mounts(
    workload: &Workload<'_>,
    target: &Draft<'_>,
    record: &Record,
    force: bool,
) -> Vec<Diagnostic> {
    let path = &workload.pod_kind.path;
    let current = Draft::new(workload.tree, workload.object.node);
    let stay = volume_names(target, path);
    let were = volume_names(&current, path);
    if were.is_subset(&stay) {
        return Vec::new();
    }
    let mut dangling = mounts_of(target, path);
    dangling.retain(|_, volume| !stay.contains(&**volume));
    if dangling.is_empty() {
        return Vec::new();
    }
    let before = mounts_of(&current, path);
    let had_volume = |path: &String| {
        let volume = before.get(path);
        volume.is_some_and(|volume| were.contains(&**volume))
    };
    dangling.retain(|path, _| had_volume(path));
    let severity = match force {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let problem = |(path, volume): (String, String)| match were.contains(&*volume) {
        true => loses_volume(workload, &path, &volume, record).with_severity(severity),
        false => has_no_volume(workload, &path, &volume),
    };
    dangling.into_iter().map(problem).collect()
}

fn has_no_volume(workload: &Workload<'_>, path: &str, volume: &str) -> Diagnostic {
    let message = format!(
        "undo restores {} of {}, but the volume `{volume}` that it mounts does not exist",
        words_of(path),
        workload.title()
    );
    Diagnostic::warning(Code::Invalid, message)
        .at(workload.name_place(), "this workload")
        .help("add the volume, or remove the mount")
}

fn loses_volume(workload: &Workload<'_>, path: &str, volume: &str, record: &Record) -> Diagnostic {
    let mut policies = record.policies.iter();
    let owner = policies.find(|policy| policy.effects.added.contains_key(path));
    let of_policy = owner.map_or(String::new(), |policy| {
        format!(" of policy `{}`", policy.policy)
    });
    let message = format!(
        "{}{of_policy} needs the volume `{volume}` of {}, which would be removed",
        words_of(path),
        workload.title()
    );
    let help = match owner {
        Some(owner) => format!(
            "also remove `{}`, or add the volume to that policy",
            owner.policy
        ),
        None => "remove the mount, or add a volume with this name".to_owned(),
    };
    Diagnostic::error(Code::Invalid, message)
        .at(workload.name_place(), "this workload")
        .help(help)
}

/// Returns the volumes of the volume mounts and volume devices of a pod, by their record paths.
fn mounts_of(object: &Draft<'_>, template: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in items(object, pod_spec(object, template), list) {
            let name = object.text_at(&container, "name").unwrap_or_default();
            for (mounts, key) in [
                ("volumeMounts", "mountPath"),
                ("volumeDevices", "devicePath"),
            ] {
                for mount in items(object, Some(container.clone()), mounts) {
                    let (Some(volume), Some(at)) =
                        (object.text_at(&mount, "name"), object.text_at(&mount, key))
                    else {
                        continue;
                    };
                    let list = format!("pod/spec/{list}/{}/{mounts}", escape(&name));
                    let path = below(&list, as_stated(mounts, &at));
                    found.insert(path, volume.into_owned());
                }
            }
        }
    }
    found
}

fn volume_names<'t>(object: &Draft<'t>, template: &[String]) -> BTreeSet<Cow<'t, str>> {
    let volumes = items(object, pod_spec(object, template), "volumes").into_iter();
    volumes
        .filter_map(|volume| object.text_at(&volume, "name"))
        .collect()
}

fn pod_spec(object: &Draft<'_>, template: &[String]) -> Option<DraftValue> {
    let keys: Vec<&str> = template
        .iter()
        .map(String::as_str)
        .chain(["spec"])
        .collect();
    object.get_in(&object.root(), &keys)
}

fn items(object: &Draft<'_>, part: Option<DraftValue>, list: &str) -> Vec<DraftValue> {
    let list = part.and_then(|part| object.get(&part, list));
    list.map_or_else(Vec::new, |list| object.items(&list))
}
