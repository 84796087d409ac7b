//! Warns about generated objects whose workload is gone from its file. They stay: the workload may have gone to a file
//! that is not of this run.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::inventory::key_in_records;
use crate::manifest::object::objects_in;
use crate::manifest::workload::PodKinds;
use crate::options::Options;
use crate::outcome::GeneratedRecord;
use crate::ownership::WorkloadKey;
use crate::plan::companions::{MANAGED_BY, is_managed};
use crate::record::lock::{LockSet, SeenWorkloads};
use crate::source::Source;
use crate::yaml::value::to_value;

use super::prune::{RunFile, documents_with};

/// Adds a warning for each object that a lock file names for a workload which is gone, that nothing else needs, and that
/// this run does not take out.
pub(super) fn warn_of_orphans(files: &mut [RunFile<'_>], options: &Options, locks: &LockSet) {
    let mut orphans = of_gone_workloads(files, locks);
    if orphans.is_empty() {
        return;
    }
    let reports = files.iter().map(|(.., report)| report);
    let known = reports.flat_map(|report| report.needed.iter().chain(&report.dropped));
    let elsewhere = locks.generated_elsewhere(files.iter().map(|(name, ..)| &**name));
    let elsewhere = elsewhere
        .into_iter()
        .map(|object| (object.name, object.digest));
    for key in known.map(GeneratedRecord::key).chain(elsewhere) {
        orphans.remove(&key);
    }
    let kinds = PodKinds::of(options);
    for (name, text, report) in files {
        let warnings = orphans_in(name, text, &orphans, &kinds);
        report.diagnostics.extend(warnings);
    }
}

/// An object's name and digest, with the policy that generated it and the title of the workload that is gone.
type Orphans = BTreeMap<(String, String), (String, String)>;

fn of_gone_workloads(files: &[RunFile<'_>], locks: &LockSet) -> Orphans {
    if locks.generated().next().is_none() {
        return Orphans::new();
    }
    let moved: HashSet<&WorkloadKey> = files
        .iter()
        .flat_map(|(.., report)| &report.records)
        .filter_map(|record| record.from.as_ref())
        .collect();
    let of_run = files.iter();
    let of_run = of_run.map(|(name, text, report)| (&**name, *text, &*report.records));
    let seen = SeenWorkloads::of(locks, of_run);
    let mut orphans = Orphans::new();
    for (at, lock) in locks.locks.iter().enumerate() {
        let is_gone =
            |key: &WorkloadKey| seen.is_gone(at, key) == Some(true) && !moved.contains(key);
        for (key, object) in lock.generated().filter(|(key, _)| is_gone(key)) {
            orphans.insert((object.name, object.digest), (object.policy, key.title()));
        }
    }
    orphans
}

fn orphans_in(
    name: &Arc<str>,
    text: &[u8],
    orphans: &Orphans,
    kinds: &PodKinds,
) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for (chunk, tree) in documents_with(MANAGED_BY.1, text) {
        for object in objects_in(&tree, kinds) {
            let value = to_value(&tree, object.node).ok().filter(is_managed);
            let Some((key, found)) =
                value.and_then(|value| orphans.get_key_value(&key_in_records(&value)))
            else {
                continue;
            };
            let at = chunk.start + tree.span(object.node).start;
            let place = Source::new(Arc::clone(name), &String::from_utf8_lossy(text)).place(at..at);
            warnings.push(orphaned(&key.0, found).at(place, "this object"));
        }
    }
    warnings
}

fn orphaned(name: &str, (policy, workload): &(String, String)) -> Diagnostic {
    let message = format!(
        "the {name} stays, which policy `{policy}` generated for {workload}: that workload is not there any more"
    );
    Diagnostic::warning(Code::Orphaned, message)
        .of_policy(policy.as_str())
        .help("delete it if the workload is gone for good")
}
