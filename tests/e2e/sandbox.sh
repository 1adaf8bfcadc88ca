#!/bin/sh
# `ballast sandbox` beyond its plain run: outages, ends of all kinds, other numbers of VMs, its output and exit statuses.
# Most runs go side by side, each in its own corner of 127.0.0.0/8.
set -u

ballast=${BALLAST:?the program to test}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work/tmp"
mkdir "$TMPDIR"
failures=0

fail() {
	echo "sandbox: $*" >&2
	failures=$((failures + 1))
}

# start NAME argument...: a run in the background with a JSON report.
start() {
	name=$1
	shift
	(
		"$ballast" sandbox --report json "$@" >"$work/$name.json" 2>"$work/$name.events"
		echo $? >"$work/$name.status"
	) &
}

# check NAME STATUS [expression...]: how it ended. With STATUS 0 the report must be good.
check() {
	name=$1
	wanted=$2
	shift 2
	status=$(cat "$work/$name.status")
	if [ "$status" -ne "$wanted" ]; then
		fail "$name: exit status $status instead of $wanted"
	elif [ "$wanted" -ne 0 ] || node tests/e2e/sandbox_report.js "$work/$name.json" "$@"; then
		return
	else
		fail "$name: report"
	fi
	sed 's/.*"mismatches"/"mismatches"/' "$work/$name.json" | cut -c 1-2000 >&2
	tail -n 20 "$work/$name.events" >&2
}

# children PID: the agents of a sandbox.
children() {
	cat "/proc/$1/task/$1/children"
}

# ---- side by side ----

six='--vms 6 --duration 40s --speed 4 --seed 7'
start plugin $six --outage plugin@10s+10s
start monitor $six --outage monitor:2@10s+10s
start api $six --outage api@10s+10s
start all $six --seed 2 --outage plugin@2s+3s --outage plugin@4s+3s --outage monitor:5@14s+1s --outage api@23s+2s
start stopped $six --seed 3 --stop-agent-at 25s
start one --vms 1 --nodes 1 --duration 16s
start many --vms 13 --nodes 26 --duration 30s --seed 11
start slow --vms 6 --nodes 2 --duration 26s --speed 1
start fast --vms 9 --nodes 1 --duration 40s --speed 20

"$ballast" sandbox --duration 40s --report json >"$work/killed.json" 2>"$work/killed.events" &
killed=$!
"$ballast" sandbox --duration 40s --agent-log "$work/agents" >"$work/text" 2>"$work/text.events" &
interrupted=$!
sleep 12
agents=$(children "$killed")
kill -KILL ${agents%% *}
wait "$killed"
status=$?
[ "$status" -eq 1 ] || fail "an agent was killed: exit status $status"
grep -q '"mismatches":\["the agent of node-[ab] ended by itself: signal 9"\]' "$work/killed.json" ||
	fail "a killed agent isn't reported: $(cat "$work/killed.json")"
kept=$(sed -n 's/.*configuration and logs are in //p' "$work/killed.events")
[ -s "$kept/config.json" ] && [ -s "$kept/node-a.log" ] && [ -s "$kept/node-b.log" ] ||
	fail "a failed run doesn't keep its files"
rm -rf "$kept"

agents=$(children "$interrupted")
kill -INT "$interrupted"
wait "$interrupted"
status=$?
[ "$status" -eq 0 ] || fail "Ctrl-C: exit status $status: $(cat "$work/text")"
for agent in $agents; do
	kill -0 "$agent" 2>/dev/null && fail "an agent outlives the sandbox"
done
grep -q '^oak *held ' "$work/text" || fail "no table in the text report"
grep -q '^Everything went as the workload states it.$' "$work/text" || fail "no verdict in the text report"
grep -q '^ *[0-9.]*s oak: patched 1 CU → [0-9] CU$' "$work/text.events" || fail "no line for a patch"
grep -q '^ *[0-9.]*s phase 2 of 5: .*; unchanged: ' "$work/text.events" || fail "no line for a phase"
grep -q '"logger":"autoscaler-agent' "$work/agents" || fail "--agent-log has no agent's log"

wait
check plugin 0 'r.vms.every((vm) => vm.judged)' 'r.monitor.connections === 6'
check monitor 0 'r.vms.every((vm) => vm.judged)' 'r.monitor.connections >= 7'
check api 0 'r.vms.every((vm) => vm.judged)' 'r.api.watches >= 6'
check all 0 'r.vms.every((vm) => vm.judged)' 'r.monitor.connections >= 7' 'r.api.watches >= 6'
grep -q 'outage: scheduler plugin is away$' "$work/all.events" || fail "no line for an outage"
[ "$(grep -c 'outage: scheduler plugin' "$work/all.events")" -eq 2 ] || fail "outages that overlap aren't one"
check stopped 0 'r.durationSeconds >= 25 && r.durationSeconds < 27' 'r.phases === 4'
check one 0 'r.vms.length === 1' 'r.ignoredVMs === 1'
check many 0 'r.vms.length === 13' 'r.ignoredVMs === 49'
check slow 0 'r.phases === 1'
check fast 0 'r.vms.length === 9' 'r.vms[8].workload === "held"'

# ---- ends that come early, or twice, and a pause ----

for at in 0 1ms 2ms 5ms 20ms; do
	"$ballast" sandbox --vms 6 --stop-agent-at $at >"$work/early" 2>"$work/early.events" ||
		fail "stopped at $at: $(cat "$work/early")"
	grep -q '^Ended before anything could be judged.$' "$work/early" || fail "stopped at $at: no word of judging"
	grep -q '^pine .* no ' "$work/early" || fail "stopped at $at: a VM counts as judged"
done

"$ballast" sandbox --duration 40s >"$work/twice" 2>"$work/twice.events" &
twice=$!
"$ballast" sandbox --duration 24s --report json >"$work/paused.json" 2>"$work/paused.events" &
paused=$!
sleep 2
kill -INT "$twice"
kill -TERM "$twice"
wait "$twice" || fail "asked twice to end: $(cat "$work/twice")"
sleep 3
agents=$(children "$paused")
kill -TSTP "$paused"
sleep 1
for process in $paused $agents; do
	grep -q '^State:.T' "/proc/$process/status" || fail "isn't stopped: $(grep State "/proc/$process/status")"
done
sleep 4
kill -CONT "$paused"
wait "$paused"
echo $? >"$work/paused.status"
check paused 0 'r.vms.every((vm) => vm.judged)'

# An agent that never ends: stopped behind the sandbox's back.
"$ballast" sandbox --duration 40s --vms 1 --agent-log "$work/stuck.log" >"$work/stuck" 2>"$work/stuck.events" &
stuck=$!
sleep 2
kill -STOP $(children "$stuck")
kill -INT "$stuck"
sleep 0.2
kill -INT "$stuck"
sleep 1
[ -n "$(children "$stuck")" ] || fail "a second signal kills an agent at once"
wait "$stuck" && fail "an agent had to be killed: exit status 0"
grep -q '^  the agent of node-a was killed because of a second Ctrl-C$' "$work/stuck" || fail "stuck: $(cat "$work/stuck")"
tail -n 1 "$work/stuck.events" | grep -q "configuration is in .*, their logs are at the end of $work/stuck.log\$" ||
	fail "nothing says where the logs are: $(tail -n 1 "$work/stuck.events")"
rm -rf "$TMPDIR"/*

# ---- what stands in the way ----

# hold PORT: listens on it, on all addresses; tries again while somebody else has it.
hold() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		node -e 'require("net").createServer().listen(+process.argv[1], "0.0.0.0", () => console.log("ready"))' "$1" \
			>"$work/held" 2>"$work/held.errors" &
		holder=$!
		while [ ! -s "$work/held" ] && kill -0 "$holder" 2>/dev/null; do sleep 0.1; done
		[ -s "$work/held" ] && return
		sleep 1
	done
	fail "port $1 can't be held: $(cat "$work/held.errors")"
}

hold 10300 # the agent's
"$ballast" sandbox --vms 1 --duration 8s >"$work/port" 2>"$work/port.events" && fail "an agent without its port: exit status 0"
kill "$holder"
for file in "$work/port" "$work/port.events"; do
	grep -q 'the agent of node-a ended.*exit status 2: .*:10300: .*address already in use; something listens' "$file" ||
		fail "nothing says why the agent ended: $(cat "$file")"
done
rm -rf "$TMPDIR"/* "$work/held"
hold 9499 # a guest's
"$ballast" sandbox --vms 1 --duration 8s >"$work/port" 2>"$work/port.events" && fail "a guest without its port: exit status 0"
kill "$holder"
grep -q ':9499: .*address already in use: something listens on that port on all addresses; stop it$' "$work/port.events" ||
	fail "no advice: $(cat "$work/port.events")"
(ulimit -n 600 && exec "$ballast" sandbox --vms 300 --duration 40s) >"$work/port" 2>"$work/port.events" &&
	fail "too few open files: exit status 0"
grep -q '300 VMs need about [0-9]* open files, and only 600 are allowed' "$work/port.events" ||
	fail "too few open files: $(cat "$work/port.events")"
(ulimit -S -n 100 && exec "$ballast" sandbox --vms 20 --stop-agent-at 2s --report json) >"$work/raised.json" 2>"$work/raised.events" ||
	fail "the limit of open files isn't raised: $(cat "$work/raised.events")"
"$ballast" sandbox --vms 2 --duration 8s >"$work/port" 2>"$work/port.events" &
short=$!
sleep 1
prlimit --pid "$short" --nofile=10:10 # fewer than it has
wait "$short" && fail "out of open files: exit status 0"
[ "$(grep -c 'the sandbox itself ran out of open files, of which 10 are allowed' "$work/port")" -eq 1 ] ||
	fail "out of open files: $(cat "$work/port")"
rm -rf "$TMPDIR"/*
TMPDIR=/nonexistent "$ballast" sandbox --vms 1 --duration 8s >"$work/port" 2>"$work/port.events" && fail "no folder: exit status 0"
grep -q 'TMPDIR' "$work/port.events" || fail "TMPDIR isn't named: $(cat "$work/port.events")"
[ -z "$(ls "$TMPDIR")" ] || fail "a run that couldn't start keeps $(ls "$TMPDIR")"

# ---- many VMs: memory ----

start large --vms 200 --nodes 5 --duration 20s
wait
check large 0 'r.vms.length === 200' 'r.monitor.connections >= 200'

leftover=$(ls "$TMPDIR")
[ "$failures" -gt 0 ] || [ -z "$leftover" ] || fail "left behind: $leftover"

# ---- bad usage ----

# refuse TEXT argument...
refuse() {
	text=$1
	shift
	"$ballast" sandbox "$@" >"$work/out" 2>"$work/errors"
	status=$?
	[ "$status" -eq 2 ] || fail "$*: exit status $status instead of 2"
	grep -q -F -e "$text" "$work/errors" || fail "$*: $(cat "$work/errors")"
	[ -s "$work/out" ] && fail "$*: writes to standard output"
}

refuse '--vms: with 0 VMs there must be --pods' --vms 0
refuse '--outage: there is no extender without --pods' --outage extender@1s+1s
refuse '--wait-for-reservation: there is no extender without --pods' --wait-for-reservation 1s
refuse '--wait-for-reservation: more than 4 s' --pods 3 --wait-for-reservation 5s
refuse '--faults' --faults medium
refuse '--duration: at 6 VMs and speed 1 a run takes at least 26.0 s' --duration 20s --speed 1
refuse '--duration: at 500 VMs and speed 4 a run takes at least 31.0 s' --duration 8s --vms 500
refuse '"disk" is none of plugin, api, extender, receiver, monitor:N' --outage disk@1s+1s
refuse "isn't PEER@START+LENGTH" --outage plugin@1s
refuse 'an outage must have ended 8.0 s before the end' --duration 40s --outage plugin@30s+3s
refuse 'there is no VM 3, only 2' --vms 2 --outage monitor:3@1s+1s
refuse 'did you mean --duration?' --durtion 5s
refuse 'unexpected argument "extra"' extra

"$ballast" sandbox --help >"$work/out" || fail "--help: exit status $?"
for word in --outage PEER@START+LENGTH --stop-agent-at --agent-log takeover full-first lfc bounded; do
	grep -q -e "$word" "$work/out" || fail "--help says nothing of $word"
done

[ "$failures" -eq 0 ]
