#!/usr/bin/env bash
# Installs the Debian package of dist/ in a clean root, serves a request, upgrades the gateway and removes the package.
# Usage: ci/deb_check.sh [ROOT]. ROOT: a root of Debian 12 with python3; without one, debootstrap makes it. Needs root.
# Nothing reaches the network of the machine, and processes end with the check.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=${1:-}
if [ -z "$root" ]; then
  root=$work/root
  debootstrap --variant=minbase --include=python3 bookworm "$root" >"$work/log" || { tail -5 "$work/log" >&2; exit 1; }
fi
cp dist/headgate_*.deb "$root/tmp/headgate.deb"
cat > "$root/tmp/check.sh" <<'INSIDE'
set -eu
dpkg -i /tmp/headgate.deb
[ "$(stat -c '%U:%G %a' /etc/headgate /var/lib/headgate | tr '\n' ,)" = 'root:headgate 750,headgate:headgate 750,' ]
for file in man/man1/headgate.1.gz man/man1/headgate-bench.1.gz man/man1/gwctl.1.gz bash-completion/completions/headgate; do
  [ -e "/usr/share/$file" ] || grep -rqs 'path-exclude.*man' /etc/dpkg/dpkg.cfg.d
done
cat > /tmp/config.yaml <<'YAML'
config: {adminAddr: "127.0.0.1:25911", statsAddr: "off", readinessAddr: "off"}
gateways: {default: {port: 25910}}
routes: [{policies: {directResponse: {status: 200, body: "served by the package"}}}]
YAML
served() {
  python3 -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:25910/", timeout=60).read().decode())'
}
headgate -f /tmp/config.yaml >/tmp/log 2>&1 &
for _ in $(seq 600); do grep -q 'gateway is ready' /tmp/log && break; sleep 0.1; done
[ "$(served)" = 'served by the package' ]
gwctl proxy upgrade -p 25911
wait $!
[ "$(served)" = 'served by the package' ]
[ -z "$(dpkg -V headgate)" ]
dpkg -r headgate
[ ! -e /usr/lib/headgate ]
dpkg -P headgate
[ ! -e /etc/headgate ]
INSIDE
unshare --mount --pid --net --fork sh -c \
  'mount -t proc proc "$1/proc" && ip link set lo up && chroot "$1" sh /tmp/check.sh' sh "$root"
echo "deb check passed"
