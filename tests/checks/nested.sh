#!/bin/sh
# Builds another kind of tree beside this one and runs the tests that are worth repeating there.
#
#   usage: nested.sh PRESET BUILD_DIR
set -eu
cd "$(dirname "$0")/../.."

cmake --preset "$1" -B "$2" >/dev/null
# Its chatter only matters when it fails.
log=$2/nested-build.log
if ! cmake --build "$2" >"$log" 2>&1; then
	grep -v '^\[[0-9]*/[0-9]*\] ' "$log"
	exit 1
fi
# Those that measure, or repeat what others do with other seeds, say nothing more there.
exec ctest --test-dir "$2" --output-on-failure -j "$(nproc)" -L '^(unit|vectors|fuzz|e2e)$' \
	-E '^e2e[.](sandbox_seeds|sandbox_generations|sandbox_billing|soak_.*|slow_senders|real_metrics)$'
