#!/usr/bin/env bash
# Runs a command in the node's mount, network and process namespaces.
# Usage: exec.sh COMMAND [ARGUMENT...]
set -euo pipefail
. "$(dirname "$0")/env.sh"
in_lab "$@"
