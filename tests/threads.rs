//! One large text on one thread and on several: what comes of it is the same, down to every line number.

use podgraft_core::diagnostic::{Code, Diagnostic};
use podgraft_core::graft::{Options, RunContext, graft, graft_on_threads};
use podgraft_core::inventory::Inventory;
use podgraft_core::options::RemovalSelection;
use podgraft_core::policy::Policy;
use podgraft_core::policy::read::{PolicyFile, read};
use std::num::NonZeroUsize;
use std::sync::Arc;

const POLICY: &str = "apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  match: {kinds: [Deployment], namespaces: [team-*]}
  inject:
    env: [{name: JAVA_TOOL_OPTIONS, op: Append, value: -x}]
    podAnnotations: {a: b}
";

/// A workload that is edited, with a warning once a file; others with a warning each, an error each, and a directive.
const OTHERS: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: nowhere}
spec: {template: {spec: {containers: [{name: a, image: b}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: no-list, namespace: team-1}
spec: {template: {spec: {containers: [{name: a, image: b, env: 7}]}}}
---
kind: [
---
kind: ConfigMap
%YAML 1.1
---
kind: ConfigMap
";

/// A workload that no policy selects, with a pod that is no YAML.
const BROKEN_POD: &str = "---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: broken, namespace: team-1}
spec:
  template:
    spec:
      containers: a: b: c
";

fn policies() -> Vec<Policy> {
    let (policies, problems) = read(
        vec![PolicyFile {
            name: "policy.yaml".into(),
            text: POLICY.to_owned(),
        }],
        &[],
    );
    assert!(problems.is_empty(), "{problems:?}");
    policies
}

#[test]
fn what_comes_of_a_text_does_not_depend_on_the_number_of_threads() {
    let sample = include_str!("../benches/sample.yaml");
    let text = [
        sample.repeat(150),
        OTHERS.to_owned(),
        sample.repeat(250),
        OTHERS.to_owned(),
        sample.repeat(100),
    ];
    let text = text.concat();
    assert!(text.len() > 2 << 20, "{}", text.len());
    let (name, options, policies) = (Arc::from("all.yaml"), Options::default(), policies());
    let inventory = Inventory::default();
    let single = format!("{:?}", graft(&name, text.as_bytes(), &policies, &options));
    assert!(
        single.contains("UnknownNamespace")
            && single.contains("HiddenEnv")
            && single.contains("NotYaml")
    );
    for threads in 2..6 {
        let threads = NonZeroUsize::new(threads).expect("not zero");
        let several = format!(
            "{:?}",
            graft_on_threads(
                threads,
                &name,
                text.as_bytes(),
                RunContext {
                    policies: &policies,
                    options: &options,
                    inventory: &inventory
                },
            )
        );
        assert!(several == single, "{threads} threads");
    }
}

#[test]
fn what_is_no_yaml_in_a_pod_is_an_error_wherever_it_stands() {
    let sample = include_str!("../benches/sample.yaml");
    let (name, policies) = (Arc::from("all.yaml"), policies());
    let undo = Options {
        take_out: RemovalSelection::All,
        ..Options::default()
    };
    let views = Options {
        views: true,
        ..Options::default()
    };
    for text in [
        BROKEN_POD.to_owned(),
        [BROKEN_POD, &sample.repeat(30), BROKEN_POD].concat(),
    ] {
        let documents = text.matches("name: broken").count();
        for (policies, options) in [
            (&policies[..], &Options::default()),
            (&policies[..], &views),
            (&[], &undo),
        ] {
            let report = graft(&name, text.as_bytes(), policies, options);
            let is_broken = |problem: &&Diagnostic| problem.code == Code::NotYaml;
            let broken = report.diagnostics.iter().filter(is_broken).count();
            assert_eq!(broken, documents, "{:?}", report.diagnostics);
        }
    }
}
