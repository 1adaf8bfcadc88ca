#!/bin/sh
# Brings what building and testing need, on a bare Debian 12: packages by apt, third-party sources by vendor/fetch, and
# the few npm packages of the tests. Run it again at any time: when everything is there it takes a second and needs
# neither root nor the network.
#
#   usage: vendor/setup.sh [--build-only [--arch arm64]] [fetch option...]
#
#     --build-only   only what the product needs; the tests need more
#     --arch arm64   to build for that architecture on another one (vendor/arm64.cmake)
#     --drift, --refresh   passed on, see vendor/fetch --help
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

build_only=
fetch_options=
arch=
expect_arch=
for argument; do
	if [ -n "$expect_arch" ]; then
		expect_arch=
		arch=$argument
		continue
	fi
	case $argument in
	--arch) expect_arch=1 ;;
	--build-only) build_only=1 ;;
	--drift | --refresh) fetch_options=$argument ;;
	*)
		sed -n '2,/^set/{/^#/s/^# \{0,1\}//p;}' "$0"
		case $argument in -h | --help) exit 0 ;; *) exit 2 ;; esac
		;;
	esac
done

die() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}

command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ||
	die "this needs Debian 12 or a relative of it (apt-get and dpkg); on other systems use the Dockerfile"

# ---- packages -------------------------------------------------------------------------------------------------------

# "package" or "package:command". With a command, whatever provides the command will do.
packages='gcc libc6-dev cmake:cmake ninja-build:ninja re2c:re2c xz-utils:xz bzip2:bzip2 ca-certificates'
test_packages='
	binutils:strip file:file curl:curl openssl:openssl patch:patch
	libcmocka-dev protobuf-compiler:protoc libprotobuf-dev
	clang-14 libclang-rt-14-dev clang-tidy-14 clang-format-14 cppcheck
	prometheus:promtool prometheus-node-exporter:prometheus-node-exporter slowhttptest:slowhttptest
	nodejs:node npm:npm
	etcd-server:etcd kubernetes-client:kubectl
	buildah:buildah mmdebstrap:mmdebstrap netavark'
[ -n "$build_only" ] || packages="$packages $test_packages"
[ -z "$arch" ] || [ "$arch" = "$(dpkg --print-architecture)" ] || case $arch in
arm64) packages="$packages gcc-aarch64-linux-gnu:aarch64-linux-gnu-gcc libc6-dev-arm64-cross binutils:strip" ;;
*) die "don't know how to build for $arch" ;;
esac

installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = 'ii ' ]; }

missing=
for entry in $packages; do
	command=${entry#*:}
	if [ "$command" != "$entry" ] && command -v "$command" >/dev/null; then
		continue
	fi
	installed "${entry%%:*}" || missing="$missing ${entry%%:*}"
done

# Debian starts a daemon when its package is installed, unless this says no. Ours are only used by tests, which start them
# on ports of their own.
forbid_services() {
	policy=/usr/sbin/policy-rc.d
	[ ! -e "$policy" ] || return 0
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod +x "$policy"
	trap 'rm -f "$policy"' EXIT
}

install_missing() {
	[ "$(id -u)" = 0 ] || die "these packages are missing:$missing
setup: installing them needs root. Either run this as root, or have them installed by
setup:   sudo apt-get update && sudo apt-get install -y --no-install-recommends$missing"
	echo "setup: installing packages:$missing"
	log=$(mktemp)
	forbid_services
	export DEBIAN_FRONTEND=noninteractive
	# shellcheck disable=SC2086 # a list of words
	if ! { apt-get -q update && apt-get -q install -y --no-install-recommends $missing; } >"$log" 2>&1 </dev/null; then
		tail -n 40 "$log" >&2
		die "apt-get could not install:$missing (all of its output: $log)"
	fi
	rm -f "$log"
	# On a machine with systemd they would start at the next boot.
	if command -v systemctl >/dev/null; then
		for daemon in prometheus prometheus-node-exporter etcd; do
			case "$missing " in *" $daemon "* | *" $daemon-server "*) systemctl --quiet disable "$daemon" 2>/dev/null || true ;; esac
		done
	fi
}

[ -z "$missing" ] || install_missing

# ---- sources --------------------------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # a list of words
sh "$here/fetch" $fetch_options ${arch:+--arch $arch}

# ---- npm packages of the tests --------------------------------------------------------------------------------------

npm_dir=$root/tests/npm
if [ -z "$build_only" ] && [ -f "$npm_dir/package-lock.json" ]; then
	if ! cmp -s "$npm_dir/package-lock.json" "$npm_dir/node_modules/.installed-lock.json"; then
		echo "setup: installing the tests' npm packages"
		(cd "$npm_dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null) ||
			die "npm could not install the tests' packages"
		cp "$npm_dir/package-lock.json" "$npm_dir/node_modules/.installed-lock.json"
	fi
fi
