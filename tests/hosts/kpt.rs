//! `hosts/kpt` with the real kpt, where it is in PATH.

use super::*;

fn package() -> Option<(Place, PathBuf)> {
    let kpt = host("kpt")?;
    let place = Place::new();
    for file in ["Kptfile", "agent.yaml", "check.yaml", "deployment.yaml"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("hosts/kpt/shop")
            .join(file);
        place.write(&format!("shop/{file}"), &fs::read_to_string(from).unwrap());
    }
    Some((place, kpt))
}

fn applied(place: &Place) -> String {
    succeeded(
        &place
            .podgraft(&[
                "apply",
                "-q",
                "-p",
                "shop/agent.yaml",
                "shop/deployment.yaml",
            ])
            .output()
            .unwrap(),
    )
}

/// kpt puts keys that are new behind the others of their mapping: the lines are the same, in another order.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn render_gives_what_apply_gives_and_a_second_render_changes_nothing() {
    let Some((place, kpt)) = package() else {
        return;
    };
    let wanted = applied(&place);
    let other_files = ["Kptfile", "agent.yaml", "check.yaml"].map(|file| format!("shop/{file}"));
    let texts: Vec<String> = other_files.iter().map(|file| place.read(file)).collect();
    let render = |place: &Place| {
        place
            .command(&kpt, &["fn", "render", "--allow-exec", "shop"])
            .output()
            .unwrap()
    };
    let first = render(&place);
    succeeded(&first);
    assert!(
        stderr_of(&first).contains("injected by agent (volume agent"),
        "the results are shown: {}",
        stderr_of(&first)
    );
    let once = place.read("shop/deployment.yaml");
    assert_eq!(
        lines(&once),
        lines(&wanted),
        "comments, quotes and the mode too"
    );
    assert_eq!(objects(&once), objects(&wanted));
    assert_eq!(
        other_files
            .iter()
            .map(|file| place.read(file))
            .collect::<Vec<_>>(),
        texts,
        "its own files are not edited"
    );
    succeeded(&render(&place));
    assert_eq!(place.read("shop/deployment.yaml"), once);
}

#[test]
fn eval_takes_a_function_config_or_values() {
    let Some((place, kpt)) = package() else {
        return;
    };
    let (original, wanted) = (place.read("shop/deployment.yaml"), applied(&place));
    let eval = |args: &[&str]| {
        place
            .command(
                &kpt,
                &[&["fn", "eval", "shop", "--exec", "podgraft fn"], args].concat(),
            )
            .output()
            .unwrap()
    };
    succeeded(&eval(&["--fn-config", "shop/agent.yaml"]));
    assert_eq!(
        objects(&place.read("shop/deployment.yaml")),
        objects(&wanted)
    );
    place.write("shop/deployment.yaml", &original);
    succeeded(&eval(&["--", "policy=shop/agent.yaml"]));
    assert_eq!(
        objects(&place.read("shop/deployment.yaml")),
        objects(&wanted)
    );
    place.write("shop/deployment.yaml", &original);
    succeeded(&eval(&["--", "policy=agent.yaml", "port=1234"]));
    assert!(
        place
            .read("shop/deployment.yaml")
            .contains("agent.jar=1234")
    );
}

#[test]
fn with_a_record_a_changed_policy_takes_the_place_of_what_it_injected_before() {
    let Some((place, kpt)) = package() else {
        return;
    };
    let function = "apiVersion: podgraft.dev/v1alpha1\nkind: PodgraftFunction\nmetadata: {name: f}\nspec:\n  record: Always\n  \
                    policies: [agent.yaml]\n  params: {agent: {port: PORT}}\n";
    for port in ["1", "2"] {
        place.write("function.yaml", &function.replace("PORT", port));
        let args = [
            "fn",
            "eval",
            "shop",
            "--exec",
            "podgraft fn",
            "--fn-config",
            "function.yaml",
        ];
        succeeded(&place.command(&kpt, &args).output().unwrap());
    }
    let text = place.read("shop/deployment.yaml");
    assert!(
        text.contains("75 -javaagent:/agent/agent.jar=2\"") && !text.contains("agent.jar=1\""),
        "{text}"
    );
}

#[test]
fn a_problem_fails_the_render_and_leaves_the_files() {
    let Some((place, kpt)) = package() else {
        return;
    };
    let other = place
        .read("shop/deployment.yaml")
        .replace("  - name: keys", "  - name: agent");
    place.write("shop/deployment.yaml", &other);
    let output = place
        .command(&kpt, &["fn", "render", "--allow-exec", "shop"])
        .output()
        .unwrap();
    let messages = failed(&output);
    assert!(
        messages.contains("[error] apps/v1/Deployment/orders")
            && messages.contains("volume `agent`"),
        "{messages}"
    );
    assert_eq!(place.read("shop/deployment.yaml"), other);
}

#[test]
fn the_validator_fails_a_package_that_is_not_injected() {
    let Some((place, kpt)) = package() else {
        return;
    };
    let pipeline = place.read("shop/Kptfile");
    let (head, rest) = pipeline.split_once("  mutators:").unwrap();
    let (_, validators) = rest.split_once("  validators:").unwrap();
    place.write("shop/Kptfile", &format!("{head}  validators:{validators}"));
    let messages = failed(
        &place
            .command(&kpt, &["fn", "render", "--allow-exec", "shop"])
            .output()
            .unwrap(),
    );
    assert!(
        messages.contains("Deployment orders is not up to date"),
        "{messages}"
    );
}

/// The package with a policy that generates a ConfigMap, and a second workload in a folder below.
fn generating() -> Option<(Place, PathBuf)> {
    let (place, kpt) = package()?;
    let generate = "  generate:\n  - resource:\n      apiVersion: v1\n      kind: ConfigMap\n      \
                    metadata: {name: 'rules-of-${workload.name}'}\n      data: {mode: MODE}\n";
    place.write(
        "shop/agent.yaml",
        &(place.read("shop/agent.yaml") + generate),
    );
    place.write(
        "shop/below/cart.yaml",
        &place
            .read("shop/deployment.yaml")
            .replace("name: orders", "name: cart"),
    );
    Some((place, kpt))
}

#[test]
fn generated_objects_get_files_beside_their_workloads_and_a_second_render_changes_nothing() {
    let Some((place, kpt)) = generating() else {
        return;
    };
    let files = [
        "shop/configmap_rules-of-orders.yaml",
        "shop/below/configmap_rules-of-cart.yaml",
    ];
    let render = |place: &Place| {
        succeeded(
            &place
                .command(&kpt, &["fn", "render", "--allow-exec", "shop"])
                .output()
                .unwrap(),
        );
        let all = walkdir::WalkDir::new(place.path().join("shop"))
            .sort_by_file_name()
            .into_iter();
        let all = all
            .map(|entry| entry.unwrap().into_path())
            .filter(|path| path.is_file());
        all.map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
            .collect::<Vec<_>>()
    };
    let once = render(&place);
    assert_eq!(once.len(), 7, "{once:#?}");
    for file in files {
        let text = place.read(file);
        assert!(
            text.contains("mode: MODE") && !text.contains("config.kubernetes.io"),
            "{text}"
        );
    }
    assert_eq!(render(&place), once);
    // Whoever moves a file does not make another object of it.
    fs::rename(
        place.path().join(files[0]),
        place.path().join("shop/rules.yaml"),
    )
    .unwrap();
    let moved = render(&place);
    assert_eq!(moved.len(), 7);
    assert!(!place.path().join(files[0]).exists());
}

#[test]
fn a_generated_object_of_an_earlier_version_gives_way() {
    let Some((place, kpt)) = generating() else {
        return;
    };
    let policy = place.read("shop/agent.yaml");
    let function = "apiVersion: podgraft.dev/v1alpha1\nkind: PodgraftFunction\nmetadata: {name: f}\nspec:\n  record: Always\n  \
                    policies: [policy.yaml]\n";
    place.write("function.yaml", function);
    for (mode, name) in [
        ("one", "rules-of"),
        ("two", "rules-of"),
        ("two", "settings-of"),
    ] {
        place.write(
            "policy.yaml",
            &policy.replace("MODE", mode).replace("rules-of", name),
        );
        let args = [
            "fn",
            "eval",
            "shop",
            "--exec",
            "podgraft fn",
            "--fn-config",
            "function.yaml",
        ];
        succeeded(&place.command(&kpt, &args).output().unwrap());
        let written = place.read(&format!("shop/below/configmap_{name}-cart.yaml"));
        assert!(written.contains(&format!("mode: {mode}")), "{written}");
    }
    assert!(
        !place
            .path()
            .join("shop/below/configmap_rules-of-cart.yaml")
            .exists()
    );
}
