#!/usr/bin/env bash
# What a release makes, installed into fresh environments and run: tests/packages.sh PYTHON
# A tool that cannot be installed is a failure in CI (CI=true) and a visible skip elsewhere.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=$(realpath --no-symlinks "$1") # the link is what makes it a virtual environment
target=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip_or_fail() {
  if [ "${CI:-}" = true ]; then echo "failed: $*" >&2; exit 1; fi
  echo "skipped: $*"
}
wants() { "$@" || { echo "failed: $*" >&2; exit 1; }; }
example=testdata/examples/shop.yaml
expected=$work/expected.yaml

echo "- the archive of a release"
# The packages are the same, whichever way the program in them was optimised: the quickest build serves them all.
export CARGO_BUILD=dev PROFILE_GUIDED=0
tools/package.sh archive "$target" "$work/dist"
mkdir "$work/archive" && tar -xzf "$work/dist/podgraft-$target.tar.gz" -C "$work/archive"
program=$work/archive/podgraft
wants test "$("$program" --version)" = "podgraft $version"
"$program" apply -q -p builtin:jmx-exporter "$example" >"$expected"
wants grep -q initContainers: "$expected"
wants test -s "$work/archive/LICENSE"

echo "- the container image: its file system, with nothing else in it, read only, as its user"
image=$work/image
mkdir -p "$image/linux/amd64" && cp "$program" "$image/linux/amd64/"
# The instructions of the Dockerfile that make files, carried out here.
copied=$(sed -n 's/^COPY --chmod=0555 \${TARGETPLATFORM}\/podgraft \(.*\)$/\1/p' packaging/container/Dockerfile)
entry=$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]$/\1/p' packaging/container/Dockerfile)
command=$(sed -n 's/^CMD \["\(.*\)"\]$/\1/p' packaging/container/Dockerfile)
user=$(sed -n 's/^USER \(.*\)$/\1/p' packaging/container/Dockerfile)
wants test "$copied" = "$entry"
wants grep -q '^FROM scratch$' packaging/container/Dockerfile
mkdir "$work/rootfs" && install -m 0555 "$program" "$work/rootfs$copied"
cat >"$work/list.yaml" <<'YAML'
apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: podgraft.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: scrape}
  spec:
    match: {kinds: [Deployment]}
    inject:
      podAnnotations: {prometheus.io/scrape: "true"}
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec:
        containers:
        - name: web
          image: registry.example.com/web:1
          ports: [{name: metrics, containerPort: 9100}]
YAML
"$program" fn <"$work/list.yaml" >"$work/list.expected"
wants grep -q 'prometheus.io/scrape' "$work/list.expected"
if unshare -rm true 2>/dev/null; then
  # shellcheck disable=SC2016 # expanded inside
  unshare -rm bash -euc '
    mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"
    if touch "$1/written" 2>/dev/null; then echo "the root file system can be written" >&2; exit 1; fi
    exec chroot "$1" "$2" "$3"' - "$work/rootfs" "$entry" "$command" <"$work/list.yaml" >"$work/list.actual"
elif [ "$(id -u)" = 0 ]; then
  chroot "$work/rootfs" "$entry" "$command" <"$work/list.yaml" >"$work/list.actual"
else
  skip_or_fail "neither unshare nor chroot is allowed here"
fi
[ ! -e "$work/list.actual" ] || wants cmp "$work/list.expected" "$work/list.actual"
if [ "$(id -u)" = 0 ]; then
  chroot --userspec="$user" "$work/rootfs" "$entry" "$command" <"$work/list.yaml" | wants cmp - "$work/list.expected"
fi

echo "- the Python wheel, in an environment of its own"
if "$python" -m pip install --quiet 'maturin>=1.9,<2' 'PyYAML>=6,<7'; then
  PATH="$(dirname "$python"):$PATH" tools/package.sh wheel "$target" "$work/dist"
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --no-index --find-links "$work/dist" podgraft
  wants test "$("$work/venv/bin/podgraft" --version)" = "podgraft $version"
  "$work/venv/bin/podgraft" apply -q -p builtin:jmx-exporter "$example" | wants cmp - "$expected"
else
  skip_or_fail "maturin could not be installed"
fi

echo "- the npm packages, in a folder of their own"
if command -v npm >/dev/null; then
  tools/package.sh npm "$work/dist" "$work/npm"
  mkdir "$work/node"
  for package in "$work"/npm/podgraft*/; do (cd "$package" && npm pack --silent --pack-destination "$work/node" >/dev/null); done
  (cd "$work/node" && npm init --yes >/dev/null && npm install --silent --no-audit --no-fund --offline ./podgraft-*.tgz >/dev/null)
  wants test "$("$work/node/node_modules/.bin/podgraft" --version)" = "podgraft $version"
  "$work/node/node_modules/.bin/podgraft" apply -q -p builtin:jmx-exporter "$example" | wants cmp - "$expected"
  status=0
  "$work/node/node_modules/.bin/podgraft" diff -q -p builtin:jmx-exporter "$example" >/dev/null || status=$?
  wants test "$status" = 1
else
  skip_or_fail "npm is not there"
fi

echo "- the software bill of materials: valid CycloneDX, with every crate that is compiled in"
command -v cargo-cyclonedx >/dev/null || cargo install --quiet --locked --debug cargo-cyclonedx || true
if command -v cargo-cyclonedx >/dev/null && "$python" -m pip install --quiet 'cyclonedx-python-lib[json-validation]>=11,<12'; then
  tools/package.sh sbom "$work/dist"
  cargo tree --locked --package podgraft --edges normal --prefix none --no-dedupe --format '{p}' | cut -d' ' -f1,2 | sort -u |
    "$python" tests/python/bill.py "$work/dist/podgraft.cdx.json"
else
  skip_or_fail "cargo-cyclonedx or a validator of CycloneDX could not be installed"
fi

echo "- the crates: what is published builds alone, and is installed"
cargo package --workspace --locked --allow-dirty --no-verify --quiet
mkdir "$work/crate"
tar -xzf "target/package/podgraft-$version.crate" -C "$work/crate"
# Until they are published, the other crates are those beside it; the lock file names the published ones.
beside=()
for crate in podgraft-core podgraft-docs podgraft-policies podgraft-yaml; do
  tar -xzf "target/package/$crate-$version.crate" -C "$work/crate"
  sed -i "/^name = \"$crate\"\$/,/^\$/{/^source = /d;/^checksum = /d}" "$work/crate/podgraft-$version/Cargo.lock"
  beside+=(--config "patch.crates-io.$crate.path='$work/crate/$crate-$version'")
done
cargo install --locked --quiet --debug --path "$work/crate/podgraft-$version" --root "$work/cargo" --target-dir target \
  "${beside[@]}"
wants test "$("$work/cargo/bin/podgraft" --version)" = "podgraft $version"

echo "- the kubectl plugin and its krew manifest"
mkdir "$work/plugin" && cp "$program" "$work/plugin/kubectl-podgraft"
if command -v kubectl >/dev/null; then
  PATH="$work/plugin:$PATH" kubectl plugin list >"$work/plugins"
  wants grep -q kubectl-podgraft "$work/plugins"
  PATH="$work/plugin:$PATH" kubectl podgraft apply -q -p builtin:jmx-exporter "$example" | wants cmp - "$expected"
else
  skip_or_fail "kubectl is not in PATH"
fi
# krew itself validates the manifest and installs from it, out of a release that is served from a folder.
(cd "$work/dist" && sha256sum -- *.tar.gz >SHA256SUMS)
mkdir -p "$work/served" && ln -s "$work/dist" "$work/served/v$version"
: >"$work/server.log"
python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$work/served" >"$work/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
for _ in {1..50}; do
  port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/server.log")
  [ -z "$port" ] || break
  sleep 0.1
done
PODGRAFT_RELEASES="http://127.0.0.1:$port" tools/krew_manifest.sh "v$version" "$work/dist/SHA256SUMS" >"$work/podgraft.yaml"
wants grep -q "sha256: $(cut -d' ' -f1 "$work/dist/SHA256SUMS" | head -n 1)" "$work/podgraft.yaml"
mkdir -p target/hosts/krew
if ! command -v go >/dev/null || ! go build -C tests/krew -o "$root/target/hosts/krew/kubectl-krew" sigs.k8s.io/krew/cmd/krew ||
  ! go build -C tests/krew -o "$root/target/hosts/krew/" sigs.k8s.io/krew/cmd/validate-krew-manifest; then
  skip_or_fail "krew could not be built"
elif command -v kubectl >/dev/null; then
  (
    export PATH=$root/target/hosts/krew:$work/krew/bin:$PATH KREW_ROOT=$work/krew
    validate-krew-manifest -manifest "$work/podgraft.yaml" >"$work/krew.log" 2>&1 || { cat "$work/krew.log" >&2; exit 1; }
    kubectl krew install --manifest="$work/podgraft.yaml" </dev/null >"$work/krew.log" 2>&1 || { cat "$work/krew.log" >&2; exit 1; }
    wants test "$(kubectl podgraft --version)" = "podgraft $version"
  )
fi
kill "$server"

echo "- pre-commit: the hook finds a file that is behind, and passes when it is not"
if "$python" -m pip install --quiet 'pre-commit>=4,<5'; then
  # pre-commit installs a package of its own beside the hook, for which pip wants setuptools.
  "$python" -m pip download --quiet --no-deps --dest "$work/dist" setuptools
  mkdir "$work/repository"
  cp "$example" "$work/repository/"
  cp hosts/pre-commit/pre-commit-config.yaml "$work/repository/.pre-commit-config.yaml"
  (
    cd "$work/repository"
    export PRE_COMMIT_HOME=$work/pre-commit PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/dist GIT_CONFIG_GLOBAL=/dev/null
    git init --quiet . && git add .
    status=0
    "$python" -m pre_commit run --all-files >"$work/pre-commit.log" 2>&1 || status=$?
    wants test "$status" = 1
    wants grep -q 'jmx-exporter' "$work/pre-commit.log"
    "$program" apply -q --in-place -p builtin:jmx-exporter shop.yaml && git add .
    "$python" -m pre_commit run --all-files >"$work/pre-commit.log" 2>&1 || { cat "$work/pre-commit.log"; exit 1; }
    # This repository's hooks, with a commit that changes the policy only.
    { printf 'repos:\n- repo: local\n  hooks:\n' && sed 's/^/  /' "$root/.pre-commit-hooks.yaml"; } >.pre-commit-config.yaml
    "$program" policy show jmx-exporter >agents.yaml
    printf 'apiVersion: podgraft.dev/v1alpha1\nkind: Config\npolicies: [agents.yaml]\n' >podgraft.yaml
    "$program" apply -q --in-place shop.yaml && git add .
    export PATH=${program%/*}:$PATH
    "$python" -m pre_commit run podgraft-check --files agents.yaml >"$work/pre-commit.log" 2>&1 || { cat "$work/pre-commit.log"; exit 1; }
    sed -i 's/9404/9405/' agents.yaml && git add .
    for hook in check apply; do
      status=0
      "$python" -m pre_commit run "podgraft-$hook" --files agents.yaml >"$work/pre-commit.log" 2>&1 || status=$?
      wants test "$status" = 1
    done
    wants grep -q 9405 shop.yaml
  )
  "$python" -m pre_commit validate-manifest .pre-commit-hooks.yaml
  "$python" -m pre_commit validate-config hosts/pre-commit/pre-commit-config.yaml
else
  skip_or_fail "pre-commit could not be installed"
fi

echo "- the workflows, the action and the examples for other engines, by their own checkers"
if "$python" -m pip install --quiet 'zizmor>=1.16,<2' 'check-jsonschema>=0.34,<1'; then
  bin=$(dirname "$python")
  "$bin/zizmor" --offline --quiet .github action.yml
  "$bin/check-jsonschema" --builtin-schema vendor.github-actions action.yml
  "$bin/check-jsonschema" --builtin-schema vendor.github-workflows .github/workflows/*.yml
  "$bin/check-jsonschema" --builtin-schema vendor.gitlab-ci hosts/gitlab/.gitlab-ci.yml
else
  skip_or_fail "zizmor or check-jsonschema could not be installed"
fi
actionlint=target/hosts/actionlint
if [ -x "$actionlint" ] || { command -v go >/dev/null && GOBIN="$root/target/hosts" go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7; }; then
  "$actionlint" .github/workflows/*.yml
else
  skip_or_fail "actionlint could not be installed"
fi
tests/release_download.sh "$work/dist" "$target" "$version"
echo "the packages are as they should be"
