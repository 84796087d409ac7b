#!/usr/bin/env bash
# instructions.sh PODGRAFT: counts the instructions of whole runs with valgrind and holds them to benches/instructions.txt.
# Instructions are the same on a busy machine and on an idle one, so a slower program is found in CI. They do depend on
# the compiler and the C library: with those of the stored counts a run may take 5 % more, with others 15 %.
# BLESS=1 writes what was counted; say in the commit why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
stored=$here/instructions.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

count() {
  local out=$1
  shift
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" "$@" 2>valgrind.log >"$out" || [ $? = 1 ] || {
    cat valgrind.log >&2
    return 1
  }
  sed -n 's/.*Collected : \([0-9]*\).*/\1/p' valgrind.log
}

apply() { count out.yaml apply -q --no-marker --no-config --threads 1 -p "$here/policy.yaml" "$1"; }

printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n' >one.yaml
declare -A counted
counted[version]=$(count out.txt --version)
counted[one-document]=$(apply one.yaml)
for kind in none mixed fleet changed fallback; do
  python3 "$here/streams.py" "$kind" 1 "$kind.yaml"
  counted[$kind]=$(apply "$kind.yaml")
  cmp out.yaml "$kind.yaml.expected"
done

# The changed documents by the other commands: a second run over its result, from stdin, as a KRM function, with a report,
# a diff, in place, the same again, and undo. They are compared with `apply -q` as a user types it, which writes the
# marker too.
others=(second stdin fn report check diff in-place again undo)
run=(--no-config --threads 1)
with=("${run[@]}" -p "$here/policy.yaml")
counted[quiet]=$(count quiet.yaml apply -q "${with[@]}" changed.yaml)
counted[second]=$(count out.yaml apply -q "${with[@]}" quiet.yaml)
cmp out.yaml quiet.yaml
counted[stdin]=$(count out.yaml apply -q "${with[@]}" <changed.yaml)
{
  printf 'apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nfunctionConfig:\n'
  sed 's/^/  /' "$here/policy.yaml"
  echo 'items:'
  awk '/^---$/ { dash = "- "; next } /^# Source/ { next } { print (/./ ? (dash ? dash : "  ") : "") $0; dash = "" }' changed.yaml
} >list.yaml
counted[fn]=$(count out.yaml fn <list.yaml)
counted[report]=$(count out.yaml apply "${with[@]}" changed.yaml)
counted[check]=$(count out.txt check -q "${with[@]}" changed.yaml)
counted[diff]=$(count out.txt diff -q "${with[@]}" changed.yaml)
cp changed.yaml placed.yaml
counted[in-place]=$(count out.txt apply -q -i "${with[@]}" placed.yaml)
counted[again]=$(count out.txt apply -q -i "${with[@]}" placed.yaml)
counted[undo]=$(count out.txt undo -q -i "${run[@]}" placed.yaml)
cmp placed.yaml changed.yaml

# Twice the containers of a pod are twice the work, of every step. What looks at all of them for each is four times.
pod() {
  printf 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: many}\nspec:\n  template:\n    spec:\n      containers:\n'
  for ((at = 0; at < $1; at++)); do
    printf -- '      - name: c%d\n        image: app:1\n        env:\n        - {name: A, value: b}\n' "$at"
  done
}
cat >agent.yaml <<'END'
apiVersion: podgraft.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: agent}
spec:
  containers: {names: ['*']}
  inject:
    volumes: [{name: agent, emptyDir: {}}]
    initContainers: [{name: copy, image: agent:1, volumeMounts: [{name: agent, mountPath: /agent}]}]
    volumeMounts: [{name: agent, mountPath: /agent}]
    env: [{name: OPTIONS, op: Append, value: '-agent:/agent/1'}]
END
sed 's,agent/1,agent/2,' agent.yaml >later.yaml
steps=(apply diff recorded checked changed undone)
for containers in 1 500 1000; do
  pod "$containers" >pod.yaml
  cp pod.yaml before.yaml
  same=(-q --no-config --threads 1)
  counted[apply$containers]=$(count out.txt apply "${same[@]}" --no-marker -p agent.yaml pod.yaml)
  counted[diff$containers]=$(count out.txt diff --no-config --threads 1 -p agent.yaml pod.yaml)
  counted[recorded$containers]=$(count out.txt apply "${same[@]}" -i -p agent.yaml pod.yaml)
  counted[checked$containers]=$(count out.txt check "${same[@]}" -p agent.yaml pod.yaml)
  counted[changed$containers]=$(count out.txt apply "${same[@]}" -i -p later.yaml pod.yaml)
  counted[undone$containers]=$(count out.txt undo "${same[@]}" -i pod.yaml)
  cmp pod.yaml before.yaml
done
failed=0
for step in "${steps[@]}"; do
  least=${counted[${step}1]}
  growth=$((100 * (counted[${step}1000] - least) / (counted[${step}500] - least)))
  printf '%-14s 500 to 1000 containers: %d %% of the work\n' "$step" "$growth"
  if [ "$growth" -gt 230 ]; then
    echo "$step takes more than 2.3 times the work for twice the containers" >&2
    failed=1
  fi
done

for name in "${others[@]}"; do
  printf '%-14s %d %% of the instructions of apply -q\n' "$name" $((100 * counted[$name] / counted[quiet]))
done

names=(version one-document none mixed fleet changed fallback quiet "${others[@]}")
tools="$(rustc --version | cut -d' ' -f1,2), $(getconf GNU_LIBC_VERSION), $(uname -m)"
if [ "${BLESS:-}" = 1 ]; then
  {
    echo "# $tools"
    for name in "${names[@]}"; do echo "$name ${counted[$name]}"; done
  } >"$stored"
fi
most=5
if [ "$(head -n 1 "$stored")" != "# $tools" ]; then
  most=15
  echo "the stored counts are of other tools ($(head -n 1 "$stored")), these are $tools: 15 % more are allowed"
fi
for name in "${names[@]}"; do
  before=$(sed -n "s/^$name //p" "$stored")
  now=${counted[$name]}
  if [ -z "$before" ]; then
    echo "$stored has no count of $name: BLESS=1 writes it" >&2
    failed=1
    continue
  fi
  printf '%-14s %12d instructions, %12d stored (%+d %%)\n' "$name" "$now" "$before" $(((now - before) * 100 / before))
  if [ $((now * 100)) -gt $((before * (100 + most))) ]; then
    echo "$name takes more than $most % more instructions than $stored says" >&2
    failed=1
  fi
done
exit $failed
