#!/usr/bin/env bash
# Builds a wheel for each CPython from 3.11 to 3.14 that this machine has, repairs it with auditwheel into dist/wheels, and
# serves from it in a clean environment (ci/wheel_check.sh). `make wheels` builds those of all platforms, in containers.
# Usage: ci/wheels_here.sh TOOLS [PYTHON...]
# TOOLS: the folder of programs that has auditwheel and patchelf. PYTHON: interpreters; without any, those in PATH and of pyenv.
# TESTS in the environment: also run these tests of the tree (tests/engine) with the wheel, which needs ci/locks/test.txt.
# build/wheels-here is kept: what has changed is compiled again. Remove it before a release.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
tools=$(cd "$1" && pwd)
shift
work=$root/build/wheels-here
minor_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])'; }
# One that runs, has headers, and makes environments.
usable() {
  "$1" -c 'import ensurepip, os, sysconfig, venv; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null
}
pythons=("$@")
if [ ${#pythons[@]} = 0 ]; then
  for version in 3.11 3.12 3.13 3.14; do
    for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/$version.*/bin/python3 "$(command -v python$version || true)"; do
      if [ -x "$python" ] && usable "$python" && [ "$(minor_of "$python")" = $version ]; then
        pythons+=("$python")
        break
      fi
    done
  done
fi
[ ${#pythons[@]} -gt 0 ] || { echo 'wheels: no CPython from 3.11 to 3.14 with headers' >&2; exit 1; }

# A copy without what is not in git. Its dates are those of the tree, so that Cython sees what has changed.
mkdir -p "$work/src" dist/wheels
find "$work/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
rm -rf "$work"/src/build/lib.* "$work"/src/build/bdist.*
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t "$work/src" 2>/dev/null || true
# With the C that Cython has made already: it is the same for all interpreters.
mkdir -p "$work/src/build"
[ ! -d build/cython ] || cp -a -u build/cython "$work/src/build/"
SOURCE_COMMIT=${SOURCE_COMMIT:-$(git rev-parse HEAD)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_COMMIT SOURCE_DATE_EPOCH

for python in "${pythons[@]}"; do
  version=$(minor_of "$python")
  environment=$work/$version
  [ -x "$environment/bin/pip" ] || "$python" -m venv "$environment"
  "$environment/bin/pip" install -q --require-hashes -r ci/locks/build.txt
  rm -rf "$work/out"
  "$environment/bin/python" -m pip wheel -q --no-deps --no-build-isolation -w "$work/out" "$work/src"
  rm -f dist/wheels/headgate-*-cp"${version/./}"-*.whl
  PATH="$tools:$PATH" auditwheel repair -w dist/wheels "$work"/out/headgate-*.whl >"$work/repair.log" 2>&1 \
    || { tail -5 "$work/repair.log" >&2; exit 1; }
  wheel=$(echo dist/wheels/headgate-*-cp"${version/./}"-*.whl)
  AUDITWHEEL=$tools/auditwheel ci/wheel_check.sh "$python" "$wheel"
  [ -n "${TESTS:-}" ] || continue
  "$environment/bin/pip" install -q --require-hashes -r ci/locks/test.txt
  "$environment/bin/pip" install -q --no-deps --force-reinstall "$wheel"
  # What the tests need of the engine, and no wheel has. The engine itself is that of the wheel.
  (cd "$work/src" && HEADGATE_ONLY=headgate_drivers "$environment/bin/python" setup.py -q build_ext --inplace)
  (cd "$work/src" && "$environment/bin/python" -m pytest -q -n 0 -p no:cacheprovider $TESTS)
done
ls -l dist/wheels
