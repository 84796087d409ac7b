#!/usr/bin/env python3
"""values.py PODGRAFT: the output's values as PyYAML reads them, a reader that shares nothing with podgraft.

Every case of testdata/cases with an expected output, and every file of ../shared/corpus where that is: the values of
the output are those of the input, but for what the policy of testdata/corpus adds. Exits 1 on the first difference."""
import glob, os, subprocess, sys
import yaml

PODGRAFT = sys.argv[1]
POLICY = "testdata/corpus/policy.yaml"
PATHS = {
    "Pod": [], "PodTemplate": ["template"], "CronJob": ["spec", "jobTemplate", "spec", "template"],
    **{k: ["spec", "template"] for k in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet",
                                         "ReplicationController", "Job", "Rollout", "DeploymentConfig", "CloneSet")},
    "ScaledJob": ["spec", "jobTargetRef", "template"], "Fleet": ["spec", "template", "spec", "template"],
    "serving.knative.dev Service": ["spec", "template"],
}


class Loader(yaml.CSafeLoader):
    """YAML 1.1 as Kubernetes has it: `=` is text, timestamps are text."""


Loader.yaml_implicit_resolvers = {
    key: [(tag, regexp) for tag, regexp in rules if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:value")]
    for key, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def load(text):
    """As kubectl, whose reader of documents puts a line end behind the last line."""
    text = text if text.endswith(b"\n") else text + b"\n"
    return [document for document in yaml.load_all(text, Loader=Loader)]


def inject(o):
    if not isinstance(o, dict):
        return
    if str(o.get("kind")).endswith("List"):
        for item in o.get("items") or []:
            inject(item)
        return
    group = str(o.get("apiVersion")).split("/")[0]
    path = PATHS.get(o.get("kind"), PATHS.get(f'{group} {o.get("kind")}'))
    annotations = (o.get("metadata") or {}).get("annotations") or {}
    if path is None or "apiVersion" not in o or annotations.get("config.kubernetes.io/local-config") == "true":
        return
    template = o
    for key in path:
        template = (template or {}).get(key)
    spec = (template or {}).get("spec")
    chosen = [c for c in (spec or {}).get("containers") or [] if c.get("name") not in ("istio-proxy", "linkerd-proxy")]
    if not chosen:
        return

    def at(owner, key, empty):
        if owner.get(key) is None:
            owner[key] = empty
        return owner[key]

    mount = {"name": "podgraft-corpus", "mountPath": "/podgraft-corpus"}
    at(at(template, "metadata", {}), "annotations", {})["podgraft.example.com/corpus"] = "true"
    at(spec, "volumes", []).append({"name": "podgraft-corpus", "emptyDir": {}})
    at(spec, "initContainers", []).append({
        "name": "podgraft-corpus", "image": "registry.example.com/agent:1.0.0",
        "command": ["cp", "/agent.jar", "/podgraft-corpus/agent.jar"], "volumeMounts": [mount]})
    for container in chosen:
        at(container, "volumeMounts", []).append(mount)
        at(container, "env", []).append({"name": "PODGRAFT_CORPUS", "value": "yes: it is\n"})
    annotations = at(at(o, "metadata", {}), "annotations", {})
    annotations["podgraft.dev/applied"] = ",".join(filter(None, [annotations.get("podgraft.dev/applied"), "corpus"]))


def run(path):
    return subprocess.run([PODGRAFT, "apply", "-q", "-p", POLICY, path], capture_output=True)


def main():
    compared = refused = 0
    files = glob.glob("testdata/cases/*/*/input.yaml") + sorted(
        f for f in glob.glob("../shared/corpus/**/*", recursive=True) if f.endswith((".yaml", ".yml", ".json")))
    for path in files:
        with open(path, "rb") as file:
            text = file.read()
        if b"podgraft.dev/record" in text:
            continue  # an earlier record is kept up to date too, which inject() above does not do
        try:
            wanted = load(text)
        except (yaml.YAMLError, ValueError):
            continue
        result = run(path)
        if result.returncode == 2 and not result.stdout:
            refused += 1
            continue
        if result.returncode:
            sys.exit(f"{path}: exit {result.returncode}\n{result.stderr.decode()}")
        for document in wanted:
            inject(document)
        if load(result.stdout) != wanted:
            sys.exit(f"{path}: other values than expected")
        compared += 1
    print(f"{compared} files have the right values, {refused} refused")
    if compared < 20:
        sys.exit("hardly any file was compared")


main()
