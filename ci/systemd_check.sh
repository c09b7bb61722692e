#!/usr/bin/env bash
# Installs the Debian package of dist/ in a clean root, boots systemd there, and tries the units: start, reload, watchdog, a
# restart with clients waiting in the socket, an upgrade by a signal, and an upgrade of the package under load.
# Usage: ci/systemd_check.sh [ROOT]. ROOT: a root of Debian 12 with python3 and systemd; without one, debootstrap makes it.
# Needs root, a kernel with cgroup2, and unshare. systemd is process 1 of its own namespaces, and ends with the check.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
work=$(mktemp -d)
# A folder of control groups of its own: systemd sees nothing above it.
groups=$(findmnt -n -o TARGET -t cgroup2 | head -1)/headgate-check-$$
ended() {
  for folder in $(find "$groups" -depth -type d 2>/dev/null); do rmdir "$folder" 2>/dev/null || true; done
  rm -rf "$work"
}
trap ended EXIT
root=${1:-}
if [ -z "$root" ]; then
  root=$work/root
  debootstrap --variant=minbase --include=python3,systemd bookworm "$root" >"$work/log" || { tail -5 "$work/log" >&2; exit 1; }
fi
cp dist/headgate_*.deb "$root/headgate.deb"
cp "$here/ci/systemd_inside.py" "$root/check.py"
rm -f "$root/check.log" "$root/check.status"
cat > "$root/etc/systemd/system/check.service" <<'UNIT'
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -u /check.py
ExecStopPost=/bin/sh -c 'echo $EXIT_STATUS > /check.status; systemctl --no-block poweroff'
StandardOutput=append:/check.log
StandardError=append:/check.log
TimeoutStartSec=600
UNIT
# There is no network to wait for.
ln -sf /dev/null "$root/etc/systemd/system/systemd-networkd-wait-online.service"
mkdir -p "$groups"
cat > "$work/boot.sh" <<'BOOT'
set -e
root=$1
ip link set lo up
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
for node in null zero full random urandom tty; do touch dev/$node; mount --bind /dev/$node dev/$node; done
mkdir -p dev/shm dev/pts run/lock mnt
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
pivot_root . mnt
umount -l /mnt
exec env -i container=headgate PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=check.service --log-target=journal >/dev/null 2>&1
BOOT
# The shell that becomes systemd goes into the folder, this one stays where it is.
timeout 900 sh -c 'echo $$ > "$0/cgroup.procs"; exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child sh "$1" "$2"' \
  "$groups" "$work/boot.sh" "$root" || true
cat "$root/check.log" || true
[ "$(cat "$root/check.status" 2>/dev/null)" = 0 ] || { echo "systemd check failed" >&2; exit 1; }
echo "systemd check passed"
