#!/bin/sh
# Shows that the simulator's invariants catch what they are there for: builds ballast-sim with one deliberate mistake of
# mutations/*.patch at a time, runs it, and expects the invariant that the patch names to break.
#
#   usage: mutations.sh [NAME...]     all of them, or those whose file names contain NAME
#
# BUILD_DIR is a build tree that has ballast-sim. The sources stay as they are: a patched copy of the one file is compiled
# with the tree's own command, and linked in front of the libraries, which takes the place of the right one.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD_DIR:-$root/build}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

ninja -C "$build" ballast-sim >"$work/build.log" || { tail -n 20 "$work/build.log"; exit 1; }
ninja -C "$build" -t commands ballast-sim >"$work/commands"

# The command that makes the host variant's object of a source file.
compile_command() {
	grep -e "-c $root/$1\$" "$work/commands" | grep '_host.dir/' | head -n 1
}

link_command() {
	grep -e ' -o ballast-sim ' "$work/commands" | tail -n 1
}

# try PATCH: prints a line; fails if the mistake isn't caught as stated.
try() {
	name=$(basename "$1" .patch)
	invariant=$(sed -n 's/^Invariant: //p' "$1")
	arguments=$(sed -n 's/^Arguments: //p' "$1")
	file=$(sed -n 's,^+++ b/,,p' "$1" | cut -f 1)
	folder=$work/$name
	mkdir -p "$folder"
	cp "$root/$file" "$folder/$(basename "$file")"
	patch -s "$folder/$(basename "$file")" "$1" || { echo "$name: the patch doesn't fit any more"; return 1; }
	compile_command "$file" | sed -e "s,-c $root/$file\$,-I$root/$(dirname "$file") -c $folder/$(basename "$file")," \
		-e "s, -o [^ ]*, -o $folder/mutant.o," -e 's, -MF [^ ]*, -MF /dev/null,' >"$folder/compile"
	link_command | sed -e "s, -o ballast-sim , $folder/mutant.o -o $folder/ballast-sim ," >"$folder/link"
	(cd "$build" && sh "$folder/compile" && sh "$folder/link") >"$folder/log" 2>&1 || { cat "$folder/log"; return 1; }
	# shellcheck disable=SC2086 # several words
	"$folder/ballast-sim" --pods 0 $arguments >"$folder/out" 2>&1 || :
	caught=$(sed -n 's/^BROKEN .*: invariant "\([^"]*\)".*/\1/p' "$folder/out" | head -n 1)
	rm -f "$folder/ballast-sim"
	if [ "$caught" = "$invariant" ]; then
		echo "$name: caught by \"$caught\""
		return 0
	fi
	echo "$name: expected \"$invariant\", got \"$caught\""
	tail -n 3 "$folder/out"
	return 1
}

# chosen [NAME...]: the patches to try, one a line.
chosen() {
	for patch in "$root"/tests/sim/mutations/*.patch; do
		[ $# -gt 0 ] || echo "$patch"
		for name in "$@"; do
			case $(basename "$patch") in *"$name"*) echo "$patch" ;; esac
		done
	done
}

# lane NUMBER: every so many-th of the chosen ones; each that fails makes a line in a file.
lane() {
	awk "NR % $lanes == $1" "$work/chosen" | while read -r patch; do
		try "$patch" || basename "$patch" >>"$work/failed.$1"
	done
}

chosen "$@" >"$work/chosen"
lanes=$(nproc)
number=0
while [ $number -lt "$lanes" ]; do
	lane $number &
	number=$((number + 1))
done
wait
count=$(wc -l <"$work/chosen")
failures=$(cat "$work"/failed.* 2>/dev/null | wc -l)
echo "$count mistakes, $failures not caught as stated"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
