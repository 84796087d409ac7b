//! File systems that are full or read-only.

use std::fs;
use std::process::Command;

use crate::common::{Place, assert_exit, assert_refused, deployment};

#[test]
fn a_full_disk_leaves_all_files_as_they_were() {
    let place = Place::new();
    let Some(_mount) = place.mount("small", &["-t", "tmpfs", "-o", "size=256k", "none"]) else { return };
    let text = |name: &str| deployment(name) + &"# filler\n".repeat(4000);
    for name in ["a", "b", "c", "d", "e"] {
        place.write(format!("small/{name}.yaml"), text(name));
    }
    assert_refused(&place.apply_in_place(&["small"]), "cannot be written: No space left on device");
    assert!(["a", "b", "c", "d", "e"].iter().all(|name| place.read(format!("small/{name}.yaml")) == text(name)));
    assert!(place.leftovers().is_empty());
    // The next run finds room.
    ["b", "c", "d", "e"].iter().for_each(|name| fs::remove_file(place.path(format!("small/{name}.yaml"))).unwrap());
    assert_exit(&place.apply_in_place(&["small"]), 0);
    assert!(place.read("small/a.yaml").contains("AGENT"));
}

#[test]
fn a_report_or_a_folder_of_results_on_a_full_disk_fails_the_run() {
    let place = Place::new();
    let Some(_mount) = place.mount("small", &["-t", "tmpfs", "-o", "size=16k", "none"]) else { return };
    place.write("a.yaml", deployment("a") + &"# filler\n".repeat(4000));
    let args = ["apply", "-q", "-p", "policy.yaml", "--output-dir", "small/out", "a.yaml"];
    assert_refused(&place.run(&args), "No space left on device");
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_full_stdout_is_an_error() {
    let place = Place::new();
    place.write("a.yaml", deployment("a"));
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: there is no /dev/full");
        return;
    };
    let output = place.command(&["apply", "-q", "-p", "policy.yaml", "a.yaml"]).stdout(full).output().unwrap();
    assert_refused(&output, "stdout cannot be written: No space left on device");
}

#[test]
fn a_read_only_file_system_is_refused() {
    let place = Place::new();
    let Some(mount) = place.mount("fixed", &["-t", "tmpfs", "-o", "size=256k", "none"]) else { return };
    place.write("fixed/a.yaml", deployment("a"));
    place.write("b.yaml", deployment("b"));
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(place.path("fixed")).status();
    assert!(remounted.is_ok_and(|status| status.success()));
    assert_refused(&place.apply_in_place(&["b.yaml", "fixed/a.yaml"]), "Read-only file system");
    assert_eq!(place.read("b.yaml"), deployment("b"));
    assert_exit(&place.run(&["apply", "-q", "-p", "policy.yaml", "fixed"]), 0);
    drop(mount);
}
