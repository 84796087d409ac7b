#!/usr/bin/env bash
# Fills the targets' corpus folders, which git does not keep, from the test data: fuzz/seed.sh [TARGET]...
set -euo pipefail
cd "$(dirname "$0")"

manifests() {
  find ../testdata ../tests/yaml_files ../../shared/torture -type f -size -16k \
    \( -name '*.yaml' -o -name '*.yml' -o -name '*.json' \) 2>/dev/null || true
}
policies() {
  find ../policies ../testdata ../../shared/cases -type f -size -16k -name '*policy*.yaml' 2>/dev/null || true
  find ../policies -type f -name '*.yaml'
}

[ $# -gt 0 ] || set -- parse split policy graft
for target in "$@"; do
  mkdir -p "corpus/$target"
  { if [ "$target" = policy ]; then policies; else manifests; fi; } | sort -u | while IFS= read -r file; do
    cp "$file" "corpus/$target/seed-$(sha256sum "$file" | cut -c 1-16)"
  done
  echo "$target: $(find "corpus/$target" -type f | wc -l) inputs"
done
