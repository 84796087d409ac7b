//! Names that shells and terminals stumble over.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::common::{POLICY, Place, assert_exit, assert_refused, deployment, stderr};

const ODD: &[&[u8]] = &[
    b"with space.yaml",
    b"new\nline.yaml",
    b"-p.yaml",
    b"quote\"'.yaml",
    b"\x1b[31mred.yaml",
    b"*.yaml",
    "\u{fc}\u{202e}.yaml".as_bytes(),
];

#[test]
fn odd_names_are_read_and_replaced() {
    let place = Place::with_policy(POLICY);
    let mut names: Vec<&OsStr> = ODD.iter().map(|name| OsStr::from_bytes(name)).collect();
    if cfg!(target_os = "linux") {
        names.push(OsStr::from_bytes(b"not-utf8-\xff.yaml"));
    }
    for name in &names {
        place.write(place.path("m").join(name), deployment("a"));
    }
    assert_exit(&place.apply_in_place(&["m"]), 0);
    for name in &names {
        assert!(
            place.read(place.path("m").join(name)).contains("AGENT"),
            "{}",
            name.display()
        );
    }
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_name_of_the_longest_length_is_replaced_or_refused_by_name() {
    let place = Place::with_policy(POLICY);
    let long = "n".repeat(250) + ".yaml";
    place.write(format!("m/{long}"), deployment("a"));
    assert_refused(&place.apply_in_place(&["m"]), "its name is over");
    let short = "n".repeat(200) + ".yaml";
    place.write(format!("n/{short}"), deployment("a"));
    assert_exit(&place.apply_in_place(&["n"]), 0);
}

#[test]
fn no_name_reaches_the_terminal_as_a_control_sequence() {
    let place = Place::with_policy(POLICY);
    place.write(
        place.path("m").join(OsStr::from_bytes(b"\x1b[31mred.yaml")),
        "kind: Pod\nx: [\n",
    );
    let output = place.run(&["apply", "-p", "policy.yaml", "m"]);
    assert_exit(&output, 2);
    assert!(!stderr(&output).contains('\u{1b}'), "{:?}", stderr(&output));
}

#[test]
fn no_text_of_a_manifest_reaches_the_terminal_as_a_control_sequence() {
    let place = Place::with_policy(POLICY);
    let name = "\"\\e]0;title\\a\\u009b31m\"";
    place.write(
        "a.yaml",
        deployment("a").replace("name: a}", &format!("name: {name}}}")),
    );
    place.write("b.yaml", "kind: Pod\nx: \"\u{1b}[31m\n");
    place.write(
        "c.yaml",
        format!("apiVersion: v1\nkind: {name}\nspec: {{containers: [{{name: a, image: b}}]}}\n"),
    );
    for args in [
        &["apply", "-p", "policy.yaml", "a.yaml", "c.yaml"][..],
        &["apply", "-p", "policy.yaml", "b.yaml"],
    ] {
        let output = place.run(args);
        let is_control = |char: char| char.is_control() && char != '\n';
        assert!(
            !stderr(&output).contains(is_control),
            "{:?}",
            stderr(&output)
        );
    }
}

#[test]
fn patches_of_a_kustomization_are_passed_over_with_a_note() {
    let place = Place::with_policy(POLICY);
    place.write("base/deployment.yaml", deployment("a"));
    place.write(
        "base/kustomization.yaml",
        "resources: [deployment.yaml]\npatches:\n- path: more.yaml\n- {path: ops.json, target: {kind: Pod}}\n",
    );
    place.write("base/more.yaml", deployment("a"));
    place.write(
        "base/ops.json",
        "[{\"op\": \"remove\", \"path\": \"/spec\"}]\n",
    );
    place.write(
        "prod/kustomization.yml",
        "resources: [../base]\npatchesStrategicMerge:\n- size.yaml\n- |-\n  kind: Deployment\npatchesJson6902: [{path: ./x/../ops.yaml}]\n",
    );
    place.write("prod/x/y.yaml", deployment("y"));
    place.write("prod/size.yaml", deployment("a"));
    place.write("prod/ops.yaml", "- {op: remove, path: /spec}\n");
    let output = place.run(&["apply", "-i", "-p", "policy.yaml", "base", "prod"]);
    assert_exit(&output, 0);
    for patch in ["base/more.yaml", "prod/size.yaml"] {
        assert_eq!(place.read(patch), deployment("a"), "{patch}");
    }
    for read in ["base/deployment.yaml", "prod/x/y.yaml"] {
        assert!(place.read(read).contains("AGENT"), "{read}");
    }
    let messages = stderr(&output);
    for patch in ["more.yaml", "ops.json", "size.yaml", "ops.yaml"] {
        assert!(messages.contains(patch), "{patch}: {messages}");
    }
}
