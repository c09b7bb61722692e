#!/usr/bin/env bash
# Builds the engine with sanitizers into build/KIND/lib, beside the Python sources; modules that are not named are those of the
# ordinary build in the tree. Prints the environment that a process needs to import them, as lines of NAME=VALUE.
#
# Usage: ci/instrumented.sh address|fuzzer [FOLDER [WORD,WORD]]
#   address  gcc (or CC) with libasan and libubsan
#   fuzzer   clang and atheris (pip install --group fuzz), whose run-time library has AddressSanitizer and libFuzzer
set -euo pipefail
cd "$(dirname "$0")/.."
kind=$1
folder=$PWD/build/${2:-$kind}
words=${3:-}
python=$(realpath "${PYTHON:-.venv/bin/python}" --no-symlinks)
missing() { echo "$kind: $1" >&2; exit 3; }

if [ "$kind" = fuzzer ]; then
    command -v clang >/dev/null || missing 'needs clang with its sanitizers (Debian: apt-get install clang)'
    export CC=${CC:-clang}
    preload=$("$python" -c 'import atheris, pathlib; print(pathlib.Path(atheris.path(), "asan_with_fuzzer.so"))' 2>/dev/null) \
        || missing 'needs atheris: pip install --group fuzz'
else
    compiler=${CC:-gcc}
    preload=$(${compiler##* } -print-file-name=libasan.so 2>/dev/null) || true
    [ -e "$preload" ] || missing "needs gcc with libasan and libubsan (Debian: apt-get install gcc libasan8 libubsan1)"
    # Some libraries are written in C++; the sanitizer has to see their exceptions.
    preload=$(realpath "$preload"):$(realpath "$(${compiler##* } -print-file-name=libstdc++.so.6)")
fi

mkdir -p "$folder/lib"
find "$folder/lib" -name '*.so' -type l -delete
# The trees, but for compiled modules; files that are gone from the tree must not be imported.
rm -rf "$folder/lib/headgate"
(cd engine && find headgate_engine headgate_drivers -name '*.py' -exec cp --parents -u {} "$folder/lib" \;)
ln -s "$PWD/pysrc/headgate" "$folder/lib/headgate"
# From -O1 on, gcc leaves out the check of an address that was checked before, even where a call may have freed it in between: the
# use of an object after what it called has let go of it.
[ "$kind" = fuzzer ] && level=1 || level=0
export HEADGATE_OPTIMIZE=${HEADGATE_OPTIMIZE:-$level}
# setup.py compares times of files: what was built with other flags looks new to it.
flags="$kind -O$HEADGATE_OPTIMIZE ${CC:-gcc}"
if [ "$(cat "$folder/flags" 2>/dev/null)" != "$flags" ]; then
    rm -rf "$folder/temp"
    find "$folder/lib" -name '*.so' -delete
    echo "$flags" >"$folder/flags"
fi
HEADGATE_SANITIZE=$kind HEADGATE_ONLY=$words \
    "$python" setup.py -q build_ext --build-lib "$folder/lib" --build-temp "$folder/temp" >"$folder/build.log" 2>&1 \
    || { tail -n 40 "$folder/build.log" >&2; exit 1; }
(cd engine && find headgate_engine headgate_drivers -name '*.so') | while read -r module; do
    [ -e "$folder/lib/$module" ] || ln -s "$PWD/engine/$module" "$folder/lib/$module"
done

# PYTHONMALLOC: every object is an allocation of its own, whose end the sanitizer sees. CPython frees nothing at its exit, and
# leaks are looked for by tests of their own.
cat <<END
LD_PRELOAD=$preload
PYTHONPATH=$folder/lib
PYTHONMALLOC=malloc
ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:detect_odr_violation=0
UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
END
