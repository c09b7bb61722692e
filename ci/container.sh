#!/usr/bin/env bash
# Builds the images headgate and headgate-controller from deploy/containers/Containerfile, with the version as tag.
# Usage: ci/container.sh [WORD...]. The words go to the builder: --build-arg PYTHON=3.12, --isolation chroot.
# WHEEL=kept in the environment: with the engine of the wheel in dist/, instead of compiling it anew. It has to be for the
# interpreter and the C library of the base image.
# BUILDER in the environment: podman, docker or buildah; without it, the first of them that is installed.
set -euo pipefail
cd "$(dirname "$0")/.."
builder=${BUILDER:-}
for name in podman docker buildah; do
  [ -n "$builder" ] || ! command -v $name >/dev/null || builder=$name
done
[ -n "$builder" ] || {
  echo 'container: needs Podman, Docker or Buildah (Debian: podman), and the base image of deploy/containers/Containerfile' >&2
  exit 1
}
# What an earlier run that was killed has left would be taken for the engine.
rm -f deploy/containers/wheel/*.whl
if [ "${WHEEL:-}" = kept ]; then
  trap 'rm -f deploy/containers/wheel/*.whl' EXIT
  cp dist/headgate-*linux_*.whl deploy/containers/wheel/
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# Podman's own format has no health check.
format=(--format docker)
[ "${builder##*/}" != docker ] || format=()
arguments=(--build-arg "SOURCE_COMMIT=$(git rev-parse HEAD)" --build-arg "SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)")
for target in gateway controller; do
  image=headgate
  [ $target = gateway ] || image=headgate-controller
  "$builder" build "${format[@]}" "${arguments[@]}" "$@" -f deploy/containers/Containerfile --target $target -t "$image:$version" .
done
