#!/bin/sh
# Fails on any #include that goes against the layers' order.
#
#   usage: layering.sh              checks the repository
#          layering.sh --self-test  checks that wrong includes are caught
#
# Arrows point down only. A layer is a folder; its files include each other, and what the table below says. Third-party
# headers are in the table too: each library has its places.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)

# layer: what it may include besides itself and the system's headers
table='
base:
codec:      base                                                     jsmn yaml
gen:        codec base
metrics:    gen codec base
net:        metrics gen codec base                                   llhttp mbedtls
kube:       net metrics gen codec base
report:     net metrics gen codec base                               mbedtls
agent/core: codec-scalars metrics-text gen base
agent:      agent/core kube report net metrics gen codec base
extender:   kube report net metrics gen codec base
sandbox:    agent extender agent/core kube report net metrics gen codec base   mbedtls
cli:        sandbox agent extender agent/core kube report net metrics gen codec base
protogen:   codec base
'

# Headers that are a part of a layer which another layer may see by itself.
parts='
codec-scalars: codec/quantity.h codec/rfc3339.h codec/duration_text.h codec/go_quote.h
metrics-text:  metrics/text_parser.h
'

# Prints a line for each wrong include in the sources below the folder $1.
violations() {
	(cd "$1" && find src gen -name '*.[ch]' -o -name '*.re' 2>/dev/null) | LC_ALL=C sort | (
		cd "$1"
		xargs -r awk -v table="$table" -v parts="$parts" '
			# Reads lines "name: word word" into words[name, word].
			function read_lines(text, words,    lines, line, fields, count, name, i, j) {
				count = split(text, lines, "\n")
				for (i = 1; i <= count; i++) {
					line = lines[i]
					if (!match(line, /^[a-z\/-]+:/))
						continue
					name = substr(line, 1, RLENGTH - 1)
					known[name] = 1
					line = substr(line, RLENGTH + 1)
					for (j = split(line, fields, " "); j > 0; j--)
						words[name, fields[j]] = 1
				}
			}
			function layer_of(path) {
				if (path ~ /^agent\/core\//)
					return "agent/core"
				sub(/\/.*/, "", path)
				return path
			}
			function library_of(path) {
				if (path == "jsmn.h")
					return "jsmn"
				if (path == "llhttp.h")
					return "llhttp"
				if (path ~ /^(mbedtls|psa)\//)
					return "mbedtls"
				return ""
			}
			# May a file of layer `from` include `path`?
			function allowed(from, path,    to, part) {
				to = library_of(path)
				if (to == "" && path !~ /\//)
					return 1 # a neighbour
				if (to == "")
					to = layer_of(path)
				if (to == from || ((from, to) in may))
					return 1
				for (part in known)
					if (((from, part) in may) && ((part, path) in contents))
						return 1
				return 0
			}
			BEGIN {
				read_lines(table, may)
				read_lines(parts, contents)
			}
			!/^[ \t]*#[ \t]*include[ \t]/ { next }
			{
				from = FILENAME
				sub(/^src\//, "", from)
				from = layer_of(from)
				path = $0
				sub(/^[ \t]*#[ \t]*include[ \t]*/, "", path)
				quoted = path ~ /^"/
				sub(/^["<]/, "", path)
				sub(/[">].*$/, "", path)
				if (!(from in known))
					print FILENAME ":" FNR ": no layer of this name is in the table: " from
				else if (path ~ /(^|\/)\.\.?\//)
					print FILENAME ":" FNR ": name headers from src/ or the root, not relatively: " path
				else if ((quoted || library_of(path) != "") && !allowed(from, path))
					print FILENAME ":" FNR ": " from " may not include " path
			}'
	)
}

self_test() {
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	failures=0

	# One file with one include; the verdict is "right" or "wrong".
	expect() { # verdict file include
		rm -rf "$scratch/src" "$scratch/gen"
		mkdir -p "$scratch/src" "$scratch/gen" "$scratch/$(dirname "$2")"
		printf '/* a comment about #include "cli/x.h" */\n#include <stdio.h>\n#include %s\n' "$3" >"$scratch/$2"
		found=$(violations "$scratch")
		case $1:$found in
		right: | wrong:?*) ;;
		*)
			echo "$2 including $3 should be $1; the check says: ${found:-nothing}"
			failures=$((failures + 1))
			;;
		esac
	}
	expect right src/base/a.c '"base/b.h"'
	expect right src/base/a.c '"b.h"'
	expect right src/net/a.c '"codec/b.h"'
	expect right src/cli/a.c '"base/b.h"'
	expect right gen/a.gen.c '"codec/json_reader.h"'
	expect right src/net/a.c '<llhttp.h>'
	expect right src/net/a.c '<sys/epoll.h>'
	expect right src/agent/a.c '"agent/core/b.h"'
	expect right src/agent/core/a.c '"codec/quantity.h"'
	expect right src/agent/core/a.c '"metrics/text_parser.h"'
	expect right src/codec/a.re '"base/b.h"'
	expect wrong src/base/a.c '"codec/b.h"'
	expect wrong src/base/a.h '"net/b.h"'
	expect wrong src/codec/a.re '"net/b.h"'
	expect wrong gen/a.gen.h '"net/b.h"'
	expect wrong src/kube/a.c '"report/b.h"'
	expect wrong src/agent/a.c '"extender/b.h"'
	expect wrong src/extender/a.c '"agent/b.h"'
	expect wrong src/extender/a.c '"agent/core/b.h"'
	expect wrong src/agent/core/a.c '"agent/b.h"'
	expect wrong src/agent/core/a.c '"net/loop.h"'
	expect wrong src/agent/core/a.c '"codec/json_reader.h"'
	expect wrong src/agent/core/a.c '"metrics/registry.h"'
	expect wrong src/agent/a.c '"sandbox/b.h"'
	expect wrong src/kube/a.c '"../net/b.h"'
	expect wrong src/kube/a.c '"src/net/b.h"'
	expect wrong src/kube/a.c '<mbedtls/ssl.h>'
	expect wrong src/base/a.c '"jsmn.h"'
	expect wrong src/surprise/a.c '"base/b.h"'
	expect wrong src/net/a.c '"tests/support/b.h"'
	[ "$failures" -eq 0 ] && echo "every wrong include was caught"
}

if [ "${1:-}" = --self-test ]; then
	self_test
	exit
fi
found=$(violations "$root")
if [ -n "$found" ]; then
	echo "$found"
	exit 1
fi
echo "all includes follow the layers' order"
