#!/usr/bin/env bash
# Imports image archives into the node: FOLDER/svc-proxy.tar becomes localhost/svc-proxy:dev.
# Usage: import.sh ARCHIVE...
set -euo pipefail
. "$(dirname "$0")/env.sh"
for archive in "$@"; do
  [ -f "$archive" ] || fail "there is no image archive $archive. Build it with make images"
  in_lab ctr --address "$CONTAINERD_SOCKET" --namespace k8s.io images import --no-unpack=false \
    --base-name "localhost/$(basename "$archive" .tar)" "$(realpath "$archive")" >/dev/null
done
