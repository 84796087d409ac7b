#!/usr/bin/env bash
# The second step of action.yml. Its inputs come through PODGRAFT_ACTION_*, its results go to GITHUB_OUTPUT,
# GITHUB_STEP_SUMMARY and the folder podgraft-results below RUNNER_TEMP.
set -euo pipefail

# words TEXT: one word a line of several lines, so that names may hold blanks; the words of a single line.
words() {
  local text=$1
  if [[ $text == *$'\n'* ]]; then
    mapfile -t found < <(sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' -e '/^$/d' <<<"$text")
  else
    read -r -a found <<<"$text"
  fi
}
words "$PODGRAFT_ACTION_POLICY" && policies=("${found[@]}")
words "$PODGRAFT_ACTION_PATHS" && paths=("${found[@]}")
mode=$PODGRAFT_ACTION_MODE
fails=${PODGRAFT_ACTION_FAIL_ON_DIFF:-}
comment=${PODGRAFT_ACTION_COMMENT_FILE:-}
podgraft=$PODGRAFT_ACTION_BINARY
results=${RUNNER_TEMP:-/tmp}/podgraft-results
mkdir -p "$results"

fail() { echo "::error title=podgraft::$1"; exit 2; }
case $mode in check | diff | apply) ;; *) fail "mode is neither diff, check nor apply" ;; esac
case $fails in
  "") if [ "$mode" = check ]; then fails=true; else fails=false; fi ;;
  true | false) ;;
  *) fail "fail-on-diff is neither true nor false" ;;
esac
[ "${#policies[@]}" -gt 0 ] || fail "no policy is given"
[ "${#paths[@]}" -gt 0 ] || fail "no path is given"

said=$("$podgraft" --version) || fail "the program that path names cannot be run"
case ${PODGRAFT_ACTION_VERSION#v} in
  "" | "${said#podgraft }") ;;
  *) fail "the program is ${said#podgraft }, not the version that is asked for" ;;
esac

flags=()
for policy in "${policies[@]}"; do flags+=(-p "$policy"); done

# summary FILE: adds it to the page of the run. GitHub takes 1 MiB a step; half a character at the cut is left out.
summary() { head -c 1000000 "$1" | iconv -c -f UTF-8 -t UTF-8 >>"${GITHUB_STEP_SUMMARY:-/dev/null}" || true; }

# 1 says that there are differences. Anything above is a refusal: it is annotated where it is, and ends the step.
status=0
"$podgraft" diff "${flags[@]}" --report "$results/report.json" -- "${paths[@]}" \
  >"$results/podgraft.diff" 2>"$results/log" || status=$?
if [ "$status" -gt 1 ]; then
  "$podgraft" check -q -o github "${flags[@]}" -- "${paths[@]}" || true
  { echo "### podgraft refused"; echo; sed 's/^/    /' "$results/log"; } >"$results/podgraft.md"
  summary "$results/podgraft.md"
  { echo "changed=false"; echo "workloads=0"; echo "results=$results"; } >>"${GITHUB_OUTPUT:-/dev/stdout}"
  exit "$status"
fi
cat "$results/log" >&2
changed=false
workloads=0
if [ "$status" -eq 1 ]; then
  changed=true
  workloads=$("$podgraft" diff -q -o summary "${flags[@]}" -- "${paths[@]}" |
    sed -n 's/^Plan: \([0-9]*\) workloads* to change.*/\1/p' || true)
fi
"$podgraft" diff -q -o markdown "${flags[@]}" -- "${paths[@]}" >"$results/podgraft.md" || [ $? -eq 1 ]
if [ -n "$comment" ] && [ "$changed" = true ]; then cp "$results/podgraft.md" "$comment"; fi

{
  echo "changed=$changed"
  echo "workloads=${workloads:-0}"
  echo "results=$results"
} >>"${GITHUB_OUTPUT:-/dev/stdout}"
summary "$results/podgraft.md"

status=0
case $mode in
  diff) ;;
  apply) "$podgraft" apply -i "${flags[@]}" -- "${paths[@]}" ;;
  # The first ten annotations of a step are shown; the summary has all.
  check) "$podgraft" check -o github "${flags[@]}" -- "${paths[@]}" || status=$? ;;
esac
[ "$status" -le 1 ] || exit "$status"
if [ "$fails" = true ] && [ "$changed" = true ]; then exit 1; fi
if [ "$fails" = true ]; then exit "$status"; fi
