//! Renders the plan for other programs to apply: as RFC 6902 patches, or as a kustomize Component, which kustomize and
//! kubectl build without podgraft.
//! <https://kubectl.docs.kubernetes.io/guides/config_management/components/>

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::change::ChangeTarget;
use crate::diagnostic::{Code, Diagnosed, Diagnostic, unless};
use crate::edit::emit::{DOCUMENT_STYLE, block_items, document, needs_line_end};
use crate::outcome::{
    EarlierVersion, GeneratedObject, ObjectName, PolicyReport, ReportedFile, WorkloadReport,
};
use crate::source::Source;
use crate::wording::{self, without_nulls};

/// The files of a kustomize Component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Text of `kustomization.yaml`: the Component, with a patch for each changed object.
    pub kustomization: String,
    /// Text of `generated.yaml`: the objects that policies generate, if there are any.
    pub generated: Option<String>,
}

/// The name of the file with the Component.
pub const COMPONENT: &str = "kustomization.yaml";
/// The first line of that file.
pub const COMPONENT_HEADER: &str = "# Made by `podgraft apply -o kustomize`, for the manifests that it was made from: make it again when they change.\n";
/// The name of the file with the objects that policies generate.
pub const GENERATED: &str = "generated.yaml";

/// The namespace by which kustomize selects objects that state none. Source: `EffectiveNamespace` of kyaml/resid.
const NO_NAMESPACE: &str = "default";

/// A JSON list of `{target, patch}`. The patch of a new object adds the whole document (an empty path), that of an
/// updated one replaces it, and that of a pruned one removes it.
pub fn json_patch(files: &[ReportedFile<'_>]) -> String {
    let next_versions = NextVersions::of(files);
    let mut entries: Vec<Value> = Vec::new();
    for file in files {
        for (index, workload) in file.report.workloads.iter().enumerate() {
            if let Some(patch) = &workload.patch {
                let target = target(&workload.api_version, &name_of(workload));
                let patch = match next_versions.of_object(file, workload) {
                    Some(next_version) => replacement(next_version),
                    None => json!(patch),
                };
                entries.push(json!({"target": target, "patch": patch}));
            }
            let companions = file.report.companions.iter();
            let beside = companions.filter(|placed| placed.workload == index);
            let companions = beside.map(|placed| &placed.companion);
            let new = companions.filter(|companion| next_versions.is_new(companion));
            entries.extend(new.map(companion_entry));
        }
    }
    wording::pretty_json(&entries)
}

/// The next versions of generated objects that these files have an earlier version of, by its file and its name. `None`
/// for an object that goes.
struct NextVersions<'a>(BTreeMap<(&'a str, &'a str), Option<&'a Value>>);

impl<'a> NextVersions<'a> {
    fn of(files: &'a [ReportedFile<'_>]) -> Self {
        let objects = files.iter().flat_map(|file| {
            let objects = file.report.workloads.iter();
            objects.filter_map(|object| Some((file.name, generated_name(object)?)))
        });
        let mut versions: BTreeMap<_, _> = objects.map(|object| (object, None)).collect();
        for placed in files.iter().flat_map(|file| &file.report.companions) {
            let earlier = placed.companion.replaces.as_ref().map(file_and_name);
            if let Some(version) = earlier.and_then(|earlier| versions.get_mut(&earlier)) {
                *version = Some(&*placed.companion.object);
            }
        }
        NextVersions(versions)
    }

    /// The next version of an object. `None` for a workload, and for a generated object that goes.
    fn of_object(&self, file: &ReportedFile<'_>, object: &WorkloadReport) -> Option<&'a Value> {
        let object = (file.name, generated_name(object)?);
        *self.0.get(&object)?
    }

    /// Whether these files have no earlier version of an object.
    fn is_new(&self, object: &GeneratedObject) -> bool {
        let earlier = object.replaces.as_ref().map(file_and_name);
        earlier.is_none_or(|earlier| !self.0.contains_key(&earlier))
    }
}

/// The name of a generated object in records. `None` for a workload.
fn generated_name(object: &WorkloadReport) -> Option<&str> {
    let policies = object.policies.iter().filter(|_| object.is_generated);
    let mut changes = policies.filter_map(PolicyReport::changes).flatten();
    changes.find_map(|change| match &change.target {
        ChangeTarget::Object(name) => Some(&**name),
        _ => None,
    })
}

fn file_and_name(earlier: &EarlierVersion) -> (&str, &str) {
    (&earlier.place.source, &earlier.key.0)
}

/// The patch of an object that is updated.
fn replacement(next_version: &Value) -> Value {
    json!([{"op": "replace", "path": "", "value": next_version}])
}

fn companion_entry(companion: &GeneratedObject) -> Value {
    let api_version = companion.object["apiVersion"].as_str().unwrap_or_default();
    let patch = json!([{"op": "add", "path": "", "value": *companion.object}]);
    json!({"target": target(api_version, &companion.name), "patch": patch})
}

/// The name of a workload as the manifest writes it: without a namespace that only the run gives it.
fn name_of(workload: &WorkloadReport) -> ObjectName {
    let (group, _) = workload.api_version.rsplit_once('/').unwrap_or_default();
    ObjectName {
        group: group.to_owned(),
        kind: workload.kind.clone(),
        namespace: workload
            .namespace
            .clone()
            .filter(|_| workload.states_namespace),
        name: workload.name.clone(),
        folder: None,
    }
}

fn target(api_version: &str, object: &ObjectName) -> Value {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    without_nulls(json!({
        "group": (!group.is_empty()).then_some(group),
        "version": version,
        "kind": object.kind,
        "namespace": object.namespace,
        "name": object.name,
    }))
}

/// A kustomize Component that makes the same changes to the same manifests as `apply`.
///
/// # Errors
/// Changed objects that kustomize cannot select unambiguously: those without a fixed name, or two of the same name.
pub fn component(files: &[ReportedFile<'_>]) -> Diagnosed<Component> {
    let problems = refuse(files);
    unless(problems, ())?;
    let next_versions = NextVersions::of(files);
    let mut patches: Vec<Value> = Vec::new();
    let mut objects: Vec<String> = Vec::new();
    for file in files {
        let workloads = file.report.workloads.iter();
        let changed = workloads.filter(|workload| workload.patch.is_some());
        patches.extend(
            changed.map(|workload| patch_entry(workload, next_versions.of_object(file, workload))),
        );
        let companions = file
            .report
            .companions
            .iter()
            .map(|placed| &placed.companion);
        let new = companions.filter(|companion| next_versions.is_new(companion));
        objects.extend(new.map(|companion| document(&companion.object)));
    }
    let mut fields = json!({"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component"});
    if !objects.is_empty() {
        fields["resources"] = json!([GENERATED]);
    }
    // kustomize fails on a file without any list as empty, so `patches` is written even if it has no items.
    fields["patches"] = Value::Array(patches);
    let generated = (!objects.is_empty()).then(|| objects.join("---\n"));
    Ok(Component {
        kustomization: format!("{COMPONENT_HEADER}{}", document(&fields)),
        generated,
    })
}

fn patch_entry(workload: &WorkloadReport, next_version: Option<&Value>) -> Value {
    let mut object = name_of(workload);
    // The fields of a target are regular expressions, and a field that is left out matches every object.
    object.name = regex_lite::escape(&object.name);
    let namespace = object.namespace.unwrap_or_else(|| NO_NAMESPACE.to_owned());
    object.namespace = Some(namespace);
    let target = target(&workload.api_version, &object);
    let operations = match next_version {
        Some(next_version) => replacement(next_version),
        None if workload.is_generated => {
            return json!({"target": target, "patch": removal(workload)});
        }
        None => serde_json::to_value(&workload.patch).expect("a patch is always JSON"),
    };
    let mut operations = operations.as_array().cloned().unwrap_or_default();
    // kustomize trims the line ends at the end of a patch. A last value that needs its line end must not be last, so
    // `path` is put after it.
    if let Some(last) = operations
        .last_mut()
        .and_then(Value::as_object_mut)
        .filter(|last| last.get("value").is_some_and(needs_line_end))
    {
        let path = last.shift_remove("path");
        last.insert("path".to_owned(), path.unwrap_or_default());
    }
    json!({"target": target, "patch": block_items(&operations, 0, 2, DOCUMENT_STYLE) + "\n"})
}

/// A strategic merge patch that deletes an object. A JSON patch cannot do that in kustomize.
fn removal(workload: &WorkloadReport) -> String {
    document(&json!({
        "$patch": "delete",
        "apiVersion": workload.api_version,
        "kind": workload.kind,
        "metadata": {"name": workload.name},
    }))
}

fn refuse(files: &[ReportedFile<'_>]) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut seen: BTreeMap<ObjectName, (&ReportedFile<'_>, &WorkloadReport)> = BTreeMap::new();
    let workloads = files.iter().flat_map(|file| {
        let workloads = file.report.workloads.iter();
        workloads.map(move |workload| (file, workload))
    });
    for (file, workload) in workloads {
        let is_changed = workload.patch.is_some();
        if is_changed && (workload.name.is_empty() || workload.name.ends_with('*')) {
            let kind = &workload.kind;
            let message = format!("a kustomize patch requires a name, but this {kind} has none");
            let problem = Diagnostic::error(Code::UnclearTarget, message);
            let problem = with_place(problem, file, workload, "has no metadata.name");
            problems.push(problem.help("use -o json-patch, which needs no name"));
            continue;
        }
        let previous = seen.insert(name_of(workload), (file, workload));
        let Some((other_file, other_workload)) =
            previous.filter(|(_, other)| is_changed || other.patch.is_some())
        else {
            continue;
        };
        let title = workload.title();
        let message = format!("a kustomize patch would match two objects named {title}");
        let problem = Diagnostic::error(Code::UnclearTarget, message);
        let problem = with_place(problem, other_file, other_workload, "one");
        let problem = with_place(problem, file, workload, "the other");
        let help = "create one Component for each kustomize build: run podgraft once for each";
        problems.push(problem.help(help));
    }
    problems
}

fn with_place(
    problem: Diagnostic,
    file: &ReportedFile<'_>,
    workload: &WorkloadReport,
    words: &str,
) -> Diagnostic {
    let text = String::from_utf8_lossy(file.text);
    let before = workload.line.saturating_sub(1);
    let start: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    let end = start + text.lines().nth(before).map_or(0, str::len);
    problem.at(Source::new(file.name, &text).place(start..end), words)
}
