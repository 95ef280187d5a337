#!/bin/sh
# Succeeds if the server answers PING.
set -eu
cli=$(command -v valkey-cli || command -v redis-cli)
export REDISCLI_AUTH="$REDIS_PASSWORD"
[ "${REDIS_TLS:-}" != true ] || set -- --tls --cacert /etc/redis-tls/ca.crt
[ "$("$cli" -h "${REDIS_HOST:-localhost}" "$@" ping)" = PONG ]
