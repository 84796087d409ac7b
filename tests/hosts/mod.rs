//! The programs that run podgraft, each with the real program where it is there: `.ci/run` installs them into
//! `hosts` of the target folder. One that is missing is a visible skip, and a failure with CI=true.

mod argocd;
mod component;
mod decides;
mod function;
mod helm;
mod kpt;
mod kustomize;
mod plugin_server;
mod post_render;
mod pre_commit;
mod scripts;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::program::{
    POLICY_FOR_RESOURCES, RESOURCE, failed, stderr_of, stdout_of, succeeded, with_stdin,
};
use podgraft_core::yaml::parse::parse;
use podgraft_core::yaml::value::to_value;
use serde_json::Value;

/// What every host injects: a volume, a mount, a flag and a parameter's value.
const POLICY: &str = "\
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: agent
spec:
  params:
  - {name: port, default: '9404', pattern: '\\d+', overridable: true}
  - {name: image, default: 'docker.io/agent:1'}
  match:
    selector:
      matchLabels: {runtime: java}
  inject:
    initContainers:
    - {name: agent, image: '${params.image}'}
    volumes:
    - {name: agent, emptyDir: {}}
    volumeMounts:
    - {name: agent, mountPath: /agent}
    env:
    - {name: JAVA_TOOL_OPTIONS, op: Append, value: '-javaagent:/agent/agent.jar=${params.port}'}
    podAnnotations:
      prometheus.io/port: '${params.port}'
";

/// A workload in a style that nobody would write again: a comment, quotes, flow style, an octal mode.
const DEPLOYMENT: &str = "\
# the shop
apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders # the main one
spec:
  replicas: 2
  selector:
    matchLabels: {app: orders}
  template:
    metadata:
      labels: {app: orders, runtime: java}
    spec:
      containers:
      - name: app
        image: \"registry.example.com/orders:1\" # pinned
        env:
        - {name: JAVA_TOOL_OPTIONS, value: '-Xmx1g'}
      volumes:
      - name: keys
        secret: {secretName: keys, defaultMode: 0444}
";

const CONFIG_MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata: {mode: '0444'}\n";

/// A folder with the program in `bin`, under the names that hosts call it by.
pub struct Place(crate::program::Place);

impl Place {
    fn new() -> Self {
        let place = Place(crate::program::Place::new());
        fs::create_dir(place.path().join("bin")).unwrap();
        for name in ["podgraft", "podgraft-fn"] {
            std::os::unix::fs::symlink(
                env!("CARGO_BIN_EXE_podgraft"),
                place.path().join("bin").join(name),
            )
            .unwrap();
        }
        place.write("agent.yaml", POLICY);
        place
    }

    fn path(&self) -> &Path {
        self.0.root()
    }

    fn write(&self, name: &str, text: &str) {
        self.0.write(name, text);
    }

    fn read(&self, name: &str) -> String {
        self.0.read(name)
    }

    /// A program with the folder's `bin` in PATH.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = self.0.program(program, args);
        command.env("PATH", format!("{}:{path}", self.0.path("bin").display()));
        command
    }

    fn podgraft(&self, args: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_podgraft"), args)
    }

    /// What `podgraft apply` makes of a text.
    fn applied(&self, text: &str) -> String {
        let output = with_stdin(self.podgraft(&["apply", "-q", "-p", "agent.yaml"]), text);
        assert!(output.status.success(), "{}", stderr_of(&output));
        stdout_of(&output)
    }
}

/// The objects of a stream, sorted by kind and name, without what hosts note on their way.
fn objects(text: &str) -> Vec<Value> {
    let tree = parse(text).unwrap_or_else(|error| panic!("{error:?} in\n{text}"));
    let mut objects: Vec<Value> = tree
        .roots()
        .iter()
        .map(|&root| to_value(&tree, root).unwrap())
        .collect();
    objects.retain(|object| !object.is_null());
    objects.sort_by_key(|object| format!("{} {}", object["kind"], object["metadata"]["name"]));
    objects
}

/// A host's program; where it is missing the test ends with a skip that can be seen, or fails with CI=true.
fn host(name: &str) -> Option<PathBuf> {
    let installed = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("hosts")
        .join(name);
    let in_path = || {
        let path = std::env::var_os("PATH")?;
        // The others are installed in the versions that are meant.
        let wanted = (name == "kpt").then_some(name)?;
        std::env::split_paths(&path)
            .map(|folder| folder.join(wanted))
            .find(|file| file.is_file())
    };
    let found = if installed.is_file() {
        Some(installed.clone())
    } else {
        in_path()
    };
    if found.is_none() {
        // CI installs kpt nowhere: it is tested where it is.
        assert!(
            name == "kpt" || std::env::var("CI").as_deref() != Ok("true"),
            "{} is missing: run .ci/run",
            installed.display()
        );
        let _ = writeln!(
            std::io::stderr(),
            "skipped: {name} is not there (.ci/run installs it)"
        );
    }
    found
}

fn set_env<'c>(command: &'c mut Command, env: &[(&str, &str)]) -> &'c mut Command {
    command.envs(env.iter().copied())
}
