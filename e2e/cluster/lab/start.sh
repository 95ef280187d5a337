#!/usr/bin/env bash
# Starts the cluster: a control plane and one real node. A cluster that runs and answers is kept; what
# a killed run has left is removed first.
# Usage: start.sh PAUSE_ARCHIVE
set -euo pipefail
. "$(dirname "$0")/env.sh"
[ "$(id -u)" = 0 ] || fail "start.sh makes namespaces and mounts. Run it as root"
[ $# = 1 ] || fail "usage: start.sh PAUSE_ARCHIVE (images/out/pause.tar of make images)"
exec 9>"$LOCK"
flock 9
start=$(now_ms)
if lab_pid >/dev/null && [ -f "$LAB/ready" ] && kubectl get --raw /readyz >/dev/null 2>&1; then
  say "the laboratory runs already: export KUBECONFIG=$KUBECONFIG"
  exit 0
fi
bash "$LAB_SOURCE/clean.sh"
bash "$LAB_SOURCE/programs.sh"
programs=$(now_ms)
# A cluster that cannot start leaves nothing but the logs of its daemons.
trap '[ $? = 0 ] || { rm -rf "$LAST_LOGS"; cp -R "$RUN" "$LAST_LOGS"; bash "$LAB_SOURCE/clean.sh"; }' EXIT
mkdir -p "$RUN"
bash "$LAB_SOURCE/namespaces.sh"
bash "$LAB_SOURCE/pki.sh"
bash "$LAB_SOURCE/control-plane.sh"
control_plane=$(now_ms)
bash "$LAB_SOURCE/node.sh" "$1"
node=$(now_ms)
bash "$LAB_SOURCE/dns.sh"
touch "$LAB/ready"
say "programs $((programs - start)) ms, control plane $((control_plane - programs)) ms," \
  "node $((node - control_plane)) ms, DNS $(($(now_ms) - node)) ms"
say "export KUBECONFIG=$KUBECONFIG"
