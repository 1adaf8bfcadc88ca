#!/bin/sh
# `ballast agent` says at its start whose behaviour the configuration asks for, and in that one's words what is wrong with it.
set -u
cd "$(dirname "$0")/../.." || exit 1

ballast=${BALLAST:?the program to test}
data=tests/data/agent
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "agent_generation: $*" >&2
	failures=$((failures + 1))
}

# start FILE: without a cluster the agent ends behind its configuration; the log is in $work/log.
start() {
	env -u KUBERNETES_SERVICE_HOST -u KUBERNETES_SERVICE_PORT CONFIG_PATH="$1" K8S_NODE_NAME=n K8S_POD_IP=127.0.0.1 \
		"$ballast" agent >"$work/log" 2>&1
	status=$?
	[ "$status" -eq 2 ] || fail "$1: exit status $status instead of 2"
}

# expect TEXT: it is in the log.
expect() {
	grep -q -F -- "$1" "$work/log" || fail "not logged: $1, but $(cat "$work/log")"
}

start "$data/config-a.json"
expect '"generation":"A","pluginProtocol":"2.0"'
[ "$(grep -c '"generation":' "$work/log")" -eq 1 ] || fail "the generation isn't logged once"
start "$data/config-b.json"
expect '"generation":"B","pluginProtocol":"5.0"'
sed 's/"schedulerName"/"protocolVersion": "auto", "schedulerName"/' "$data/config-b.json" >"$work/config.json"
start "$work/config.json"
expect '"generation":"B","pluginProtocol":"auto"'

# Each generation's first letter; a mixture counts as the newer one.
sed 's/"requestPort": 10299/"requestPort": 0/' "$data/config-a.json" >"$work/config.json"
start "$work/config.json"
expect '"msg":"Failed to read config","error":"Invalid config: field \".scheduler.requestPort\" cannot be zero"'
sed 's/"requestPort": 10299/"requestPort": 0/' "$data/config-b.json" >"$work/config.json"
start "$work/config.json"
expect '"msg":"Failed to read config","error":"invalid config: field \".scheduler.requestPort\" cannot be zero"'
sed 's/"metrics": {/"metrics": { "system": {},/' "$data/config-a.json" >"$work/config.json"
start "$work/config.json"
expect "\"error\":\"error decoding JSON config in \\\"$work/config.json\\\": json: unknown field \\\"requestTimeoutSeconds\\\"\""
sed 's/"metrics": {/"metrics": { "extra": {},/' "$data/config-a.json" >"$work/config.json"
start "$work/config.json"
expect "\"error\":\"Error decoding JSON config in \\\"$work/config.json\\\": json: unknown field \\\"extra\\\"\""
start "$work/none.json"
expect "\"error\":\"error opening config file \\\"$work/none.json\\\": "

[ "$failures" -eq 0 ]
