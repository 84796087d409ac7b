#!/usr/bin/env bash
# The download step of action.yml, with a release that is served from a folder:
#   tests/release_download.sh FOLDER TARGET VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/releases/v$3"
cp "$1/podgraft-$2.tar.gz" "$1/SHA256SUMS" "$work/releases/v$3/"
case $2 in x86_64-*) arch=X64 ;; *) arch=ARM64 ;; esac
wants() { "$@" || { echo "failed: $*" >&2; cat "$work/log" >&2; exit 1; }; }

download() {
  status=0
  rm -f "$work/out"
  env RUNNER_OS=Linux RUNNER_ARCH="$arch" RUNNER_TEMP="$work/temp" GITHUB_OUTPUT="$work/out" \
    PODGRAFT_ACTION_ROOT="$root" PODGRAFT_ACTION_REPOSITORY=example/podgraft \
    PODGRAFT_ACTION_RELEASES="file://$work/releases" PODGRAFT_ACTION_VERSION="$1" PODGRAFT_ACTION_SHA256="$2" \
    bash tools/download_release.sh >"$work/log" 2>&1 || status=$?
}

sum=$(sha256sum <"$1/podgraft-$2.tar.gz" | cut -d' ' -f1)
download "" ""
wants test "$status" = 0
program=$(sed -n 's/^path=//p' "$work/out")
wants test "$("$program" --version)" = "podgraft $3"
download "v$3" "$sum"
wants test "$status" = 0
download "$3" "${sum//[0-9]/0}"
wants test "$status" = 2
wants test ! -e "$work/out"
download 9.9.9 ""
wants test "$status" = 2
download '1.0.0/../../v1.0.0' ""
wants test "$status" = 2
# An archive that somebody changed after the checksums were written.
printf x >>"$work/releases/v$3/podgraft-$2.tar.gz"
download "$3" ""
wants test "$status" = 2
wants grep -q '^::error title=podgraft::' "$work/log"
wants test ! -e "$work/out"
echo "the download is as it should be"
