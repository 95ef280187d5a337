#!/usr/bin/env bash
# Installs what svc guard --type promptGuard runs a model with, for this platform and without the
# parts that only other platforms and graphics cards need.
# Usage: install.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")"
folder=$1
mkdir -p "$folder"
cp package.json package-lock.json "$folder/"
# The install script of onnxruntime-node would download libraries for graphics cards.
npm ci --prefix "$folder" --ignore-scripts --no-fund --no-audit
packages=$folder/node_modules
# The other packages are those of that install script.
find "$packages" -mindepth 1 -maxdepth 1 ! -name @huggingface ! -name 'onnxruntime-*' -exec rm -rf {} +
platform=$("$(dirname "$PWD")/node_modules/.bin/node" -p '`${process.platform}/${process.arch}`')
binaries=$packages/onnxruntime-node/bin/napi-v6
[ -f "$binaries/$platform/onnxruntime_binding.node" ] || {
  echo "classifier: onnxruntime-node has no library for $platform. svc guard has other types" >&2
  exit 1
}
find "$binaries" -mindepth 2 -maxdepth 2 ! -path "$binaries/$platform" -exec rm -rf {} +
find "$binaries" -mindepth 1 -maxdepth 1 -empty -delete
