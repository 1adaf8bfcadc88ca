#!/bin/sh
# What the README says of the shipped program: static, about a megabyte, and nothing but a kernel needed.
#
#   usage: binary.sh static|size|alone PROGRAM
set -eu

program=$2
fail() {
	echo "$program: $*"
	exit 1
}

case $1 in
static)
	file "$program"
	# static-pie: static, and loaded at an address that can't be foretold.
	file "$program" | grep -q 'pie executable.* static-pie linked' || fail "isn't a static, position-independent program"
	ldd "$program" 2>&1 | grep -Eq 'statically linked|not a dynamic executable' || fail "ldd finds libraries"
	! readelf -lW "$program" | grep -q INTERP || fail "asks for a dynamic loader"
	! readelf -dW "$program" | grep -q NEEDED || fail "needs shared libraries"
	readelf -lW "$program" | grep -q GNU_RELRO || fail "has no read-only relocations"
	! readelf -lW "$program" | grep GNU_STACK | grep -q RWE || fail "has an executable stack"
	! readelf -dW "$program" | grep -q TEXTREL || fail "has relocations in its code"
	readelf -dW "$program" | grep -q 'FLAGS.*\(BIND_NOW\|NOW\)' || fail "doesn't bind everything at the start (full RELRO)"
	! readelf -lW "$program" | grep LOAD | grep -q RWE || fail "has a segment that is writable and executable"
	# The name goes with the symbols. The C library has it in any case: calls from many functions are what counts.
	if readelf -sW "$program" | grep -q ' main$'; then
		[ "$(objdump -d "$program" | grep -cE '(call|bl) .*<__stack_chk_fail')" -ge 100 ] || fail "has no stack protector"
	fi
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
alone)
	# A root folder with nothing else in it, not even /dev.
	empty=$(mktemp -d)
	trap 'rm -rf "$empty"' EXIT
	cp "$program" "$empty/ballast"
	printf '{' >"$empty/config.json"
	if [ "$(id -u)" -eq 0 ]; then
		enter='chroot'
	else
		enter='unshare --user --map-root-user chroot'
	fi
	# shellcheck disable=SC2086 # $enter is words
	if ! $enter / true 2>"$empty/errors"; then
		echo "skipped: this machine lets nobody change the root folder: $(cat "$empty/errors")"
		exit 77
	fi
	# shellcheck disable=SC2086
	$enter "$empty" /ballast version || fail "doesn't run alone"
	status=0
	# shellcheck disable=SC2086
	$enter "$empty" /ballast check-config /config.json 2>"$empty/errors" || status=$?
	cat "$empty/errors"
	[ "$status" -eq 1 ] && grep -q '^/config.json:1: ' "$empty/errors" || fail "doesn't work alone"
	;;
*)
	fail "no such check: $1"
	;;
esac
