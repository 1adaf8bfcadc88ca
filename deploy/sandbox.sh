#!/bin/sh
# Sets up what is missing, builds build/ballast if it isn't up to date, and runs `ballast sandbox` with the arguments given.
# Standard output is the sandbox's alone; progress goes to standard error: on a terminal one line that changes, elsewhere a
# line per stage.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
log=$build/sandbox-build.log
failed=$build/sandbox-build.failed

say() { printf 'ballast: %s\n' "$*" >&2; }
die() {
	say "$*"
	exit 1
}

# A tree that has been set up, for tests say, stays as it is.
configure() {
	[ ! -f build/build.ninja ] || return 0
	echo "stage: configuring"
	cmake --preset release -DBALLAST_TESTS=OFF -DBALLAST_WERROR=OFF
}

prepare() (
	cd "$root" &&
		sh vendor/setup.sh --build-only &&
		configure &&
		NINJA_STATUS='[%f/%t] ' cmake --build build --target ballast
)

# Reads what the steps print: all of it goes to the log, and what takes long is shown.
show_progress() {
	terminal=
	[ ! -t 2 ] || terminal=1
	building=
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$log"
		case $line in
		"setup: installing packages:"*) stage="${line#setup: }, which can take minutes" ;;
		"vendor: fetching"*) stage="fetching third-party sources" ;;
		"stage: "*) stage=${line#stage: } ;;
		\[[0-9]*/[0-9]*\]*)
			counter=${line#\[}
			counter=${counter%%\]*}
			[ "${counter#*/}" -ge 10 ] || continue # a few files, or none: not worth a line
			if [ -n "$terminal" ]; then
				building=1
				printf '\rballast: building %s ' "$counter" >&2
			elif [ -z "$building" ]; then
				building=1
				say "building, ${counter#*/} steps"
			fi
			continue
			;;
		*) continue ;;
		esac
		say "$stage"
	done
	[ -z "$terminal" ] || [ -z "$building" ] || echo >&2
}

mkdir -p "$build" 2>/dev/null && [ -w "$build" ] && rm -f "$failed" && true 2>/dev/null >"$log" ||
	die "$build, where the program is built, can't be written to by $(id -un)"
[ -x "$build/ballast" ] || say "not built yet: setting up and building first, a minute or two (log: $log)"
{ prepare </dev/null 2>&1 || touch "$failed"; } | show_progress
if [ -e "$failed" ]; then
	rm -f "$failed"
	tail -n 45 "$log" >&2
	die "setting up or building failed (log: $log)"
fi
exec "$build/ballast" sandbox "$@"
