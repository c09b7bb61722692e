#!/usr/bin/env bash
# Runs every fuzz target for SECONDS each, with random inputs; ci/fuzz_guided.sh uses libFuzzer. Usage: ci/fuzz.sh SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
for target in fuzz/*/fuzz_*.py; do
  echo "== $target"
  "${PYTHON:-.venv/bin/python}" "$target" --seconds "$seconds"
done
