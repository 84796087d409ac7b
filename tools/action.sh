#!/usr/bin/env bash
# The step of action.yml. Its inputs come through PODGRAFT_ACTION_*, its results go to GITHUB_OUTPUT,
# GITHUB_STEP_SUMMARY and the folder podgraft-results below RUNNER_TEMP.
set -euo pipefail

read -r -d '' -a policies <<< "${PODGRAFT_ACTION_POLICY//$'\n'/ }" || true
read -r -d '' -a paths <<< "${PODGRAFT_ACTION_PATHS//$'\n'/ }" || true
mode=$PODGRAFT_ACTION_MODE
results=${RUNNER_TEMP:-/tmp}/podgraft-results
mkdir -p "$results"

fail() { echo "::error title=podgraft::$1"; exit 2; }
case $mode in check | diff | apply) ;; *) fail "mode is neither check, diff nor apply" ;; esac
[ "${#policies[@]}" -gt 0 ] || fail "no policy is given"

podgraft=$PODGRAFT_ACTION_BINARY
if [ -z "$podgraft" ]; then
  cargo build --locked --release --quiet --manifest-path "$PODGRAFT_ACTION_ROOT/Cargo.toml"
  podgraft=$PODGRAFT_ACTION_ROOT/target/release/podgraft
fi
said=$("$podgraft" --version)
case ${PODGRAFT_ACTION_VERSION:-} in
  "" | "${said#podgraft }") ;;
  *) fail "podgraft is ${said#podgraft }, not $PODGRAFT_ACTION_VERSION" ;;
esac

flags=()
for policy in "${policies[@]}"; do flags+=(-p "$policy"); done

# 1 says that there are differences or findings; anything above is a failure.
run() {
  local status=0
  "$podgraft" "$@" || status=$?
  [ "$status" -le 1 ] || exit "$status"
  return "$status"
}

changed=false
run diff "${flags[@]}" --report "$results/report.json" -- "${paths[@]}" > "$results/podgraft.diff" || changed=true
run diff -q -o markdown "${flags[@]}" -- "${paths[@]}" > "$results/podgraft.md" || true
workloads=$(run diff -q -o summary "${flags[@]}" -- "${paths[@]}" | sed -n 's/^Plan: \([0-9]*\) workloads* to change.*/\1/p' || true)

{
  echo "changed=$changed"
  echo "workloads=${workloads:-0}"
  echo "results=$results"
} >> "${GITHUB_OUTPUT:-/dev/stdout}"
# GitHub takes 1 MiB a step; what markdown gives is far below, and cut all the same should that change.
head -c 1000000 "$results/podgraft.md" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"

case $mode in
  diff) ;;
  apply) "$podgraft" apply -i "${flags[@]}" -- "${paths[@]}" ;;
  check)
    status=0
    "$podgraft" check -o github "${flags[@]}" -- "${paths[@]}" || status=$?
    exit "$status"
    ;;
esac
