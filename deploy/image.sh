#!/bin/sh
# Builds the container images with whichever of docker, podman and buildah is there.
#
#   usage: deploy/image.sh [--arch ARCH] [agent|extender]...   (default: both, for this machine's architecture)
#
# They are tagged ballast-agent:VERSION and ballast-extender:VERSION.
set -eu
cd "$(dirname "$0")/.."

arch=
targets=
while [ $# -gt 0 ]; do
	case $1 in
	--arch)
		arch=${2:?--arch needs amd64 or arm64}
		shift
		;;
	agent | extender) targets="$targets $1" ;;
	*)
		sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"
		case $1 in -h | --help) exit 0 ;; *) exit 2 ;; esac
		;;
	esac
	shift
done
version=$(sed -n 's/^project(ballast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for tool in docker podman buildah; do
	command -v "$tool" >/dev/null || continue
	for target in ${targets:-agent extender}; do
		case $tool in
		docker) SOURCE_DATE_EPOCH=0 docker build --target "$target" --tag "ballast-$target:$version" ${arch:+--platform "linux/$arch"} . ;;
		*) "$tool" build --timestamp 0 --target "$target" --tag "ballast-$target:$version" ${arch:+--platform "linux/$arch"} . ;;
		esac
	done
	exit 0
done
echo "image.sh: none of docker, podman and buildah is installed" >&2
exit 1
