#!/usr/bin/env python3
"""Holds that no cost grows faster than the work.

    scaling.py PODGRAFT [NAME...]

Each input is made in three sizes, N, 2N and 4N, and the instructions of whole runs are counted with valgrind. What a run
costs before it sees the input is not counted: the step from 2N to 4N is compared with that from N to 2N. It is 2 where
the cost is that of the work, and 4 where each item is compared with each other. More than 2.2 fails.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MOST = 2.2
API = "apiVersion: podgraft.dev/v1alpha1\nkind: InjectionPolicy\n"


def policy(name="agent", match="", inject="    podAnnotations: {example.com/agent: 'on'}\n", more=""):
    match = f"  match: {match}\n" if match else ""
    return f"{API}metadata: {{name: {name}}}\nspec:\n{match}{more}  inject:\n{inject}"


AGENT = policy(
    inject="""\
    initContainers:
    - {name: agent, image: 'registry.example.com/agent:1', volumeMounts: [{name: agent, mountPath: /agent}]}
    volumes: [{name: agent, emptyDir: {}}]
    volumeMounts: [{name: agent, mountPath: /agent}]
    env: [{name: OPTIONS, op: Append, value: '-javaagent:/agent/agent.jar'}]
    podAnnotations: {example.com/agent: 'on'}
""",
)
# Each workload has a text and an item of its own, which a lock file has among those of all workloads.
OWN = policy(
    inject="""\
    env:
    - {name: NAME, value: '${workload.name}'}
    - {name: OPTIONS, op: Append, value: '-Dname=${workload.name}'}
""",
)
GENERATE = policy(
    inject="    envFrom: [{configMapRef: {name: '${workload.name}-agent'}}]\n",
) + """\
  generate:
  - resource:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: '${workload.name}-agent', namespace: '${workload.namespace}'}
      data: {name: '${workload.name}'}
"""


def workload(at, containers=1, env=2, more=""):
    text = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web-{at}
  namespace: shop
  labels: {{app: web-{at}}}
spec:
  selector:
    matchLabels: {{app: web-{at}}}
  template:
    metadata:
      labels: {{app: web-{at}, runtime: java}}
{more}    spec:
      containers:
"""
    for container in range(containers):
        text += f"      - name: app-{container}\n        image: registry.example.com/web:{at}\n        env:\n"
        text += "".join(f"        - name: KEY_{key}\n          value: value-{key}\n" for key in range(env))
        text += "        - {name: OPTIONS, value: -Xmx512m}\n"
    return text


def service(at):
    return f"apiVersion: v1\nkind: Service\nmetadata:\n  name: web-{at}\n  namespace: shop\nspec:\n  ports:\n  - port: 80\n"


def documents(texts):
    return "".join(f"---\n{text}" for text in texts)


def named(at):
    """A workload with a Namespace of its own."""
    namespace = f"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop-{at}\n  labels: {{shop: 'yes'}}\n"
    return f"{namespace}---\n{workload(at)}".replace("namespace: shop\n", f"namespace: shop-{at}\n")


def chart(at):
    """A ConfigMap, and a workload that may have the variable of the policy from it."""
    config_map = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-{at}\n  namespace: shop\ndata: {{LEVEL: info}}\n"
    source = f"        envFrom: [{{configMapRef: {{name: web-{at}}}}}]\n"
    return f"{config_map}---\n" + workload(at).replace("        - {name: OPTIONS, value: -Xmx512m}\n", source)


def charts(size):
    return documents(chart(at) for at in range(size))


def indented(text, by):
    return "".join(f"{by}{line}" for line in text.splitlines(keepends=True))


def item(text):
    return "- " + indented(text, "  ")[2:]


def yaml_list(texts, kind="v1\nkind: List"):
    return f"apiVersion: {kind}\nitems:\n" + "".join(item(text) for text in texts)


def value(at):
    labels = {"app": f"web-{at}"}
    env = [{"name": "OPTIONS", "value": "-Xmx512m"}]
    containers = [{"name": "app", "image": f"registry.example.com/web:{at}", "env": env}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    metadata = {"name": f"web-{at}", "namespace": "shop"}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def json_list(size, **style):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [value(at) for at in range(size)]}, **style)


def workloads(size):
    return documents(workload(at) for at in range(size))


def folder(size):
    return {f"manifests/{at // 50}/{at}.yaml": workload(at) for at in range(size)}


def function(size):
    config = "functionConfig:\n" + indented(AGENT, "  ")
    return yaml_list((workload(at) for at in range(size)), f"config.kubernetes.io/v1\nkind: ResourceList\n{config}".rstrip("\n"))


# What each input is: N, the files of a size, the arguments, and what is run or called before, uncounted, to make the
# input.
APPLY = ["apply", "-q", "-p", "agent.yaml", "in.yaml"]
DIFF = ["diff", "-q", "-p", "agent.yaml", "in.yaml"]
RECORDED = [["apply", "-q", "--in-place", "-p", "agent.yaml", "in.yaml"]]


def simple(make, agent=AGENT):
    return lambda size: {"in.yaml": make(size), "agent.yaml": agent}


def policies(one, count=4):
    """N policies over the same few workloads."""
    return lambda size: {
        "in.yaml": workloads(count),
        "agent.yaml": documents(one(at) for at in range(size)),
    }


def annotation(at):
    return f"    podAnnotations: {{example.com/agent-{at}: 'on'}}\n"


def inject_many(size):
    inject = "    env:\n" + "".join(f"    - {{name: ADDED_{at}, value: 'x'}}\n" for at in range(size))
    inject += "    volumes:\n" + "".join(f"    - {{name: added-{at}, emptyDir: {{}}}}\n" for at in range(size))
    inject += "    volumeMounts:\n" + "".join(f"    - {{name: added-{at}, mountPath: /added/{at}}}\n" for at in range(size))
    return {"in.yaml": workload(0), "agent.yaml": policy(inject=inject)}


def later_policy(size):
    """A pod with N containers, a policy, and a later version of it."""
    both = {
        f"{name}.yaml": policy(more="  containers: {names: ['*']}\n", inject=f"    env: [{{name: ADDED, value: {value}}}]\n")
        for name, value in (("agent", "first"), ("later", "second"))
    }
    return {"in.yaml": workload(0, containers=size), **both}


def change_by_hand(place):
    """Changes all values that were injected."""
    text = (place / "in.yaml").read_text()
    (place / "in.yaml").write_text(re.sub("value: (first|x)$", "value: other", text, flags=re.MULTILINE))


CASES = {
    "documents": (1000, simple(lambda size: documents(service(at) for at in range(size))), APPLY, []),
    "workloads": (150, simple(workloads), APPLY, []),
    "workloads-report": (150, simple(workloads), ["apply", "-p", "agent.yaml", "in.yaml"], []),
    "workloads-stdin": (150, simple(workloads), ["apply", "-q", "-p", "agent.yaml"], []),
    "workloads-record": (40, simple(workloads), ["apply", "-q", "--record", "-p", "agent.yaml", "in.yaml"], []),
    "charts": (150, simple(charts), APPLY, []),
    "charts-stream": (150, simple(charts), ["apply", "-q", "--stream", "-p", "agent.yaml"], []),
    "policies-that-miss": (100, policies(lambda at: policy(f"p-{at}", f"{{selector: {{matchLabels: {{app: other-{at}}}}}}}")), APPLY, []),
    "policies-that-fit": (100, policies(lambda at: policy(f"p-{at}", "{kinds: [Deployment]}", annotation(at))), APPLY, []),
    "policies-glob": (100, policies(lambda at: policy(f"p-{at}", f"{{names: ['*-{at}']}}", annotation(at))), APPLY, []),
    "policies-cel": (
        60,
        policies(
            lambda at: policy(
                f"p-{at}",
                "",
                annotation(at),
                f"  matchConditions:\n  - {{name: one, expression: \"workload.name == 'web-{at}'\"}}\n",
            )
        ),
        APPLY,
        [],
    ),
    "namespaces": (
        500,
        simple(
            lambda size: documents(named(at) for at in range(size)),
            policy(more="  matchConditions:\n  - {name: labelled, expression: 'has(namespaceObject.metadata.labels)'}\n"),
        ),
        APPLY,
        [],
    ),
    "containers": (200, simple(lambda size: workload(0, containers=size)), APPLY, []),
    "env": (1000, simple(lambda size: workload(0, env=size)), APPLY, []),
    "injected-items": (100, inject_many, APPLY, []),
    "list-yaml": (150, simple(lambda size: yaml_list(workload(at) for at in range(size))), APPLY, []),
    "list-json": (300, simple(lambda size: json_list(size, indent=2)), APPLY, []),
    "list-json-compact": (300, simple(lambda size: json_list(size, separators=(",", ":"))), APPLY, []),
    "generated": (100, simple(workloads, GENERATE), APPLY, []),
    "generated-list": (300, simple(lambda size: yaml_list(workload(at) for at in range(size)), GENERATE), APPLY, []),
    "generated-list-json": (300, simple(lambda size: json_list(size, indent=2), GENERATE), APPLY, []),
    "records": (50, simple(workloads), APPLY, RECORDED),
    "records-of-own-texts": (300, simple(workloads, OWN), APPLY, RECORDED),
    "record-of-many-items": (100, inject_many, APPLY, RECORDED),
    "later-policy": (100, later_policy, ["apply", "-q", "-p", "later.yaml", "in.yaml"], RECORDED),
    "changed-by-hand": (100, later_policy, ["check", "-p", "later.yaml", "in.yaml"], [*RECORDED, change_by_hand]),
    "variables-by-hand": (150, inject_many, ["check", "-p", "agent.yaml", "in.yaml"], [*RECORDED, change_by_hand]),
    "undo": (50, simple(workloads), ["undo", "-q", "in.yaml"], RECORDED),
    "undo-of-many-items": (100, inject_many, ["undo", "-q", "in.yaml"], RECORDED),
    "undo-generated-list": (
        300,
        simple(lambda size: yaml_list(workload(at) for at in range(size)), GENERATE),
        ["undo", "-q", "in.yaml"],
        RECORDED,
    ),
    "undo-list": (50, simple(lambda size: yaml_list(workload(at) for at in range(size))), ["undo", "-q", "in.yaml"], RECORDED),
    "diff": (40, simple(workloads), DIFF, []),
    "diff-list": (50, simple(lambda size: yaml_list(workload(at) for at in range(size))), DIFF, []),
    "diff-json-compact": (150, simple(lambda size: json_list(size, separators=(",", ":"))), DIFF, []),
    "diff-env": (250, simple(lambda size: workload(0, env=size)), DIFF, []),
    "check": (80, simple(workloads), ["check", "-p", "agent.yaml", "in.yaml"], []),
    "check-junit": (250, simple(workloads), ["check", "-o", "junit", "-p", "agent.yaml", "in.yaml"], []),
    "check-lock": (200, simple(workloads), ["check", "-p", "agent.yaml", "in.yaml"], RECORDED),
    "explain": (200, simple(workloads), ["explain", "-p", "agent.yaml", "in.yaml"], []),
    "explain-reasons": (500, simple(workloads, policy(match="{names: [other]}")), ["explain", "-p", "agent.yaml", "in.yaml"], []),
    "inspect": (200, simple(workloads), ["inspect", "in.yaml"], []),
    "fn": (150, lambda size: {"in.yaml": function(size)}, ["fn"], []),
    "files": (100, lambda size: {**folder(size), "agent.yaml": AGENT}, ["apply", "-q", "-p", "agent.yaml", "--output-dir", "out", "manifests"], []),
    "files-in-place": (100, lambda size: {**folder(size), "agent.yaml": AGENT}, ["apply", "-q", "-p", "agent.yaml", "--in-place", "manifests"], []),
    "files-diff": (100, lambda size: {**folder(size), "agent.yaml": AGENT}, ["diff", "-q", "-p", "agent.yaml", "manifests"], []),
}


def run(program, arguments, place, counted):
    command = [program, *arguments, *(["--no-config", "--threads", "1"] if arguments[0] in ("apply", "diff", "check") else [])]
    if counted:
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-file=valgrind.log", *command]
    source = open(place / "in.yaml", "rb") if arguments[-1] != "in.yaml" and (place / "in.yaml").exists() else subprocess.DEVNULL
    done = subprocess.run(command, cwd=place, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in ((0, 1) if arguments[0] in ("diff", "check") else (0,)):
        raise SystemExit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr[:2000]}")
    if counted:
        return int(re.search(r"Collected : (\d+)", (place / "valgrind.log").read_text())[1])


def formats(program):
    """The formats of `diff`, as the program lists them to somebody who asks for one that is not there."""
    said = subprocess.run([program, "diff", "-o", "none"], capture_output=True, text=True).stderr
    return re.search(r"\[possible values: (.*?)\]", said)[1].split(", ")


def count(program, name, size):
    _, make, arguments, before = CASES[name]
    place = pathlib.Path(tempfile.mkdtemp())
    try:
        for path, text in make(size).items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_text(text)
        for step in before:
            step(place) if callable(step) else run(program, step, place, False)
        return run(program, arguments, place, True)
    finally:
        shutil.rmtree(place)


def main():
    program = os.path.realpath(sys.argv[1])
    CASES.update((f"diff-{form}", (40, simple(workloads), [*DIFF, "-o", form], [])) for form in formats(program))
    names = sys.argv[2:] or list(CASES)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = {name: [pool.submit(count, program, name, CASES[name][0] * times) for times in (1, 2, 4)] for name in names}
        print(f"{'input':22} {'N':>5} {'M instructions: N':>18} {'2N':>8} {'4N':>8}  step 4N / step 2N")
        for name, futures in counts.items():
            one, two, four = (future.result() for future in futures)
            ratio = (four - two) / (two - one)
            print(f"{name:22} {CASES[name][0]:5} {one / 1e6:18.1f} {two / 1e6:8.1f} {four / 1e6:8.1f}  {ratio:.2f}", flush=True)
            if ratio > MOST:
                failed.append(name)
    if failed:
        sys.exit(f"grows faster than the work (more than {MOST}): {', '.join(failed)}")


if __name__ == "__main__":
    main()
