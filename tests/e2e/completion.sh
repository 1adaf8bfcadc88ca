#!/bin/sh
# The manual page and the completions as their readers take them: bash always, groff, zsh and fish where they are installed.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

for shell in bash zsh fish; do
	"$ballast" completion $shell >"$work/ballast.$shell" || fail "completion $shell: exit status $?"
done
"$ballast" completion ksh >"$work/out" 2>"$work/errors"
[ $? -eq 2 ] || fail "completion ksh isn't refused"
grep -q '"ksh" is none of bash, zsh, fish' "$work/errors" || fail "completion ksh: $(cat "$work/errors")"
"$ballast" completion >"$work/out" 2>&1
[ $? -eq 2 ] || fail "completion without a shell isn't refused"

# ---- bash ----

bash -n "$work/ballast.bash" || fail "bash doesn't take its script"

# completes EXPECTED WORD…: what bash offers for the last word, sorted. "=" is a word of its own, as bash splits a line.
completes() {
	expected=$1
	shift
	found=$(bash --norc -c '
		source "$1" || exit 1
		shift
		[ "$(complete -p ballast)" = "complete -F _ballast ballast" ] || exit 1
		COMP_WORDS=(ballast "$@")
		COMP_CWORD=$#
		_ballast || exit 1
		printf "%s\n" "${COMPREPLY[@]}" | LC_ALL=C sort | tr "\n" " "' bash "$work/ballast.bash" "$@" 2>&1)
	[ "$found" = "$expected " ] || fail "bash: ballast $*: $found instead of $expected"
}

completes sandbox sandb
completes 'sandbox status' s
completes '--help --version' -
completes '--report' sandbox --re
completes '--node-names --nodes' sandbox --no
completes 'json text' sandbox --report ''
completes 'text' sandbox --report te
completes 'json text' sandbox --report =
completes 'json' sandbox --report = j
completes '--report' sandbox --vms 3 --rep
completes 'debug' agent --log-level d
completes '' agent --grace ''
completes '-log-format -loglevel' extender -log
completes '--log-format --loglevel' extender --log
completes 'debug info trace' extender -loglevel ''
completes 'debug info trace' extender --loglevel ''
completes 'bash' completion b
completes 'replay' help rep
completes '' nosuch --x
touch "$work/some file" "$work/some other"
completes "$work/some file $work/some other" check-config "$work/so"
completes "$work/some file $work/some other" agent --config "$work/some"
completes "$work/some file" agent --config = "$work/some f"
completes "$work/some file $work/some other" extender -certFile "$work/s"

# ---- the others ----

if command -v zsh >/dev/null; then
	zsh -n "$work/ballast.zsh" || fail "zsh doesn't take its script"
fi
if command -v fish >/dev/null; then
	mkdir "$work/bin"
	ln -s "$ballast" "$work/bin/ballast"
	offers() {
		expected=$1
		found=$(HOME=$work PATH=$work/bin:$PATH fish --no-config -c "source $work/ballast.fish; complete -C '$2'" 2>&1 |
			sed 's/	.*//' | LC_ALL=C sort | tr '\n' ' ')
		[ "$found" = "$expected " ] || fail "fish: $2: $found instead of $expected"
	}
	offers sandbox 'ballast sandb'
	offers --report 'ballast sandbox --rep'
	offers 'json text' 'ballast sandbox --report '
	offers 'debug info trace' 'ballast extender -loglevel '
	offers 'bash fish zsh' 'ballast completion '
fi

# ---- the manual page ----

"$ballast" man >"$work/ballast.1" || fail "man: exit status $?"
head -n 1 "$work/ballast.1" | grep -q '^\.TH BALLAST 1 ' || fail "man begins with $(head -n 1 "$work/ballast.1")"
if command -v groff >/dev/null; then
	groff -man -Tutf8 -ww "$work/ballast.1" >"$work/page" 2>"$work/warnings" || fail "groff: exit status $?"
	[ -s "$work/warnings" ] && fail "groff: $(head -n 5 "$work/warnings")"
	grep -q '‰' "$work/page" || fail "groff lost characters beyond ASCII"
fi

[ "$failures" -eq 0 ]
