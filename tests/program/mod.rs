//! The program under test, and a folder to run it in.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Variables that say something to podgraft, which no test takes over from whoever runs it.
const VARIABLES: [&str; 6] = [
    "PODGRAFT_CONFIG",
    "PODGRAFT_POLICY",
    "PODGRAFT_LOG_FILE",
    "ARGOCD_APP_PARAMETERS",
    "NO_COLOR",
    "CLICOLOR_FORCE",
];

/// A policy for each resource of a kind.
pub const POLICY_FOR_RESOURCES: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: levels
spec:
  source:
    apiVersion: example.com/v1
    kind: Level
    scope: Cluster
  inject:
    env:
      - {name: LEVEL, value: '${source.spec.level}'}
";

/// Such a resource.
pub const RESOURCE: &str = "\
apiVersion: example.com/v1
kind: Level
metadata:
  name: high
spec:
  level: high
";

/// A policy for the workloads with `runtime: java`.
pub const AGENT: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  match:
    selector:
      matchLabels: {runtime: java}
  inject:
    podAnnotations: {agent: 'on'}
";

/// A folder in which programs run.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Place(TempDir::new().expect("there is a folder for temporary files"))
    }

    /// A folder with this text as `policy.yaml`.
    pub fn with_policy(policy: &str) -> Self {
        let place = Place::new();
        place.write("policy.yaml", policy);
        place
    }

    /// A folder in memory where that is possible.
    pub fn in_memory() -> Self {
        TempDir::new_in("/dev/shm").map_or_else(|_| Place::new(), Place)
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and makes the folders that it stands in.
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

    /// podgraft in this folder, with nothing to read from stdin.
    pub fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        self.program(env!("CARGO_BIN_EXE_podgraft"), args)
    }

    /// Another program in this folder.
    pub fn program(&self, program: impl AsRef<OsStr>, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.root())
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        for name in VARIABLES {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, args: &[impl AsRef<OsStr>]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    pub fn run_with_stdin(&self, args: &[impl AsRef<OsStr>], text: &str) -> Output {
        with_stdin(self.command(args), text)
    }
}

/// Runs a command with a text on stdin.
pub fn with_stdin(mut command: Command, text: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A run that is refused does not read it.
    let _ = child
        .stdin
        .take()
        .expect("it is piped")
        .write_all(text.as_bytes());
    child.wait_with_output().expect("it ends")
}

/// The formats of a command, as the program lists them to somebody who asks for one that is not there.
pub fn formats(command: &str) -> Vec<String> {
    let said = stderr_of(&Place::new().run(&[command, "-o", "none"]));
    let (_, listed) = said
        .split_once("[possible values: ")
        .expect("they are listed");
    let (listed, _) = listed.split_once(']').expect("the list ends");
    listed.split(", ").map(str::to_owned).collect()
}

/// Its standard output.
pub fn stdout_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Its messages.
pub fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub fn assert_exit(output: &Output, code: i32) {
    assert_eq!(
        output.status.code(),
        Some(code),
        "stdout:\n{}\nstderr:\n{}",
        stdout_of(output),
        stderr_of(output)
    );
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
        stderr_of(output).contains(words),
        "`{words}` is missing in\n{}",
        stderr_of(output)
    );
}

/// Its standard output, when it succeeded.
#[track_caller]
pub fn succeeded(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}\n{}",
        stdout_of(output),
        stderr_of(output)
    );
    stdout_of(output)
}

/// What it said, when it failed.
#[track_caller]
pub fn failed(output: &Output) -> String {
    assert!(
        !output.status.success(),
        "it must fail:\n{}\n{}",
        stdout_of(output),
        stderr_of(output)
    );
    stderr_of(output)
}
