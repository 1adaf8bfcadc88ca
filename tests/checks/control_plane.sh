#!/bin/sh
# Where the tests before a real API server take its programs from, and what they say when there are none
# (tests/kube/control_plane.inc); no program is run. What run.sh and .ci/run rely on.
set -u
cd "$(dirname "$0")/../.." || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

mkdir -p "$work/tools" "$work/given"
for tool in etcd kubectl curl openssl; do
	printf '#!/bin/sh\n' >"$work/tools/$tool"
done
for program in kube-apiserver kube-scheduler; do
	printf '#!/bin/sh\n' >"$work/given/$program"
done
chmod +x "$work/tools"/* "$work/given"/*

# A checkout of its own, with nothing beside it.
fresh() {
	rm -rf "$work/checkout" "$work/shared"
	mkdir -p "$work/checkout/tests/kube"
	cp tests/kube/control_plane.inc "$work/checkout/tests/kube/"
	cache=$(cd "$work/checkout" && pwd)/vendor/.cache/kube
}

archives() { # beside the checkout
	mkdir -p "$work/shared/kube/bin"
	for program; do
		xz -c "$work/given/$program" >"$work/shared/kube/bin/$program.xz"
	done
}

# expect WHAT STATUS TEXT [VARIABLE=VALUE…]: twice, since the first time may leave something behind.
expect() {
	what=$1 wanted=$2 text=$3
	shift 3
	for time in first second; do
		(
			unset KUBE_BIN KUBE_REQUIRED
			cd "$work/checkout" && env PATH="$work/tools:$PATH" "$@" \
				sh -c '. "$0"; kube_find; echo "found in $kube_bin"' tests/kube/control_plane.inc
		) >"$work/out" 2>&1
		status=$?
		if [ "$status" -ne "$wanted" ] || ! grep -qxF "$text" "$work/out"; then
			echo "$what, the $time time: exit status $status instead of $wanted, or not \"$text\": $(cat "$work/out")"
			failures=$((failures + 1))
		fi
	done
}

advice='get it with: sh tests/kube/build_control_plane.sh'
fresh
expect "nothing is there" 77 "skipped: no kube-apiserver; $advice"
expect "nothing is there, and it is required" 1 "control plane: no kube-apiserver; $advice" KUBE_REQUIRED=1
expect "KUBE_BIN has none" 77 \
	"skipped: no kube-apiserver; KUBE_BIN is $work, which doesn't have it; without KUBE_BIN, $advice" KUBE_BIN="$work"
expect "KUBE_BIN" 0 "found in $work/given" KUBE_BIN="$work/given"

mkdir -p "$work/shared/kube/bin"
expect "a folder without archives" 77 "skipped: no kube-apiserver; $advice"
archives kube-apiserver
expect "one archive of two" 77 "skipped: no kube-scheduler; $advice"
archives kube-apiserver kube-scheduler
expect "KUBE_BIN comes before archives" 0 "found in $work/given" KUBE_BIN="$work/given"
expect "archives" 0 "found in $cache"
cmp -s "$work/given/kube-scheduler" "$cache/kube-scheduler" || { echo "what was unpacked differs"; failures=1; }

fresh
archives kube-apiserver kube-scheduler
head -c 40 "$work/shared/kube/bin/kube-scheduler.xz" >"$work/part" && mv "$work/part" "$work/shared/kube/bin/kube-scheduler.xz"
expect "an archive that was cut off" 1 "control plane: $work/checkout/../shared/kube/bin/kube-scheduler.xz can't be unpacked"
[ ! -e "$cache/kube-scheduler" ] || { echo "a part of a program was left"; failures=1; }

[ "$failures" -eq 0 ]
