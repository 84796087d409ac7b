#!/usr/bin/env bash
# Downloads the release of podgraft for this runner, verifies it and names the program in GITHUB_OUTPUT (path=...).
# It is the first step of action.yml, which sets PODGRAFT_ACTION_*.
set -euo pipefail

fail() { echo "::error title=podgraft::$1"; exit 2; }

version=${PODGRAFT_ACTION_VERSION#v}
# The action of a tag downloads the release of that tag.
[ -n "$version" ] || version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$PODGRAFT_ACTION_ROOT/Cargo.toml" | head -n 1)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "version is not of the form 1.2.3"

case ${RUNNER_OS:-}/${RUNNER_ARCH:-} in
  Linux/X64) target=x86_64-unknown-linux-gnu ;;
  Linux/ARM64) target=aarch64-unknown-linux-gnu ;;
  macOS/X64) target=x86_64-apple-darwin ;;
  macOS/ARM64) target=aarch64-apple-darwin ;;
  Windows/X64) target=x86_64-pc-windows-msvc ;;
  *) fail "there is no release for this runner (${RUNNER_OS:-unknown} on ${RUNNER_ARCH:-unknown}); give the input path" ;;
esac
extension=tar.gz program=podgraft
[ "${RUNNER_OS:-}" != Windows ] || { extension=zip; program=podgraft.exe; }

# Tests serve a release of their own.
base=${PODGRAFT_ACTION_RELEASES:-${GITHUB_SERVER_URL:-https://github.com}/$PODGRAFT_ACTION_REPOSITORY/releases/download}
folder=${RUNNER_TEMP:-/tmp}/podgraft-$version
archive=podgraft-$target.$extension
rm -rf "$folder" && mkdir -p "$folder"
for file in "$archive" SHA256SUMS; do
  curl --fail --silent --show-error --location --retry 3 --output "$folder/$file" "$base/v$version/$file" ||
    fail "$file of the release v$version cannot be downloaded"
done

cd "$folder"
if command -v sha256sum >/dev/null; then sum=$(sha256sum <"$archive"); else sum=$(shasum -a 256 <"$archive"); fi
sum=${sum%% *}
wanted=$(awk -v name="$archive" '$2 == name || $2 == "*" name {print $1}' SHA256SUMS)
[ "$sum" = "$wanted" ] || fail "$archive has the SHA-256 $sum, and the release says ${wanted:-nothing about it}"
if [ -n "${PODGRAFT_ACTION_SHA256:-}" ] && [ "$sum" != "$PODGRAFT_ACTION_SHA256" ]; then
  fail "$archive has the SHA-256 $sum, not that of the input sha256"
fi
# Who built it: the release's workflow signs what it makes. GitHub's own runners have gh.
if [ -z "${PODGRAFT_ACTION_RELEASES:-}" ] && command -v gh >/dev/null; then
  gh attestation verify "$archive" --repo "$PODGRAFT_ACTION_REPOSITORY" >/dev/null ||
    fail "$archive was not built by the release workflow of $PODGRAFT_ACTION_REPOSITORY"
fi

case $extension in
  zip) unzip -q -o "$archive" "$program" ;;
  *) tar -xzf "$archive" "$program" ;;
esac
echo "path=$folder/$program" >>"${GITHUB_OUTPUT:-/dev/stdout}"
