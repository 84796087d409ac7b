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
