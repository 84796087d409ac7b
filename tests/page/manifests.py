"""Writes manifests for the page and for timing: python3 manifests.py COUNT > manifests.yaml"""
import sys

ITEM = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  namespace: team-{team}
  labels:
    app: app-{number}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: app-{number}
  template:
    metadata:
      labels:
        app: app-{number}
        runtime: java # opts in
        tier: {tier}
    spec:
      containers:
        - name: app
          image: registry.example.com/app-{number}:1.4.{number}
          ports:
            - name: http
              containerPort: 8080
          env:
            - name: JAVA_TOOL_OPTIONS
              value: "-XX:MaxRAMPercentage=75"
            - name: DB_URL
              value: jdbc:postgresql://db/app
          volumeMounts:
            - name: tmp
              mountPath: /tmp
      volumes:
        - name: tmp
          emptyDir: {{}}
"""

count = int(sys.argv[1])
items = (ITEM.format(number=n, team=n % 40, tier="front" if n % 3 else "back") for n in range(count))
print("---\n".join(items), end="")
