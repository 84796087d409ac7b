#!/usr/bin/env bash
# tests/shared_cases.sh PODGRAFT: the cases of ../shared/cases that this version can do. Needs python3 with PyYAML.
set -euo pipefail
podgraft=$(realpath "$1")
cases=../shared/cases
out=$(python3 $cases/compare.py $cases/native "$podgraft apply -q -p {policy} {args} {input}" -v) || true
echo "$out"
# The other native cases need generated objects.
for case in 1-rookout-java 3-opentelemetry-java 4-debug-tools 5-config-checksum 2-jmx-exporter 6-vault-agent; do
  grep -q "^ok   $case" <<<"$out" || { echo "case $case does not match" >&2; exit 1; }
done
# What other operators do, with their own resources.
python3 $cases/compare.py $cases/seeds "$podgraft apply -q -p {policy} {args} {input}" -v
# What the OpenTelemetry Operator does: its own end-to-end tests, as subsets and whole, and edges of our own.
if [ -d $cases/otel ]; then
  otel="$podgraft apply -q --otel-enable go,nginx -p {policy} --context {ns} {input}"
  python3 $cases/otel/compare.py $cases/otel/e2e "$otel"
  python3 $cases/otel/compare.py $cases/otel/e2e "$otel" --exact
  python3 $cases/otel/compare.py $cases/otel/edge "$otel" --exact
fi
# Five policies in one run: one variable with three agents, and a second run that changes no byte.
policies=()
for name in 1-rookout-java 2-jmx-exporter 3-opentelemetry-java 5-config-checksum 6-vault-agent; do
  policies+=(-p "$cases/native/$name.policy.yaml")
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$podgraft" apply -q "${policies[@]}" "$cases/native/input.yaml" > "$scratch/first.yaml"
"$podgraft" apply -q "${policies[@]}" "$scratch/first.yaml" > "$scratch/second.yaml"
cmp "$scratch/first.yaml" "$scratch/second.yaml"
[ "$(grep -c 'name: JAVA_TOOL_OPTIONS' "$scratch/first.yaml")" = 1 ]
[ "$(grep -o -e '-javaagent:' "$scratch/first.yaml" | wc -l)" = 3 ]
