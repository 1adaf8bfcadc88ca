#!/bin/sh
# What the shipped program must be.
#
#   usage: binary.sh static|size PROGRAM
set -eu

program=$2
fail() {
	echo "$program: $*"
	exit 1
}

case $1 in
static)
	file "$program"
	file "$program" | grep -Eq 'static(-pie|ally) linked' || fail "isn't statically linked"
	ldd "$program" 2>&1 | grep -Eq 'statically linked|not a dynamic executable' || fail "ldd finds libraries"
	! readelf -lW "$program" | grep -q INTERP || fail "asks for a dynamic loader"
	! readelf -dW "$program" | grep -q NEEDED || fail "needs shared libraries"
	readelf -lW "$program" | grep -q GNU_RELRO || fail "has no read-only relocations"
	! readelf -lW "$program" | grep GNU_STACK | grep -q RWE || fail "has an executable stack"
	! readelf -dW "$program" | grep -q TEXTREL || fail "has relocations in its code"
	;;
size)
	limit=$((2 * 1024 * 1024))
	stripped=$(mktemp)
	trap 'rm -f "$stripped"' EXIT
	strip -o "$stripped" "$program"
	size=$(wc -c <"$stripped")
	echo "$size bytes stripped, $((size * 100 / limit)) % of the limit"
	[ "$size" -le "$limit" ] || fail "is over $limit bytes"
	;;
esac
