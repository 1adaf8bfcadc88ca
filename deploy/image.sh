#!/bin/sh
# Builds the container image with whichever of docker, podman and buildah is there.
#
#   usage: deploy/image.sh [TAG]   (default: ballast:VERSION)
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^project(ballast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tag=${1:-ballast:$version}
for tool in docker podman buildah; do
	if command -v "$tool" >/dev/null; then
		exec "$tool" build --tag "$tag" .
	fi
done
echo "image.sh: none of docker, podman and buildah is installed" >&2
exit 1
