#!/usr/bin/env bash
# The commands of hosts/gitlab, hosts/tekton, hosts/argo-workflows and hosts/kubernetes, run as their engines would run
# them, on a repository of manifests: tests/engines.sh PODGRAFT PYTHON (with PyYAML)
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
podgraft=$(realpath "$1")
python=$(realpath --no-symlinks "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wants() { "$@" || { echo "failed: $*" >&2; exit 1; }; }
mkdir -p "$work/bin" "$work/fleet/manifests"
ln -s "$podgraft" "$work/bin/podgraft"
# What the jobs install is there already.
printf '#!/bin/sh\nfor word; do last=$folder; folder=$word; [ "$last" = --target ] && mkdir -p "$folder/bin" && cp "%s" "$folder/bin/podgraft"; done; exit 0\n' \
  "$podgraft" >"$work/bin/pip"
chmod +x "$work/bin/pip"
export PATH="$work/bin:$PATH"
cd "$work/fleet"
"$podgraft" policy show jmx-exporter >agents.yaml
for number in 1 2 3 4 5; do cp "$root/testdata/examples/shop.yaml" "manifests/shop-$number.yaml"; done

# value FILE EXPRESSION: of the YAML document `it`, as JSON.
value() { "$python" -c 'import json, sys, yaml; it = yaml.safe_load(open(sys.argv[1])); print(json.dumps(eval(sys.argv[2])))' "$root/hosts/$1" "$2"; }
lines() { "$python" -c 'import json, sys; print("\n".join(json.load(sys.stdin)))'; }

# expect STATUS COMMAND...: its exit status and nothing above.
expect() {
  local wanted=$1 status=0
  shift
  "$@" >"$work/log" 2>&1 || status=$?
  [ "$status" = "$wanted" ] || { echo "failed: exit $status, not $wanted: $*" >&2; cat "$work/log" >&2; exit 1; }
}

# all_shards STATUS FUNCTION: every shard of 4, of which at least one has the exit status.
all_shards() {
  local seen=0 status shard
  for shard in 1 2 3 4; do
    status=0
    "$2" "$shard" >"$work/log" 2>&1 || status=$?
    [ "$status" -le 1 ] || { cat "$work/log" >&2; exit 1; }
    [ "$status" != "$1" ] || seen=$((seen + 1))
  done
  [ "$seen" -gt 0 ] || { echo "failed: no shard of $2 has exit status $1" >&2; exit 1; }
  if [ "$1" = 0 ]; then wants test "$seen" = 4; fi
}

gitlab() {
  { echo set -e; value gitlab/.gitlab-ci.yml "it['$1']['script']" | lines; } >"$work/script.sh"
  env POLICY=agents.yaml MANIFESTS=manifests CI_NODE_INDEX="${2:-}" CI_NODE_TOTAL=4 sh "$work/script.sh"
}
gitlab_shard() { gitlab podgraft-sharded "$1"; }
tekton() {
  value tekton/task.yaml "it['spec']['steps'][0]['args']" | lines |
    sed -e "s/\$(params.mode)/$1/" -e 's/$(params.policy)/agents.yaml/' -e 's/$(params.paths)/manifests/' >"$work/args"
  mapfile -t args <"$work/args"
  "$podgraft" "${args[@]}"
}
workflow_shard() {
  value argo-workflows/check.yaml "it['spec']['templates'][1]['container']['args']" | lines |
    sed -e "s/{{inputs.parameters.shard}}/$1/" -e 's/{{workflow.parameters.shards}}/4/' >"$work/args"
  mapfile -t args <"$work/args"
  "$podgraft" "${args[@]}"
}
job_shard() {
  value kubernetes/indexed-job.yaml "it['spec']['template']['spec']['containers'][0]['args'][0]" |
    "$python" -c 'import json, sys; print(json.load(sys.stdin))' | sed "s:/tmp/podgraft:$work/job:g" >"$work/job.sh"
  env SHARDS=4 JOB_COMPLETION_INDEX=$(($1 - 1)) sh -eu "$work/job.sh"
}

echo "their objects, by the schemas of their engines"
# crd MODULE FILE OBJECT: the CustomResourceDefinition comes from the engine's own Go module.
crd() {
  local folder
  folder=$(cd "$work" && GOFLAGS=-mod=mod GOSUMDB=off go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  [ -n "$folder" ] || return 1
  "$python" "$root/tests/python/crd_schema.py" "$folder/$2" "$root/hosts/$3"
}
if command -v go >/dev/null && "$python" -m pip install --quiet 'jsonschema>=4,<5'; then
  crd github.com/tektoncd/pipeline@v1.0.0 config/300-crds/300-task.yaml tekton/task.yaml
  crd github.com/argoproj/argo-workflows/v3@v3.7.2 manifests/base/crds/full/argoproj.io_workflows.yaml argo-workflows/check.yaml
elif [ "${CI:-}" = true ]; then
  echo "failed: the schemas of Tekton and Argo Workflows could not be fetched" >&2; exit 1
else
  echo "skipped: the schemas of Tekton and Argo Workflows could not be fetched"
fi
expect 1 gitlab podgraft
wants grep -q initContainers podgraft.diff
wants grep -q '<failure' podgraft.xml
expect 1 tekton check
expect 1 tekton diff
for engine in gitlab_shard workflow_shard job_shard; do all_shards 1 "$engine"; done
expect 0 "$podgraft" apply --in-place -p agents.yaml manifests
expect 0 gitlab podgraft
expect 0 tekton check
for engine in gitlab_shard workflow_shard job_shard; do all_shards 0 "$engine"; done
echo "the examples for other engines do what they say"
