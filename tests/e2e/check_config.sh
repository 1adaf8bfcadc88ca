#!/bin/sh
# `ballast check-config` as a process: what is wrong with a file, line by line, and exit statuses.
set -u
cd "$(dirname "$0")/../.." || exit 1

ballast=${BALLAST:?the program to test}
sample=tests/data/agent/config-b.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "check_config: $*" >&2
	failures=$((failures + 1))
}

# check STATUS ARGUMENT...: what it prints is in $work/out and $work/errors.
check() {
	wanted=$1
	shift
	"$ballast" check-config "$@" >"$work/out" 2>"$work/errors"
	status=$?
	[ "$status" -eq "$wanted" ] || fail "check-config $*: exit status $status instead of $wanted: $(cat "$work/errors")"
	# Data on standard output, complaints on standard error, never both.
	if [ "$wanted" -eq 0 ]; then
		[ -s "$work/errors" ] && fail "check-config $*: it complains: $(cat "$work/errors")"
	else
		[ -s "$work/out" ] && fail "check-config $*: on standard output: $(cat "$work/out")"
		[ -s "$work/errors" ] || fail "check-config $*: no complaint"
	fi
}

# line_of TEXT: the number of the first line of $work/bad.json that has it.
line_of() {
	grep -n -F -m 1 -- "$1" "$work/bad.json" | cut -d : -f 1
}

# expect LINE REST: a complaint about that line of $work/bad.json that begins so.
expect() {
	grep -q -F -- "$work/bad.json:$1: $2" "$work/errors" || fail "no complaint \"$1: $2\" in: $(cat "$work/errors")"
}

# The samples are good.
for file in "$sample" deploy/agent/*.json; do
	[ -e "$file" ] || continue
	generation=B
	grep -q loadMetricPrefix "$file" && generation=A
	check 0 "$file"
	[ "$(cat "$work/out")" = "$file: ok, a configuration of generation $generation" ] || fail "$file: $(cat "$work/out")"
done
sample_a=deploy/agent/config-2023.json
if [ -e "$sample_a" ]; then
	cmp "$sample_a" tests/data/agent/config-a.json || fail "the sample of generation A isn't the one the unit tests read"
fi
sample_a=tests/data/agent/config-a.json
check 0 "$sample_a"

# A mixture of both generations is refused: what isn't of the newer one is named, and why it counts as that.
sed 's/"metrics": {/"metrics": { "system": {},/' "$sample_a" >"$work/bad.json"
check 1 "$work/bad.json"
expect "$(line_of requestTimeoutSeconds)" 'field "scaling.requestTimeoutSeconds": unknown key'
expect "$(line_of loadMetricPrefix)" 'field "metrics.loadMetricPrefix": unknown key'
expect "$(line_of deniedDownscale)" 'field "monitor.deniedDownscaleFollowUpWaitSeconds": unknown key'
grep -q -F "a mixture: \"scaling.requestTimeoutSeconds\" belongs to generation A, \"metrics.system\" to generation B" \
	"$work/errors" || fail "a mixture isn't called one: $(cat "$work/errors")"
tail -n 1 "$work/errors" | grep -q 'not valid as a configuration of generation B: [0-9]* problems$' ||
	fail "a mixture: $(tail -n 1 "$work/errors")"
# One key of A in a file of B.
sed 's/"monitor": {/"monitor": { "deniedDownscaleFollowUpWaitSeconds": 1,/' "$sample" >"$work/bad.json"
check 1 "$work/bad.json"
expect "$(line_of deniedDownscale)" 'field "monitor.deniedDownscaleFollowUpWaitSeconds": unknown key'
grep -q 'a mixture: "monitor.deniedDownscaleFollowUpWaitSeconds" belongs to generation A' "$work/errors" ||
	fail "a mixture isn't called one: $(cat "$work/errors")"

# Mistakes in a file of generation A, of several kinds.
sed -e 's/"port": 9100/"port": 70000/' -e 's/"loadMetricPrefix": "host_"/"loadMetricPrefix": ""/' \
	-e 's/"memoryUsageFractionTarget": 0.75/"memoryUsageFractionTarget": 1/' -e '/"retryDeniedDownscaleSeconds"/d' \
	-e 's/"schedulerName"/"protocolVersion": "4.0", "schedulerName"/' "$sample_a" >"$work/bad.json"
check 1 "$work/bad.json"
expect "$(line_of '"scaling"')" 'field "scaling.computeUnit": is required for scheduler.protocolVersion "4.0"'
expect "$(line_of memoryUsage)" 'field "scaling.defaultConfig.memoryUsageFractionTarget": must be set to value < 1'
expect "$(line_of '"monitor"')" 'field "monitor.retryDeniedDownscaleSeconds": is missing'
expect "$(line_of 70000)" 'field "metrics.port": '
expect "$(line_of loadMetricPrefix)" 'field "metrics.loadMetricPrefix": cannot be empty'
[ "$(tail -n 1 "$work/errors")" = "$work/bad.json: not valid as a configuration of generation A: 5 problems" ] ||
	fail "the last line is $(tail -n 1 "$work/errors")"
grep -q mixture "$work/errors" && fail "a file of one generation is called a mixture"

# Five mistakes of five kinds, all named with their lines, in the order of the file.
sed -e 's/"serverPort": 10301/"serverPort": 70000/' -e 's/"mem": "1Gi"/"mem": "1Gigabyte"/' \
	-e 's/"regionName": "replaceme"/"regionName": ""/' -e 's/"requestPort": 10299,/"requestPort": 10299, "retries": 3,/' \
	-e '/"retryDeniedDownscaleSeconds"/d' "$sample" >"$work/bad.json"
check 1 "$work/bad.json"
expect "$(line_of 1Gigabyte)" 'field "scaling.computeUnit.mem": quantities must match the regular expression'
expect "$(line_of regionName)" 'field "scalingEvents.regionName": cannot be empty'
expect "$(line_of '"monitor"')" 'field "monitor.retryDeniedDownscaleSeconds": is missing'
expect "$(line_of 70000)" 'field "monitor.serverPort": '
expect "$(line_of retries)" 'field "scheduler.retries": unknown key'
[ "$(tail -n 1 "$work/errors")" = "$work/bad.json: not valid as a configuration of generation B: 5 problems" ] ||
	fail "the last line is $(tail -n 1 "$work/errors")"
[ "$(wc -l <"$work/errors")" -eq 6 ] || fail "five mistakes give $(cat "$work/errors")"
sed '$d' "$work/errors" | cut -d : -f 2 | sort -n -c || fail "complaints aren't in the order of lines: $(cat "$work/errors")"

# Text that isn't JSON ends the reading, at its line.
sed 's/"billing": {/"billing": [/' "$sample" >"$work/bad.json"
check 1 "$work/bad.json"
expect "$(($(line_of '"billing"') + 1))" ''
{ cat "$sample"; echo 'more'; } >"$work/bad.json"
check 1 "$work/bad.json"
expect "$(wc -l <"$work/bad.json")" ''
: >"$work/bad.json"
check 1 "$work/bad.json"
printf '{"a":"\377"}' >"$work/bad.json"
check 1 "$work/bad.json"

# A huge number of mistakes is cut off, and counted.
{
	echo '{'
	seq -f '"key%g": 1,' 1 5000
	sed 1d "$sample"
} >"$work/bad.json"
check 1 "$work/bad.json"
grep -q ': 5000 problems$' "$work/errors" || fail "5000 mistakes: $(tail -n 1 "$work/errors")"

# What can't be read.
check 1 "$work/none.json"
grep -q "$work/none.json: no such file or directory" "$work/errors" || fail "a missing file: $(cat "$work/errors")"
check 1 "$work"
grep -q -F "$work" "$work/errors" || fail "a folder: $(cat "$work/errors")"
if [ "$(id -u)" -ne 0 ]; then
	cp "$sample" "$work/secret.json"
	chmod 0 "$work/secret.json"
	check 1 "$work/secret.json"
	grep -q 'permission denied' "$work/errors" || fail "a file it may not read: $(cat "$work/errors")"
fi

# Pipes, and standard input.
mkfifo "$work/pipe"
{ sleep 0.1; cat "$sample"; } >"$work/pipe" &
check 0 "$work/pipe"
wait
check 0 - <"$sample"
[ "$(cat "$work/out")" = "standard input: ok, a configuration of generation B" ] || fail "-: $(cat "$work/out")"
echo '{"retries": 3' | check 1 -
grep -q '^standard input:[12]: ' "$work/errors" || fail "-: $(cat "$work/errors")"
check 1 - <&-
grep -q 'bad file descriptor' "$work/errors" || fail "no standard input: $(cat "$work/errors")"

# Usage.
check 2
check 2 "$sample" "$sample"
check 2 --hlep "$sample"
grep -q -e '--help' "$work/errors" || fail "no better option is offered"
check 0 --help
grep -q '^Usage: ballast check-config' "$work/out" || fail "--help doesn't help"
cp "$sample" "$work/-odd"
(cd "$work" && "$ballast" check-config -- -odd >/dev/null) || fail "a name after -- isn't taken"

# What a file has doesn't move the reader's cursor: this is CSI in one character.
sed "s/\"serverPort\"/\"$(printf '\302\233')2J\"/" "$sample" >"$work/bad.json"
check 1 "$work/bad.json"
grep -q "$(printf '\302\233')" "$work/errors" && fail "a control character: $(cat -v "$work/errors")"
grep -q 'field "monitor.?2J": unknown key' "$work/errors" || fail "the key isn't named: $(cat -v "$work/errors")"

[ "$failures" -eq 0 ]
