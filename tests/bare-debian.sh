#!/bin/sh
# bare-debian.sh - does what the README tells a newcomer, on a Debian 12 that holds gcc and make and
# nothing else. Needs root, debootstrap, git and a Debian mirror.
#
# usage: tests/bare-debian.sh [-k] [COMMAND...]
#   COMMAND   run these instead of the README's two, each in a fresh clone
#   -k        keep the folder, and say where it is
# DEBIAN_MIRROR  the mirror [what apt is configured with]
# The clone is of the last commit, not of the working tree. Exit status 0 when all commands succeed.
set -e
keep=no
if [ "$1" = -k ]; then
	keep=yes
	shift
fi
[ $# != 0 ] || set -- "./configure --install-deps && make capsnet" "./configure --install-deps && make check"

source=$(cd "$(dirname "$0")/.." && pwd)
mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Created-By: Packages' \
	2>/dev/null | sed 1q)}
[ -n "$mirror" ] || {
	echo "bare-debian: apt knows no mirror of Debian 12 here: name one in DEBIAN_MIRROR" >&2
	exit 1
}

root=$(mktemp -d)
clean() {
	umount "$root/proc" "$root/dev" 2>/dev/null || true
	if [ $keep = yes ]; then echo "kept: $root"; else rm -rf --one-file-system "$root"; fi
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

echo "bare-debian: making a Debian 12 from $mirror in $root"
debootstrap --variant=minbase --include=gcc,make,libc6-dev,ca-certificates bookworm "$root" "$mirror" >"$root.log" 2>&1 ||
	{ tail -n 20 "$root.log"; exit 1; }
rm -f "$root.log"
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc" || true
mount --bind /dev "$root/dev" 2>/dev/null || true
# The network is the host's: its name server, its proxy, its way to the mirror.
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
apt-config dump 2>/dev/null | grep -E '^Acquire::https?::' >"$root/etc/apt/apt.conf.d/90host" || true
cp -r /etc/ssl/certs/. "$root/etc/ssl/certs/" 2>/dev/null || true

n=0
for command; do
	n=$((n + 1))
	echo "bare-debian: $command"
	git clone -q --no-hardlinks "$source" "$root/srv/ricci$n"
	chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
		${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
		sh -c "cd /srv/ricci$n && $command"
done
echo "bare-debian: all $n commands succeeded"
