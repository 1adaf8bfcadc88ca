#!/bin/sh
# `ballast agent` as a process: what it is called, what it is given, how it fails at the start, and how it ends.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

program=         # another name of $ballast, by which it is the agent
listen=$prefix.1 # with --listen-address; empty: without

# An agent at $prefix.1 that has what it needs; arguments: variables to set otherwise ("NAME=value"), then "--", then its flags.
agent_exec() {
	set_aside=
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		set_aside="$set_aside $1"
		shift
	done
	[ $# -eq 0 ] || shift
	[ -n "$program" ] || set -- agent "$@"
	# shellcheck disable=SC2086 # lists of words
	exec env -i CONFIG_PATH=tests/data/agent/config-b.json K8S_NODE_NAME=node-a K8S_POD_IP="$prefix.1" \
		KUBERNETES_SERVICE_HOST="$prefix.2" KUBERNETES_SERVICE_PORT=6443 BALLAST_SERVICEACCOUNT_DIR="$work/account" \
		$set_aside "${program:-$ballast}" "$@" ${listen:+"--listen-address=$listen"}
}

# Runs one to its end, which must come by itself; $status.
agent_run() {
	(agent_exec "$@") >"$work/out" 2>"$work/log" &
	pid=$!
	children="$children $pid"
	if ! wait_until 20 has_ended "$pid"; then
		kill -9 "$pid"
		fail "an agent that should have failed goes on ($*)"
	fi
	wait "$pid" 2>/dev/null
	status=$?
}

# Runs one up to its main loop; $pid.
agent_start() {
	: >"$work/log"
	(agent_exec "$@") >"$work/out" 2>"$work/log" &
	pid=$!
	children="$children $pid"
	wait_until 20 grep -q '"msg":"Entering main loop"' "$work/log" || give_up "no main loop ($*): $(cat "$work/log")"
}

has_ended() {
	case $(cut -d ')' -f 2 "/proc/$1/stat" 2>/dev/null) in
	'' | ' Z'*) return 0 ;;
	*) return 1 ;;
	esac
}

# end_with SIGNAL WHAT: sends it; the agent must end with status 0 and say so in its last line.
end_with() {
	kill -s "$1" "$pid"
	wait_until 10 has_ended "$pid" || fail "$2: it goes on after SIG$1"
	has_ended "$pid" || kill -9 "$pid"
	wait "$pid" 2>/dev/null
	status=$?
	[ "$status" -eq 0 ] || fail "$2: exit status $status instead of 0"
	tail -n 1 "$work/log" | grep -q '"level":"info".*"msg":"Main loop returned without issue. Exiting."' ||
		fail "$2: the last line is $(tail -n 1 "$work/log")"
	grep -q '"level":"\(error\|panic\)"' "$work/log" && fail "$2: $(grep '"level":"\(error\|panic\)"' "$work/log")"
}

# expect_fatal WHAT MESSAGE ERROR: the last run ended with status 2 and one line at level panic, the last, with message and error.
expect_fatal() {
	[ "$status" -eq 2 ] || fail "$1: exit status $status instead of 2"
	[ "$(grep -c '"level":"panic"' "$work/log")" -eq 1 ] || fail "$1: not one line at level panic: $(cat "$work/log")"
	tail -n 1 "$work/log" | grep -q "^{\"level\":\"panic\",.*\"msg\":\"$2\",\"error\":\"$3" ||
		fail "$1: the last line is $(tail -n 1 "$work/log")"
	[ -s "$work/out" ] && fail "$1: something on standard output"
}

# ---- usage ----

expect_usage() {
	[ "$status" -eq 2 ] || fail "$1: exit status $status instead of 2"
	grep -q -e "$2" "$work/log" || fail "$1: the complaint is: $(cat "$work/log")"
	[ -s "$work/out" ] && fail "$1: something on standard output"
}

listen=
agent_run -- --lisen-address 127.0.0.1
expect_usage "a mistyped flag" 'did you mean --listen-address?'
agent_run -- --confg=x
expect_usage "another mistyped flag" 'did you mean --config?'
agent_run -- --log-level loud
expect_usage "an unknown level" 'debug, info, warn, error'
agent_run -- --api-qps 0
expect_usage "a rate of 0" '--api-qps: "0" is not a number from 1 to'
agent_run -- --api-burst
expect_usage "a flag without its value" '--api-burst needs a value'
agent_run -- --listen-address localhost
expect_usage "a name to listen on" '"localhost" is no IP address'
agent_run -- surplus
expect_usage "an argument" 'unexpected argument "surplus"'

for flag in --help --version; do
	agent_run -- "$flag"
	[ "$status" -eq 0 ] || fail "$flag: exit status $status"
	[ -s "$work/log" ] && fail "$flag: something on standard error"
	case $flag in
	--help) grep -q '^Usage: ballast agent' "$work/out" || fail "--help doesn't help" ;;
	--version) grep -q '^ballast [0-9]*\.[0-9]*\.[0-9]*$' "$work/out" || fail "--version prints $(cat "$work/out")" ;;
	esac
done

listen=$prefix.1
"$ballast" agnet >"$work/out" 2>"$work/log"
status=$?
expect_usage "a mistyped subcommand" 'did you mean "agent"?'

# ---- what it needs ----

agent_run CONFIG_PATH= K8S_NODE_NAME= K8S_POD_IP=
expect_fatal "nothing in the environment" 'Failed to get args from environment' 'missing CONFIG_PATH in environment"'
agent_run K8S_NODE_NAME= K8S_POD_IP=
expect_fatal "no node, no address" 'Failed to get args from environment' 'missing K8S_NODE_NAME in environment"'
agent_run K8S_POD_IP=
expect_fatal "no address" 'Failed to get args from environment' 'missing K8S_POD_IP in environment"'

agent_run CONFIG_PATH="$work/none.json"
expect_fatal "no configuration" 'Failed to read config' \
	"error opening config file \\\\\"$work/none.json\\\\\": open $work/none.json: no such file or directory\""
sed 's/"serverPort": 10301/"serverPort": 0/' tests/data/agent/config-b.json >"$work/zero.json"
agent_run CONFIG_PATH="$work/zero.json"
expect_fatal "a bad configuration" 'Failed to read config' 'invalid config: field \\".monitor.serverPort\\" cannot be zero"'

agent_run KUBERNETES_SERVICE_HOST=
expect_fatal "no API server" 'Failed to get in-cluster K8s config' 'unable to load in-cluster configuration, '
agent_run KUBERNETES_SERVICE_PORT=https
expect_fatal "an API port that is none" 'Failed to get in-cluster K8s config' 'KUBERNETES_SERVICE_PORT \\"https\\" is no port'
agent_run
expect_fatal "no credentials" 'Failed to get in-cluster K8s config' "open $work/account/token: no such file or directory\""

make_certificate
mkdir "$work/account"
echo secret >"$work/account/token"
cp "$work/api.crt" "$work/account/ca.crt"
agent_run
expect_fatal "an API server that isn't there" 'Main loop failed' 'error starting VM watcher: initial list failed: .*connection refused"'

mkfifo "$work/peers"
node tests/e2e/agent_peers.js "$work" "$prefix" <"$work/peers" >"$work/peers.out" 2>&1 &
children="$children $!"
exec 3>"$work/peers"
wait_until 20 grep -q ready "$work/peers.out" || give_up "no API server: $(cat "$work/peers.out")"

echo >"$work/account/ca.crt"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=other -keyout "$work/other.key" \
	-out "$work/account/ca.crt" 2>/dev/null
agent_run
expect_fatal "an API server that it can't trust" 'Main loop failed' 'error starting VM watcher: initial list failed: '
grep -q certificate "$work/log" || fail "an API server that it can't trust: not told why: $(tail -n 1 "$work/log")"
cp "$work/api.crt" "$work/account/ca.crt"

# ---- running, and its end ----

# A flag beats its environment variable; two agents can't have one address.
agent_start CONFIG_PATH=/nowhere -- --config tests/data/agent/config-b.json
first=$pid
mv "$work/log" "$work/first.log"
agent_run
expect_fatal "a port in use" 'Main loop failed' \
	'error starting prometheus metrics server: error listening on TCP port 9100: .*address already in use"'
has_ended "$first" && fail "the first agent ended when a second one came"
kill -s TERM "$first"
wait "$first" 2>/dev/null
status=$?
[ "$status" -eq 0 ] || fail "the first of two agents: exit status $status"

agent_start
end_with TERM "SIGTERM"
agent_start
kill -s TERM "$pid"
kill -s TERM "$pid" 2>/dev/null
end_with TERM "SIGTERM three times"
agent_start
end_with INT "SIGINT"
agent_start
kill -s HUP "$pid"
wait "$pid" 2>/dev/null
status=$?
[ "$status" -eq 129 ] || fail "SIGHUP, which isn't handled: exit status $status"

# Standard error that nobody reads any more is no reason to end.
mkfifo "$work/log.fifo"
sleep 100 <"$work/log.fifo" &
reader=$!
children="$children $reader"
(agent_exec) >"$work/out" 2>"$work/log.fifo" &
pid=$!
children="$children $pid"
wait_until 20 curl -sf -o "$work/page" "http://$prefix.1:9100/metrics" || fail "no page with a log that isn't read"
kill -9 "$reader"
wait "$reader" 2>/dev/null
sleep 0.5
kill -s TERM "$pid" || fail "it ended with the reader of its log"
wait "$pid"
status=$?
[ "$status" -eq 0 ] || fail "a log that nobody reads: exit status $status"

# By its other name it is the agent, and takes the agent's flags.
ln -s "$ballast" "$work/autoscaler-agent"
program=$work/autoscaler-agent
agent_start
grep -q '"logger":"autoscaler-agent"' "$work/log" || fail "as autoscaler-agent it isn't the agent"
end_with TERM "as autoscaler-agent"
listen=
agent_run -- --version
[ "$status" -eq 0 ] && grep -q '^ballast ' "$work/out" || fail "autoscaler-agent --version: $status, $(cat "$work/out" "$work/log")"

[ "$failures" -eq 0 ]
