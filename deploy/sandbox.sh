#!/bin/sh
# Sets up what is missing, builds build/ballast if it isn't up to date, and runs `ballast sandbox` with the arguments given.
# Standard output is the sandbox's alone.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
log=$build/sandbox-build.log

mkdir -p "$build"
prepare() (
	cd "$root" &&
		sh vendor/setup.sh --build-only &&
		# A tree that has been set up, for tests say, stays as it is.
		{ [ -f build/build.ninja ] || cmake --preset release -DBALLAST_TESTS=OFF -DBALLAST_WERROR=OFF; } &&
		cmake --build build --target ballast
)

[ -x "$build/ballast" ] || echo "ballast: setting up and building, a minute or two the first time (log: $log)" >&2
if ! prepare >"$log" 2>&1; then
	tail -n 30 "$log" >&2
	echo "ballast: setting up or building failed (log: $log)" >&2
	exit 1
fi
exec "$build/ballast" sandbox "$@"
