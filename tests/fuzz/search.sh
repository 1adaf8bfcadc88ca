#!/bin/sh
# Lets the fuzzers search, one after another, and prints what each did as a table.
#
#   usage: search.sh BUILD SECONDS [NAME...]      BUILD: a tree configured with BALLAST_FUZZ
#
# What is found is kept in BUILD/corpus/NAME (inputs that reach new code) and BUILD/corpus/crash-… (failures, whose number
# is the exit status). Covered are edges of the instrumented program: the target and everything it is linked with.
set -u

build=${1:?BUILD} seconds=${2:?SECONDS}
shift 2
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- $(cd "$here" && for file in *_fuzz.c; do echo "${file%_fuzz.c}"; done)

failures=0
printf '%-20s %12s %8s %14s %8s %7s  %s\n' target executions exec/s 'edges, of' features corpus outcome
for name; do
	found=$build/corpus/$name
	mkdir -p "$found" "$build/corpus/log"
	log=$build/corpus/log/$name
	set -- -max_total_time="$seconds" -print_final_stats=1 -rss_limit_mb=1024 -timeout=10 -artifact_prefix="$build/corpus/crash-$name-"
	[ ! -f "$here/$name.dict" ] || set -- "$@" -dict="$here/$name.dict"
	if "$build/tests/fuzz.$name" "$@" "$found" "$here/corpus/$name" >"$log" 2>&1; then
		outcome=fine
	else
		outcome="FAILED, see $log"
		failures=$((failures + 1))
	fi
	awk -v name="$name" -v outcome="$outcome" '
		/cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1); if ($i == "corp:") corp = $(i + 1) } }
		/Loaded 1 modules/ { total = $5; sub(/[(]/, "", total) }
		/number_of_executed_units/ { units = $2 }
		/average_exec_per_sec/ { rate = $2 }
		END { sub("/.*", "", corp); printf "%-20s %12s %8s %6s of %5s %8s %7s  %s\n", name, units, rate, cov, total, ft, corp, outcome }' "$log"
done
exit "$failures"
