#!/usr/bin/env bash
# Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and waits until they answer.
set -euo pipefail
. "$(dirname "$0")/env.sh"

# In memory, because etcd waits for the disk at each write.
ETCD_DATA=/run/etcd
spawn etcd "$BIN/etcd" --name lab --data-dir "$ETCD_DATA" --unsafe-no-fsync \
  --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
  --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
  --initial-cluster lab=http://127.0.0.1:2380

spawn kube-apiserver "$BIN/kube-apiserver" \
  --etcd-servers=http://127.0.0.1:2379 --bind-address=0.0.0.0 --advertise-address="$NODE_IP" \
  --secure-port="$API_PORT" --tls-cert-file="$PKI/apiserver.crt" \
  --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
  --kubelet-client-certificate="$PKI/apiserver-kubelet-client.crt" \
  --kubelet-client-key="$PKI/apiserver-kubelet-client.key" \
  --requestheader-client-ca-file="$PKI/front-proxy-ca.crt" \
  --requestheader-allowed-names=front-proxy-client \
  --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
  --requestheader-extra-headers-prefix=X-Remote-Extra- \
  --proxy-client-cert-file="$PKI/front-proxy-client.crt" \
  --proxy-client-key-file="$PKI/front-proxy-client.key" \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local \
  --service-account-key-file="$PKI/service-account.pub" \
  --service-account-signing-key-file="$PKI/service-account.key" \
  --service-cluster-ip-range="$SERVICE_CIDR" --authorization-mode=Node,RBAC \
  --enable-admission-plugins=NodeRestriction --allow-privileged=true \
  --kubelet-preferred-address-types=InternalIP --v=1
await kube-apiserver 90 kubectl get --raw /readyz

spawn kube-controller-manager "$BIN/kube-controller-manager" \
  --kubeconfig="$LAB/controller-manager.kubeconfig" \
  --authentication-kubeconfig="$LAB/controller-manager.kubeconfig" \
  --authorization-kubeconfig="$LAB/controller-manager.kubeconfig" \
  --bind-address=127.0.0.1 --leader-elect=false --use-service-account-credentials=true \
  --service-account-private-key-file="$PKI/service-account.key" --root-ca-file="$PKI/ca.crt" \
  --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" \
  --allocate-node-cidrs=true --cluster-cidr="$POD_CIDR" \
  --service-cluster-ip-range="$SERVICE_CIDR"

spawn kube-scheduler "$BIN/kube-scheduler" --kubeconfig="$LAB/scheduler.kubeconfig" \
  --authentication-kubeconfig="$LAB/scheduler.kubeconfig" \
  --authorization-kubeconfig="$LAB/scheduler.kubeconfig" \
  --bind-address=127.0.0.1 --leader-elect=false
await kube-controller-manager 60 kubectl get serviceaccount default
