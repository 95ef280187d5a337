#!/usr/bin/env bash
# Makes the build context of the agent's image: Node.js, the packages of package-lock.json, and the
# clients that the tests without a cluster run too.
# Usage: context.sh FOLDER
set -euo pipefail
folder=$1
source=$(cd "$(dirname "$0")" && pwd)
cmp --silent "$source/package-lock.json" "$folder/package-lock.json" || {
  rm -rf "$folder"
  mkdir -p "$folder/bin"
  cp "$source/package.json" "$folder/"
  cp "$source/package-lock.json" "$folder/package-lock.json"
  npm ci --prefix "$folder" --ignore-scripts --no-fund --no-audit --silent
  find "$folder/node_modules" -type f \( -name '*.map' -o -name '*.ts' \) -delete
}
install -m 755 "$source/../../../../node_modules/node/bin/node" "$folder/bin/node"
mkdir -p "$folder/clients"
install -m 644 "$source"/../../../support/clients/{attempt,mcp-sdk}.mjs "$folder/clients/"
find "$folder" -exec touch --no-dereference --date=@0 {} +
