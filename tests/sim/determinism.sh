#!/bin/sh
# One seed fixes everything: the same options give the same trace hash, in another process too, and other seeds other ones.
set -eu

sim=${BUILD_DIR:-build}/ballast-sim
[ -x "$sim" ] || ninja -C "${BUILD_DIR:-build}" ballast-sim >/dev/null

# hash OPTION...
hash() {
	"$sim" "$@" | sed -n 's/.*hash \([0-9a-f]*\),.*/\1/p'
}

check() {
	first=$(hash --seed 1 "$@")
	second=$(hash --seed 1 "$@")
	other=$(hash --seed 2 "$@")
	if [ -z "$first" ] || [ "$first" != "$second" ] || [ "$first" = "$other" ]; then
		echo "hashes with $*: \"$first\", again \"$second\"; of another seed \"$other\""
		exit 1
	fi
	echo "$*: $first"
}

check --hours 0.12
check --hours 0.08 --memory
check --hours 0.08 --tls
