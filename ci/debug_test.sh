#!/usr/bin/env bash
# Engine tests against a debug build (assertions, line trace) in a copy of the tree.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath "${PYTHON:-.venv/bin/python}" --no-symlinks)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
cd "$copy"
HEADGATE_ENGINE_DEBUG=1 "$python" setup.py -q build_ext --inplace
PYTHONPATH="$copy/engine:$copy/pysrc" "$python" -m pytest tests/engine -p no:cacheprovider
