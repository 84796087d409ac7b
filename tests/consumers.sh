#!/usr/bin/env bash
# What podgraft writes for other programs, read by these programs: tests/consumers.sh PODGRAFT PYTHON
# A program that cannot be installed is a failure in CI (CI=true) and a visible skip elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
podgraft=$(realpath "$1")
python=$(realpath --no-symlinks "$2") # the link is what makes it a virtual environment
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip_or_fail() {
  if [ "${CI:-}" = true ]; then echo "failed: $*" >&2; exit 1; fi
  echo "skipped: $*"
}
# 1 is what `diff` and `check` say when there is something to show.
shows() { "$@" || [ $? -eq 1 ]; }

cp tests/page/policies.yaml "$work/"
python3 tests/page/manifests.py 7 > "$work/few.yaml"
python3 tests/page/manifests.py 1000 > "$work/thousand.yaml"
python3 tests/page/manifests.py 2000 > "$work/many.yaml"
cd "$work"

# Milliseconds of the processor that a command takes, the median of three runs.
median() {
  local TIMEFORMAT='%U %S'
  for _ in 1 2 3; do
    { time shows "$@" > /dev/null 2> /dev/null; } 2>&1 | awk '{ print int(($1 + $2) * 1000) }'
  done | sort -n | sed -n 2p
}

least=$(median "$podgraft" diff -q -p policies.yaml -o stat thousand.yaml)
echo "1,000 changed workloads in every form, none in eight times what counting takes: $least ms of the processor (median of three)"
forms=$({ "$podgraft" diff -o none 2>&1 || true; } | sed -n 's/.*possible values: \(.*\)]/\1/p' | tr -d ,)
[ -n "$forms" ] || { echo "diff lists no forms" >&2; exit 1; }
for form in $forms; do
  shows "$podgraft" diff -q -p policies.yaml -o "$form" thousand.yaml > "thousand.$form"
  took=$(median "$podgraft" diff -q -p policies.yaml -o "$form" thousand.yaml)
  echo "  $form: $took ms, $(wc -c < "thousand.$form") bytes"
  [ "$took" -lt $((8 * least)) ] || { echo "$form took $took ms" >&2; exit 1; }
done

echo "the patch: git apply, and patch where it is installed, come to what apply --in-place writes"
cp thousand.yaml wanted.yaml
"$podgraft" apply -q -i -p policies.yaml wanted.yaml
for program in git patch; do
  command -v "$program" > /dev/null || { skip_or_fail "$program is not installed"; continue; }
  mkdir "$program.d"
  cp thousand.yaml "$program.d/"
  if [ "$program" = git ]; then (cd git.d && git init -q && git apply ../thousand.unified)
  else (cd patch.d && patch -s -p1 < ../thousand.unified); fi
  cmp wanted.yaml "$program.d/thousand.yaml"
done

shows "$podgraft" diff -q -p policies.yaml -o json few.yaml > few.json
shows "$podgraft" diff -q -p policies.yaml -o json --group-by namespace few.yaml > groups.json
shows "$podgraft" check -q -p policies.yaml -o junit few.yaml > few.xml
shows "$podgraft" check -q -p policies.yaml -o sarif few.yaml > check.sarif
shows "$podgraft" diff -q -p policies.yaml -o sarif few.yaml > diff.sarif
shows "$podgraft" diff -q -p policies.yaml -o html few.yaml > few.html
shows "$podgraft" diff -q -p policies.yaml -o html many.yaml > many.html

echo "JUnit and JSON Schema"
if "$python" -c 'import junitparser, jsonschema' 2>/dev/null \
  || "$python" -m pip install --quiet 'junitparser>=3,<6' 'jsonschema>=4.18,<5'; then
  "$python" - "$root" <<'PYTHON'
import json, sys
import jsonschema, junitparser

suites = junitparser.JUnitXml.fromfile("few.xml")
cases = [case for suite in suites for case in suite]
failed = [case for case in cases if any(isinstance(result, junitparser.Failure) for result in case.result)]
assert (suites.tests, suites.failures) == (len(cases), len(failed)) == (7, 7), (suites.tests, suites.failures)
schema = json.load(open(f"{sys.argv[1]}/schemas/diff.schema.json"))
jsonschema.validators.validator_for(schema).check_schema(schema)
for file in ("few.json", "groups.json"):
    jsonschema.validate(json.load(open(file)), schema)
PYTHON
else
  skip_or_fail "junitparser and jsonschema could not be installed"
fi

echo "SARIF: the validator of its authors"
npm=$root/target/ci-npm
if [ -d "$npm/node_modules/playwright-core" ] && [ -d "$npm/node_modules/@microsoft/sarif-multitool-linux" ] \
  || npm install --prefix "$npm" --silent --no-audit --no-fund playwright-core@1 @microsoft/sarif-multitool-linux@5; then
  multitool=$npm/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
  chmod +x "$multitool"
  for log in check.sarif diff.sarif; do
    "$multitool" validate "$log" --output "$log.found" --log ForceOverwrite > "$log.said" || { cat "$log.said"; exit 1; }
    if grep -E ': error ' "$log.said"; then exit 1; fi
  done
else
  skip_or_fail "playwright-core and the SARIF validator could not be installed"
  exit 0
fi

echo "the page in Chromium"
chromium=$(command -v chromium || true)
if [ -z "$chromium" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } > apt.log 2>&1 || true
  chromium=$(command -v chromium || true)
fi
if [ -n "$chromium" ]; then
  CHROMIUM=$chromium NODE_PATH=$npm/node_modules timeout 300 node "$root/tests/page/page.mjs" few.html many.html
else
  skip_or_fail "Chromium is not installed"
fi
