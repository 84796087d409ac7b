#!/usr/bin/env bash
# The library for wasm32-unknown-unknown, and the program for wasm32-wasip1 under Node's WASI, compared with
# a program for this machine: tests/wasm.sh PODGRAFT
# What cannot be installed is a failure in CI (CI=true) and a visible skip elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
program=$(realpath "$1")
skip_or_fail() {
  if [ "${CI:-}" = true ]; then echo "failed: $*" >&2; exit 1; fi
  echo "skipped: $*"
  exit 0
}
wants() { "$@" || { echo "failed: $*" >&2; exit 1; }; }
rustup target add wasm32-unknown-unknown wasm32-wasip1 >/dev/null 2>&1 || skip_or_fail "the targets could not be installed"
command -v node >/dev/null || skip_or_fail "Node.js is not there"

cargo check --locked --quiet -p podgraft-core --target wasm32-unknown-unknown
cargo build --locked --quiet --bin podgraft --target wasm32-wasip1
module=$(realpath "${CARGO_TARGET_DIR:-target}/wasm32-wasip1/debug/podgraft.wasm")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
podgraft() { node --no-warnings "$root/tests/wasi.mjs" "$module" "$work" podgraft "$@"; }
native() { (cd "$work" && "$program" "$@"); }

cp testdata/examples/shop.yaml "$work/"
wants test "$(podgraft --version)" = "$(native --version)"
for arguments in "diff -p builtin:jmx-exporter shop.yaml" "apply -q -p builtin:prometheus-scrape shop.yaml" \
  "check -o github -p builtin:jmx-exporter shop.yaml" "policy lint -p builtin:jmx-exporter"; do
  expected=0 actual=0
  # shellcheck disable=SC2086 # words
  native $arguments >"$work/expected" 2>"$work/expected.err" || expected=$?
  # shellcheck disable=SC2086
  podgraft $arguments >"$work/actual" 2>"$work/actual.err" || actual=$?
  wants test "$expected" = "$actual"
  wants cmp "$work/expected" "$work/actual"
  wants cmp "$work/expected.err" "$work/actual.err"
done

cat >"$work/list.yaml" <<'YAML'
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: podgraft.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: zone}
  spec:
    match: {kinds: [Deployment]}
    variables:
    - {name: zone, expression: "workload.name + '-zone'"}
    inject:
      env:
      - {name: ZONE, value: '${variables.zone}'}
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: web, image: registry.example.com/web:1}]}
YAML
native fn <"$work/list.yaml" >"$work/expected"
podgraft fn <"$work/list.yaml" >"$work/actual"
wants grep -q 'web-zone' "$work/expected"
wants cmp "$work/expected" "$work/actual"

# The deepest expression that is let through ends with an answer there, too, never with a trap.
deep=$(printf '(%.0s' {1..40})1$(printf ')%.0s' {1..40})
sed -e "s/\"workload.name + '-zone'\"/'string($deep)'/" "$work/list.yaml" >"$work/deep.yaml"
status=0
podgraft fn <"$work/deep.yaml" >"$work/actual" 2>"$work/actual.err" || status=$?
[ "$status" -le 2 ] || { cat "$work/actual.err" >&2; exit 1; }
echo "the module does what the program does"
