//! Helm 3 and Helm 4 on a chart with hooks, a test and a CRD.

use super::*;

const HOOK: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: pre-install}
spec:
  template:
    metadata:
      labels: {runtime: java}
    spec: {restartPolicy: Never, containers: [{name: app, image: app:1}]}
";
const TEST: &str = "\
apiVersion: v1
kind: Pod
metadata:
  name: test
  labels: {runtime: java}
  annotations: {helm.sh/hook: test}
spec: {restartPolicy: Never, containers: [{name: app, image: app:1}]}
";
const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: xs.example.com}
spec: {group: example.com, names: {kind: X, plural: xs}, scope: Namespaced, versions: []}
";

/// A chart, and Helm with folders of its own.
struct Helm {
    place: Place,
    program: PathBuf,
    is_4: bool,
}

impl Helm {
    fn new(name: &str) -> Option<Self> {
        let program = host(name)?;
        let place = Place::new();
        place.write(
            "chart/Chart.yaml",
            "apiVersion: v2\nname: demo\nversion: 0.1.0\n",
        );
        let deployment = DEPLOYMENT.replace("'-Xmx1g'", "{{ .Values.options | quote }}");
        place.write("chart/values.yaml", "options: -Xmx1g\n");
        place.write("chart/templates/deployment.yaml", &deployment);
        place.write("chart/templates/settings.yaml", CONFIG_MAP);
        place.write("chart/templates/hook.yaml", HOOK);
        place.write("chart/templates/tests/test.yaml", TEST);
        place.write("chart/crds/crd.yaml", CRD);
        let helm = Helm {
            place,
            program,
            is_4: name == "helm-4",
        };
        if helm.is_4 {
            let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("hosts/helm");
            succeeded(
                &helm
                    .command(&["plugin", "install", plugin.to_str().unwrap()], &[])
                    .output()
                    .unwrap(),
            );
        }
        Some(helm)
    }

    fn command(&self, args: &[&str], env: &[(&str, &str)]) -> Command {
        let mut command = self.place.command(&self.program, args);
        let home = self.place.path().join("helm");
        for (name, folder) in [
            ("HELM_CONFIG_HOME", "config"),
            ("HELM_CACHE_HOME", "cache"),
            ("HELM_DATA_HOME", "data"),
        ] {
            command.env(name, home.join(folder));
        }
        set_env(&mut command, env);
        command
    }

    fn template(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let base = ["template", "shop", "chart", "--include-crds"];
        self.command(&[&base, args].concat(), env).output().unwrap()
    }

    fn injected(&self, env: &[(&str, &str)]) -> Output {
        let args: &[&str] = match self.is_4 {
            true => &["--post-renderer", "podgraft"],
            false => &[
                "--post-renderer",
                "podgraft",
                "--post-renderer-args",
                "post-render",
            ],
        };
        self.template(args, env)
    }
}

const ENV: [(&str, &str); 1] = [("PODGRAFT_POLICY", "agent.yaml")];

fn both() -> Vec<Helm> {
    ["helm-3", "helm-4"]
        .iter()
        .filter_map(|name| Helm::new(name))
        .collect()
}

#[test]
fn a_post_renderer_gives_the_values_that_apply_gives_and_leaves_hooks_alone() {
    for helm in both() {
        let plain = succeeded(&helm.template(&[], &[]));
        let injected = helm.injected(&ENV);
        let found = objects(&succeeded(&injected));
        assert_eq!(found, objects(&helm.place.applied(&plain)));
        assert_eq!(
            found.len(),
            5,
            "the CRD, the settings, the workload, the hook and the test"
        );
        assert_eq!(succeeded(&injected).matches("-javaagent:").count(), 1);
        assert!(
            succeeded(&injected).contains("# Source: demo/templates/deployment.yaml"),
            "each object keeps its file"
        );
        assert!(!succeeded(&injected).contains("generated-by-postrender"));
        if !helm.is_4 {
            assert!(
                succeeded(&injected).contains("name: orders # the main one"),
                "Helm 3 keeps the text"
            );
            assert!(succeeded(&injected).contains("defaultMode: 0444"));
        }
    }
}

#[test]
fn a_second_run_changes_nothing() {
    for helm in both() {
        let once = succeeded(&helm.injected(&ENV));
        helm.place.write(
            "again/Chart.yaml",
            "apiVersion: v2\nname: again\nversion: 0.1.0\n",
        );
        helm.place.write("again/templates/all.yaml", &once);
        let args = ["template", "shop", "again", "--post-renderer", "podgraft"];
        let args = if helm.is_4 {
            args.to_vec()
        } else {
            [&args[..], &["--post-renderer-args", "post-render"]].concat()
        };
        let twice = succeeded(&helm.command(&args, &ENV).output().unwrap());
        assert_eq!(objects(&twice), objects(&once));
    }
}

#[test]
fn a_problem_fails_helm_and_the_log_file_says_which() {
    for helm in both() {
        let env = [
            ("PODGRAFT_POLICY", "nowhere.yaml"),
            ("PODGRAFT_LOG_FILE", "log"),
        ];
        let output = helm.injected(&env);
        let messages = failed(&output);
        assert!(
            !stdout_of(&output).contains("kind: Deployment"),
            "nothing is rendered"
        );
        let why = "`nowhere.yaml` cannot be read";
        // Helm 4 does not show what a plugin says.
        assert_eq!(messages.contains(why), !helm.is_4, "{messages}");
        assert!(helm.place.read("log").contains(why));
    }
}

#[test]
fn flags_of_helm_4_reach_the_plugin() {
    let Some(helm) = Helm::new("helm-4") else {
        return;
    };
    let args = [
        "--post-renderer",
        "podgraft",
        "--post-renderer-args",
        "-p",
        "--post-renderer-args",
        "agent.yaml",
    ];
    assert!(succeeded(&helm.template(&args, &[])).contains("-javaagent:"));
}

#[test]
fn a_chart_of_hooks_alone_renders() {
    for helm in both() {
        for file in ["deployment.yaml", "settings.yaml"] {
            fs::remove_file(helm.place.path().join("chart/templates").join(file)).unwrap();
        }
        let output = succeeded(&helm.injected(&ENV));
        assert!(
            output.contains("name: migrate") && !output.contains("-javaagent:"),
            "{output}"
        );
    }
}
