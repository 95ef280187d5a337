#!/usr/bin/env bash
# Starts the cluster's DNS: CoreDNS on the node, behind the Service kube-dns. It answers for Services
# and for the names in the hosts file; every other name outside of the cluster does not exist.
set -euo pipefail
. "$(dirname "$0")/env.sh"
touch "$LAB/hosts"
cat >"$LAB/Corefile" <<Y
.:53 {
  errors
  ready 127.0.0.1:8181
  hosts $LAB/hosts {
    ttl 1
    reload 100ms
    fallthrough
  }
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $LAB/coredns.kubeconfig lab
    pods verified
    ttl 1
  }
  template ANY ANY . {
    rcode NXDOMAIN
  }
}
Y
spawn coredns "$BIN/coredns" -conf "$LAB/Corefile"
kubectl apply -f - >/dev/null <<Y
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: $DNS_IP
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kube-dns-node
  namespace: kube-system
  labels: {kubernetes.io/service-name: kube-dns}
addressType: IPv4
endpoints: [{addresses: [$NODE_IP], conditions: {ready: true}}]
ports:
- {name: dns, port: 53, protocol: UDP}
- {name: dns-tcp, port: 53, protocol: TCP}
Y
await coredns 30 in_lab curl --silent --fail http://127.0.0.1:8181/ready
