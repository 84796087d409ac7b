//! A folder to run the program in, and file systems to break it on.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub use crate::program::{Place, assert_exit, assert_refused, formats, stderr_of as stderr};

pub const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  inject:
    env: [{name: AGENT, value: 'on'}]
";

/// `apply --in-place` with the folder's policy.
pub const IN_PLACE: [&str; 5] = ["apply", "-q", "-i", "-p", "policy.yaml"];

/// A workload that the policy changes.
pub fn deployment(name: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  template:\n    spec:\n      \
         containers:\n      - name: app\n        image: app:1\n"
    )
}

impl Place {
    pub fn apply_in_place<S: AsRef<OsStr>>(&self, paths: &[S]) -> Output {
        let args: Vec<&OsStr> = IN_PLACE
            .iter()
            .map(OsStr::new)
            .chain(paths.iter().map(AsRef::as_ref))
            .collect();
        self.run(&args)
    }

    /// The hidden files of the program, which must not stay.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let entries = walkdir::WalkDir::new(self.root())
            .into_iter()
            .map(|entry| entry.expect("it can be read"));
        let hidden = entries.filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .ends_with(".podgraft-tmp")
        });
        hidden.map(walkdir::DirEntry::into_path).collect()
    }

    /// Mounts at a folder of the place; `None`, said aloud, where that is not possible.
    pub fn mount(&self, name: &str, args: &[&str]) -> Option<Mount> {
        let target = self.path(name);
        fs::create_dir_all(&target).expect("the folder can be made");
        let mounted = Command::new("mount")
            .args(args)
            .arg(&target)
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Mount(target));
        }
        eprintln!("SKIPPED: `mount {}` needs root", args.join(" "));
        None
    }
}

/// A mounted file system, until dropped.
pub struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "{} stays mounted",
            self.0.display()
        );
    }
}
