#!/usr/bin/env bash
# Runs each fuzz target for some seconds on one core: fuzz/run.sh SECONDS [TARGET]...
# FUZZ_SEED=n repeats a series of inputs, without it every run tries others.
# It needs a nightly compiler and cargo-fuzz. The project has no unsafe code, so no sanitizer is asked for.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
[ $# -gt 0 ] || set -- parse split policy graft pair expression
mkdir -p fuzz/target
fuzz/seed.sh "$@"
for target in "$@"; do
  dictionary=(-dict=fuzz/yaml.dict)
  [ "$target" != expression ] || dictionary=()
  # What is written to stdout and stderr is said again only when a run fails.
  log="fuzz/target/$target.log"
  if nice cargo +nightly fuzz run -s none "$target" -- "${dictionary[@]}" -max_len=16384 -timeout=20 -rss_limit_mb=4096 \
    -max_total_time="$seconds" -seed="${FUZZ_SEED:-0}" -print_final_stats=1 >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
    echo "$target: $runs runs, $coverage, $(find "fuzz/corpus/$target" -type f | wc -l) inputs kept"
  else
    tail -n 60 "$log" >&2
    echo "$target: failed; the input is in fuzz/artifacts/$target" >&2
    exit 1
  fi
done
