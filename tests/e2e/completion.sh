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
	# becomes LINE WANTED: what a tab makes of the line, in a zsh that sits at a terminal of its own.
	: >"$work/lines"
	becomes() {
		printf '%s\t\030' "$1" >>"$work/lines"
		printf '%s\n' "$2" >>"$work/wanted"
	}
	becomes 'ballast sandb' 'ballast sandbox '
	becomes 'ballast --ver' 'ballast --version '
	becomes 'ballast agent --kubeco' 'ballast agent --kubeconfig='
	becomes "ballast agent --kubeconfig=$work/some\\ f" "ballast agent --kubeconfig=$work/some\\ file "
	becomes "ballast agent --kubeconfig $work/some\\ f" "ballast agent --kubeconfig $work/some\\ file "
	becomes 'ballast agent --log-level=d' 'ballast agent --log-level=debug '
	becomes 'ballast sandbox --vms 3 --rep' 'ballast sandbox --vms 3 --report='
	becomes 'ballast extender -loglevel t' 'ballast extender -loglevel trace '
	becomes 'ballast completion z' 'ballast completion zsh '
	becomes 'ballast help rep' 'ballast help replay '
	becomes "ballast check-config -- $work/some\\ f" "ballast check-config -- $work/some\\ file "
	becomes 'ballast agent --grace ' 'ballast agent --grace '
	HOME=$work TERM=xterm zsh -f -c '
		zmodload zsh/zpty
		zpty shell zsh -f -i
		zpty -w shell "PS1=; unsetopt beep; autoload -Uz compinit; compinit -u -D; source $1/ballast.zsh"
		zpty -w shell "report() { print -r -- \$BUFFER >>$1/found; BUFFER= }; zle -N report; bindkey \"^X\" report"
		zpty -w shell "print ready >$1/ready"
		for ((i = 0; i < 100; i++)); do [[ -s $1/ready ]] && break; sleep 0.1; done
		zpty -w -n shell "$(<$1/lines)"
		for ((i = 0; i < 100; i++)); do
			while zpty -r -t shell line; do :; done
			[[ $(wc -l <$1/found) -ge $(wc -l <$1/wanted) ]] && break
			sleep 0.1
		done
		zpty -d shell' zsh "$work" >"$work/out" 2>&1
	diff "$work/wanted" "$work/found" >"$work/out" 2>&1 || fail "zsh: $(cat "$work/out")"
fi
if command -v fish >/dev/null; then
	mkdir "$work/bin"
	ln -s "$ballast" "$work/bin/ballast"
	offers() {
		expected=$1
		found=$(HOME=$work PATH=$work/bin:$PATH fish --no-config -c "source $work/ballast.fish; complete -C '$2'" 2>&1 |
			sed 's/	.*//' | LC_ALL=C sort | tr '\n' ' ')
		[ "$found" = "${expected:+$expected }" ] || fail "fish: $2: $found instead of $expected"
	}
	offers sandbox 'ballast sandb'
	offers --report 'ballast sandbox --rep'
	offers 'json text' 'ballast sandbox --report '
	offers 'debug info trace' 'ballast extender -loglevel '
	offers 'bash fish zsh' 'ballast completion '
	offers --kubeconfig 'ballast agent --kubec'
	offers "$work/some file $work/some other" "ballast agent --kubeconfig $work/some"
	offers "--kubeconfig=$work/some file --kubeconfig=$work/some other" "ballast agent --kubeconfig=$work/some"
	offers '' 'ballast agent --grace '
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
