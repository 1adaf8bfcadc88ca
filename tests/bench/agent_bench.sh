#!/bin/sh
# What the agent costs, against the budgets of the design: size, start, memory with many VMs and while a long list is read, CPU
# of a scrape. One JSON object on standard output; "missed" names the budgets that weren't kept. About three minutes.
#
#   usage: agent_bench.sh [BUILD]     BUILD: the build folder, with ballast, tests/bench.json and tests/bench.core
set -u
cd "$(dirname "$0")/../.." || exit 1
build=${1:-build}
case $build in
/*) ;;
*) build=$PWD/$build ;;
esac
BALLAST=$build/ballast
. tests/e2e/agent_common.inc

for program in ballast tests/bench.json tests/bench.core; do
	[ -x "$build/$program" ] || give_up "$build/$program is missing"
done
make_certificate
ulimit -n 8192 2>/dev/null || true
node --max-old-space-size=1000 tests/bench/agent_bench.js "$build" "$work" "$prefix" &
children=$!
wait "$children"
