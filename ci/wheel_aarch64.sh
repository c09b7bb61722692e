#!/usr/bin/env bash
# Builds the wheel for aarch64 on another machine, by cross-compiling, into dist/wheels, and loads all of it under QEMU
# (ci/aarch64_inside.py). `make wheels` builds those of releases, in containers of their own platform.
# Usage: ci/wheel_aarch64.sh PYTHON [ROOT]. ROOT: a root of Debian 12 for arm64 with what the include list below names; without
# one, debootstrap makes it in build/aarch64, where what was compiled is kept as well.
# PYTHON is CPython 3.11, as in that root. Needs root, chroot, debootstrap, gcc-aarch64-linux-gnu, and qemu-user-static with its
# entry in binfmt_misc (packages of Debian).
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath --no-symlinks "$1")
work=$PWD/build/aarch64
root=${2:-$work/root}
missing() { echo "aarch64: $1" >&2; exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || missing "$1 is not CPython 3.11, which Debian 12 has"
for tool in aarch64-linux-gnu-gcc debootstrap; do
  command -v $tool >/dev/null || missing "$tool is missing (Debian: gcc-aarch64-linux-gnu, debootstrap)"
done
[ -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ] || missing 'programs for aarch64 do not run here (Debian: qemu-user-static)'
mkdir -p "$work" dist/wheels
if [ ! -e "$root/usr/bin/python3.11" ]; then
  packages=python3,libpython3.11-dev,ca-certificates
  debootstrap --arch=arm64 --foreign --variant=minbase --include=$packages bookworm "$root" >"$work/log" || missing "$(tail -5 "$work/log")"
  # Unpacked and not configured: nothing of it runs but the interpreter.
  for package in "$root"/var/cache/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
  done
fi

# What setuptools asks the interpreter for, as the one of the root answers it, and the headers of that one.
name=_sysconfigdata__linux_aarch64-linux-gnu
rm -rf "$work/told" "$work/out" "$work/include"
mkdir -p "$work/told" "$work/include"
cp "$root/usr/lib/python3.11/$name.py" "$work/told/"
ln -s "$root/usr/include/aarch64-linux-gnu" "$work/include/aarch64-linux-gnu"
# A copy without what is not in git, and with the C that Cython has made already: it is the same for all platforms.
mkdir -p "$work/src/build"
find "$work/src" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
git ls-files -z --cached --others --exclude-standard | xargs -0 cp -p --parents -t "$work/src" 2>/dev/null || true
[ ! -d build/cython ] || cp -a -u build/cython "$work/src/build/"
env -C "$work/src" PYTHONPATH="$work/told" _PYTHON_SYSCONFIGDATA_NAME=$name _PYTHON_HOST_PLATFORM=linux-aarch64 \
  CC=aarch64-linux-gnu-gcc LDSHARED='aarch64-linux-gnu-gcc -shared' \
  CFLAGS="-I$root/usr/include/python3.11 -I$work/include" \
  SOURCE_COMMIT="${SOURCE_COMMIT:-$(git rev-parse HEAD)}" SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}" \
  HEADGATE_OPTIMIZE="${HEADGATE_OPTIMIZE:-3}" \
  "$python" -m pip wheel -q --no-deps --no-build-isolation -w "$work/out" .
wheel=$(echo "$work"/out/headgate-*-cp311-cp311-linux_aarch64.whl)
[ -e "$wheel" ] || missing "the wheel is called $(ls "$work/out")"
rm -f dist/wheels/headgate-*aarch64.whl
cp "$wheel" dist/wheels/

# The wheels of other packages that pip would choose there.
site=$root/opt/headgate
rm -rf "$site"
platforms=()
for tag in manylinux_2_{36..17}_aarch64 manylinux2014_aarch64; do platforms+=(--platform "$tag"); done
pip=("$python" -m pip install -q --no-compile --only-binary=:all: --python-version 3.11 --implementation cp)
"${pip[@]}" "${platforms[@]}" --target "$site" --require-hashes -r ci/locks/run.txt
"${pip[@]}" --platform linux_aarch64 --no-deps --upgrade --target "$site" "$wheel"
cp ci/aarch64_inside.py "$root/tmp/check.py"
mkdir -p "$root/proc" "$root/dev"
unshare --mount --pid --net --fork sh -c '
  mount --make-rprivate / && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && ip link set lo up &&
  exec chroot "$1" /usr/bin/env -i PATH=/usr/bin:/bin PYTHONPATH=/opt/headgate /usr/bin/python3.11 /tmp/check.py' sh "$root"
ls -l dist/wheels/headgate-*aarch64.whl
