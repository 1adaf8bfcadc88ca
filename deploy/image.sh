#!/bin/sh
# Builds the container images with whichever of docker, podman and buildah works here.
#
#   usage: deploy/image.sh [--arch ARCH] [--engine ENGINE] [agent|extender]...   (default: both, for this machine's architecture)
#
#     --arch ARCH       amd64 or arm64, by cross-compiling
#     --engine ENGINE   docker, podman or buildah, instead of the first that works
#
# They are tagged ballast-agent:VERSION and ballast-extender:VERSION; with --arch also …:VERSION-ARCH, which another architecture's
# build leaves alone.
set -eu
cd "$(dirname "$0")/.."

die() {
	echo "image.sh: $*" >&2
	exit 1
}
usage() {
	sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' deploy/image.sh
	exit "$1"
}
wrong() {
	echo "image.sh: $*" >&2
	usage 2 >&2
}

arch=
engine=
targets=
while [ $# -gt 0 ]; do
	case $1 in
	--arch)
		arch=${2:-}
		case $arch in amd64 | arm64) ;; *) wrong "--arch needs amd64 or arm64" ;; esac
		shift
		;;
	--engine)
		engine=${2:-}
		case $engine in docker | podman | buildah) ;; *) wrong "--engine needs docker, podman or buildah" ;; esac
		shift
		;;
	agent | extender) targets="$targets $1" ;;
	-h | --help) usage 0 ;;
	*) wrong "unknown argument \"$1\"" ;;
	esac
	shift
done

# A client without its daemon, or without what it needs of the machine, is no engine.
found=
works=
for candidate in ${engine:-docker podman buildah}; do
	command -v "$candidate" >/dev/null || continue
	found="$found $candidate"
	if "$candidate" info >/dev/null 2>&1; then
		works=$candidate
		break
	fi
done
if [ -z "$found" ]; then
	[ -n "$engine" ] || die "none of docker, podman and buildah is installed"
	die "$engine isn't installed"
fi
[ -n "$works" ] || die "installed, but \"info\" fails for:$found"

case $(uname -m) in
x86_64) machine=amd64 ;;
aarch64 | arm64) machine=arm64 ;;
*) die "images are made on amd64 and arm64, and this is $(uname -m)" ;;
esac
version=$(sed -n 's/^project(ballast VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
for target in ${targets:-agent extender}; do
	set -- --target "$target" --tag "ballast-$target:$version" --label "org.opencontainers.image.version=$version"
	[ -z "$arch" ] || set -- "$@" --tag "ballast-$target:$version-$arch" --platform "linux/$arch"
	# The time of creation is part of an image's bytes.
	case $works in
	docker) SOURCE_DATE_EPOCH=0 DOCKER_BUILDKIT=1 docker build "$@" . ;;
	# Older ones don't say themselves where they build.
	*) "$works" build --timestamp 0 --layers --build-arg "BUILDPLATFORM=linux/$machine" "$@" . ;;
	esac
done
