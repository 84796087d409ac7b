use super::*;
use serde_json::{Value, json};

/// Path and sentence of each.
fn messages_of(found: Vec<ValidationError>) -> Vec<String> {
    found
        .iter()
        .map(|error| format!("{}: {}", error.path, error.sentence(|| error.path.name())))
        .collect()
}

/// A container with these fields beside its name and image.
fn container(role: ContainerRole, fields: Value) -> Vec<String> {
    let mut container = json!({"name": "a", "image": "a:1"});
    container
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().cloned().unwrap());
    messages_of(of_container(&View::from(&container), role))
}

fn app(fields: Value) -> Vec<String> {
    container(ContainerRole::App, fields)
}

#[test]
fn a_whole_container_is_taken() {
    let fields = json!({
        "imagePullPolicy": "Always",
        "terminationMessagePolicy": "File",
        "ports": [
            {"name": "http", "containerPort": 80, "hostPort": 0},
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53},
        ],
        "env": [
            {"name": "A.b-C", "value": ""},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app.kubernetes.io/name']"}}},
            {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
            {"name": "D", "value": "", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k.y"}}},
        ],
        "envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}],
        "volumeMounts": [
            {"name": "v", "mountPath": "/x", "subPath": "a/..b"},
            {"name": "v", "mountPath": "/x/y", "readOnly": true, "recursiveReadOnly": "Enabled"},
        ],
        "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 1, "example.com/gpu": "2"}},
        "securityContext": {
            "runAsUser": 0, "allowPrivilegeEscalation": true, "privileged": true,
            "seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"},
        },
        "livenessProbe": {"httpGet": {"port": "http"}, "successThreshold": 1, "terminationGracePeriodSeconds": 1},
        "readinessProbe": {"grpc": {"port": 80}, "successThreshold": 3},
        "lifecycle": {"preStop": {"sleep": {"seconds": 0}}, "postStart": {"exec": {"command": ["true"]}}},
    });
    assert_eq!(app(fields.clone()), Vec::<String>::new());
    assert_eq!(
        container(ContainerRole::NativeSidecar, fields),
        Vec::<String>::new()
    );
}

/// Each container has one fault, which is named with its place.
fn assert_each(cases: impl IntoIterator<Item = (Value, &'static str)>) {
    for (fields, expected) in cases {
        let found = app(fields.clone());
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{fields}: {found:#?}"
        );
    }
}

#[test]
fn words_and_ports_of_a_container_are_right() {
    assert_each([
        (json!({"image": ""}), ": the container needs an `image`"),
        (
            json!({"image": " a:1"}),
            "image: `image` must have no blanks",
        ),
        (json!({"name": "A"}), "name: `name` must be lower-case"),
        (
            json!({"restartPolicy": "Often"}),
            "restartPolicy: `restartPolicy` must be one of",
        ),
        (
            json!({"terminationMessagePolicy": "Log"}),
            "terminationMessagePolicy: `terminationMessagePolicy` must be one of",
        ),
        (
            json!({"ports": [{"containerPort": 0}]}),
            "ports[0].containerPort: `containerPort` must be between 1 and 65535, not 0",
        ),
        (
            json!({"ports": [{"containerPort": 1, "hostPort": 70000}]}),
            "ports[0].hostPort: `hostPort` must be between",
        ),
        (
            json!({"ports": [{"containerPort": 1, "protocol": "tcp"}]}),
            "ports[0].protocol: `protocol` must be one of",
        ),
        (
            json!({"ports": [{"containerPort": 1, "hostPort": 5}, {"containerPort": 2, "hostPort": 5}]}),
            "ports[1]: the container states the port 2 or its name twice",
        ),
    ]);
}

#[test]
fn variables_of_a_container_are_right() {
    assert_each([
        (
            json!({"env": [{"name": "A=B"}]}),
            "env[0].name: `name` must be printable",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {}}]}),
            "env[0].valueFrom: `valueFrom` needs one of",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodename"}}}]}),
            "env[0].valueFrom.fieldRef.fieldPath: `fieldPath` must be one of",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "cpu"}}}]}),
            "env[0].valueFrom.resourceFieldRef.resource: `resource` must be limits or requests",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "S", "key": "k"}}}]}),
            "env[0].valueFrom.secretKeyRef.name: `name` must be lower-case",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "a/b"}}}]}),
            "env[0].valueFrom.configMapKeyRef.key: `key` must be 1 to 253",
        ),
        (
            json!({"envFrom": [{"prefix": "A"}]}),
            "envFrom[0]: an entry of `envFrom` needs one of",
        ),
        (
            json!({"envFrom": [{"secretRef": {"name": ""}}]}),
            "envFrom[0].secretRef: `secretRef` needs `name`",
        ),
    ]);
}

#[test]
fn mounts_and_amounts_of_a_container_are_right() {
    assert_each([
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "../y"}]}),
            "volumeMounts[0].subPath: `subPath` must not contain `..`",
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "/y"}]}),
            "volumeMounts[0].subPath: `subPath` must be a relative path",
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/x"}, {"name": "w", "mountPath": "/x/"}]}),
            "volumeMounts[1]: the container mounts `/x/` twice",
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/x", "recursiveReadOnly": "Enabled"}]}),
            "volumeMounts[0]: `recursiveReadOnly` needs `readOnly: true`",
        ),
        (
            json!({"resources": {"limits": {"memory": "1 Gi"}}}),
            "resources.limits.memory: `1 Gi` is no amount",
        ),
        (
            json!({"resources": {"limits": {"cpu": "-1"}}}),
            "resources.limits.cpu: `-1` is less than nothing",
        ),
        (
            json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}}}),
            "resources.requests.cpu: the container requests more cpu",
        ),
    ]);
}

#[test]
fn security_probes_and_hooks_of_a_container_are_right() {
    assert_each([
        (
            json!({"resources": {"limits": {"example.com/gpu": 2}, "requests": {"example.com/gpu": 1}}}),
            "resources.requests.example.com/gpu: the container must request as much",
        ),
        (
            json!({"volumeMounts": [{"name": "v", "mountPath": "/x", "mountPropagation": "Bidirectional"}]}),
            "volumeMounts[0]: `mountPropagation: Bidirectional` is for",
        ),
        (
            json!({"securityContext": {"runAsUser": -1}}),
            "securityContext.runAsUser: `runAsUser` must be between 0",
        ),
        (
            json!({"securityContext": {"privileged": true, "allowPrivilegeEscalation": false}}),
            "securityContext: `allowPrivilegeEscalation: false` does not go with",
        ),
        (
            json!({"securityContext": {"seccompProfile": {"type": "Localhost"}}}),
            "securityContext.seccompProfile: `seccompProfile` has `localhostProfile`",
        ),
        (
            json!({"livenessProbe": {}}),
            "livenessProbe: `livenessProbe` needs one of exec",
        ),
        (
            json!({"livenessProbe": {"exec": {"command": []}}}),
            "livenessProbe.exec: `exec` needs `command`",
        ),
        (
            json!({"livenessProbe": {"httpGet": {"port": 0}}}),
            "livenessProbe.httpGet.port: `port` must be between",
        ),
        (
            json!({"livenessProbe": {"httpGet": {"port": "a_b"}}}),
            "livenessProbe.httpGet.port: `port` must be lower-case",
        ),
        (
            json!({"startupProbe": {"tcpSocket": {"port": 1}, "successThreshold": 2}}),
            "startupProbe.successThreshold: `successThreshold` must be 1",
        ),
        (
            json!({"readinessProbe": {"tcpSocket": {"port": 1}, "terminationGracePeriodSeconds": 2}}),
            "readinessProbe.terminationGracePeriodSeconds: `terminationGracePeriodSeconds` must not be set",
        ),
        (
            json!({"lifecycle": {"preStop": {"exec": {"command": ["a"]}, "sleep": {"seconds": 1}}}}),
            "lifecycle.preStop: `preStop` has several sources",
        ),
    ]);
}

#[test]
fn init_containers_have_no_probes_and_ephemeral_ones_no_ports() {
    let probe = json!({"livenessProbe": {"tcpSocket": {"port": 1}}});
    let found = container(ContainerRole::Init, probe);
    assert_eq!(
        found,
        ["livenessProbe: an init container without `restartPolicy: Always` has no `livenessProbe`"]
    );
    let found = container(
        ContainerRole::Ephemeral,
        json!({"ports": [{"containerPort": 1}]}),
    );
    assert_eq!(found, ["ports: an ephemeral container has no `ports`"]);
    let found = container(
        ContainerRole::Ephemeral,
        json!({"volumeMounts": [{"name": "v", "mountPath": "/x", "subPath": "y"}]}),
    );
    assert_eq!(
        found,
        ["volumeMounts[0].subPath: an ephemeral container has no `subPath`"]
    );
}

/// What is said of the volume `v` with some sources.
fn messages_of_sources(sources: &Value) -> Vec<String> {
    let mut volume = json!({"name": "v"});
    volume
        .as_object_mut()
        .unwrap()
        .extend(sources.as_object().cloned().unwrap());
    messages_of(of_volume(&View::from(&volume)))
}

#[track_caller]
fn assert_said_of_sources<const N: usize>(cases: [(Value, &str); N]) {
    for (sources, expected) in cases {
        let found = messages_of_sources(&sources);
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{sources}: {found:#?}"
        );
    }
}

#[test]
fn volumes_have_one_source_that_is_right() {
    assert_said_of_sources([
        (json!({}), ": the volume `v` has no source"),
        (
            json!({"emptyDir": {}, "hostPath": {"path": "/"}}),
            ": the volume `v` has several sources",
        ),
        (
            json!({"emptyDir": {"sizeLimit": "much"}}),
            "emptyDir.sizeLimit: `sizeLimit` must be an amount",
        ),
        (
            json!({"hostPath": {"path": "/a/../b"}}),
            "hostPath.path: `path` must not contain `..`",
        ),
        (
            json!({"hostPath": {"path": "/a", "type": "Dir"}}),
            "hostPath.type: `type` must be one of",
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": "A"}}),
            "persistentVolumeClaim.claimName: `claimName` must be",
        ),
    ]);
}

#[test]
fn sources_of_files_are_right() {
    assert_said_of_sources([
        (
            json!({"configMap": {}}),
            "configMap: `configMap` needs `name`",
        ),
        (
            json!({"configMap": {"name": "c", "defaultMode": 777}}),
            "configMap.defaultMode: `defaultMode` must be between 0 and 0777 (octal, which is 511)",
        ),
        (
            json!({"configMap": {"name": "c", "items": [{"key": "k", "path": "../k"}]}}),
            "configMap.items[0].path: `path` must not",
        ),
        (json!({"secret": {}}), "secret: `secret` needs `secretName`"),
        (
            json!({"projected": {"sources": [{}]}}),
            "projected.sources[0]: a projected source needs one of",
        ),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 60}}]}}),
            "projected.sources[0].serviceAccountToken.expirationSeconds: `expirationSeconds` must be between 600",
        ),
    ]);
    for fine in [
        json!({"configMap": {"name": "c", "optional": true}}),
        json!({"projected": {"sources": []}}),
    ] {
        assert_eq!(messages_of_sources(&fine), Vec::<String>::new());
    }
}

#[test]
fn fields_of_the_pod_are_right() {
    for (spec, expected) in [
        (
            json!({"restartPolicy": "Sometimes"}),
            "restartPolicy: `restartPolicy` must be one of",
        ),
        (
            json!({"terminationGracePeriodSeconds": -1}),
            "terminationGracePeriodSeconds: `terminationGracePeriodSeconds` must be at least 0",
        ),
        (
            json!({"nodeSelector": {"a/b/c": "x"}}),
            "nodeSelector.a/b/c: `a/b/c` must be",
        ),
        (
            json!({"tolerations": [{"value": "x"}]}),
            "tolerations[0]: `tolerations[0]` needs `operator: Exists`",
        ),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "x"}]}),
            "tolerations[0]: `tolerations[0]` has a `value`",
        ),
        (
            json!({"tolerations": [{"key": "a", "tolerationSeconds": 1}]}),
            "tolerations[0]: `tolerations[0]` has `tolerationSeconds`",
        ),
        (
            json!({"hostAliases": [{"ip": "localhost"}]}),
            "hostAliases[0].ip: `ip` must be an IP address",
        ),
        (
            json!({"hostPID": true, "shareProcessNamespace": true}),
            ": a pod has either `hostPID` or",
        ),
        (
            json!({"securityContext": {"fsGroup": -1}}),
            "securityContext.fsGroup: `fsGroup` must be between 0",
        ),
    ] {
        let found = messages_of(of_pod_spec(&View::from(&spec)));
        assert!(
            found.len() == 1 && found[0].starts_with(expected),
            "{spec}: {found:#?}"
        );
    }
    let fine = json!({"tolerations": [{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 1}]});
    assert_eq!(
        messages_of(of_pod_spec(&View::from(&fine))),
        Vec::<String>::new()
    );
}
