#!/usr/bin/env bash
# The krew manifest of a release: tools/krew_manifest.sh vX.Y.Z SHA256SUMS
set -euo pipefail
tag=$1
sums=$2
base=${PODGRAFT_RELEASES:-https://github.com/podgraft/podgraft/releases/download}
cat <<YAML
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: podgraft
spec:
  version: $tag
  homepage: https://github.com/podgraft/podgraft
  shortDescription: Show and apply injections in manifests
  description: |
    Puts agents, sidecars and settings into manifests before any cluster
    sees them, and shows the change as a diff that a person reviews.
    It reads files only: it needs no cluster and no kubeconfig.
  platforms:
YAML
while read -r os arch target file; do
  archive=podgraft-$target
  for extension in tar.gz zip; do
    sum=$(sed -n "s/^\([0-9a-f]\{64\}\)  \**$archive\.$extension\$/\1/p" "$sums")
    [ -n "$sum" ] || continue
    cat <<YAML
  - selector:
      matchLabels: {os: $os, arch: $arch}
    uri: $base/$tag/$archive.$extension
    sha256: $sum
    bin: $file
YAML
  done
done <<TARGETS
linux amd64 x86_64-unknown-linux-gnu podgraft
linux arm64 aarch64-unknown-linux-gnu podgraft
darwin amd64 x86_64-apple-darwin podgraft
darwin arm64 aarch64-apple-darwin podgraft
windows amd64 x86_64-pc-windows-msvc podgraft.exe
TARGETS
