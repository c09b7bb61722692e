#!/usr/bin/env bash
# Builds the wheel once more, from the source distribution in dist/: in another folder, at another time, with another seed
# of Python's hashes, and without a cache of the compiler (CCACHE_DISABLE= in the environment: with it). Compares the two
# bit by bit. Usage: ci/sdist_check.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The source distribution knows its commit and date itself; only dates of files in the archive come from here.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
export CCACHE_DISABLE=${CCACHE_DISABLE-1}
[ -n "$CCACHE_DISABLE" ] || unset CCACHE_DISABLE
env -u SOURCE_COMMIT PYTHONHASHSEED=1234 TMPDIR="$work" \
  "$python" -m pip wheel -q --no-deps --no-build-isolation -w "$work" dist/headgate-*.tar.gz
"$python" ci/compare_wheels.py dist/headgate-*linux_*.whl "$work"/headgate-*.whl
