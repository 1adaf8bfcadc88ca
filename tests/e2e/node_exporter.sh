#!/bin/sh
# Whole pages of a real exporter, through our reader of metrics: one fetched now, and one that is kept. They have none of the
# values that the agent looks for, so that the complaint must be about those, and about nothing else.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

# read_page FILE [LINES]: what the page, and lines after it, come to.
read_page() {
	node -e '
		const content = require("fs").readFileSync(process.argv[1], "utf8") + (process.argv[2] ? `${process.argv[2]}\n` : "");

		console.log(JSON.stringify({ event: "parseMetrics", kind: "system", content }));' "$@" >"$work/event"
	cat "$work/init" "$work/event" | "$ballast" replay >"$work/answers" 2>"$work/complaint" || fail "$1: $(cat "$work/complaint")"
	tail -n 1 "$work/answers"
}

# expect_whole_page WHAT FILE
expect_whole_page() {
	missing='missing expected metric'
	wanted="$missing host_load1: $missing host_load5: $missing host_memory_total_bytes"
	wanted="$wanted: $missing host_memory_available_bytes: $missing host_memory_cached_bytes"
	[ "$(grep -c '^[a-z]' "$2")" -gt 300 ] || fail "$1: it has only $(grep -c '^[a-z]' "$2") samples"
	answer=$(read_page "$2")
	case $answer in
	*"\"metrics\":null,\"error\":\"failed to extract metrics: $wanted\","*) ;;
	*) fail "$1: $answer" ;;
	esac
	# With them at its end, they are found: nothing before hid the end.
	answer=$(read_page "$2" "$needed")
	case $answer in
	*'"metrics":{"loadAverage1Min":0.25,"loadAverage5Min":0.5,"memoryUsageBytes":604857600,"memoryCachedBytes":300000000},"error":null'*) ;;
	*) fail "$1, with what is needed: $answer" ;;
	esac
	# And a mistake at its very end is.
	answer=$(read_page "$2" '{}')
	line=$(($(wc -l <"$2") + 1))
	case $answer in
	*'"error":"failed to parse content as prometheus text format: '*"line $line"*) ;;
	*) fail "$1, with a mistake in line $line: $answer" ;;
	esac
}

head -n 1 tests/data/replay/scenario-01.in.jsonl >"$work/init"
needed=$(printf '# TYPE host_%s gauge\nhost_%s %s\n' load1 load1 0.25 load5 load5 0.5 memory_total_bytes memory_total_bytes 2e9 \
	memory_available_bytes memory_available_bytes 1.5e9 memory_cached_bytes memory_cached_bytes 3e8)

expect_whole_page "the kept page" tests/data/metrics/node_exporter-1.5.prom

prometheus-node-exporter --web.listen-address="$prefix.9:9100" --web.disable-exporter-metrics >"$work/log" 2>&1 &
children=$!
wait_until 20 curl -sf -o "$work/page" "http://$prefix.9:9100/metrics" || give_up "no page: $(cat "$work/log")"
expect_whole_page "the page of now" "$work/page"

[ "$failures" -eq 0 ]
