//! The files of `hosts/argocd`, run by Argo CD's real plugin server over its socket: `tests/argocd` is that server with a
//! client that does what the repo-server does.

use std::process::Child;
use std::time::{Duration, Instant};

use super::*;

const CONFIG: &str = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [agent.yaml]\nallowApplicationConfig: true\n";

fn from_repository(name: &str) -> String {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("hosts/argocd")
            .join(name),
    )
    .unwrap()
}

/// A running plugin server; killed at the end, for it does not listen to anything milder.
struct Server {
    place: Place,
    program: PathBuf,
    socket: String,
    process: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// With a plugin of `hosts/argocd`, its commented-out discovery turned on.
    fn start(variant: &str, tools: &[(&str, &str)]) -> Option<Self> {
        let program = host("argocd-cmp")?;
        let place = Place::new();
        for (name, installed) in tools {
            std::os::unix::fs::symlink(host(installed)?, place.path().join("bin").join(name))
                .unwrap();
        }
        let plugin = from_repository(&format!("plugin-{variant}.yaml"))
            .replace("  # discover:", "  discover:");
        assert!(plugin.contains("\n  discover:"));
        place.write("config/plugin.yaml", &plugin);
        place.write(
            "operator/podgraft.yaml",
            &CONFIG.replace("agent.yaml", "../agent.yaml"),
        );
        fs::create_dir(place.path().join("sockets")).unwrap();
        let name = objects(&plugin)[0]["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        let socket = place.path().join("sockets").join(format!("{name}.sock"));
        let mut command = place.command(
            &program,
            &["serve", place.path().join("config").to_str().unwrap()],
        );
        command
            .env("ARGOCD_PLUGINSOCKFILEPATH", place.path().join("sockets"))
            .env("ARGOCD_CMP_WORKDIR", place.path().join("work"))
            .env(
                "PODGRAFT_CONFIG",
                place.path().join("operator/podgraft.yaml"),
            )
            .env("HOME", place.path())
            .stdout(fs::File::create(place.path().join("log")).unwrap())
            .stderr(fs::File::create(place.path().join("log.err")).unwrap());
        fs::create_dir(place.path().join("work")).unwrap();
        let process = command.spawn().unwrap();
        let server = Server {
            socket: socket.to_str().unwrap().to_owned(),
            place,
            program,
            process,
        };
        server.wait_for(&socket);
        Some(server)
    }

    fn wait_for(&self, socket: &Path) {
        let until = Instant::now() + Duration::from_secs(30);
        while !socket.exists() {
            assert!(
                Instant::now() < until,
                "no socket: {}",
                self.place.read("log.err")
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Asks as the repo-server does: the repository's files, the application's folder and environment.
    fn ask(&self, method: &str, app: &str, env: &[&str]) -> Output {
        let repository = self.place.path().join("repository");
        let app = repository.join(app);
        let base = [
            "ARGOCD_APP_NAME=shop",
            "ARGOCD_APP_NAMESPACE=shop",
            "KUBE_VERSION=1.33.1",
            "KUBE_API_VERSIONS=v1,apps/v1",
        ];
        let paths = [
            self.socket.as_str(),
            repository.to_str().unwrap(),
            app.to_str().unwrap(),
        ];
        let args = [&[method], &paths[..], &base, env].concat();
        self.place.command(&self.program, &args).output().unwrap()
    }

    fn generate(&self, app: &str, env: &[&str]) -> Output {
        self.ask("generate", app, env)
    }

    fn matches(&self, app: &str) -> bool {
        let answer: Value = serde_json::from_str(&succeeded(&self.ask("match", app, &[]))).unwrap();
        answer["isSupported"] == true && answer["isDiscoveryEnabled"] == true
    }

    fn write_app(&self) {
        self.place
            .write("repository/app/deployment.yaml", DEPLOYMENT);
        self.place.write("repository/app/settings.yaml", CONFIG_MAP);
        self.place.write(
            "repository/app/secret.yaml",
            "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: hunter2}\n",
        );
    }
}

/// The objects of an answer, sorted as those of a stream are.
fn manifests(answer: &Output) -> Vec<Value> {
    let answer: Value = serde_json::from_str(&succeeded(answer)).unwrap();
    let texts = answer["manifests"].as_array().cloned().unwrap_or_default();
    let text = texts
        .iter()
        .map(|text| format!("---\n{}\n", text.as_str().unwrap()))
        .collect::<String>();
    if text.is_empty() {
        Vec::new()
    } else {
        objects(&text)
    }
}

#[test]
fn plain_manifests_are_what_apply_gives() {
    let Some(server) = Server::start("plain", &[]) else {
        return;
    };
    server.write_app();
    let wanted = server
        .place
        .podgraft(&["apply", "-q", "-p", "agent.yaml", "repository/app"])
        .output()
        .unwrap();
    let found = manifests(&server.generate("app", &[]));
    assert_eq!(found, objects(&succeeded(&wanted)));
    let deployment = found
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .unwrap();
    assert_eq!(
        deployment["spec"]["template"]["spec"]["volumes"][0]["secret"]["defaultMode"], 292,
        "0444 is octal"
    );
    assert!(server.matches("app"));
    server.place.write(
        "repository/kustomized/kustomization.yaml",
        "resources: []\n",
    );
    assert!(!server.matches("kustomized"));
}

#[test]
fn an_application_without_parameters_and_with_them() {
    let Some(server) = Server::start("plain", &[]) else {
        return;
    };
    server.write_app();
    let port = |env: &[&str]| {
        let found = manifests(&server.generate("app", env));
        let deployment = found
            .iter()
            .find(|object| object["kind"] == "Deployment")
            .unwrap()
            .clone();
        deployment["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"].clone()
    };
    for env in [
        &[][..],
        &["ARGOCD_APP_PARAMETERS=null"],
        &["ARGOCD_APP_PARAMETERS=[]"],
    ] {
        assert_eq!(port(env), "9404", "{env:?}");
    }
    let map = r#"ARGOCD_APP_PARAMETERS=[{"name":"params","map":{"agent:port":"7"}}]"#;
    assert_eq!(port(&[map, "PARAM_PARAMS_AGENT_PORT=7"]), "7");
    let announced = succeeded(&server.ask("parameters", "app", &[]));
    for word in ["\"strict\"", "\"params\"", "agent:port"] {
        assert!(announced.contains(word), "{word} is missing in {announced}");
    }
}

#[test]
fn an_error_is_what_argo_cd_shows_and_holds_no_secret() {
    let Some(server) = Server::start("plain", &[]) else {
        return;
    };
    server.write_app();
    let image = r#"ARGOCD_APP_PARAMETERS=[{"name":"params","map":{"image":"evil:1"}}]"#;
    let messages = failed(&server.generate("app", &[image]));
    assert!(
        messages.contains("failed exit status 2")
            && messages.contains("an application cannot set the parameter"),
        "{messages}"
    );
    server.place.write(
        "repository/app/pod.yaml",
        "apiVersion: v1\nkind: Pod\nspec: {runtime: java, password: hunter2, a: [\n",
    );
    let messages = failed(&server.generate("app", &[]));
    assert!(
        messages.contains("error[not-yaml]") && messages.contains("pod.yaml:"),
        "{messages}"
    );
    assert!(!messages.contains("hunter2"), "{messages}");
}

#[test]
fn an_empty_folder_is_no_empty_application() {
    let Some(server) = Server::start("plain", &[]) else {
        return;
    };
    server.place.write("repository/app/notes.txt", "nothing\n");
    assert!(failed(&server.generate("app", &[])).contains("no-manifests"));
}

#[test]
fn a_kustomization_is_built_and_injected() {
    let Some(server) = Server::start("kustomize", &[("kustomize", "kustomize")]) else {
        return;
    };
    server.write_app();
    server.place.write(
        "repository/app/kustomization.yaml",
        "namePrefix: eu-\nresources: [deployment.yaml]\n",
    );
    let found = manifests(&server.generate("app", &[]));
    assert_eq!(found[0]["metadata"]["name"], "eu-orders");
    assert!(
        found[0]
            .to_string()
            .contains("-javaagent:/agent/agent.jar=9404")
    );
    assert!(server.matches("app"));
    server.place.write(
        "repository/app/kustomization.yaml",
        "resources: [nowhere.yaml]\n",
    );
    assert!(
        failed(&server.generate("app", &[])).contains("nowhere.yaml"),
        "kustomize's own message"
    );
    server.place.write(
        "repository/app/kustomization.yaml",
        "resources: []\nnamePrefix: a-\n",
    );
    failed(&server.generate("app", &[]));
}

const HOOK: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}\nspec:\n  \
                    template:\n    metadata: {labels: {runtime: java}}\n    spec: {containers: [{name: app, image: \
                    'app:{{ .Capabilities.KubeVersion.Minor }}'}]}\n";

/// A server whose repository has a chart, or `None` where a program is missing.
fn server_with_chart() -> Option<Server> {
    let server = Server::start("helm", &[("helm", "helm-3")])?;
    let deployment = DEPLOYMENT.replace("'-Xmx1g'", "{{ .Values.options | quote }}");
    for (path, text) in [
        (
            "app/Chart.yaml",
            "apiVersion: v2\nname: demo\nversion: 0.1.0\n",
        ),
        ("app/templates/deployment.yaml", &deployment),
        ("app/templates/hook.yaml", HOOK),
        ("app/values.yaml", "options: -Xmx1g\n"),
        ("app/prod.yaml", "options: -Xmx8g\n"),
        ("other.yaml", "options: stolen\n"),
    ] {
        server.place.write(&format!("repository/{path}"), text);
    }
    Some(server)
}

fn generate_with_values(server: &Server, file: &str) -> Output {
    let parameters =
        format!(r#"ARGOCD_APP_PARAMETERS=[{{"name":"value-files","array":["{file}"]}}]"#);
    server.generate(
        "app",
        &[&parameters, &format!("PARAM_VALUE_FILES_0={file}")],
    )
}

#[test]
fn a_chart_is_rendered_and_injected_and_its_hooks_are_left_alone() {
    let Some(server) = server_with_chart() else {
        return;
    };
    let found = manifests(&server.generate("app", &[]));
    assert_eq!(found.len(), 2);
    assert!(
        found[0]
            .to_string()
            .contains("-Xmx1g -javaagent:/agent/agent.jar=9404")
    );
    assert!(
        !found[1].to_string().contains("-javaagent:") && found[1].to_string().contains("app:33"),
        "{}",
        found[1]
    );
    assert!(server.matches("app"));
}

#[test]
fn values_of_a_chart_come_from_files_of_the_application_alone() {
    let Some(server) = server_with_chart() else {
        return;
    };
    let values = |file: &str| generate_with_values(&server, file);
    assert!(
        manifests(&values("prod.yaml"))[0]
            .to_string()
            .contains("-Xmx8g -javaagent:")
    );
    assert!(failed(&values("../other.yaml")).contains("outside"));
    // Helm cuts a list of files at commas: the folder `x.yaml,` makes one path of two.
    let outside = server.place.path().join("repository/other.yaml");
    let split = format!("x.yaml,{}", outside.display());
    server
        .place
        .write(&format!("repository/app/{split}"), "options: decoy\n");
    server
        .place
        .write("repository/app/x.yaml", "options: half\n");
    assert!(failed(&values(&split)).contains("comma"));
    server.place.write(
        "repository/app/http:/127.0.0.1:1/x.yaml",
        "options: -Xmx2g\n",
    );
    assert!(
        manifests(&values("http:/127.0.0.1:1/x.yaml"))[0]
            .to_string()
            .contains("-Xmx2g"),
        "a name that Helm takes for an address is a file's"
    );
}

#[test]
fn the_component_and_the_charts_values_say_the_same() {
    let values = objects(&from_repository("chart-values.yaml")).remove(0);
    let sidecar = objects(&from_repository("sidecar.yaml")).remove(0);
    let spec = &sidecar["spec"]["template"]["spec"];
    let of_chart = |value: &Value| {
        let text = value.to_string();
        text.replace("\"podgraft.yaml\"", "\"plugin-plain.yaml\"")
            .replace("argocd-cmp-cm", "podgraft-plugins")
    };
    assert_eq!(
        of_chart(&values["repoServer"]["extraContainers"]),
        spec["containers"].to_string()
    );
    assert_eq!(
        of_chart(&values["repoServer"]["volumes"]),
        spec["volumes"].to_string()
    );
    let plugin = objects(&from_repository("plugin-plain.yaml")).remove(0);
    assert_eq!(
        values["configs"]["cmp"]["plugins"]["podgraft"],
        plugin["spec"]
    );
    let config = values["extraObjects"][0]["data"]["podgraft.yaml"]
        .as_str()
        .unwrap();
    assert_eq!(objects(config), objects(&from_repository("podgraft.yaml")));
}

#[test]
fn the_component_adds_the_sidecar_to_the_repo_server() {
    let Some(kustomize) = host("kustomize") else {
        return;
    };
    let place = Place::new();
    for file in [
        "kustomization.yaml",
        "sidecar.yaml",
        "podgraft.yaml",
        "plugin-plain.yaml",
        "plugin-kustomize.yaml",
        "plugin-helm.yaml",
    ] {
        place.write(&format!("component/{file}"), &from_repository(file));
    }
    place.write(
        "argocd/server.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: argocd-repo-server}\nspec:\n  template:\n    spec:\n      containers: \
         [{name: argocd-repo-server, image: argocd}]\n      volumes: [{name: var-files, emptyDir: {}}, {name: plugins, emptyDir: {}}]\n",
    );
    place.write(
        "argocd/kustomization.yaml",
        "resources: [server.yaml]\ncomponents: [../component]\n",
    );
    let built = objects(&succeeded(
        &place
            .command(kustomize, &["build", "argocd"])
            .output()
            .unwrap(),
    ));
    let deployment = built
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .unwrap();
    let containers = deployment["spec"]["template"]["spec"]["containers"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = containers
        .iter()
        .filter_map(|container| container["name"].as_str())
        .collect();
    assert!(
        names.contains(&"podgraft") && names.contains(&"argocd-repo-server"),
        "{names:?}"
    );
    let maps = built
        .iter()
        .filter(|object| object["kind"] == "ConfigMap")
        .count();
    assert_eq!(maps, 2);
}
