#!/usr/bin/env bash
# Installs the wheel in a clean environment, away from the sources and without a compiler in PATH, and serves a request.
# What the wheel needs comes in the versions of ci/locks/run.txt. With auditwheel (group `wheels`; AUDITWHEEL, or beside PYTHON
# or in PATH), it also looks what the wheel needs of the system.
# Usage: ci/wheel_check.sh PYTHON [WHEEL]. Without WHEEL: the one in dist/.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
wheel=$(realpath "${2:-$(echo "$root"/dist/headgate-*linux_*.whl)}")
work=$(mktemp -d)
gateway=
trap '[ -n "$gateway" ] && kill "$gateway" 2>/dev/null; rm -rf "$work"' EXIT
python=$("$1" -c 'import sys; print(sys.executable)')
beside=$(dirname "$python")
audit=${AUDITWHEEL:-$(PATH="$beside:$PATH" command -v auditwheel || true)}
if [ -n "$audit" ]; then
  # Nothing but the C library, and no older one than the tag says.
  tag=$("$audit" show "$wheel" | tr '\n' ' ')
  case $tag in
  *'platform tag: "manylinux_2_'*) ;;
  *) echo "wheel check failed: auditwheel says: $tag" >&2; exit 1 ;;
  esac
else
  echo "wheel check: auditwheel is not installed; what the wheel needs of the system is not looked at" >&2
fi
# Nothing that looks for libraries where it was built.
if command -v readelf >/dev/null; then
  mkdir "$work/unpacked"
  "$1" -m zipfile -e "$wheel" "$work/unpacked"
  strange=$(find "$work/unpacked" -name '*.so' -exec readelf -d {} + | grep -E 'R(UN)?PATH' | grep -v '\$ORIGIN' | head -1 || true)
  [ -z "$strange" ] || { echo "wheel check failed: $strange" >&2; exit 1; }
fi
# Versions alone: pip would want a hash of the wheel as well.
sed -n 's/^\([a-z0-9].*[^ ]\) *\\$/\1/p' "$root/ci/locks/run.txt" > "$work/versions.txt"
# What the check itself needs, and no compiler.
mkdir "$work/bin"
for tool in cat curl env rm seq sh sleep; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
PATH=$work/bin
export PATH
for tool in cc c++ gcc g++ clang ld as; do
  if command -v $tool >/dev/null; then echo "wheel check failed: $tool is in PATH" >&2; exit 1; fi
done
set -- "$python"
"$1" -m venv "$work/venv"
"$work/venv/bin/pip" install -q -c "$work/versions.txt" "$wheel"
# What tests and benchmarks need of the engine stays at home.
"$work/venv/bin/python" - <<'EOF'
import importlib.util, sys
from importlib.metadata import files
inside = [str(path) for path in files("headgate") or ()]
drivers = [path for path in inside if "headgate_drivers" in path]
if drivers or importlib.util.find_spec("headgate_drivers") or not any("headgate_engine/http1/codec." in path for path in inside):
    sys.exit(f"wheel check failed: drivers are in it: {drivers}")
EOF
cd "$work"
port=$("$1" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
admin=$("$1" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > config.yaml <<EOF
config: {adminAddr: "127.0.0.1:$admin", statsAddr: "off", readinessAddr: "off"}
gateways:
  default: {port: $port}
routes:
- name: hello
  policies:
    directResponse: {status: 200, body: "served by the wheel"}
EOF
"$work/venv/bin/headgate" -f config.yaml & gateway=$!
# The gateway's ports answer before the admin server does: wait for the later one.
for _ in $(seq 300); do
  curl -sf -o /dev/null "http://127.0.0.1:$admin/ui" && break
  sleep 0.1
done
answer=$(curl -s "http://127.0.0.1:$port/") || answer="no answer"
[ "$answer" = "served by the wheel" ] || { echo "wheel check failed: got '$answer'" >&2; exit 1; }
for asset in '' /assets/app.js /assets/views/trace.js; do
  curl -sf -o /dev/null "http://127.0.0.1:$admin/ui$asset" || { echo "wheel check failed: no /ui$asset" >&2; exit 1; }
done
kill -TERM "$gateway"
wait "$gateway"
gateway=
cat > cloud.yaml <<EOF
gateways: {default: {port: $port}}
routes: [{backends: [{host: "127.0.0.1:1", policies: {backendAuth: {gcp: {}}}}]}]
EOF
refused=$("$work/venv/bin/headgate" --validate-only -f cloud.yaml 2>&1) && { echo "wheel check failed: no library was missing" >&2; exit 1; }
case $refused in
*"headgate[cloud]"*cloud.yaml:2*) ;;
*) echo "wheel check failed: got '$refused'" >&2; exit 1 ;;
esac
echo "wheel check passed"
