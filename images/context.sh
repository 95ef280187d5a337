#!/usr/bin/env bash
# Makes the build context of the images: what `make build` has built and installed, in the layout
# that the images have, without what only development needs.
# Usage: context.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
envoy=${ENVOY_PATH:-$(echo .venv/lib/python3*/site-packages/envoy/_bin/envoy)}
[ -x "$envoy" ] || { echo "images: there is no Envoy at $envoy. Run make build, or set ENVOY_PATH" >&2; exit 1; }
mkdir -p "$folder/bin" "$folder/opt/svc/src/gen" "$folder/opt/svc/envoy"
svc=$folder/opt/svc

# Production packages change with the lock file only.
if ! cmp --silent package-lock.json "$folder/package-lock.json"; then
  rm -rf "$svc/node_modules"
  cp package.json package-lock.json "$svc/"
  npm ci --prefix "$svc" --omit=dev --ignore-scripts --no-fund --no-audit --silent
  rm "$svc/package-lock.json"
  # The images have Node.js in /usr/local/bin, and nobody compiles or debugs packages there.
  rm -rf "$svc"/node_modules/{node,node-bin-*,.bin,.package-lock.json}
  find "$svc/node_modules" -type f \
    \( -name '*.map' -o -name '*.ts' -o -name '*.cts' -o -name '*.mts' -o -name '*.md' \) -delete
  find "$svc/node_modules" -depth -type d -empty -delete
  cp package-lock.json "$folder/package-lock.json"
fi
cp package.json LICENSE "$svc/"
rm -rf "$svc/dist"
cp -R dist "$svc/dist"
cp src/gen/envoy.binpb src/gen/github-routes.json src/gen/github-graphql.json "$svc/src/gen/"
cp envoy/bootstrap.yaml "$svc/envoy/"
for program in "$envoy" node_modules/node/bin/node; do
  target=$folder/bin/$(basename "$program")
  cmp --silent "$program" "$target" || install -m 755 "$program" "$target"
done
# The same inputs give the same layers.
find "$folder" -exec touch --no-dereference --date=@0 {} +
