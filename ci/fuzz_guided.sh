#!/usr/bin/env bash
# Runs every fuzz target (or those named) for SECONDS each under libFuzzer, over an engine with AddressSanitizer,
# UndefinedBehaviourSanitizer and counted edges. Usage: ci/fuzz_guided.sh SECONDS [TARGET...]
# What is found lies in build/fuzz/TARGET: add the bytes to the target's corpus with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-10}
shift || true
environment=$(ci/instrumented.sh fuzzer)
[ $# -gt 0 ] || set -- fuzz/*/fuzz_*.py
for target; do
  echo "== $target"
  # What libFuzzer tells of each step on its way is left out.
  env $environment "${PYTHON:-.venv/bin/python}" "$target" --guided --seconds "$seconds" 2>&1 \
    | { grep -v -E '^#[0-9]+[[:space:]]+(NEW|REDUCE|pulse|RELOAD)|^INFO:|# Uses:' || true; }
done
