#!/usr/bin/env bash
# Runs each fuzz target for some seconds on one core: fuzz/run.sh SECONDS [TARGET]...
# FUZZ_SEED=n begins the same series of inputs again, without it every run tries others. FUZZ_RUNS=n ends each target
# after so many inputs, too. With both, and enough seconds, a run nearly repeats another: what differs comes of the order
# in hash tables, which the fuzzer sees as coverage.
# It needs a nightly compiler and cargo-fuzz. The project has no unsafe code, so no sanitizer is asked for.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
[ $# -gt 0 ] || set -- parse split policy graft pair expression
series=fuzz/target/series
rm -rf "$series"
mkdir -p "$series"
if [ -n "${FUZZ_SEED:-}" ]; then
  fuzz/seed.sh "$series" "$@"
else
  fuzz/seed.sh fuzz/corpus "$@"
fi
for target in "$@"; do
  corpus=fuzz/corpus/$target
  seeds=()
  # A series begins with the seeds alone, in their order, whatever other runs have kept and folders list first.
  if [ -n "${FUZZ_SEED:-}" ]; then
    corpus=$series/kept-$target
    mkdir "$corpus"
    find "$PWD/$series/$target" -type f | LC_ALL=C sort | paste -sd, | tr -d '\n' >"$series/$target.list"
    seeds=(-seed_inputs="@$PWD/$series/$target.list")
  fi
  dictionary=(-dict=fuzz/yaml.dict)
  [ "$target" != expression ] || dictionary=()
  # What is written to stdout and stderr is said again only when a run fails.
  log="fuzz/target/$target.log"
  if nice cargo +nightly fuzz run -s none "$target" "$corpus" -- "${seeds[@]}" "${dictionary[@]}" -max_len=16384 -timeout=60 -rss_limit_mb=4096 \
    -max_total_time="$seconds" -runs="${FUZZ_RUNS:--1}" -seed="${FUZZ_SEED:-0}" -print_final_stats=1 >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)
    echo "$target: $runs runs, $coverage, $(find "$corpus" -type f | wc -l) inputs kept"
  else
    tail -n 60 "$log" >&2
    echo "$target: failed; the input is in fuzz/artifacts/$target" >&2
    exit 1
  fi
done
