#!/usr/bin/env bash
# Builds the wheel and the source distribution into dist/, from a clean copy, so that nothing stale gets in.
# Usage: ci/wheel.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=$1
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy" 2>/dev/null || true
rm -rf dist
mkdir dist
# The copy has no git: the build is told (setup.py).
SOURCE_COMMIT=${SOURCE_COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}
export SOURCE_COMMIT SOURCE_DATE_EPOCH
(cd "$copy" && "$python" setup.py -q sdist -d "$root/dist")
"$python" -m pip wheel -q --no-deps --no-build-isolation -w dist "$copy"
ls -l dist
