#!/usr/bin/env bash
# Runs the images of ci/container.sh as docs/install.md says, with a root that cannot be written and without capabilities and a
# network: who it is, what it serves, its health, an end by SIGTERM, and what the image has in it.
# Usage: ci/container_check.sh [WORD...]. The words go to `run`: where Podman has no systemd and few rights,
# --no-healthcheck --ulimit nofile=20000:20000.
# BUILDER in the environment: podman or docker.
set -euo pipefail
cd "$(dirname "$0")/.."
builder=${BUILDER:-}
for name in podman docker; do
  [ -n "$builder" ] || ! command -v $name >/dev/null || builder=$name
done
[ -n "$builder" ] || { echo 'container check: needs Podman or Docker' >&2; exit 1; }
fail() { echo "container check failed: $1" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
image=headgate:$version
# In bytes, of all that the image has in it. Half of it are the interpreter's image and the libraries of all extras.
most=700000000
work=$(mktemp -d)
container=
ended() {
  [ -z "$container" ] || "$builder" rm -f "$container" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap ended EXIT
cat > "$work/config.yaml" <<'YAML'
gateways: {default: {port: 3000}}
routes: [{policies: {directResponse: {status: 200, body: "served by the image"}}}]
YAML
chmod 755 "$work"
chmod 644 "$work/config.yaml"

size=$("$builder" image inspect --format '{{.Size}}' "$image")
echo "$image: $((size / 1000000)) MB"
[ "$size" -le $most ] || fail "the image has $size bytes, of $most"
nowhere=()
# Podman makes folders in memory for a root that cannot be written, Docker does not.
case $("$builder" --version) in podman*) nowhere=(--read-only-tmpfs=false) ;; esac
container=$("$builder" run -d --read-only "${nowhere[@]}" --cap-drop ALL --security-opt no-new-privileges --network none "$@" \
  -v "$work/config.yaml:/config.yaml:ro" "$image" -f /config.yaml)
inside() { "$builder" exec "$container" "$@"; }
# The command of the image's own health check, since not every builder runs it by itself.
health=$("$builder" image inspect --format '{{json .Config.Healthcheck.Test}}' "$image" 2>/dev/null) \
  || health=$("$builder" image inspect --format '{{json .HealthCheck.Test}}' "$image")
healthy() {
  python3 - "$builder" "$container" "$health" <<'PY'
import json, subprocess, sys

builder, container, test = sys.argv[1:]
kind, *words = json.loads(test)
assert kind == "CMD", kind
sys.exit(subprocess.run([builder, "exec", container, *words], capture_output=True, check=False, timeout=60).returncode != 0)
PY
}
for _ in $(seq 120); do
  if healthy; then break; fi
  [ "$("$builder" inspect --format '{{.State.Running}}' "$container")" = true ] || { "$builder" logs "$container"; fail 'it has ended'; }
  sleep 0.5
done
healthy || { "$builder" logs "$container"; fail 'it is never healthy'; }
[ "$(inside id -u)" = 10101 ] || fail "it runs as $(inside id -u)"
answer=$(inside python -c 'import urllib.request; print(urllib.request.urlopen("http://127.0.0.1:3000/", timeout=60).read().decode())')
[ "$answer" = 'served by the image' ] || fail "got '$answer'"
for folder in / /opt/headgate /tmp /var/tmp; do
  if inside sh -c "touch $folder/written" 2>/dev/null; then fail "$folder can be written"; fi
done
for tool in gcc cc ld cython; do
  if inside sh -c "command -v $tool" >/dev/null; then fail "$tool is in it"; fi
done
inside headgate --version
[ "$(inside gwctl version | head -1 | grep -c "$version")" = 1 ] || fail 'gwctl has another version'
"$builder" stop -t 60 "$container" >/dev/null
status=$("$builder" inspect --format '{{.State.ExitCode}}' "$container")
[ "$status" = 0 ] || fail "SIGTERM ended it with $status"
"$builder" rm "$container" >/dev/null
container=
# The controller has nothing to do without a cluster, and says so.
refused=$("$builder" run --rm --read-only --cap-drop ALL --network none "$@" "headgate-controller:$version" 2>&1) \
  && fail 'the controller runs without a cluster'
case $refused in
*'no access to a cluster'*) ;;
*) fail "the controller says '$refused'" ;;
esac
echo "container check passed"
