#!/bin/sh
# Starts redis-server or valkey-server. The password is in a file that only this container can read: arguments are
# visible in /proc.
set -eu
umask 077
conf=/run/redis/redis.conf
printf 'dir /data\nappendonly yes\nmaxmemory %s\nmaxmemory-policy noeviction\n' "$REDIS_MAX_MEMORY" >"$conf"
# Backslashes and quotes of a quoted value are escaped.
printf 'requirepass "%s"\n' "$(printf %s "$REDIS_PASSWORD" | sed 's/[\\"]/\\&/g')" >>"$conf"
if [ "${REDIS_TLS:-}" = true ]; then
  cat >>"$conf" <<END
port 0
tls-port 6379
tls-cert-file /etc/redis-tls/tls.crt
tls-key-file /etc/redis-tls/tls.key
tls-ca-cert-file /etc/redis-tls/ca.crt
tls-auth-clients no
END
fi
exec "$(command -v valkey-server || command -v redis-server)" "$conf"
