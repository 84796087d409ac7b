//! A folder to run the program in, and file systems to break it on.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const POLICY: &str = "\
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

/// A folder with `policy.yaml`, in which the program runs.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Place::with(TempDir::new().expect("there is a folder for temporary files"))
    }

    /// In memory where that is possible: a kill does not care, and many runs are done sooner.
    pub fn in_memory() -> Self {
        TempDir::new_in("/dev/shm").map_or_else(|_| Place::new(), Place::with)
    }

    fn with(folder: TempDir) -> Self {
        let place = Place(folder);
        place.write("policy.yaml", POLICY);
        place
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the folder"))
            .expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    pub fn read(&self, name: impl AsRef<Path>) -> String {
        String::from_utf8(fs::read(self.path(name)).expect("the file is there"))
            .expect("it is text")
    }

    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podgraft"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        self.command(args).output().expect("the program runs")
    }

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
        let entries = walkdir::WalkDir::new(self.0.path())
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

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
}

/// Exit 2, nothing on stdout, and the words on stderr.
#[track_caller]
pub fn assert_refused(output: &Output, words: &str) {
    assert_exit(output, 2);
    assert!(
        output.stdout.is_empty(),
        "a refused run must give nothing out"
    );
    assert!(
        stderr(output).contains(words),
        "`{words}` is missing in\n{}",
        stderr(output)
    );
}
