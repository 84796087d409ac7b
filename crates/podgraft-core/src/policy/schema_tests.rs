use super::*;
use serde_json::json;

const CONTAINER: &str = "io.k8s.api.core.v1.Container";
const ENV_VAR: &str = "io.k8s.api.core.v1.EnvVar";

fn problems(
    of: &'static str,
    value: &Value,
) -> Vec<(String, SchemaProblemKind, String, Option<String>)> {
    let found = Schema::kubernetes(of).check(value, TemplateMode::Filled);
    found
        .into_iter()
        .map(|found| {
            (
                found.path.to_string(),
                found.kind,
                found.message,
                found.help,
            )
        })
        .collect()
}

fn messages(of: &'static str, value: &Value) -> Vec<String> {
    problems(of, value)
        .into_iter()
        .map(|(_, _, message, _)| message)
        .collect()
}

#[test]
fn a_valid_container_has_no_problems() {
    let value = json!({
        "name": "a", "image": "b:1", "args": ["x"], "ports": [{"containerPort": 80}],
        "resources": {"limits": {"cpu": 1, "memory": "64Mi"}},
        "livenessProbe": {"httpGet": {"port": "http", "path": "/"}},
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "runAsUser": 65532},
    });
    assert_eq!(messages(CONTAINER, &value), [""; 0]);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [value]}});
    assert_eq!(POD_TEMPLATE.check(&template, TemplateMode::Filled), []);
}

#[test]
fn all_problems_are_reported_each_at_its_path() {
    let value = json!({"image": 5, "ports": [{"containerPort": "80"}], "volumeMount": []});
    let found = problems(CONTAINER, &value);
    let paths: Vec<&str> = found.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(
        paths,
        ["image", "ports[0].containerPort", "volumeMount", ""]
    );
    assert_eq!(
        found[1].2,
        "`containerPort` must be an integer, this is a string"
    );
    assert_eq!(found[2].2, "the object has no field `volumeMount`");
    assert_eq!(found[2].3.as_deref(), Some("did you mean `volumeMounts`?"));
    assert_eq!(
        (found[3].1, found[3].2.as_str()),
        (SchemaProblemKind::Missing, "the object must have `name`")
    );
}

#[test]
fn a_field_that_resembles_nothing_lists_the_fields() {
    let found = problems(ENV_VAR, &json!({"name": "A", "colour": "red"}));
    assert_eq!(
        found[0].3.as_deref(),
        Some("the fields here are name, value, valueFrom")
    );
}

#[test]
fn a_number_where_a_string_is_wanted_is_to_be_quoted() {
    let found = problems(ENV_VAR, &json!({"name": "A", "value": 5}));
    assert_eq!(found[0].1, SchemaProblemKind::Unquoted);
    assert_eq!(found[0].2, "`value` must be a string, this is a number");
    assert_eq!(found[0].3.as_deref(), Some("quote it: \"5\""));
}

#[test]
fn integers_have_no_fraction_and_fit_their_width() {
    let port = |port: Value| {
        messages(
            CONTAINER,
            &json!({"name": "a", "ports": [{"containerPort": port}]}),
        )
    };
    assert_eq!(
        port(json!(80.5)),
        ["`containerPort` must be an integer, this is a number with a fraction"]
    );
    assert_eq!(
        port(json!(3_000_000_000_u32)),
        ["`containerPort` must be a 32-bit integer, 3000000000 is too large"]
    );
}

#[test]
fn a_key_without_a_value_is_named_as_empty() {
    let found = problems(CONTAINER, &json!({"name": "a", "env": null}));
    assert_eq!(found[0].2, "`env` must be a list, this is empty");
    assert_eq!(
        found[0].3.as_deref(),
        Some("leave the key out, or write `[]` for an empty list")
    );
}

#[test]
fn a_whole_expression_fits_everywhere_until_values_are_filled_in() {
    let schema = Schema::kubernetes(CONTAINER);
    let value = |port: &str| json!({"name": "a", "ports": [{"containerPort": port}]});
    assert!(
        schema
            .check(&value("${int(params.port)}"), TemplateMode::Allowed)
            .is_empty()
    );
    assert_eq!(
        schema
            .check(&value("80${params.x}"), TemplateMode::Allowed)
            .len(),
        1
    );
    assert_eq!(
        schema
            .check(&value("${params.x}"), TemplateMode::Filled)
            .len(),
        1
    );
}

#[test]
fn names_are_near_when_few_letters_differ() {
    let candidates = ["containers", "inject", "match"];
    assert_eq!(nearest("injects", candidates.into_iter()), Some("inject"));
    assert_eq!(
        nearest("Containers", candidates.into_iter()),
        Some("containers")
    );
    assert_eq!(nearest("spec", candidates.into_iter()), None);
}
