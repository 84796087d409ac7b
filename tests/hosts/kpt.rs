//! `hosts/kpt` with the real kpt, where it is in PATH.

use super::*;

fn package() -> Option<(Place, PathBuf)> {
    let kpt = host("kpt")?;
    let place = Place::new();
    for file in ["Kptfile", "agent.yaml", "check.yaml", "deployment.yaml"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("hosts/kpt/shop").join(file);
        place.write(&format!("shop/{file}"), &fs::read_to_string(from).unwrap());
    }
    Some((place, kpt))
}

fn applied(place: &Place) -> String {
    succeeded(&place.podgraft(&["apply", "-q", "-p", "shop/agent.yaml", "shop/deployment.yaml"]).output().unwrap())
}

/// kpt puts keys that are new behind the others of their mapping: the lines are the same, in another order.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn render_gives_what_apply_gives_and_a_second_render_changes_nothing() {
    let Some((place, kpt)) = package() else { return };
    let wanted = applied(&place);
    let others = ["Kptfile", "agent.yaml", "check.yaml"].map(|file| format!("shop/{file}"));
    let own: Vec<String> = others.iter().map(|file| place.read(file)).collect();
    let render = |place: &Place| place.command(&kpt, &["fn", "render", "--allow-exec", "shop"]).output().unwrap();
    let first = render(&place);
    succeeded(&first);
    assert!(said(&first).contains("injected by agent (volume agent"), "the results are shown: {}", said(&first));
    let once = place.read("shop/deployment.yaml");
    assert_eq!(lines(&once), lines(&wanted), "comments, quotes and the mode too");
    assert_eq!(objects(&once), objects(&wanted));
    assert_eq!(others.iter().map(|file| place.read(file)).collect::<Vec<_>>(), own, "its own files are not edited");
    succeeded(&render(&place));
    assert_eq!(place.read("shop/deployment.yaml"), once);
}

#[test]
fn eval_takes_a_function_config_or_values() {
    let Some((place, kpt)) = package() else { return };
    let (original, wanted) = (place.read("shop/deployment.yaml"), applied(&place));
    let eval = |args: &[&str]| {
        place.command(&kpt, &[&["fn", "eval", "shop", "--exec", "podgraft fn"], args].concat()).output().unwrap()
    };
    succeeded(&eval(&["--fn-config", "shop/agent.yaml"]));
    assert_eq!(objects(&place.read("shop/deployment.yaml")), objects(&wanted));
    place.write("shop/deployment.yaml", &original);
    succeeded(&eval(&["--", "policy=shop/agent.yaml"]));
    assert_eq!(objects(&place.read("shop/deployment.yaml")), objects(&wanted));
    place.write("shop/deployment.yaml", &original);
    succeeded(&eval(&["--", "policy=agent.yaml", "port=1234"]));
    assert!(place.read("shop/deployment.yaml").contains("agent.jar=1234"));
}

#[test]
fn with_a_record_a_changed_policy_takes_the_place_of_what_it_injected_before() {
    let Some((place, kpt)) = package() else { return };
    let function = "apiVersion: podgraft.dev/v1alpha1\nkind: PodgraftFunction\nmetadata: {name: f}\nspec:\n  record: Always\n  \
                    policies: [agent.yaml]\n  params: {agent: {port: PORT}}\n";
    for port in ["1", "2"] {
        place.write("function.yaml", &function.replace("PORT", port));
        let args = ["fn", "eval", "shop", "--exec", "podgraft fn", "--fn-config", "function.yaml"];
        succeeded(&place.command(&kpt, &args).output().unwrap());
    }
    let text = place.read("shop/deployment.yaml");
    assert!(text.contains("75 -javaagent:/agent/agent.jar=2\"") && !text.contains("agent.jar=1\""), "{text}");
}

#[test]
fn a_problem_fails_the_render_and_leaves_the_files() {
    let Some((place, kpt)) = package() else { return };
    let other = place.read("shop/deployment.yaml").replace("  - name: keys", "  - name: agent");
    place.write("shop/deployment.yaml", &other);
    let output = place.command(&kpt, &["fn", "render", "--allow-exec", "shop"]).output().unwrap();
    let said = failed(&output);
    assert!(said.contains("[error] apps/v1/Deployment/orders") && said.contains("volume `agent`"), "{said}");
    assert_eq!(place.read("shop/deployment.yaml"), other);
}

#[test]
fn the_validator_fails_a_package_that_is_not_injected() {
    let Some((place, kpt)) = package() else { return };
    let pipeline = place.read("shop/Kptfile");
    let (head, rest) = pipeline.split_once("  mutators:").unwrap();
    let (_, validators) = rest.split_once("  validators:").unwrap();
    place.write("shop/Kptfile", &format!("{head}  validators:{validators}"));
    let said = failed(&place.command(&kpt, &["fn", "render", "--allow-exec", "shop"]).output().unwrap());
    assert!(said.contains("Deployment orders is not up to date"), "{said}");
}
