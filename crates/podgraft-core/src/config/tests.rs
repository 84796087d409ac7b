use super::*;
use crate::diagnostic::{Code, Diagnostic};
use crate::policy::opentelemetry::language::Language;
use crate::policy::params::DeclaredParams;
use crate::policy::read::PolicyFile;

const HEAD: &str = "apiVersion: podgraft.dev/v1alpha1\nkind: Config\n";

fn file(text: &str) -> PolicyFile {
    PolicyFile {
        name: "podgraft.yaml".into(),
        text: text.to_owned(),
    }
}

fn problems<T>(result: Result<T, Vec<Diagnostic>>) -> Vec<(Code, String, usize)> {
    let problems = result.err().expect("it is refused");
    problems
        .into_iter()
        .map(|found| (found.code, found.message, found.labels[0].place.line))
        .collect()
}

fn config(rest: &str) -> Result<Config, Vec<Diagnostic>> {
    read(file(&format!("{HEAD}{rest}")))
}

#[test]
fn all_words_are_read() {
    let config = config(
        "policies: [agents.yaml, builtin:jmx-exporter]\nparams:\n  jmx-exporter: {port: 1.10, ready: yes}\ninclude: [a]\n\
         exclude: [b]\npodTemplates: [example.com/v1/X=spec.pod]\nkubeVersion: 1.30\nallowApplicationConfig: true\n\
         imageMirrors: [{name: a/b, newName: c/d}]\n",
    )
    .unwrap();
    let policies: Vec<&str> = config
        .policies
        .iter()
        .map(|policy| policy.given.as_str())
        .collect();
    assert_eq!(policies, ["agents.yaml", "builtin:jmx-exporter"]);
    let params: Vec<(&str, &str, usize)> = config
        .params
        .iter()
        .map(|param| {
            (
                param.setting.name.as_str(),
                param.setting.value.as_str(),
                param.at.line,
            )
        })
        .collect();
    assert_eq!(params, [("port", "1.10", 5), ("ready", "yes", 5)]);
    assert_eq!(
        (config.include, config.exclude),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    assert_eq!(
        (
            config.pod_templates.len(),
            config.kube_minor,
            config.image_mirrors.len()
        ),
        (1, Some(30), 1)
    );
    assert!(config.allow_application_config);
}

#[test]
fn the_opentelemetry_operator_is_set_up() {
    let text = "openTelemetry:\n  operatorRelease: v0.158.0\n  enable: [go]\n  disable: [java, multi-instrumentation]\n  \
                images: {python: 'registry.example.com/python:1'}\n";
    let settings = config(text).unwrap().opentelemetry;
    assert_eq!(
        settings.title(),
        "OpenTelemetry Operator 0.158.0, go on, java off, multi-instrumentation off"
    );
    assert_eq!(
        settings.image(Language::Python),
        "registry.example.com/python:1"
    );
    let wrong =
        "openTelemetry:\n  operatorRelease: 0.1.0\n  enable: [sdk, nginy]\n  images:\n    sdk: a\n";
    let found = problems(config(wrong));
    let places: Vec<usize> = found.iter().map(|(.., line)| *line).collect();
    assert_eq!(places, [4, 5, 5, 7], "{found:?}");
    assert!(found[2].1.contains("`nginx`"), "{found:?}");
}

#[test]
fn unknown_words_and_wrong_types_are_errors_at_their_place() {
    assert_eq!(
        problems(config("polices: [a]\n")),
        [(
            Code::UnknownField,
            "the configuration has no field `polices`".to_owned(),
            3
        )]
    );
    assert_eq!(problems(config("policies: a\n"))[0].0, Code::WrongType);
    assert_eq!(problems(config("kubeVersion: two\n"))[0].2, 3);
    assert_eq!(problems(config("podTemplates:\n- X=spec\n"))[0].2, 4);
    assert_eq!(problems(config("params:\n  a:\n    b: ${x}\n"))[0].2, 5);
    assert_eq!(
        problems(config("imageMirrors:\n- name: a\n"))[0].0,
        Code::BadPolicy
    );
    assert_eq!(problems(config("policies: [\n"))[0].0, Code::NotYaml);
    assert_eq!(
        problems(config("policies: []\n---\na: 1\n"))[0].0,
        Code::BadPolicy
    );
    assert_eq!(problems(read(file("kind: Config\n")))[0].0, Code::BadPolicy);
}

#[test]
fn an_application_sets_params_and_nothing_else() {
    let text =
        format!("{HEAD}params: {{jmx: {{port: 1}}}}\npolicies: [evil.yaml]\nimageMirrors: []\n");
    let found = problems(read_application(file(&text)));
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[0].1,
        "an application's own folder cannot set `policies`"
    );
    let text = format!("{HEAD}params: {{jmx: {{port: 1}}}}\n");
    assert_eq!(read_application(file(&text)).unwrap()[0].setting.value, "1");
}

fn param(policy: &str, name: &str) -> ConfigParam {
    let text = format!("{HEAD}params: {{{policy}: {{{name}: x}}}}\n");
    read(file(&text)).unwrap().params.remove(0)
}

fn declared() -> Vec<DeclaredParams> {
    vec![DeclaredParams {
        identity: "jmx".into(),
        names: vec!["image".into(), "port".into()],
        overridable: vec!["port".into()],
        is_resource: false,
        is_for_resources: false,
    }]
}

#[test]
fn an_application_sets_only_what_a_policy_lets_it_set() {
    let (settings, problems) = choose(&[], &[param("jmx", "port")], &declared());
    assert_eq!((settings.len(), problems.len()), (1, 0));
    let (settings, problems) = choose(&[], &[param("jmx", "image")], &declared());
    assert_eq!(settings, []);
    assert_eq!(
        problems[0].message,
        "the parameter `image` of `jmx` is not an application's to set"
    );
}

#[test]
fn params_of_other_policies_matter_only_where_the_policies_stand_beside_them() {
    let strays = |given| [(given, param("jmy", "port")), (given, param("jmx", "prot"))];
    let (_, problems) = choose(&strays(PolicySource::WithParams), &[], &declared());
    let helps: Vec<_> = problems
        .iter()
        .filter_map(|problem| problem.help.as_deref())
        .collect();
    assert_eq!(helps, ["did you mean `jmx`?", "did you mean `port`?"]);
    let (_, problems) = choose(&strays(PolicySource::Elsewhere)[..1], &[], &declared());
    assert_eq!(problems, []);
}
