#!/usr/bin/env bash
# Stops the cluster, or removes what a killed run has left. It succeeds when there is nothing to stop.
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ "$(id -u)" = 0 ] || fail "stop.sh removes namespaces and mounts. Run it as root"
exec 9>"$LOCK"
flock 9
bash "$LAB_SOURCE/clean.sh"
