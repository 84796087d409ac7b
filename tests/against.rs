//! `diff --against-policy`: the way from the old result to the new one is exactly the difference of both.

use podgraft_core::graft::policy_diff::{PolicyVersions, against};
use podgraft_core::graft::{Options, graft};
use podgraft_core::outcome::FileReport;
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use podgraft_core::yaml::splice::splice;
use std::fs;
use std::path::{Path, PathBuf};

fn folders() -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new("testdata/cases")
        .min_depth(2)
        .max_depth(2)
        .sort_by_file_name();
    let folders = entries
        .into_iter()
        .map(|entry| entry.expect("testdata is readable").into_path());
    folders
        .filter(|folder| folder.join("policy.yaml").exists() && folder.join("input.yaml").exists())
        .collect()
}

fn policies(folder: &Path) -> Vec<Policy> {
    policies_of(fs::read_to_string(folder.join("policy.yaml")).expect("a case has a policy"))
}

fn policies_of(text: String) -> Vec<Policy> {
    let name = "policy.yaml".into();
    read(vec![PolicyFile { name, text }], &[]).0
}

fn graft_with(text: &[u8], policies: &[Policy]) -> Option<FileReport> {
    let options = Options {
        authors: true,
        views: true,
        ..Options::default()
    };
    let report = graft(&"input.yaml".into(), text, policies, &options);
    (!report.diagnostics.iter().any(|problem| problem.is_error())).then_some(report)
}

/// Whether the edits of a workload are those of its document.
fn edits_are_inside(report: &FileReport, at: usize) -> bool {
    let workload = &report.workloads[at];
    // The end of a workload may go with the generated object behind it.
    let behind = report.workloads[at + 1..].iter();
    let generated = behind.take_while(|next| next.is_generated).last();
    let end = generated.unwrap_or(workload).document.end;
    // So may the line end before it that was added for it.
    let start = match workload.is_generated {
        true => workload.document.start.saturating_sub("\r\n".len()),
        false => workload.document.start,
    };
    let mut edits = report.edits[workload.edits.clone()].iter();
    edits.all(|edit| start <= edit.at.start && edit.at.end <= end)
}

#[test]
fn the_old_text_with_the_edits_is_the_new_text() {
    let folders = folders();
    let mut changed = 0;
    for (at, folder) in folders.iter().enumerate() {
        let text = fs::read(folder.join("input.yaml")).expect("a case has an input");
        let (old, new) = (
            policies(folder),
            policies(&folders[(at + 1) % folders.len()]),
        );
        for (old, new) in [
            (&old, &new),
            (&new, &old),
            (&old, &old),
            (&Vec::new(), &old),
        ] {
            let (Some(old), Some(new)) = (graft_with(&text, old), graft_with(&text, new)) else {
                continue;
            };
            let versions = PolicyVersions {
                old: &old,
                new: &new,
                upgrade: &new,
            };
            let (old_text, report) = against(&text, versions);
            let context = || format!("{}: {:?}", folder.display(), report.edits);
            assert_eq!(old_text, splice(&text, &old.edits), "{}", context());
            let (came, wanted) = (splice(&old_text, &report.edits), splice(&text, &new.edits));
            assert_eq!(
                String::from_utf8_lossy(&came),
                String::from_utf8_lossy(&wanted),
                "{}",
                context()
            );
            for at in 0..report.workloads.len() {
                assert!(
                    edits_are_inside(&report, at),
                    "{}: workload {at}",
                    context()
                );
            }
            changed += usize::from(old_text != came);
        }
    }
    assert!(changed > 300, "only {changed} texts changed");
}

/// The pod had no last line end, so one was added for the object, which somebody then put first.
#[test]
fn a_line_end_goes_with_an_object_that_stands_elsewhere() {
    const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject: {podAnnotations: {agent: 'on'}}
";
    const OBJECT: &str = "  generate:
  - resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: agent}, data: {level: info}}
";
    const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: web}]}";
    let with_object = policies_of([POLICY, OBJECT].concat());
    let without = policies_of(POLICY.to_owned());
    let options = Options {
        record: true,
        ..Options::default()
    };
    let injected = graft(&"input.yaml".into(), POD.as_bytes(), &with_object, &options);
    let injected = String::from_utf8(splice(POD.as_bytes(), &injected.edits)).expect("it is text");
    let (pod, object) = injected.split_once("---\n").expect("there are two objects");
    let swapped = [object, "---\n", pod].concat();
    let text = swapped.as_bytes();
    for (old, new) in [(&with_object, &without), (&without, &with_object)] {
        let [old, new] = [old, new].map(|policies| graft_with(text, policies).expect("no error"));
        let versions = PolicyVersions {
            old: &old,
            new: &new,
            upgrade: &new,
        };
        let (old_text, report) = against(text, versions);
        let came = splice(&old_text, &report.edits);
        assert_eq!(
            String::from_utf8_lossy(&came),
            String::from_utf8_lossy(&splice(text, &new.edits))
        );
        assert_ne!(old_text.ends_with(b"\n"), came.ends_with(b"\n"));
    }
}
