#!/usr/bin/env bash
# Starts a container engine that serves Docker's API: podman, inside the laboratory's namespaces.
# Its socket is a file, because pods reach the node's ports. Published ports are the node's.
set -euo pipefail
. "$(dirname "$0")/env.sh"
# Of the common runtimes, crun alone runs containers without cgroups of their own, which would be
# outside of the laboratory's.
cat >"$LAB/containers.conf" <<Y
[containers]
cgroups = "disabled"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
Y
spawn podman env CONTAINERS_CONF="$LAB/containers.conf" podman --root "$LAB/podman" \
  --runroot /run/podman --storage-driver overlay system service --time 0 "unix://$ENGINE_SOCKET"
await podman 30 curl --silent --fail --unix-socket "$ENGINE_SOCKET" http://localhost/_ping
