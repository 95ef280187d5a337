#!/usr/bin/env bash
# Imports image archives into the node: FOLDER/svc-proxy.tar becomes localhost/svc-proxy:dev.
# An archive that was imported and has not changed is skipped.
# Usage: import.sh ARCHIVE...
set -euo pipefail
. "$(dirname "$0")/env.sh"
mkdir -p "$LAB/imported"
for archive in "$@"; do
  name=$(basename "$archive" .tar)
  [ -f "$archive" ] || fail "there is no image archive $archive. Build it with make images"
  digest=$(tar -xOf "$archive" index.json | sha256sum)
  [ "$(cat "$LAB/imported/$name" 2>/dev/null)" != "$digest" ] || continue
  in_lab ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images import \
    --base-name "localhost/$name" "$(realpath "$archive")" >/dev/null
  echo "$digest" >"$LAB/imported/$name"
done
