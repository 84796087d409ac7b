#!/usr/bin/env bash
# Makes the packages of a release.
#   tools/package.sh archive TARGET FOLDER   podgraft-TARGET.tar.gz (.zip for Windows): program, licence, README
#   tools/package.sh wheel TARGET FOLDER     the Python wheel (needs maturin)
#   tools/package.sh npm FOLDER OUT          the npm packages, from the archives in FOLDER
#   tools/package.sh sbom FOLDER             the software bill of materials (needs cargo-cyclonedx)
# TARGET is a Rust target of this machine's system. Programs for Linux are static. PROFILE_GUIDED=0 leaves the
# profile-guided optimisation out, which takes a second build and LLVM's tools (rustup component add llvm-tools).
# CARGO_BUILD=dev takes the profile for development: packages as they are, of a program that is built in less time.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${CARGO_BUILD:-dist}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

# flags TARGET: what rustc is told for a release.
flags() {
  case $1 in
    *-linux-*) printf '%s' "-C target-feature=+crt-static" ;;
    *-msvc) printf '%s' "-C target-feature=+crt-static" ;;
  esac
}

# profile TARGET: trains an instrumented program and prints the file of its profile; nothing where LLVM's tools are not.
profile() {
  [ "${PROFILE_GUIDED:-1}" = 1 ] || return 0
  local tool folder=$PWD/target/profile
  tool=$(find "$(rustc --print sysroot)/lib/rustlib" -name 'llvm-profdata*' -type f | head -n 1)
  [ -n "$tool" ] || { echo "llvm-profdata is missing: the program is built without a profile" >&2; return 0; }
  rm -rf "$folder" && mkdir -p "$folder"
  RUSTFLAGS="$(flags "$1") -C profile-generate=$folder" CARGO_TARGET_DIR=target/instrumented \
    cargo build --locked --profile dist --quiet --target "$1" --bin podgraft >&2
  local kind program=target/instrumented/$1/dist/podgraft
  for kind in none mixed fleet changed; do
    python3 benches/streams.py "$kind" 4 "$folder/$kind.yaml" >&2
    "$program" apply -q --no-config -p benches/policy.yaml "$folder/$kind.yaml" >"$folder/out.yaml"
    "$program" diff -q --no-config -p benches/policy.yaml "$folder/$kind.yaml" >"$folder/out.diff" || [ $? -eq 1 ]
  done
  local placed=$folder/changed.yaml
  "$program" apply --no-config -i -p benches/policy.yaml "$placed" 2>"$folder/report.txt"
  "$program" check --no-config -p benches/policy.yaml "$placed" >"$folder/check.txt"
  "$program" undo -q --no-config -i "$placed"
  "$tool" merge -o "$folder/merged.profdata" "$folder"/*.profraw
  echo "$folder/merged.profdata"
}

build_flags() {
  local merged
  merged=$(profile "$1")
  echo "$(flags "$1")${merged:+ -C profile-use=$merged}"
}

archive() {
  local target=$1 out=$2 name=podgraft-$1 program=podgraft
  case $target in *windows*) program=podgraft.exe ;; esac
  RUSTFLAGS=$(build_flags "$target") cargo build --locked --profile "$build" --quiet --target "$target" --bin podgraft
  mkdir -p "$out"
  rm -rf "target/$name" && mkdir -p "target/$name"
  local folder=$build
  [ "$build" != dev ] || folder=debug
  cp "target/$target/$folder/$program" LICENSE README.md CHANGELOG.md "target/$name/"
  case $target in
    *windows*) (cd "target/$name" && 7z a -bso0 "../$name.zip" ./*) && mv "target/$name.zip" "$out/" ;;
    *)
      # The same bytes for the same commit: names in order, nobody's user, the time of the commit.
      local sorted=()
      if tar --version | grep -q GNU; then
        sorted=(--sort=name --owner=0 --group=0 --numeric-owner "--mtime=@$(git log -1 --format=%ct)")
      fi
      tar "${sorted[@]}" -C "target/$name" -cf - podgraft LICENSE README.md CHANGELOG.md | gzip -n >"$out/$name.tar.gz"
      ;;
  esac
}

wheel() {
  local target=$1 out=$2 compatibility=()
  # A static program needs no library of the system: the oldest name that pip knows for it is right.
  case $target in *-linux-*) compatibility=(--compatibility manylinux2014 --auditwheel skip) ;; esac
  RUSTFLAGS=$(build_flags "$target") maturin build --quiet --locked --profile "$build" --target "$target" \
    --manifest-path Cargo.toml "${compatibility[@]}" --out "$out"
}

npm_packages() {
  local archives=$1 out=$2 row target platform cpu file optional=""
  mkdir -p "$out/podgraft"
  for row in x86_64-unknown-linux-gnu:linux:x64 aarch64-unknown-linux-gnu:linux:arm64 x86_64-apple-darwin:darwin:x64 \
    aarch64-apple-darwin:darwin:arm64 x86_64-pc-windows-msvc:win32:x64; do
    IFS=: read -r target platform cpu <<<"$row"
    file=podgraft
    local folder=$out/podgraft-$platform-$cpu
    if [ -f "$archives/podgraft-$target.tar.gz" ]; then
      mkdir -p "$folder" && tar -xzf "$archives/podgraft-$target.tar.gz" -C "$folder" podgraft LICENSE
    elif [ -f "$archives/podgraft-$target.zip" ]; then
      file=podgraft.exe
      mkdir -p "$folder" && unzip -q -o "$archives/podgraft-$target.zip" podgraft.exe LICENSE -d "$folder"
    else
      continue
    fi
    cat >"$folder/package.json" <<JSON
{
  "name": "podgraft-$platform-$cpu",
  "version": "$version",
  "description": "podgraft for $platform on $cpu; install the package podgraft",
  "license": "Apache-2.0",
  "repository": {"type": "git", "url": "git+https://github.com/podgraft/podgraft.git"},
  "os": ["$platform"],
  "cpu": ["$cpu"],
  "files": ["$file"]
}
JSON
    optional="$optional${optional:+, }\"podgraft-$platform-$cpu\": \"$version\""
  done
  cp packaging/npm/podgraft.js LICENSE README.md "$out/podgraft/"
  cat >"$out/podgraft/package.json" <<JSON
{
  "name": "podgraft",
  "version": "$version",
  "description": "Grafts agents, sidecars and settings into Kubernetes manifests before any cluster sees them",
  "license": "Apache-2.0",
  "repository": {"type": "git", "url": "git+https://github.com/podgraft/podgraft.git"},
  "bin": {"podgraft": "podgraft.js"},
  "files": ["podgraft.js"],
  "engines": {"node": ">=18"},
  "optionalDependencies": {$optional}
}
JSON
}

sbom() {
  mkdir -p "$1"
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) cargo cyclonedx --quiet --format json --spec-version 1.5 --target all \
    --override-filename podgraft.cdx
  # The names of the project's own crates in it hold the folder it was made in. There is a bill for each of them.
  local index='registry+https://github.com/rust-lang/crates.io-index#'
  sed -E -e "s|path\+file://$PWD/crates/([a-z-]+)#|$index\1@|g" -e "s|path\+file://$PWD(/[a-z]+)?#|$index|g" \
    -e 's|\?download_url=file://[^"]*||' podgraft.cdx.json >"$1/podgraft.cdx.json"
  rm podgraft.cdx.json crates/*/podgraft.cdx.json docs/podgraft.cdx.json policies/podgraft.cdx.json
}

case ${1:-} in
  archive) archive "$2" "$3" ;;
  wheel) wheel "$2" "$3" ;;
  npm) npm_packages "$2" "$3" ;;
  sbom) sbom "$2" ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
