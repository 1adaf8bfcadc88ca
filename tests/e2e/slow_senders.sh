#!/bin/sh
# An agent whose pages are asked for by hundreds of clients that take their time (slowhttptest): heads without an end, bodies
# drop by drop, answers hardly read. It serves others meanwhile, drops the slow ones, and is as before afterwards.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

seconds=14 # longer than a head may take (10 s), so that the agent's own deadline is seen to work
clients=200

command -v slowhttptest >/dev/null || give_up "slowhttptest is missing. Run: sh vendor/setup.sh"
make_certificate
mkdir "$work/account"
echo token >"$work/account/token"
cp "$work/api.crt" "$work/account/ca.crt"
mkfifo "$work/peers"
node tests/e2e/agent_peers.js "$work" "$prefix" <"$work/peers" >"$work/peers.out" 2>&1 &
children="$children $!"
exec 3>"$work/peers"
wait_until 20 grep -q ready "$work/peers.out" || give_up "no API server: $(cat "$work/peers.out")"
env -i CONFIG_PATH=tests/data/agent/config-b.json K8S_NODE_NAME=node-a K8S_POD_IP="$prefix.1" \
	KUBERNETES_SERVICE_HOST="$prefix.2" KUBERNETES_SERVICE_PORT=6443 BALLAST_SERVICEACCOUNT_DIR="$work/account" \
	"$ballast" agent "--listen-address=$prefix.1" >"$work/out" 2>"$work/log" &
pid=$!
children="$children $pid"
wait_until 20 grep -q '"msg":"Entering main loop"' "$work/log" || give_up "no main loop: $(cat "$work/log")"

descriptors() { ls "/proc/$pid/fd" | wc -l; }
resident_kib() { sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status"; }
page() { curl -sf -m "$1" -o "$work/page" "http://$prefix.1:$2" && [ -s "$work/page" ]; }

page 5 9100/metrics || give_up "no page before"
before=$(descriptors)
memory=$(resident_kib)

# attack NAME PORT/PATH [slowhttptest option…]: in the background.
attack() {
	what=$1 where=$2
	shift 2
	(ulimit -n 4096 && exec slowhttptest -c "$clients" -r 200 -l "$seconds" -p 2 -u "http://$prefix.1:$where" "$@") \
		>"$work/$what" 2>&1 &
	attacks="$attacks $!"
	children="$children $!"
}

attacks=
attack heads 9100/metrics -H -i 3 -x 10
attack bodies 10300/ -B -i 3 -s 8192 -x 10 -t GET
attack reads 9101/metrics -X -w 1 -y 8 -n 3 -z 1 -k 3

most=0
served=0
for _ in 1 2 3 4 5 6 7 8; do
	sleep 1
	page 5 9100/metrics && served=$((served + 1))
	now=$(descriptors)
	[ "$now" -le "$most" ] || most=$now
done
[ "$most" -ge $((before + clients)) ] || fail "the attack didn't come about: at most $most descriptors, $before before"
[ "$served" -ge 7 ] || fail "under attack $served of 8 pages were served"
page 5 9100/livez || fail "not alive under attack"

for attack in $attacks; do
	wait "$attack"
done
# Heads are due after 10 s, which is before the attack would end by itself.
grep -aq 'No open connections left' "$work/heads" || fail "slow heads are never dropped: $(tail -n 12 "$work/heads")"
back() { [ "$(descriptors)" -le $((before + 2)) ]; }
wait_until 15 back || fail "$(descriptors) descriptors afterwards, $before before"
after=$(resident_kib)
ldd "$ballast" 2>/dev/null | grep -q 'lib[a-z]*san' || [ "$after" -le $((memory + 4096)) ] || fail "$after KiB resident afterwards, $memory before"
page 5 9100/metrics || fail "no page afterwards"
echo "descriptors: $before before, at most $most, $(descriptors) after; resident KiB: $memory before, $after after; pages served: $served of 8"
kill "$pid"
wait "$pid"
status=$?
[ "$status" -eq 0 ] || fail "exit status $status"
[ "$failures" -eq 0 ]
