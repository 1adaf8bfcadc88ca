#!/bin/sh
# The agent on a page of a real exporter on this machine, which is loaded for some seconds: see real_metrics.js.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

make_certificate
prometheus-node-exporter --web.listen-address="$prefix.9:9200" --web.disable-exporter-metrics >"$work/log" 2>&1 &
children=$!
wait_until 20 curl -sf -o "$work/page" "http://$prefix.9:9200/metrics" || give_up "no page: $(cat "$work/log")"
node tests/e2e/real_metrics.js "$work" "$prefix" "$ballast" "http://$prefix.9:9200/metrics" || fail "see above"

[ "$failures" -eq 0 ]
