#!/usr/bin/env bash
# Builds images with buildah into images/out/NAME.tar, as OCI archives, without a container engine
# and without a registry. An image whose inputs have not changed is not built again.
# Usage: build.sh NAME... (svc, svc-proxy, svc-guard, or a folder of e2e/cluster/images)
set -euo pipefail
cd "$(dirname "$0")/.."
out=$PWD/images/out
mkdir -p "$out"
# Two runs at once would write the same files.
exec 9>"$out/lock"
flock 9
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
storage=(--root "$out/storage" --runroot "$out/storage-run")
buildah() { command buildah "${storage[@]}" "$@"; }
trap 'rm -rf "$out/storage-run"' EXIT

# hash_of PATH...: names, modes and contents of all files below
hash_of() {
  find "$@" \( -type f -printf '%p %m\n' -o -type l -printf '%p %l\n' \) | LC_ALL=C sort | sha256sum
  find "$@" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
}

# base_archive: makes the base's file system, when the script that makes it has changed
base_archive() {
  local key
  key=$(hash_of images/base | sha256sum)
  [ "$(cat "$out/base.key" 2>/dev/null)" != "$key" ] || return 0
  bash images/base/build.sh "$out/base.tar"
  buildah rmi --force localhost/svc-base:dev >/dev/null 2>&1 || true
  echo "$key" >"$out/base.key"
}

# base_image: makes the image that others are built from, when there is none
base_image() {
  [ -z "$(buildah images --quiet --filter reference=localhost/svc-base:dev)" ] || return 0
  local container
  container=$(buildah from scratch)
  buildah add --quiet "$container" "$out/base.tar" / >/dev/null
  buildah commit --quiet --rm "$container" localhost/svc-base:dev >/dev/null
}

# image NAME FOLDER CONTEXT
image() {
  local name=$1 folder=$2 context=$3 key start
  key=$( (cat "$out/base.key"; hash_of images/build.sh "$folder" "$context") | sha256sum)
  if [ -f "$out/$name.tar" ] && [ "$(cat "$out/$name.key" 2>/dev/null)" = "$key" ]; then
    echo "$name: up to date"
    return
  fi
  start=$(date +%s)
  base_image
  buildah build --quiet --layers --pull-never --file "$folder/Dockerfile" \
    --build-arg BASE=localhost/svc-base:dev --build-arg "VERSION=$(version)" \
    --build-arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
    --timestamp 0 --tag "localhost/$name:dev" "$context" >"$out/$name.log" 2>&1 || {
    tail -n 30 "$out/$name.log" >&2
    echo "images: $name cannot be built. The output is above, and in $out/$name.log" >&2
    exit 1
  }
  rm -f "$out/$name.tar"
  buildah push --quiet "localhost/$name:dev" \
    "oci-archive:$out/$name.tar:localhost/$name:dev" >/dev/null
  # Images of earlier builds. Layers that this build has used stay, as its cache.
  buildah rmi --prune >/dev/null
  echo "$key" >"$out/$name.key"
  echo "$name: $(du -m "$out/$name.tar" | cut -f1) MiB, built in $(($(date +%s) - start)) s"
}

version() { node_modules/.bin/node -p 'require("./package.json").version'; }

[ $# -gt 0 ] || { echo "usage: images/build.sh NAME..." >&2; exit 2; }
base_archive
for name in "$@"; do
  folder=e2e/cluster/images/$name
  if [ -f "images/$name/context.sh" ]; then
    bash "images/$name/context.sh" "$out/context-$name"
    image "$name" "images/$name" "$out/context-$name"
  elif [ -f "images/$name/Dockerfile" ]; then
    bash images/context.sh "$out/context"
    image "$name" "images/$name" "$out/context"
  elif [ -f "$folder/context.sh" ]; then
    bash "$folder/context.sh" "$out/context-$name"
    image "$name" "$folder" "$out/context-$name"
  elif [ -f "$folder/Dockerfile" ]; then
    image "$name" "$folder" "$folder"
  else
    echo "images: there is no image $name: neither images/$name nor e2e/cluster/images/$name" >&2
    exit 2
  fi
done
