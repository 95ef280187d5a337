#!/usr/bin/env bash
# Makes the build context of svc-guard: that of the other images, and classifier, with what runs a
# model.
# Usage: context.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(realpath --canonicalize-missing "$1")
images/context.sh "$folder"
classifier=$folder/classifier

# Packages change with the lock file only.
key=$(cat classifier/package-lock.json classifier/install.sh images/svc-guard/context.sh | sha256sum)
if [ "$(cat "$folder/classifier.key" 2>/dev/null)" != "$key" ]; then
  rm -rf "$classifier"
  classifier/install.sh "$classifier"
  packages=$classifier/node_modules
  rm -rf "$packages"/.package-lock.json "$packages"/onnxruntime-*/{lib,script,__commit.txt} \
    "$packages"/onnxruntime-common/dist/esm
  find "$packages" -type f \
    \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.md' -o -name '*.min.*' \) -delete
  find "$packages" -depth -type d -empty -delete
  echo "$key" >"$folder/classifier.key"
fi

chmod -R u=rwX,go=rX "$classifier"
find "$classifier" "$folder/classifier.key" -exec touch --no-dereference --date=@0 {} +
