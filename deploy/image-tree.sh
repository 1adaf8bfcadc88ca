#!/bin/sh
# Builds the program and lays out the image's files in a folder; the Dockerfile's work, usable without a container engine.
#
#   usage: deploy/image-tree.sh [--program FILE] FOLDER [ARCH]   (amd64 or arm64; default: this machine's)
#
#     --program FILE   lays out this program instead of building one
#
# The same sources give the same bytes: nothing of the time, the place, the user's umask or the order of files goes in.
set -eu
usage() {
	sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"
	exit "$1"
}

program=
case ${1:-} in
-h | --help) usage 0 ;;
--program)
	program=$(realpath "${2:?--program needs a file}")
	shift 2
	;;
esac
case ${1:-} in '' | -*) usage 2 >&2 ;; esac
folder=$(realpath -m "$1")
machine=$(dpkg --print-architecture)
arch=${2:-$machine}
toolchain= strip=strip
cd "$(dirname "$0")/.."
if [ "$arch" != "$machine" ]; then
	toolchain=vendor/$arch.cmake
	[ -f "$toolchain" ] || {
		echo "image-tree.sh: don't know how to build for $arch" >&2
		exit 2
	}
	strip=aarch64-linux-gnu-strip
fi
umask 022

if [ -z "$program" ]; then
	# A tree for each architecture: a toolchain can't be changed in one that has been set up.
	build=build-image-$arch
	cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBALLAST_TESTS=OFF -DBALLAST_WERROR=OFF \
		${toolchain:+-DCMAKE_TOOLCHAIN_FILE="$toolchain"} >/dev/null
	cmake --build "$build" --target ballast
	program=$build/ballast
fi

mkdir -p "$folder/usr/bin" "$folder/etc/ssl/certs" "$folder/usr/share/doc/ballast"
"$strip" -o "$folder/usr/bin/ballast" "$program"
chmod 755 "$folder/usr/bin/ballast"
# The names that manifests and probes know.
ln -sfn ballast "$folder/usr/bin/autoscaler-agent"
ln -sfn usr/bin/ballast "$folder/extender"
ln -sfn usr/bin/ballast "$folder/health_probe"
# What is trusted where no other certificates are named: receivers of events. Debian's, without what this machine trusts besides.
certificates=$folder/etc/ssl/certs/ca-certificates.crt
(LC_ALL=C && export LC_ALL && cat /usr/share/ca-certificates/mozilla/*.crt) >"$certificates.new"
chmod 644 "$certificates.new"
mv "$certificates.new" "$certificates"
install -m 644 LICENSE "$folder/usr/share/doc/ballast/"
sh deploy/sbom.sh "$arch" "$certificates" >"$folder/usr/share/doc/ballast/sbom.spdx.json"
chmod 644 "$folder/usr/share/doc/ballast/sbom.spdx.json"
find "$folder" -type d -exec chmod 755 {} +
find "$folder" -exec touch -h -d @0 {} +
