#!/usr/bin/env bash
# Builds the Debian package from the wheel in dist/, build/man and build/completions. Usage: ci/deb.sh PYTHON
#
# /usr/lib/headgate is an environment of its own, over Debian's interpreter of the version that PYTHON has: the package
# needs python3.N and nothing else, and does not mind what else is installed. Its packages are those of ci/locks/run.txt.
# SOURCE_DATE_EPOCH is the date of all files, so that equal inputs give equal packages.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
minor=$("$python" -c 'import sys; print("3.%d" % sys.version_info[1])')
version=$("$python" -c 'from importlib.metadata import version; print(version("headgate"))')
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
home=$root/usr/lib/headgate
site=$home/lib/python$minor/site-packages
umask 022
mkdir -p "$site" "$home/bin" "$root/usr/bin" "$root/DEBIAN"

"$python" -m pip install -q --no-compile --only-binary=:all: --target "$site" --require-hashes -r ci/locks/run.txt
# The next installation replaces the folder of programs.
mv "$site/bin/py-spy" "$home/bin/"
"$python" -m pip install -q --no-compile --no-deps --target "$site" --upgrade dist/headgate-*linux_*.whl
rm -rf "$site/bin" "$site/share"
# What runs it is in $home/bin; scripts of others are data here.
find "$site" -type f -perm /111 ! -name '*.so*' -exec chmod 644 {} +
find "$home" -type f \( -name '*.so*' -o -path "$home/bin/py-spy" \) -exec strip --strip-unneeded --remove-section=.comment {} +
find "$site" \( -name RECORD -o -name direct_url.json -o -name REQUESTED -o -name INSTALLER \) -path '*.dist-info/*' -delete
ln -s "/usr/bin/python$minor" "$home/bin/python"
printf 'home = /usr/bin\ninclude-system-site-packages = false\nversion = %s\n' "$minor" > "$home/pyvenv.cfg"
for name in headgate:main gwctl:gwctl; do
  printf '#!/usr/lib/headgate/bin/python\nimport sys\n\nfrom headgate.cli.%s import main\n\nsys.exit(main())\n' \
    "${name#*:}" > "$home/bin/${name%:*}"
  chmod 755 "$home/bin/${name%:*}"
  ln -s "../lib/headgate/bin/${name%:*}" "$root/usr/bin/${name%:*}"
done
# A start takes twice as long without. The package owns the bytecode: nothing is written at run time.
"$python" -m compileall -q -s "$root" -p / --invalidation-mode unchecked-hash "$site" || true

install -D -m 644 -t "$root/usr/lib/systemd/system" deploy/systemd/headgate.service deploy/systemd/headgate.socket
install -D -m 644 -t "$root/usr/lib/sysusers.d" deploy/systemd/sysusers.d/headgate.conf
install -D -m 644 -t "$root/usr/lib/tmpfiles.d" deploy/systemd/tmpfiles.d/headgate.conf
for page in headgate headgate-bench headgate-convert gwctl; do
  install -D -m 644 "build/man/$page.1" "$root/usr/share/man/man1/$page.1"
  gzip -9n "$root/usr/share/man/man1/$page.1"
done
for page in headgate gwctl; do
  install -D -m 644 "build/completions/$page.bash" "$root/usr/share/bash-completion/completions/$page"
  install -D -m 644 -t "$root/usr/share/zsh/vendor-completions" "build/completions/_$page"
  install -D -m 644 -t "$root/usr/share/fish/vendor_completions.d" "build/completions/$page.fish"
done
install -D -m 644 deploy/debian/lintian-overrides "$root/usr/share/lintian/overrides/headgate"
install -D -m 644 deploy/debian/copyright "$root/usr/share/doc/headgate/copyright"
# One entry, as Debian's policy wants it; what has changed is beside it, for people.
date=$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
printf 'headgate (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz beside this file.\n\n -- %s  %s\n' \
  "$version" "$(sed -n 's/^Maintainer: //p' deploy/debian/control)" "$date" | gzip -9n > "$root/usr/share/doc/headgate/changelog.gz"
gzip -9nc CHANGELOG.md > "$root/usr/share/doc/headgate/CHANGELOG.md.gz"
chmod 644 "$root"/usr/share/doc/headgate/*.gz

for script in postinst prerm postrm; do install -m 755 "deploy/debian/$script" "$root/DEBIAN/$script"; done
sed -e "s/@VERSION@/$version/; s/@ARCHITECTURE@/$architecture/; s/@PYTHON@/python$minor/" \
  -e "s/@SIZE@/$(du -sk --apparent-size "$root/usr" | cut -f1)/" deploy/debian/control > "$root/DEBIAN/control"
(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) > "$root/DEBIAN/md5sums"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
rm -f dist/headgate_*.deb
dpkg-deb --root-owner-group -Zxz -z3 --build "$root" "dist/headgate_${version}_$architecture.deb"
