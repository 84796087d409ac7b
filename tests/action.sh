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
git init --quiet .

# Runs the step with a mode, policies and paths, and variables of its own; its output and exit status are kept.
step() {
  rm -rf out summary results comment.md
  status=0
  env RUNNER_TEMP="$work/results" GITHUB_OUTPUT="$work/out" GITHUB_STEP_SUMMARY="$work/summary" \
    PODGRAFT_ACTION_ROOT=/nowhere PODGRAFT_ACTION_BINARY="$podgraft" PODGRAFT_ACTION_VERSION="" \
    PODGRAFT_ACTION_MODE="$1" PODGRAFT_ACTION_POLICY="$2" PODGRAFT_ACTION_PATHS="$3" "${@:4}" \
    bash "$script" > log 2> errors || status=$?
}
wants() { "$@" || { echo "failed: $*" >&2; cat log errors >&2; exit 1; }; }
lacks() { if grep -q "$@"; then echo "failed: grep $*" >&2; cat log errors >&2; exit 1; fi; }

# With changes: check fails and annotates, diff does not fail unless it is asked to.
step check builtin:jmx-exporter manifests PODGRAFT_ACTION_COMMENT_FILE=comment.md
wants [ "$status" = 1 ]
wants grep -q '^changed=true$' out
wants grep -q '^workloads=1$' out
wants grep -q '^::error file=manifests/shop.yaml,line=' log
wants grep -q 'jmx-exporter' summary
wants [ "$(wc -c < summary)" -lt 1048576 ]
wants grep -q '^+.*initContainers:' results/podgraft-results/podgraft.diff
wants grep -q '"kind": "Report"' results/podgraft-results/report.json
wants cmp comment.md results/podgraft-results/podgraft.md
step check builtin:jmx-exporter manifests PODGRAFT_ACTION_FAIL_ON_DIFF=false
wants [ "$status" = 0 ]
wants grep -q '^::error file=manifests/shop.yaml,line=' log
step diff builtin:jmx-exporter manifests
wants [ "$status" = 0 ]
wants grep -q '^changed=true$' out
step diff builtin:jmx-exporter manifests PODGRAFT_ACTION_FAIL_ON_DIFF=true
wants [ "$status" = 1 ]

# A refusal is annotated at its line, stands in the summary, and ends the step with 2.
cat > bad.yaml <<'YAML'
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: bad}
spec:
  match: {}
  inject:
    podAnotations: {a: b}
YAML
step check bad.yaml manifests
wants [ "$status" = 2 ]
wants grep -q '^::error file=bad.yaml,line=7' log
wants grep -q 'podAnotations' summary
printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: [\n' > broken.yaml
step apply builtin:jmx-exporter broken.yaml
wants [ "$status" = 2 ]
wants grep -q '^::error file=broken.yaml,line=' log

# What a manifest says is no command to the runner, at the start of a line or anywhere in it.
mkdir hostile
cat > hostile/a.yaml <<'MANIFEST'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
spec:
  template:
    metadata: {labels: {runtime: java}}
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
step diff builtin:jmx-exporter manifests PODGRAFT_ACTION_FAIL_ON_DIFF=perhaps
wants [ "$status" = 2 ]
step diff builtin:jmx-exporter manifests PODGRAFT_ACTION_VERSION=9.9.9
wants [ "$status" = 2 ]
step diff '' manifests
wants [ "$status" = 2 ]

# Names with blanks, quotes and what a workflow command looks like; text in a manifest is no command either.
mkdir -p "odd ::error::names/it's" && cp manifests/shop.yaml "odd ::error::names/it's/a \"shop\".yaml"
sed -i 's|image: "registry.example.com/shop/orders:4.2.0"|& # ##[error]owned ::error::owned|' "odd ::error::names/it's/a \"shop\".yaml"
step check builtin:jmx-exporter $'odd ::error::names/it\'s\nmanifests'
wants [ "$status" = 1 ]
wants grep -q '^workloads=2$' out
lacks -e '^::error::names' -e '^::error::owned' log errors
lacks -e '##\[error\]owned' log errors
step apply builtin:jmx-exporter $'odd ::error::names/it\'s\nmanifests'
wants [ "$status" = 0 ]
lacks -e '##\[error\]owned' log errors

# Without changes.
step apply $'builtin:jmx-exporter\nbuiltin:prometheus-scrape' manifests
wants [ "$status" = 0 ]
step check $'builtin:jmx-exporter\nbuiltin:prometheus-scrape' manifests PODGRAFT_ACTION_COMMENT_FILE=comment.md
wants [ "$status" = 0 ]
wants grep -q '^changed=false$' out
wants grep -q '^workloads=0$' out
wants [ ! -e comment.md ]
echo "the step is as it should be"
