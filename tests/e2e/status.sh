#!/bin/sh
# `ballast status` with agents of both generations in sandboxes, and with a server that answers all sorts of things.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

for generation in A B; do
	mkdir "$work/$generation"
	TMPDIR=$work/$generation "$ballast" sandbox --vms 2 --generation $generation --duration 60s >"$work/$generation.report" \
		2>"$work/$generation.events" &
	children="$children $!"
	eval "sandbox_$generation=$!"
done
node tests/e2e/status_server.js "$prefix.7" "$work" 2>"$work/server.log" &
children="$children $!"
wait_until 10 test -s "$work/port" || give_up "no server: $(cat "$work/server.log")"
base=http://$prefix.7:$(cat "$work/port")

# look STATUS ARGUMENT…: runs `ballast status`; output in $work/out and $work/errors.
look() {
	wanted=$1
	shift
	"$ballast" status "$@" >"$work/out" 2>"$work/errors"
	status=$?
	[ "$status" -eq "$wanted" ] || fail "status $*: exit status $status instead of $wanted: $(head -c 500 "$work/errors")"
}

# says TEXT: exactly this on standard error, nothing on standard output.
says() {
	[ "$(cat "$work/errors")" = "ballast status: $1" ] || fail "instead of \"$1\": $(head -c 500 "$work/errors")"
	[ -s "$work/out" ] && fail "\"$1\", but also on standard output: $(head -c 300 "$work/out")"
}

# ---- dumps of other agents ----

look 0 --url "$base/b"
grep -q '^VM  *STATE  *USING  *GOAL  *PERMIT  *MONITOR  *NOW  *LAST ACTION  *AGE$' "$work/out" || fail "b: $(cat "$work/out")"
grep -q '^apps/vm-a  *ok  *0.5/2Gi  *-  *0.5/2Gi  *0.5/2Gi  *-  *plugin asked  *[0-9]*h$' "$work/out" || fail "b: $(cat "$work/out")"
look 0 --url "$base/a"
grep -q '^default/compute-calm-sea  *ok  *1/4Gi  *1.5/6Gi  *1.25/5Gi  *1/4Gi ' "$work/out" || fail "a: $(cat "$work/out")"
look 0 --url "$base/many" --json
[ "$(wc -l <"$work/out")" -eq 4 ] || fail "many: $(cat "$work/out")"
node -e '
	const lines = require("fs").readFileSync(process.argv[1], "utf8").trim().split("\n").map((line) => JSON.parse(line));

	if (lines.map((vm) => vm.state).join() !== "ok,stuck,panicked,ok" || lines[1].goal.memBytes !== 2147483648)
		process.exit(1);' "$work/out" || fail "many: $(cat "$work/out")"
look 0 --url "$base/big"
[ "$(wc -l <"$work/out")" -gt 3000 ] || fail "big: $(wc -l <"$work/out") lines"

# Nothing of it moves the cursor, but it is all there.
for form in '' --json; do
	look 0 --url "$base/hostile" $form
	tr -d '\n' <"$work/out" | LC_ALL=C grep -q "[[:cntrl:]]" && fail "hostile $form: $(cat -v "$work/out")"
	grep -q "$(printf '\302\233\|\342\200\256\|\342\200\213')" "$work/out" && fail "hostile $form: $(cat -v "$work/out")"
done
node -e '
	const names = require("fs").readFileSync(process.argv[1], "utf8").trim().split("\n").map((line) => JSON.parse(line).name);

	if (names.length !== 8 || names[2] !== "a\u009b31mb" || names[3] !== "a\u202egnp" || names[5] !== "\0\x7fx")
		process.exit(1);' "$work/out" || fail "hostile: $(cat -v "$work/out")"
look 0 --url "$base/hostile"
grep -q '^apps/?\[31mred  *ok ' "$work/out" || fail "hostile: $(cat -v "$work/out")"
grep -q '^apps/x\{253\}…  ok ' "$work/out" || fail "hostile: $(cat -v "$work/out")"
look 1 --url "$base/time"
grep -q '"?\[31mred"' "$work/errors" || fail "time: $(cat -v "$work/errors")"

# ---- what is no dump ----

look 1 --url "$base/garbage"
grep -q "^ballast status: $base/garbage: this is no state dump: line 1: " "$work/errors" || fail "garbage: $(cat "$work/errors")"
look 1 --url "$base/other"
says "$base/other: this is no state dump: it has no \"pods\""
look 1 --url "$base/empty"
grep -q "^ballast status: $base/empty: this is no state dump: " "$work/errors" || fail "empty: $(cat "$work/errors")"
look 1 --url "$base/405"
says "$base/405: status 405: request method must be GET"
look 1 --url "$base/401"
says "$base/401: status 401: no ?[31mtoken"
look 1 --url "$base/302"
says "$base/302: status 302"
look 1 --url "$base/huge"
grep -q "^ballast status: $base/huge: .*response body is over 33554432 bytes" "$work/errors" || fail "huge: $(cat "$work/errors")"
look 1 --url "$base/nested"
grep -q "^ballast status: $base/nested: this is no state dump: " "$work/errors" || fail "nested: $(head -c 300 "$work/errors")"
for path in cut nohttp; do
	look 1 --url "$base/$path"
	grep -q "^ballast status: $base/$path: " "$work/errors" || fail "$path: $(cat "$work/errors")"
done
for path in silent slow; do
	look 1 --url "$base/$path" --timeout 300ms
	grep -q "^ballast status: $base/$path: .*context deadline exceeded" "$work/errors" || fail "$path: $(cat "$work/errors")"
done
look 1 --url "http://$prefix.8:1/"
grep -q "^ballast status: http://$prefix.8:1/: .*connection refused" "$work/errors" || fail "refused: $(cat "$work/errors")"

# ---- the token ----

look 1 --url "$base/token"
says "$base/token: status 401: unauthorized"
echo s3cret.of-ours >"$work/token"
look 0 --url "$base/token" --token-file "$work/token"
printf 'two\nlines of-ours\n' >"$work/token"
look 1 --url "$base/token" --token-file "$work/token"
says "$work/token: there is no token in it"
: >"$work/token"
look 1 --url "$base/token" --token-file "$work/token"
says "$work/token: there is no token in it"
look 1 --url "$base/token" --token-file "$work/none"
says "open $work/none: no such file or directory"

# ---- usage ----

look 2 --url "https://$prefix.7/"
look 2 --url nonsense://
look 2 --interval 1ms
look 2 --timeout soon
look 2 surplus

# ---- watching ----

# Without a terminal, tables come one after the other; an answer that isn't one doesn't end it.
timeout 2 "$ballast" status --url "$base/flaky" --watch --interval 100ms >"$work/out" 2>"$work/errors"
[ $? -eq 124 ] || fail "watching ended: $(cat "$work/errors")"
[ "$(grep -c '^VM ' "$work/out")" -ge 4 ] || fail "watching shows: $(cat "$work/out")"
[ "$(cat "$work/errors")" = "ballast status: $base/flaky: status 500: timed out after 5s while getting state" ] ||
	fail "watching says: $(cat "$work/errors")"
grep -q "$(printf '\033')" "$work/out" && fail "watching moves the cursor of what is no terminal"
look 1 --url "$base/405" --watch
timeout 10 "$ballast" status --url "$base/b" --watch --interval 100ms 2>"$work/errors" >/dev/full
[ $? -eq 1 ] || fail "watching goes on though nothing can be written"
# On a terminal, each stands in the place of the one before.
TERM=xterm timeout 2 script -qec "'$ballast' status --url '$base/b' --watch --interval 100ms" /dev/null </dev/null >"$work/out" 2>&1
[ "$(grep -c "$(printf '\033\\[H')VM " "$work/out")" -ge 4 ] || fail "on a terminal: $(cat -v "$work/out")"
# What doesn't fit the window is left out, but for the sum.
TERM=xterm timeout 2 script -qec "stty rows 6 columns 20; '$ballast' status --url '$base/many' --watch --interval 200ms" /dev/null \
	</dev/null >"$work/out" 2>&1
tr -d '\r' <"$work/out" | sed "s/$(printf '\033')\[[0-9]*[A-Z]//g" >"$work/frames"
[ "$(head -n 5 "$work/frames")" = "$(printf 'VM                S\napps/vm-a         o\napps/vm-b         s\n… and 2 more\n4 VMs, 1 stuck; the')" ] || fail "a small window: $(cat -v "$work/out")"
[ "$(sed -n 9,10p "$work/frames")" = "$(sed -n 4,5p "$work/frames")" ] || fail "a small window: $(cat -v "$work/out")"
# A complaint at the start doesn't go with what was on the screen.
TERM=xterm script -qec "'$ballast' status --url '$base/405' --watch" /dev/null </dev/null >"$work/out" 2>&1
grep -q "status 405" "$work/out" || fail "no complaint on a terminal: $(cat -v "$work/out")"
grep -q "$(printf '\033')" "$work/out" && fail "a complaint on a cleared terminal: $(cat -v "$work/out")"

# ---- the real agents ----

for generation in A B; do
	find_agent() {
		address=$(sed -n 's/.*started the agent of node-a.*[ /]\(127\.[0-9]*\.[0-9]*\.[0-9]*\).*/\1/p' \
			"$work/$generation.events" | head -n 1)
		[ -n "$address" ]
	}
	wait_until 20 find_agent || give_up "no agent: $(cat "$work/$generation.events")"
	is_scaled() {
		"$ballast" status --url "http://$address:10300/" >"$work/out" 2>"$work/errors" &&
			[ "$(grep -c '^apps/[a-z]*  *ok  *[0-9.]*/[0-9]*Gi  *[0-9.]*/[0-9]*Gi  *[0-9.]*/[0-9]*Gi  *[0-9.]*/[0-9]*Gi ' \
				"$work/out")" -eq 2 ]
	}
	wait_until 25 is_scaled || fail "$generation: $(cat "$work/out" "$work/errors")"
	look 0 --url "http://$address:10300/" --json
	grep -q "\"generation\":\"$generation\",\"state\":\"ok\"" "$work/out" || fail "$generation: $(cat "$work/out")"
	eval "kill \$sandbox_$generation; wait \$sandbox_$generation"
	look 1 --url "http://$address:10300/"
	grep -q "^ballast status: http://$address:10300/: .*connection refused" "$work/errors" || fail "gone: $(cat "$work/errors")"
done

[ "$failures" -eq 0 ]
