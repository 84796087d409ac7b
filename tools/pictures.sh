#!/usr/bin/env bash
# The pictures of the README, from real output: tools/pictures.sh PODGRAFT
# The page needs Chromium and playwright-core (NODE_PATH; tests/consumers.sh puts it into target/ci-npm).
set -euo pipefail
podgraft=$(realpath "$1")
cd "$(dirname "$0")/.."
arguments=(-p builtin:jmx-exporter testdata/examples/shop.yaml)

{ "$podgraft" diff -q --color always "${arguments[@]}" || [ $? -eq 1 ]; } \
  | python3 tools/terminal_svg.py "podgraft diff ${arguments[*]}" 46 > docs/pictures/diff.svg

page=$(mktemp -d)
trap 'rm -rf "$page"' EXIT
python3 tests/page/manifests.py 7 > "$page/shop.yaml"
podgraft_page() { cd "$page" && "$podgraft" diff -q -o html -p "$OLDPWD/tests/page/policies.yaml" shop.yaml; }
(podgraft_page > "$page/page.html") || [ $? -eq 1 ]
NODE_PATH=${NODE_PATH:-$PWD/target/ci-npm/node_modules} node tools/page_picture.mjs "$page/page.html" docs/pictures/page.png
ls -l docs/pictures
