#!/usr/bin/env bash
# Makes the build context of the images from what `make build` has built and installed, without what
# only development needs: bin (Envoy and Node.js), node_modules, and svc (everything else).
# Usage: context.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
envoy=${ENVOY_PATH:-$(echo .venv/lib/python3*/site-packages/envoy/_bin/envoy)}
[ -x "$envoy" ] || {
  echo "images: there is no Envoy at $envoy. Run make build, or set ENVOY_PATH" >&2
  exit 1
}
mkdir -p "$folder/bin"

for program in "$envoy" node_modules/node/bin/node; do
  target=$folder/bin/$(basename "$program")
  cmp --silent "$program" "$target" || install -m 755 "$program" "$target"
done

# Packages change with the lock file only.
if ! cmp --silent package-lock.json "$folder/package-lock.json"; then
  cp package.json package-lock.json "$folder/"
  npm ci --prefix "$folder" --omit=dev --ignore-scripts --no-fund --no-audit --silent || {
    rm "$folder/package-lock.json"
    exit 1
  }
  packages=$folder/node_modules
  # The images have Node.js in /usr/local/bin, and nobody compiles packages there.
  rm -rf "$packages"/{node,node-bin-*,.bin,.package-lock.json}
  find "$packages" -type f \
    \( -name '*.map' -o -name '*.ts' -o -name '*.cts' -o -name '*.mts' -o -name '*.md' \) -delete
  find "$packages" -depth -type d -empty -delete
fi

rm -rf "$folder/svc"
mkdir -p "$folder/svc/src/gen" "$folder/svc/envoy"
cp package.json LICENSE "$folder/svc/"
cp -R dist "$folder/svc/dist"
cp src/gen/envoy.binpb src/gen/github-routes.json src/gen/github-graphql.json "$folder/svc/src/gen/"
cp envoy/bootstrap.yaml "$folder/svc/envoy/"

# The same inputs give the same layers, independent of the user's umask.
chmod -R u=rwX,go=rX "$folder"
find "$folder" -exec touch --no-dereference --date=@0 {} +
