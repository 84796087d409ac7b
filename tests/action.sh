#!/usr/bin/env bash
# The step of action.yml with the files that GitHub gives it: tests/action.sh PODGRAFT
set -euo pipefail
cd "$(dirname "$0")/.."
podgraft=$(realpath "$1")
script=$(realpath tools/action.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r testdata/examples "$work/manifests"
cd "$work"

# Runs the step with a mode, policies and paths; its output, summary and exit status are kept.
step() {
  rm -rf out summary results
  status=0
  env RUNNER_TEMP="$work/results" GITHUB_OUTPUT="$work/out" GITHUB_STEP_SUMMARY="$work/summary" \
    PODGRAFT_ACTION_ROOT=/nowhere PODGRAFT_ACTION_BINARY="$podgraft" PODGRAFT_ACTION_VERSION="" \
    PODGRAFT_ACTION_MODE="$1" PODGRAFT_ACTION_POLICY="$2" PODGRAFT_ACTION_PATHS="$3" \
    bash "$script" > log 2> errors || status=$?
}
wants() { "$@" || { echo "failed: $*" >&2; cat log errors >&2; exit 1; }; }

step check builtin:jmx-exporter manifests
wants [ "$status" = 1 ]
wants grep -q '^changed=true$' out
wants grep -q '^workloads=1$' out
wants grep -q '^::error file=manifests/shop.yaml,line=' log
wants grep -q 'jmx-exporter' summary
wants [ "$(wc -c < summary)" -lt 1048576 ]
wants grep -q '^+.*initContainers:' results/podgraft-results/podgraft.diff
wants grep -q '"kind": "Report"' results/podgraft-results/report.json

# What a manifest says is no command to the runner, at the start of a line or anywhere in it.
mkdir hostile
cat > hostile/a.yaml <<'MANIFEST'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
spec:
  template:
    spec:
      containers:
      - name: "##[error]name ::error::x"
        image: a:1 ##[add-mask]a ##vso[task.setvariable]b
        env: [{name: JAVA_TOOL_OPTIONS, value: 1}] # ##[error]comment
        env: [] # ##[set-env name=A]b
MANIFEST
for mode in check diff apply; do
  step "$mode" builtin:jmx-exporter hostile
  wants [ "$status" -ne 0 ]
  if grep -n -e '##\[' -e '##vso\[' -e '^[[:space:]]*::error::' log errors; then wants false; fi
done

# Inputs are words for the program, never commands.
step diff 'builtin:jmx-exporter' 'manifests; $(touch pwned) `touch pwned`'
wants [ "$status" = 2 ]
wants [ ! -e pwned ]

step something builtin:jmx-exporter manifests
wants [ "$status" = 2 ]

step apply $'builtin:jmx-exporter\nbuiltin:prometheus-scrape' manifests
wants [ "$status" = 0 ]
step check $'builtin:jmx-exporter\nbuiltin:prometheus-scrape' manifests
wants [ "$status" = 0 ]
wants grep -q '^changed=false$' out
wants grep -q '^workloads=0$' out
echo "the step is as it should be"
