#!/usr/bin/env bash
# Makes the file system of the images' base: Debian bookworm, as small as debootstrap makes it, from
# the mirror that the machine's own apt is configured for, with its security updates.
# Usage: build.sh ARCHIVE
set -euo pipefail
archive=$1
CODENAME=bookworm
[ "$(id -u)" = 0 ] || { echo "images: debootstrap needs root" >&2; exit 1; }

# The apt sources of this machine for the release, as lines: mirror, suite, component.
sources=$(apt-get indextargets --format '$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT) $(CODENAME)' |
  awk -v name="$CODENAME" '$1 == "Packages" && index($5, name) == 1 && $4 == "main" { print $2, $3, $4 }' | sort -u)
mirror=$(awk -v name="$CODENAME" '$2 == name { print $1; exit }' <<<"$sources")
[ -n "$mirror" ] || {
  echo "images: apt of this machine has no source of $CODENAME main. Add one to /etc/apt/sources.list.d" >&2
  exit 1
}
root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
debootstrap --variant=minbase "$CODENAME" "$root" "$mirror" >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log" >&2; exit 1; }

sed 's/^/deb /' <<<"$sources" >"$root/etc/apt/sources.list"
# Documentation and translations are not installed, now and in images made from this one.
cat >"$root/etc/dpkg/dpkg.cfg.d/no-documentation" <<'C'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/man/*
path-exclude /usr/share/info/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/lintian/*
C
cp /etc/resolv.conf "$root/etc/resolv.conf"
DEBIAN_FRONTEND=noninteractive chroot "$root" sh -euc '
  apt-get update -qq
  apt-get dist-upgrade -y -qq
  apt-get clean' >"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; exit 1; }
rm "$root.log"
: >"$root/etc/resolv.conf"
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root/usr/share/doc" -depth -type d -empty -delete
rm -rf "$root"/usr/share/{man,info,locale,lintian}/* "$root"/var/lib/apt/lists/* "$root"/var/log/* \
  "$root"/var/cache/{apt,debconf}/* "$root"/usr/lib/*/gconv/gconv-modules.cache
tar -C "$root" --one-file-system --sort=name --numeric-owner --exclude=./dev/* -cf "$archive.tmp" .
mv "$archive.tmp" "$archive"
