//! The scripts of `hosts/argocd` under hostile names and parameters, with a helm and a kustomize that say what they were
//! asked for. What the real ones make of it is in `plugin_server.rs`.

use super::*;

/// The script of a plugin: what `sh -euc` is given.
fn script(plugin: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("hosts/argocd")
        .join(plugin);
    let plugin = objects(&fs::read_to_string(path).unwrap()).remove(0);
    plugin["spec"]["generate"]["args"][0]
        .as_str()
        .unwrap()
        .to_owned()
}

/// An application's folder beside an operator's, and a helm that notes its arguments and the values it is given.
fn site() -> Place {
    let place = Place::new();
    place.write("app/deployment.yaml", DEPLOYMENT);
    place.write("app/values.yaml", "a: own\n");
    place.write("operator/podgraft.yaml", "a: secret\n");
    let helm = "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\" >> ../asked\ncase $word in --values=*) cat -- \"${word#--values=}\" >> ../values ;; esac\ndone\ncat deployment.yaml\n";
    place.write("bin/helm", helm);
    let kustomize = "#!/bin/sh\ncat deployment.yaml\n";
    place.write("bin/kustomize", kustomize);
    for name in ["helm", "kustomize"] {
        use std::os::unix::fs::PermissionsExt;
        let path = place.path().join("bin").join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    place.write(
        "podgraft.yaml",
        "apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [agent.yaml]\n",
    );
    place
}

fn run(place: &Place, plugin: &str, env: &[(&str, &str)]) -> Output {
    let _ = fs::remove_file(place.path().join("asked"));
    let _ = fs::remove_file(place.path().join("values"));
    let mut command = place.command("sh", &["-euc", &script(plugin)]);
    command
        .current_dir(place.path().join("app"))
        .env("ARGOCD_APP_NAME", "shop")
        .env("ARGOCD_APP_NAMESPACE", "shop")
        .env("PODGRAFT_CONFIG", place.path().join("podgraft.yaml"))
        .env("TMPDIR", place.path());
    set_env(&mut command, env).output().unwrap()
}

#[test]
fn values_come_from_the_applications_folder_only() {
    let place = site();
    // What Helm would read if it were given these names: `,` parts files, and `http:/` with a host is an address.
    place.write("app/v.yaml,/x.yaml", "a: decoy\n");
    let outside = place.path().join("operator/podgraft.yaml");
    let outside = outside.to_str().unwrap();
    place.write(&format!("app/v.yaml,{outside}"), "a: decoy\n");
    place.write("app/http:/127.0.0.1:1/x.yaml", "a: decoy\n");
    place.write("app/\"v.yaml", "a: decoy\n");
    std::os::unix::fs::symlink(outside, place.path().join("app/link.yaml")).unwrap();
    fs::create_dir(place.path().join("app/folder")).unwrap();
    let split = format!("v.yaml,{outside}");
    let hostile = [
        split.as_str(),
        "v.yaml,/x.yaml",
        "http://127.0.0.1:1/x.yaml",
        "\"v.yaml",
        "a\\,b.yaml",
        outside,
        "../operator/podgraft.yaml",
        "link.yaml",
        "folder",
        "missing.yaml",
        "",
        "-",
        "$(touch ../pwned)",
        "`touch ../pwned`",
        "--post-renderer=../pwned",
    ];
    for file in hostile {
        let output = run(&place, "plugin-helm.yaml", &[("PARAM_VALUE_FILES_0", file)]);
        assert!(
            !output.status.success() && stdout_of(&output).is_empty(),
            "{file}: {}",
            stdout_of(&output)
        );
        assert!(!place.path().join("asked").exists(), "{file}: helm ran");
        assert!(!place.path().join("pwned").exists(), "{file}");
    }
}

#[test]
fn helm_is_given_copies_under_names_of_our_own() {
    let place = site();
    place.write("app/it's a $HOME {file}.yaml", "b: odd\n");
    place.write("app/http:/host/x.yaml", "c: not fetched\n");
    let parameters = [
        ("PARAM_VALUE_FILES_0", "values.yaml"),
        ("PARAM_VALUE_FILES_1", "it's a $HOME {file}.yaml"),
        ("PARAM_VALUE_FILES_2", "http:/host/x.yaml"),
        (
            "ARGOCD_APP_PARAMETERS",
            r#"[{"name": "value-files", "array": ["values.yaml"]}]"#,
        ),
    ];
    let output = run(&place, "plugin-helm.yaml", &parameters);
    assert_eq!(succeeded(&output), place.applied(DEPLOYMENT));
    assert_eq!(
        place.read("values"),
        "a: own\nb: odd\nc: not fetched\n",
        "in the order of the parameter"
    );
    let asked = place.read("asked");
    let names: Vec<&str> = asked
        .lines()
        .filter_map(|word| word.strip_prefix("--values="))
        .collect();
    assert_eq!(names.len(), 3);
    assert!(
        names.iter().all(|name| !name.contains([',', '\'', ' '])),
        "{names:?}"
    );
    let left = fs::read_dir(place.path()).unwrap();
    assert!(
        left.filter_map(Result::ok)
            .all(|entry| !entry.file_name().to_string_lossy().starts_with("tmp.")),
        "the copies are gone"
    );
}

#[test]
fn the_last_line_ends_of_what_is_rendered_stay() {
    let place = site();
    let text = format!(
        "{DEPLOYMENT}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  a: |+\n    x\n\n\n"
    );
    place.write("app/deployment.yaml", &text);
    for plugin in ["plugin-helm.yaml", "plugin-kustomize.yaml"] {
        let output = run(&place, plugin, &[]);
        assert!(
            succeeded(&output).ends_with("  a: |+\n    x\n\n\n"),
            "{plugin}"
        );
    }
}
