#!/usr/bin/env bash
# Makes the cluster's keys, certificates and kubeconfig files, with openssl alone.
set -euo pipefail
. "$(dirname "$0")/env.sh"
umask 077
mkdir -p "$PKI"
cd "$PKI"

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

# authority FILE NAME
authority() {
  new_key "$1"
  openssl req -x509 -new -key "$1.key" -subj "/CN=$2" -days 30 -out "$1.crt" \
    -addext basicConstraints=critical,CA:TRUE \
    -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
}

# leaf FILE SUBJECT AUTHORITY EXTENDED_KEY_USAGE [SUBJECT_ALTERNATIVE_NAMES]
leaf() {
  new_key "$1"
  openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
  {
    echo "basicConstraints=CA:FALSE"
    echo "keyUsage=digitalSignature,keyEncipherment"
    echo "extendedKeyUsage=$4"
    [ -z "${5:-}" ] || echo "subjectAltName=$5"
  } >"$1.ext"
  openssl x509 -req -in "$1.csr" -CA "$3.crt" -CAkey "$3.key" -CAcreateserial -days 30 \
    -extfile "$1.ext" -out "$1.crt" 2>/dev/null
}

# kubeconfig USER
kubeconfig() {
  cat >"$LAB/$1.kubeconfig" <<Y
apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster:
    server: https://$NODE_IP:$API_PORT
    certificate-authority-data: $(base64 -w0 ca.crt)
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$1.crt")
    client-key-data: $(base64 -w0 "$1.key")
contexts:
- name: lab
  context: {cluster: lab, user: $1}
current-context: lab
Y
}

authority ca lab-ca
authority front-proxy-ca lab-front-proxy-ca
leaf apiserver /CN=kube-apiserver ca serverAuth "DNS:kubernetes,DNS:kubernetes.default,\
DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$API_IP,IP:$NODE_IP"
leaf apiserver-kubelet-client /O=system:masters/CN=apiserver-kubelet-client ca clientAuth
leaf front-proxy-client /CN=front-proxy-client front-proxy-ca clientAuth
leaf admin /O=system:masters/CN=lab-admin ca clientAuth
leaf controller-manager /CN=system:kube-controller-manager ca clientAuth
leaf scheduler /CN=system:kube-scheduler ca clientAuth
leaf kubelet "/O=system:nodes/CN=system:node:$NODE" ca clientAuth
leaf kube-proxy /CN=system:kube-proxy ca clientAuth
leaf coredns /O=system:masters/CN=lab-coredns ca clientAuth
openssl genrsa -out service-account.key 2048 2>/dev/null
openssl rsa -in service-account.key -pubout -out service-account.pub 2>/dev/null
for user in admin controller-manager scheduler kubelet kube-proxy coredns; do kubeconfig "$user"; done
