#!/usr/bin/env bash
# Starts containerd, the kubelet and kube-proxy, and waits until the node is Ready.
# Usage: node.sh PAUSE_ARCHIVE
set -euo pipefail
. "$(dirname "$0")/env.sh"
CNI_BIN=/usr/lib/cni
mkdir -p "$LAB"/{cni,containerd,kubelet}

cat >"$LAB/cni/10-lab.conflist" <<Y
{
  "cniVersion": "0.4.0",
  "name": "lab",
  "plugins": [
    {
      "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
      "ipam": {
        "type": "host-local", "dataDir": "/run/cni-ipam",
        "ranges": [[{"subnet": "${POD_CIDR%.*.*}.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
Y

cat >"$LAB/containerd.toml" <<Y
version = 2
root = "$LAB/containerd"
state = "/run/containerd"
[grpc]
  address = "$CONTAINERD_SOCKET"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:dev"
  stream_server_address = "127.0.0.1"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE, no process may lower its oom_score_adj below the inherited one.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$CNI_BIN"
    conf_dir = "$LAB/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
Y

cat >"$LAB/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
failSwapOn: false
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
address: $NODE_IP
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
clusterDomain: cluster.local
clusterDNS: [$DNS_IP]
resolvConf: ""
volumePluginDir: $LAB/kubelet/volumeplugins
podLogsDir: $LAB/pod-logs
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi, nodefs.available: "1%", imagefs.available: "1%"}
maxPods: 200
# The end-to-end tests make pods in bursts.
kubeAPIQPS: 100
kubeAPIBurst: 200
registerNode: true
Y

PATH=/usr/sbin:/usr/bin:/sbin:/bin
spawn containerd /usr/bin/containerd --config "$LAB/containerd.toml"
await containerd 30 in_lab ctr --address "$CONTAINERD_SOCKET" version
bash "$LAB_SOURCE/import.sh" "$1"

spawn kubelet "$BIN/kubelet" --config="$LAB/kubelet.yaml" --kubeconfig="$LAB/kubelet.kubeconfig" \
  --root-dir="$LAB/kubelet" --hostname-override="$NODE" --node-ip="$NODE_IP" --v=2
spawn kube-proxy "$BIN/kube-proxy" --kubeconfig="$LAB/kube-proxy.kubeconfig" \
  --hostname-override="$NODE" --proxy-mode=iptables --cluster-cidr="$POD_CIDR" \
  --conntrack-max-per-core=0 --healthz-bind-address=127.0.0.1:10256 \
  --metrics-bind-address=127.0.0.1:10249
await kubelet 90 kubectl wait --for=condition=Ready "node/$NODE" --timeout=1s
await kube-proxy 30 in_lab curl --silent --fail http://127.0.0.1:10256/healthz
