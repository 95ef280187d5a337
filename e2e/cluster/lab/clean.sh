#!/usr/bin/env bash
# Removes the cluster, running or left by a killed run. It succeeds when there is nothing to remove.
set -uo pipefail
. "$(dirname "$0")/env.sh"

# With the first process, the kernel ends every process of its namespace: daemons, shims and pods.
# Their mounts and network namespaces go with the last of them. A run that was killed before it wrote
# init.pid is found by its command line.
for folder in /proc/[0-9]*; do
  pid=${folder#/proc/}
  if [ "$pid" != $$ ] && is_lab_init "$pid"; then kill -KILL "$pid" 2>/dev/null; fi
done

# lab_cgroups: the laboratory's cgroups, innermost first
lab_cgroups() {
  find /sys/fs/cgroup/"$CGROUP" /sys/fs/cgroup/*/"$CGROUP" -depth -type d 2>/dev/null
}
for _ in $(seq 100); do
  [ -n "$(lab_cgroups)" ] || break
  lab_cgroups | xargs -r rmdir 2>/dev/null
  [ -n "$(lab_cgroups)" ] || break
  sleep 0.05
done

# The routes go with the device.
ip link delete "$VETH" 2>/dev/null
ip netns delete "$NETNS" 2>/dev/null
rm -rf "$LAB"

left=$(lab_cgroups | head -n 1)
[ -z "$left" ] || fail "the cgroup $left still has processes. See cgroup.procs in it"
[ ! -e "$LAB" ] || fail "$LAB cannot be removed"
[ ! -e "/sys/class/net/$VETH" ] || fail "the network device $VETH cannot be removed"
