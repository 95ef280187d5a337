/**
 * Prepares a namespace for the agent: root runs it as the first process, before the agent is in it.
 * It then remains as an idle first process: when it dies, the kernel ends everything else in the
 * namespace.
 */

/** Folder of the certificates for the agent, in its own /run. */
export const AGENT_TRUST_DIR = "/run/svc/trust";

/** Written to standard output when everything is ready. */
export const NAMESPACE_READY = "ready";

/**
 * Arguments: scratch folder, trust folder, folder of hosts, resolv.conf and nsswitch.conf, the
 * working folder, then the files and folders to hide. Folders with sockets or files of other users
 * are replaced by private, empty ones, because a network namespace does not isolate Unix sockets.
 * If /etc/resolv.conf is a link into /run (systemd-resolved), the new /run has its target. A mount
 * inherited by a user namespace cannot be removed in it, so hidden files stay hidden. The second
 * address makes glibc consider IPv4 configured, for programs that set AI_ADDRCONFIG: 127.0.0.1
 * does not count.
 */
export const NAMESPACE_SCRIPT = `set -eu
umask 022
scratch=$1 trust=$2 etc=$3 workdir=$4
shift 4
ip link set lo up
ip address add 127.0.0.2/8 dev lo

for file in hosts resolv.conf nsswitch.conf; do
  [ ! -e "/etc/$file" ] || mount -n --bind "$etc/$file" "/etc/$file"
done

resolv=$(readlink -f /etc/resolv.conf || :)

mount -n -t tmpfs -o mode=0700 tmpfs "$scratch"
mkdir "$scratch/new" "$scratch/empty"
own() {
  [ -d "$1" ] && [ ! -L "$1" ] || return 0
  mount -n -t tmpfs -o "mode=$2,nosuid,nodev" tmpfs "$scratch/new"
  case "$workdir" in
    "$1"/*)
      mkdir -p "$scratch/new\${workdir#"$1"}"
      mount -n --rbind "$workdir" "$scratch/new\${workdir#"$1"}" ;;
  esac
  if [ "$1" = /run ]; then
    mkdir -p "$scratch/new/svc/trust"
    mount -n --bind "$trust" "$scratch/new/svc/trust"
    mount -n -o remount,bind,ro,nosuid,nodev,noexec "$scratch/new/svc/trust"
    case "$resolv" in
      /run/*)
        mkdir -p "$(dirname "$scratch/new/\${resolv#/run/}")"
        cp "$etc/resolv.conf" "$scratch/new/\${resolv#/run/}" ;;
    esac
  fi
  mount -n --move "$scratch/new" "$1"
}
: > "$scratch/nothing"
chmod 000 "$scratch/nothing" "$scratch/empty"
for path; do
  if [ -d "$path" ]; then mount -n --bind "$scratch/empty" "$path" && mount -n -o remount,bind,ro "$path"
  elif [ -e "$path" ]; then mount -n --bind "$scratch/nothing" "$path" && mount -n -o remount,bind,ro "$path"; fi
done
own /tmp 1777
own /var/tmp 1777
own /dev/shm 1777
own /var/run 0755
own /run 0755

echo ${NAMESPACE_READY}
exec env --ignore-signal=CHLD sleep infinity > /dev/null 2>&1
`;
