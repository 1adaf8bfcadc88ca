#!/bin/sh
# Builds the program and lays out the image's files in a folder; the Dockerfile's work, usable without a container engine.
#
#   usage: deploy/image-tree.sh FOLDER [ARCH]   (amd64 or arm64; default: this machine's)
#
# The same sources give the same bytes: nothing of the time, the place or the order of files goes in.
set -eu
folder=${1:?usage: image-tree.sh FOLDER [ARCH]}
machine=$(dpkg --print-architecture)
arch=${2:-$machine}
cd "$(dirname "$0")/.."

strip=strip
if [ "$arch" = "$machine" ]; then
	cmake -B build-image -G Ninja -DCMAKE_BUILD_TYPE=Release -DBALLAST_TESTS=OFF -DBALLAST_WERROR=OFF >/dev/null
else
	cmake -B build-image -G Ninja -DCMAKE_BUILD_TYPE=Release -DBALLAST_TESTS=OFF -DBALLAST_WERROR=OFF \
		-DCMAKE_TOOLCHAIN_FILE="vendor/$arch.cmake" >/dev/null
	strip=aarch64-linux-gnu-strip
fi
cmake --build build-image --target ballast

umask 022
mkdir -p "$folder/usr/bin" "$folder/etc/ssl/certs" "$folder/usr/share/doc/ballast"
"$strip" -o "$folder/usr/bin/ballast" build-image/ballast
# The names that manifests and probes know.
ln -sf ballast "$folder/usr/bin/autoscaler-agent"
ln -sf usr/bin/ballast "$folder/extender"
ln -sf usr/bin/ballast "$folder/health_probe"
# What is trusted where no other certificates are named: receivers of events.
cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/"
cp LICENSE "$folder/usr/share/doc/ballast/"
sh deploy/sbom.sh "$arch" >"$folder/usr/share/doc/ballast/sbom.spdx.json"
find "$folder" -exec touch -h -d @0 {} +
