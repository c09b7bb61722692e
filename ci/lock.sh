#!/usr/bin/env bash
# Writes ci/locks/*.txt: the versions that `make run`, `make test` and the targets of other groups install, with the hashes of
# all their files, for CPython 3.11 and newer. Usage: ci/lock.sh PYTHON [--upgrade]
# Without --upgrade, versions that are locked stay as far as the ranges of pyproject.toml allow.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=build/lock-tools
[ -x "$tools/bin/uv" ] || "$1" -m venv "$tools"
"$tools/bin/pip" install -q --upgrade uv
lock() {
  output=$1
  shift
  "$tools/bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
    --no-emit-index-url --no-emit-find-links "${upgrade[@]}" "$@" -o "$output"
}
upgrade=("${@:2}")
lock ci/locks/build.txt ci/locks/build.in
lock ci/locks/run.txt -c ci/locks/build.txt --extra all pyproject.toml
lock ci/locks/test.txt -c ci/locks/build.txt -c ci/locks/run.txt --extra all --group test --group lint pyproject.toml
# What is installed beside the tests, and does not change what they have.
for group in bench fuzz llm-clients wheels; do
  lock "ci/locks/$group.txt" -c ci/locks/build.txt -c ci/locks/run.txt -c ci/locks/test.txt --group "pyproject.toml:$group"
done
# Where a version comes from is a matter of whoever installs it.
if grep -nE '://|--(extra-)?index-url|--find-links' ci/locks/*.txt; then
  echo 'a lock names a host' >&2
  exit 1
fi
