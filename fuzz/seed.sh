#!/usr/bin/env bash
# Fills the targets' folders below a corpus, which git does not keep, from the test data: fuzz/seed.sh CORPUS TARGET...
# FUZZ_SEED leaves out what stands beside the repository, for a series of inputs hangs on these.
set -euo pipefail
corpus=$(realpath "$1")
shift
cd "$(dirname "$0")"

shared=../../shared
[ -z "${FUZZ_SEED:-}" ] || shared=

manifests() {
  find ../testdata ../tests/yaml_files ${shared:+"$shared/torture"} -type f -size -16k \
    \( -name '*.yaml' -o -name '*.yml' -o -name '*.json' \) 2>/dev/null || true
}
policies() {
  find ../policies ../testdata ${shared:+"$shared/cases"} -type f -size -16k -name '*policy*.yaml' 2>/dev/null || true
  find ../policies -type f -name '*.yaml'
}
# One input from stdin.
add() {
  local new="$corpus/$1/new"
  cat >"$new"
  mv "$new" "$corpus/$1/seed-$(sha256sum "$new" | cut -c 1-16)"
}

for target in "$@"; do
  mkdir -p "$corpus/$target"
  case "$target" in
    policy) policies ;;
    pair) find ../testdata/cases -name 'input.*' ;;
    expression) find ../testdata ../policies -name '*.yaml' ;;
    *) manifests ;;
  esac | sort -u | while IFS= read -r file; do
    case "$target" in
      pair)
        [ -f "$(dirname "$file")/policy.yaml" ] || continue # a case of another command
        { cat "$(dirname "$file")/policy.yaml"; printf '\n=====\n'; cat "$file"; } | add pair ;;
      # What stands between `${` and `}`, and behind `expression:`.
      expression)
        { grep -ohP '\$\{\K[^}]+(?=\})' "$file" || true; sed -n "s/.*expression: *['\"]\{0,1\}\(.*[^'\"]\)['\"]\{0,1\} *$/\1/p" "$file"; } |
          while IFS= read -r line; do printf '%s' "$line" | add expression; done ;;
      *) add "$target" <"$file" ;;
    esac
  done
  echo "$target: $(find "$corpus/$target" -type f | wc -l) inputs"
done
