#!/bin/sh
# What all subcommands have in common: help, version, mistyped names, and output that can't be written.
set -u
cd "$(dirname "$0")/../.." || exit 1

ballast=${BALLAST:?the program to test}
sample=deploy/agent/config.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "command_line: $*" >&2
	failures=$((failures + 1))
}

# expect STATUS WHAT: compares the last command's status, in $status.
expect() {
	[ "$status" -eq "$1" ] || fail "$2: exit status $status instead of $1"
}

# Help is the same however it is asked for, and begins with how to use the subcommand.
for name in agent sandbox status replay check-config man completion version help; do
	"$ballast" help "$name" >"$work/help" 2>&1
	status=$?
	expect 0 "help $name"
	head -n 1 "$work/help" | grep -q "^Usage: ballast $name" || fail "help $name begins with $(head -n 1 "$work/help")"
	for option in --help -h; do
		"$ballast" "$name" "$option" | cmp -s - "$work/help" || fail "$name $option isn't help $name"
	done
	grep -q '^  --help  ' "$work/help" || fail "help $name doesn't list --help in the common way"
done
"$ballast" help >"$work/help"
for option in --help -h; do
	"$ballast" "$option" | cmp -s - "$work/help" || fail "$option isn't help"
done

# complains TEXT ARGUMENT...: about usage, in this line.
complains() {
	wanted=$1
	shift
	"$ballast" "$@" >"$work/out" 2>"$work/errors"
	status=$?
	expect 2 "ballast $*"
	[ "$(head -n 1 "$work/errors")" = "$wanted" ] || fail "ballast $*: $(cat "$work/errors")"
	[ -s "$work/out" ] && fail "ballast $*: on standard output: $(cat "$work/out")"
}
complains 'ballast: unknown option --nosuch' --nosuch
complains 'ballast: unknown option --versoin; did you mean --version?' --versoin
complains 'ballast: unknown option -x' -x
complains 'ballast agent: --event-queue-events: "0" is not a number from 1 to 100000000' agent --event-queue-events 0
complains 'ballast agent: --event-queue-bytes: "64MiB" is not a number from 65536 to 1099511627776' agent --event-queue-bytes 64MiB
complains 'ballast: unknown subcommand "agnet"; did you mean "agent"?' agnet

# What can't be written is a failure, and told.
unwritten() {
	"$ballast" "$@" >/dev/full 2>"$work/errors"
	status=$?
	expect 1 "ballast $* on a full disk"
	grep -q '^ballast: .*standard output' "$work/errors" || fail "ballast $* on a full disk says: $(cat "$work/errors")"
	"$ballast" "$@" >&- 2>"$work/errors"
	status=$?
	expect 1 "ballast $* without standard output"
	grep -q '^ballast: .*standard output' "$work/errors" || fail "ballast $* without it says: $(cat "$work/errors")"
	"$ballast" "$@" <&- >&- 2>&-
	status=$?
	expect 1 "ballast $* without standard streams"
}
unwritten help
unwritten --help
unwritten version
unwritten --version
unwritten help agent
unwritten agent --help
unwritten man
unwritten completion bash
unwritten check-config "$sample"

# A file that is opened doesn't take the place of a stream that is closed.
"$ballast" check-config - <&- 2>"$work/errors"
status=$?
expect 1 "check-config - without standard input"
"$ballast" check-config "$work/none" 2>&-
status=$?
expect 1 "check-config without standard error"
head -n 1 tests/data/replay/scenario-01.in.jsonl >"$work/in"
"$ballast" replay "$work/in" >&- 2>"$work/errors"
status=$?
expect 1 "replay without standard output"
grep -q 'writing an answer: bad file descriptor' "$work/errors" || fail "replay without it says: $(cat "$work/errors")"

# README's tables have every option there is, and no other.
for subcommand in agent status sandbox extender; do
	"$ballast" $subcommand --help
done | sed -n 's/^  --*\([A-Za-z][A-Za-z-]*\).*/\1/p' | grep -vx -e help -e version | LC_ALL=C sort -u >"$work/options"
sed -n '/^| \(ours: \)\{0,1\}`--/{s/^| //;s/ | .*//;p;}' README.md | grep -o -- '`--[A-Za-z-]*' | sed 's/^`--//' | LC_ALL=C sort -u >"$work/tables"
diff "$work/options" "$work/tables" >"$work/difference" || fail "options (<) and README's tables (>): $(cat "$work/difference")"

[ "$failures" -eq 0 ]
