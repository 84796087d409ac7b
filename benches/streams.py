#!/usr/bin/env python3
"""Writes the five streams that speed is measured with, and what podgraft must make of them.

    streams.py KIND MEGABYTES FILE      FILE and FILE.expected

none      objects that are no workloads
mixed     workloads are a quarter of the bytes, and the policy changes a third of them
fleet     charts of four documents whose workloads have variables of ConfigMaps; the policy changes a third of them
changed   every document is a workload that the policy changes
fallback  the same, each with an anchor, which only the complete parser reads

The policy is `benches/policy.yaml`; the result is without podgraft's own annotations (`--no-marker`).
"""
import hashlib
import sys

INIT = """\
      initContainers:
        - name: jvm-agent
          image: registry.example.net/agents/jvm:4.2.0
          command: ["cp", "/agent.jar", "/opt/jvm-agent/agent.jar"]
          volumeMounts:
            - name: jvm-agent
              mountPath: /opt/jvm-agent
"""
ANNOTATIONS = """\
        prometheus.io/scrape: "true"
        prometheus.io/port: "9404"
"""
ENV = """\
            - name: JAVA_TOOL_OPTIONS
              value: "-javaagent:/opt/jvm-agent/agent.jar"
"""
MOUNT = """\
            - name: jvm-agent
              mountPath: /opt/jvm-agent
"""
VOLUME = """\
        - name: jvm-agent
          emptyDir: {}
"""
ENV_FROM = """\
          envFrom:
            - configMapRef:
                name: {name}
            - secretRef:
                name: {name}-keys
                optional: true
"""
RUNTIMES = ["go", "node", "python", "ruby", "php"]


def digest(number, salt):
    return hashlib.sha256(f"{salt}/{number}".encode()).hexdigest()


def others(number):
    """A ServiceAccount, a ConfigMap and a Service, as charts render them."""
    name, team = f"svc-{number:06}", f"team-{number % 23:02}"
    return f"""\
---
# Source: store/charts/{name}/templates/serviceaccount.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {name}
  namespace: {team}
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/managed-by: Helm
---
# Source: store/charts/{name}/templates/configmap.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: {team}
  labels:
    app.kubernetes.io/name: {name}
data:
  LOG_LEVEL: "info"
  # rendered from a file
  application.yaml: |
    server:
      port: {8000 + number % 900}
    # this is text
    datasource: jdbc:postgresql://db-{number % 9}.{team}:5432/{name}
  limits.json: '{{"requests": {number * 3}, "burst": true}}'
---
# Source: store/charts/{name}/templates/service.yaml
apiVersion: v1
kind: Service
metadata:
  name: {name}
  namespace: {team}
  labels: {{app.kubernetes.io/name: {name}}}
spec:
  type: ClusterIP
  ports:
  - name: http
    port: 80
    targetPort: http
  selector:
    app.kubernetes.io/name: {name}
"""


def deployment(number, runtime, is_changed, anchor="", env_from=""):
    name, team = f"svc-{number:06}", f"team-{number % 23:02}"
    init, annotations, env, mount, volume = (
        (INIT, ANNOTATIONS, ENV, MOUNT, VOLUME) if is_changed else ("", "", "", "", "")
    )
    return f"""\
---
# Source: store/charts/{name}/templates/deployment.yaml
apiVersion: apps/v1
kind: Deployment
metadata:{anchor}
  name: {name}
  namespace: {team}
  labels:
    app.kubernetes.io/name: {name}
    app.kubernetes.io/instance: store-{number % 7}
    app.kubernetes.io/version: "2.{number % 31}"
    app.kubernetes.io/managed-by: Helm
    runtime: {runtime}
  annotations:
    # written by the pipeline
    build.example.net/revision: "{digest(number, 'r')[:12]}"
    build.example.net/note: 'It''s service {number}, whose note is long enough to pass the usual width of eighty columns'
spec:
  replicas: {1 + number % 5}
  revisionHistoryLimit: 2
  strategy:
    type: RollingUpdate
    rollingUpdate: {{maxSurge: 25%, maxUnavailable: 0}}

  selector:
    matchLabels:
      app.kubernetes.io/name: {name}
  template:
    metadata:
      annotations:
        checksum/config: {digest(number, 'c')}
{annotations}      labels:
        app.kubernetes.io/name: {name}
        runtime: {runtime}
    spec:
      serviceAccountName: {name}
      terminationGracePeriodSeconds: 40
      securityContext:
        runAsNonRoot: true
        runAsUser: 10002
{init}      containers:
        - name: app # what the chart is about
          image: "registry.example.net/{team}/{name}:2.{number % 31}.{number % 10}"
          imagePullPolicy: IfNotPresent
          command: ["/bin/sh", "-c"]
          args:
            - |
              set -eu
              # port and name come from the chart
              exec /srv/run --port={8000 + number % 900} \\
                --name={name}
          env:
            - name: SERVICE
              value: {name}
            - name: LOG_LEVEL
              value: 'info'
            - name: TRACING
              value: "off"   # a boolean to YAML 1.1 without its quotes
            - name: POD_NAME
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            - name: DB_PASSWORD
              valueFrom:
                secretKeyRef:
                  name: {name}-db
                  key: password
{env}{env_from.format(name=name)}          ports:
            - name: http
              containerPort: {8000 + number % 900}
              protocol: TCP
          livenessProbe:
            httpGet:
              path: /live
              port: http
            initialDelaySeconds: 20
            periodSeconds: 10
          readinessProbe:
            httpGet: {{path: /ready, port: http}}
            periodSeconds: 5
          resources:
            limits:
              cpu: "1"
              memory: 640Mi
            requests:
              cpu: 120m
              memory: 160Mi
          volumeMounts:
            - name: config
              mountPath: /etc/service
              readOnly: true
            - name: scratch
              mountPath: /tmp
{mount}        # sends logs away
        - name: logs
          image: registry.example.net/ops/logs@sha256:{digest(number, 'l')}
          args: [--follow, "/tmp/service.log"]
          volumeMounts:
            - {{name: scratch, mountPath: /tmp}}
      volumes:
        - name: config
          configMap:
            name: {name}
            defaultMode: 0444
        - name: scratch
          emptyDir:
            sizeLimit: 64Mi
{volume}      nodeSelector:
        kubernetes.io/os: linux
      tolerations:
      - key: dedicated
        operator: Equal
        value: "store"
        effect: NoSchedule
"""


def piece(kind, number, is_expected):
    if kind == "none":
        return others(number)
    if kind == "changed":
        return deployment(number, "java", is_expected)
    if kind == "fallback":
        return deployment(number, "java", is_expected, " &metadata")
    is_java = number % 3 == 0
    runtime = "java" if is_java else RUNTIMES[number % len(RUNTIMES)]
    if kind == "fleet":
        return others(number) + deployment(number, runtime, is_java and is_expected, env_from=ENV_FROM)
    filler = "".join(others(number * 8 + at) for at in range(8))
    return deployment(number, runtime, is_java and is_expected) + filler


def main():
    kind, megabytes, path = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    if kind not in ("none", "mixed", "fleet", "changed", "fallback"):
        sys.exit(__doc__)
    with open(path, "w") as text, open(path + ".expected", "w") as expected:
        number, size = 0, 0
        while size < megabytes * 1e6:
            one = piece(kind, number, False)
            text.write(one)
            expected.write(piece(kind, number, True))
            size += len(one)
            number += 1


if __name__ == "__main__":
    main()
