#!/usr/bin/env bash
# Makes the laboratory's namespaces: a network namespace with a veth pair to the host, and a process
# and a mount namespace that end with their first process. Nothing of the host is changed but the
# veth device with its two routes, and an empty cgroup.
set -euo pipefail
. "$(dirname "$0")/env.sh"

ip netns add "$NETNS"
ip link add "$VETH" type veth peer name eth0 netns "$NETNS"
ip address add "$HOST_IP/30" dev "$VETH"
ip link set "$VETH" up
ip -n "$NETNS" link set lo up
ip -n "$NETNS" address add "$NODE_IP/30" dev eth0
ip -n "$NETNS" link set eth0 up
ip -n "$NETNS" route add default via "$HOST_IP"
ip route add "$POD_CIDR" via "$NODE_IP"
ip route add "$SERVICE_CIDR" via "$NODE_IP"
ip netns exec "$NETNS" sysctl -qw net.ipv4.ip_forward=1

# The kubelet wants values for these settings of the whole kernel. It finds them in files that the
# mount namespace has in their place.
mkdir -p "$LAB/sysctl"
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=${setting%%=*}
  echo "${setting#*=}" >"$LAB/sysctl/${file//\//.}"
done

# cgroup v1 has one hierarchy for each controller; v2 has one, where controllers are to be enabled.
if [ -f /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p "/sys/fs/cgroup/$CGROUP"
  sed 's/\</+/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
  sed 's/\</+/g' "/sys/fs/cgroup/$CGROUP/cgroup.controllers" \
    >"/sys/fs/cgroup/$CGROUP/cgroup.subtree_control"
else
  for controller in cpu cpuacct cpuset memory devices freezer blkio pids systemd hugetlb; do
    [ ! -d "/sys/fs/cgroup/$controller" ] || mkdir -p "/sys/fs/cgroup/$controller/$CGROUP"
  done
  # A new cpuset is empty, and takes no process before it is filled.
  for file in cpuset.cpus cpuset.mems; do
    cat "/sys/fs/cgroup/cpuset/$file" >"/sys/fs/cgroup/cpuset/$CGROUP/$file"
  done
fi

# The first process reaps what containerd's shims leave. It ends with the process that started it.
setsid nsenter --net="/run/netns/$NETNS" \
  unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
  bash "$LAB_SOURCE/init.sh" "svc-lab-init:$LAB" >"$RUN/init.log" 2>&1 </dev/null 9>&- &
outer=$!
for _ in $(seq 100); do
  [ ! -e "$RUN/init.ready" ] || break
  kill -0 "$outer" 2>/dev/null || fail "the first process ended: $(cat "$RUN/init.log")"
  sleep 0.05
done
[ -e "$RUN/init.ready" ] || fail "the first process is not ready in 5 s. See $LAST_LOGS/init.log"
tr -d ' ' <"/proc/$outer/task/$outer/children" >"$LAB/init.pid"
lab_pid >/dev/null || fail "the first process cannot be identified. See $LAST_LOGS/init.log"
