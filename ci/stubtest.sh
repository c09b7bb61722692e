#!/usr/bin/env bash
# Compares the .pyi stubs of the engine and its drivers with the compiled modules.
set -euo pipefail
cd "$(dirname "$0")/.."
export MYPYPATH=engine:pysrc
# Drivers are not installed.
export PYTHONPATH=engine
modules=$(find engine/headgate_engine engine/headgate_drivers -name '*.pyi' | sed 's|^engine/||; s|\.pyi$||; s|/|.|g' | sort)
# shellcheck disable=SC2086
"${PYTHON:-python3}" -m mypy.stubtest --ignore-disjoint-bases --allowlist ci/stubtest_allowlist.txt --ignore-unused-allowlist $modules
