#!/usr/bin/env bash
# Says what the build needs and is not there. Usage: ci/need.sh PYTHON
set -u
python=$1
missing=()
[ "$(uname -s)" = Linux ] || missing+=("Linux: this is $(uname -s). A container or a virtual machine does (docs/install.md)")
command -v "$python" >/dev/null || missing+=("Python 3.11 or newer (package python3)")
if command -v "$python" >/dev/null; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    || missing+=("Python 3.11 or newer ($("$python" --version) is too old; set PYTHON=...)")
  "$python" -c 'import venv, ensurepip' 2>/dev/null || missing+=("the venv module (package python3-venv)")
  include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  [ -f "$include/Python.h" ] || missing+=("the headers of Python (package python3-dev)")
fi
compiler=${CC:-cc}    # may have words behind it, as in "ccache gcc"
command -v "${compiler%% *}" >/dev/null || missing+=("a C compiler (package gcc or clang)")
if [ ${#missing[@]} -gt 0 ]; then
  printf 'headgate cannot be built here; missing:\n' >&2
  printf '  - %s\n' "${missing[@]}" >&2
  exit 1
fi
