# Settings and helper functions of the laboratory's scripts; sourced by them.
LAB_SOURCE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# State of the running cluster: deleted by stop.sh. A machine has one, as the addresses below are its.
LAB=/var/lib/svc-lab
# Start and stop wait for one another.
LOCK=/run/lock/svc-lab.lock
# Built and downloaded programs, kept between runs.
CACHE=${SVC_LAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/svc-k8s}
BIN=$CACHE/bin
RUN=$LAB/run
# Logs of the daemons of a cluster that could not start.
LAST_LOGS=/var/log/svc-lab
PKI=$LAB/pki

# Everything runs in one network namespace. A veth pair connects it to the host.
NETNS=svc-lab
VETH=veth-svc-lab
HOST_IP=10.211.0.1
NODE_IP=10.211.0.2
POD_CIDR=10.245.0.0/16
SERVICE_CIDR=10.97.0.0/16
API_IP=10.97.0.1
DNS_IP=10.97.0.10
API_PORT=6443
NODE=lab-node
CGROUP=svc-lab
# Inside the laboratory's mount namespace, whose /run is a file system of its own.
CONTAINERD_SOCKET=/run/containerd.sock
export KUBECONFIG=$LAB/admin.kubeconfig

say() { printf '[%s] %s\n' "$(date +%T.%3N)" "$*" >&2; }
fail() { printf 'lab: %s\n' "$*" >&2; exit 1; }
now_ms() { date +%s%3N; }

# lab_pid: the process that holds the laboratory's namespaces, as the host numbers it
lab_pid() {
  local pid
  pid=$(cat "$LAB/init.pid" 2>/dev/null) || return 1
  is_lab_init "$pid" && echo "$pid"
}

# is_lab_init PID: whether the process holds the namespaces of this state folder, so that a number
# that belongs to another process by now is never entered or killed
is_lab_init() {
  { tr '\0' '\n' <"/proc/$1/cmdline"; } 2>/dev/null | grep -qxF "svc-lab-init:$LAB"
}

# in_lab CMD...: runs a command in the laboratory's mount, network and process namespaces
in_lab() {
  local pid
  pid=$(lab_pid) || fail "the laboratory does not run. Start it with $LAB_SOURCE/start.sh"
  nsenter --target "$pid" --mount --net --pid -- "$@"
}

# spawn NAME CMD...: starts a daemon in the laboratory, with its output in a log file
spawn() {
  local name=$1 pid
  shift
  pid=$(lab_pid)
  setsid nsenter --target "$pid" --mount --net --pid -- "$@" \
    >"$RUN/$name.log" 2>&1 </dev/null 9>&- &
  echo $! >"$RUN/$name.pid"
}

# await NAME SECONDS CMD...: polls until the command succeeds, or the daemon has ended
await() {
  local name=$1 deadline=$(($(date +%s) + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    if ! kill -0 "$(cat "$RUN/$name.pid")" 2>/dev/null; then
      tail -n 20 "$RUN/$name.log" >&2
      fail "$name ended while it was starting. Its output is above, and all of it in $LAST_LOGS"
    fi
    if [ "$(date +%s)" -ge "$deadline" ]; then
      tail -n 20 "$RUN/$name.log" >&2
      fail "$name is not ready in time ($*). Its output is above, and all of it in $LAST_LOGS"
    fi
    sleep 0.1
  done
}

kubectl() { "$BIN/kubectl" "$@"; }
