#!/bin/sh
# What stands between an attacker and the node when the agent runs: the filter of system calls, memory that is never
# writable and executable, the admin token, and secrets that no log line tells.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

token=service-account-token-5f1d admin=admin-token-77aa61

# An agent at $prefix.1 up to its main loop; arguments: its flags. $pid. $under: a program that starts it.
under=
agent_start() {
	: >"$work/log"
	(
		exec env -i CONFIG_PATH="$work/config.json" K8S_NODE_NAME=node-a K8S_POD_IP="$prefix.1" \
			KUBERNETES_SERVICE_HOST="$prefix.2" KUBERNETES_SERVICE_PORT=6443 BALLAST_SERVICEACCOUNT_DIR="$work/account" \
			${under:+"$under"} "$ballast" agent "--listen-address=$prefix.1" --log-level debug "$@"
	) >"$work/out" 2>"$work/log" &
	pid=$!
	children="$children $pid"
	wait_until 20 grep -q '"msg":"Entering main loop"' "$work/log" || give_up "no main loop ($*): $(cat "$work/log")"
}

agent_end() {
	kill "$pid"
	wait "$pid"
	status=$?
	[ "$status" -eq 0 ] || fail "$1: exit status $status"
	cat "$work/log" >>"$work/all.log"
}

status_field() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status"; }

# ask PORT/PATH [curl option…]: $code, and the answer in $work/answer.
ask() {
	where=$1
	shift
	code=$(curl -s -o "$work/answer" -D "$work/head" -w '%{http_code}' "$@" "http://$prefix.1:$where")
}

# copies WHAT AT_MOST TEXT: how often the agent's memory has the text. Sanitizers keep what was freed, and their own memory has no end.
copies() {
	[ -z "$sanitized" ] || return 0
	node tests/e2e/memory_scan.js "$pid" "$3" >"$work/copies"
	[ "$(head -n 1 "$work/copies")" != unreadable ] || return 0
	[ "$(head -n 1 "$work/copies")" -le "$2" ] || fail "$1: $(cat "$work/copies") copies in memory instead of $2"
}

# expect CODE WHAT PORT/PATH [curl option…]
expect() {
	wanted=$1 what=$2
	shift 2
	ask "$@"
	[ "$code" = "$wanted" ] || fail "$what: $code instead of $wanted"
}

make_certificate
mkdir "$work/account"
echo "$token" >"$work/account/token"
cp "$work/api.crt" "$work/account/ca.crt"
cp tests/data/agent/config-b.json "$work/config.json"
mkfifo "$work/peers"
node tests/e2e/agent_peers.js "$work" "$prefix" <"$work/peers" >"$work/peers.out" 2>&1 &
children="$children $!"
exec 3>"$work/peers"
wait_until 20 grep -q ready "$work/peers.out" || give_up "no API server: $(cat "$work/peers.out")"

# ---- system calls and memory ----

sanitized=$(ldd "$ballast" 2>/dev/null | grep 'lib[a-z]*san' || true)
filtered=1
if [ -n "$sanitized" ] || [ ! -e /proc/sys/kernel/seccomp/actions_avail ]; then
	filtered=
fi
agent_start
if [ -z "$sanitized" ]; then
	grep -Eq '^[^ ]* +[r-]wx' "/proc/$pid/maps" && fail "writable and executable: $(grep -E '^[^ ]* +[r-]wx' "/proc/$pid/maps")"
	grep -q 'r-xp' "/proc/$pid/maps" || fail "no map of the program's memory"
fi
if [ -n "$filtered" ]; then
	[ "$(status_field Seccomp)" = 2 ] || fail "no filter by default: Seccomp: $(status_field Seccomp)"
	[ "$(status_field NoNewPrivs)" = 1 ] || fail "new privileges could be had"
	grep -q "aren't filtered" "$work/log" && fail "a warning, with a filter"
	for port in 9100/metrics 9101/metrics; do
		expect 200 "a page under the filter" $port
	done
	# Counting descriptors reads a folder of /proc; a call that is refused would make it 0.
	ask 9100/metrics
	grep -q '^process_open_fds [1-9]' "$work/answer" || fail "no open descriptors: $(grep process_open_fds "$work/answer")"
	grep -Eq '"error":"[^"]*(operation not permitted|permission denied)' "$work/log" &&
		fail "something was refused: $(grep -E 'operation not permitted' "$work/log" | head -n 1)"
fi
# As it was read, and as the field of a request; nothing is left of the requests themselves, nor of the file.
[ -n "$sanitized" ] || [ "$(node tests/e2e/memory_scan.js "$pid" 'autoscaler-agent' | head -n 1)" != 0 ] || fail "the scan finds nothing at all"
copies "the service account's token" 2 "$token"
agent_end "with the filter"

# Names are looked up by a thread that begins under the filter.
env -i CONFIG_PATH="$work/config.json" K8S_NODE_NAME=node-a K8S_POD_IP="$prefix.1" KUBERNETES_SERVICE_HOST=localhost \
	KUBERNETES_SERVICE_PORT=1 BALLAST_SERVICEACCOUNT_DIR="$work/account" \
	"$ballast" agent "--listen-address=$prefix.1" >"$work/out" 2>"$work/log"
tail -n 1 "$work/log" | grep -q 'dial tcp .*:1: connect: connection refused"' ||
	fail "a name looked up under the filter: $(tail -n 1 "$work/log")"

agent_start --no-seccomp
[ "$(status_field Seccomp)" = 0 ] || [ "$(status_field Seccomp)" = "$(sed -n 's/^Seccomp:[[:space:]]*//p' /proc/self/status)" ] ||
	fail "--no-seccomp doesn't do without"
agent_end "without the filter"

# A kernel that has no filters: the agent says so, and what it means, and goes on.
if [ -n "$filtered" ]; then
	under=$BUILD_DIR/tests/old_kernel_driver
	agent_start
	under=
	grep -q '"level":"warn",.*"msg":"System calls aren.t filtered (--no-seccomp .*"error":"this kernel takes no filter of system calls: seccomp: ' \
		"$work/log" || fail "no warning on an old kernel: $(grep -i filter "$work/log")"
	expect 200 "a page on an old kernel" 9100/metrics
	agent_end "on an old kernel"
fi

# ---- the admin token ----

echo "$admin" >"$work/admin"
agent_start --admin-token-file "$work/admin"
for port in 9100/metrics 9101/metrics 9100/else; do
	expect 401 "$port without a token" $port
	grep -qi '^WWW-Authenticate: Bearer' "$work/head" || fail "$port: no challenge"
done
for path in livez readyz; do
	expect 200 "a probe" "9100/$path"
done
expect 401 "a dump without a token" 10300/ -X GET -d '{}'
expect 200 "a dump with the token" 10300/ -X GET -d '{}' -H "Authorization: Bearer $admin"
expect 200 "the token" 9100/metrics -H "Authorization: Bearer $admin"
expect 200 "the scheme in other letters" 9101/metrics -H "authorization: bearer  $admin"
expect 401 "another token" 9100/metrics -H "Authorization: Bearer ${admin}x"
expect 401 "a part of the token" 9100/metrics -H "Authorization: Bearer ${admin%?}"
expect 401 "an empty token" 9100/metrics -H 'Authorization: Bearer '
expect 401 "another scheme" 9100/metrics -H "Authorization: Basic $admin"
expect 401 "two tokens" 9100/metrics -H "Authorization: Bearer $admin" -H 'Authorization: Bearer x'
# It is read for each request, and shown by the good ones: neither leaves anything behind.
copies "the admin token" 0 "$admin"
echo another-token-31337 >"$work/admin.new" && mv "$work/admin.new" "$work/admin"
expect 401 "the token of before" 9100/metrics -H "Authorization: Bearer $admin"
expect 200 "the new token" 9100/metrics -H 'Authorization: Bearer another-token-31337'
: >"$work/admin"
expect 401 "an empty file" 9100/metrics -H 'Authorization: Bearer another-token-31337'
rm "$work/admin"
expect 401 "no file" 9100/metrics -H 'Authorization: Bearer another-token-31337'
[ "$(grep -c 'Unable to read the admin token' "$work/log")" -eq 1 ] || fail "not one line about the file that can't be read"
echo "$admin" >"$work/admin"
expect 200 "a file that is back" 9100/metrics -H "Authorization: Bearer $admin"
agent_end "with an admin token"

env -i CONFIG_PATH="$work/config.json" K8S_NODE_NAME=node-a K8S_POD_IP="$prefix.1" KUBERNETES_SERVICE_HOST="$prefix.2" \
	KUBERNETES_SERVICE_PORT=6443 BALLAST_SERVICEACCOUNT_DIR="$work/account" \
	"$ballast" agent "--listen-address=$prefix.1" --admin-token-file "$work/nowhere" >"$work/out" 2>"$work/log"
status=$?
[ "$status" -eq 2 ] || fail "a token file that isn't there at the start: exit status $status"
tail -n 1 "$work/log" | grep -q "\"msg\":\"Failed to read the admin token\",\"error\":\"open $work/nowhere: no such file" ||
	fail "a token file that isn't there: $(tail -n 1 "$work/log")"
cat "$work/log" >>"$work/all.log"

# ---- what the logs tell, at level debug ----

for secret in "$token" "$admin" another-token-31337; do
	grep -q "$secret" "$work/all.log" "$work/out" && fail "a secret in the log: $(grep -h "$secret" "$work/all.log" | head -n 1)"
done
[ "$(wc -l <"$work/all.log")" -gt 30 ] || fail "the logs have but $(wc -l <"$work/all.log") lines"

[ "$failures" -eq 0 ]
