#!/usr/bin/env bash
# First process of the laboratory's process namespace: prepares the mount namespace, then reaps.
set -euo pipefail
. "$(dirname "$0")/env.sh"

# Shared with the containers' mount namespaces, as the kubelet and CRI expect, but not with the host.
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir /run/netns /run/lock
for file in "$LAB"/sysctl/*; do
  setting=$(basename "$file")
  mount --bind "$file" "/proc/sys/${setting//.//}"
done
# Next to the hierarchies of cgroup v1, an empty v2 hierarchy would be taken for the only one.
[ -f /sys/fs/cgroup/cgroup.controllers ] || umount /sys/fs/cgroup/unified 2>/dev/null || true
touch "$RUN/init.ready"

set +e
while :; do
  sleep infinity &
  wait $!
done
