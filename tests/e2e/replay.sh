#!/bin/sh
# `ballast replay` as a process: where data and errors go, exit statuses, and answers that come line by line.
set -u
cd "$(dirname "$0")/../.." || exit 1

ballast=${BALLAST:?the program to test}
data=tests/data/replay
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "replay: $*" >&2
	failures=$((failures + 1))
}

# expect STATUS WHAT: compares the last command's status, in $status.
expect() {
	[ "$status" -eq "$1" ] || fail "$2: exit status $status instead of $1"
}

# A file, and the same as standard input.
"$ballast" replay "$data/scenario-01.in.jsonl" >"$work/file" 2>"$work/errors"
status=$?
expect 0 "a whole run"
[ -s "$work/errors" ] && fail "a whole run has something to complain about"
[ "$(wc -l <"$work/file")" -eq "$(wc -l <"$data/scenario-01.in.jsonl")" ] || fail "not one answer per event"
"$ballast" replay <"$data/scenario-01.in.jsonl" >"$work/stdin"
cmp -s "$work/file" "$work/stdin" || fail "standard input gives something else than a file"
"$ballast" replay - <"$data/scenario-01.in.jsonl" >"$work/stdin"
cmp -s "$work/file" "$work/stdin" || fail "- gives something else than a file"

# Blank lines are nothing; the last line may lack its newline.
{ echo; sed 's/$/\n  /' "$data/scenario-01.in.jsonl"; } >"$work/blanks"
printf '%s' '{"event":"monitorReset"}' >>"$work/blanks"
"$ballast" replay "$work/blanks" >"$work/out"
status=$?
expect 0 "blank lines"
sed '$d' "$work/out" | cmp -s - "$work/file" || fail "blank lines change the answers"
[ "$(wc -l <"$work/out")" -eq "$(($(wc -l <"$work/file") + 1))" ] || fail "a last line without newline isn't answered"

# An invariant that breaks ends the run, with an answer and without a complaint.
{ cat "$data/scenario-23.in.jsonl"; echo '{"event":"monitorReset"}'; } | "$ballast" replay >"$work/out" 2>"$work/errors"
status=$?
expect 0 "a panic"
tail -n 1 "$work/out" | grep -q '"panic":"' || fail "no panic in the last answer"
[ -s "$work/errors" ] && fail "a panic has something to complain about"
[ "$(wc -l <"$work/out")" -eq "$(wc -l <"$data/scenario-23.in.jsonl")" ] || fail "reading went on after a panic"

# Malformed input: what came before is answered, then it ends.
{ head -n 2 "$data/scenario-01.in.jsonl"; echo '{"event":"nextActions"}'; echo '{"event":"monitorReset"}'; } |
	"$ballast" replay >"$work/out" 2>"$work/errors"
status=$?
expect 2 "a missing key"
[ "$(wc -l <"$work/out")" -eq 2 ] || fail "answers to malformed input"
grep -q '^ballast replay: input line 3: .*at' "$work/errors" || fail "the complaint doesn't say where: $(cat "$work/errors")"

printf '\n{"event":' | "$ballast" replay >"$work/out" 2>"$work/errors"
status=$?
expect 2 "a cut line"
[ "$(cat "$work/errors")" = "ballast replay: input line 2: unexpected end of JSON input" ] ||
	fail "a cut line: $(cat "$work/errors")"
{ echo; head -c 17000000 /dev/zero; } | "$ballast" replay >"$work/out" 2>"$work/errors"
status=$?
expect 2 "an endless line"
grep -q '^ballast replay: input line 2 is over 16777216 bytes$' "$work/errors" || fail "an endless line: $(cat "$work/errors")"

: | "$ballast" replay >"$work/out"
status=$?
expect 0 "no input"
[ -s "$work/out" ] && fail "no input is answered"

"$ballast" replay "$work/none" >"$work/out" 2>"$work/errors"
status=$?
expect 1 "a missing file"
grep -q "$work/none" "$work/errors" || fail "the complaint doesn't name the file"

"$ballast" replay "$work" >"$work/out" 2>"$work/errors"
status=$?
expect 1 "a folder"

"$ballast" replay one two >"$work/out" 2>"$work/errors"
status=$?
expect 2 "two files"

"$ballast" replay --hlep >"$work/out" 2>"$work/errors"
status=$?
expect 2 "an unknown option"
grep -q -e '--help' "$work/errors" || fail "no better option is offered"

"$ballast" replay --help >"$work/out" 2>"$work/errors"
status=$?
expect 0 "--help"
grep -q '^Usage: ballast replay' "$work/out" || fail "--help doesn't help"

# An answer comes before the next event is sent.
mkfifo "$work/events" "$work/answers"
timeout 20 "$ballast" replay <"$work/events" >"$work/answers" &
pid=$!
exec 3>"$work/events" 4<"$work/answers"
head -n 1 "$data/scenario-01.in.jsonl" >&3
IFS= read -r line <&4
case $line in
*'"event":"init"'*) ;;
*) fail "no answer to init: $line" ;;
esac
echo '{"event":"monitorReset"}' >&3
IFS= read -r line <&4
case $line in
*'"event":"monitorReset"'*) ;;
*) fail "no answer to an event: $line" ;;
esac
exec 3>&-
wait "$pid"
status=$?
expect 0 "an interactive run"

[ "$failures" -eq 0 ]
