#!/bin/sh
# clang-tidy over the product's sources, as .clang-tidy says; any finding fails. A false alarm gets a NOLINT with its name and
# the reason beside it.
#
#   usage: tidy.sh BUILD_DIR [PATTERN]   only files whose path matches the pattern (grep); BUILD_DIR has been configured
set -eu
cd "$(dirname "$0")/../.."

command -v clang-tidy-14 >/dev/null || {
	echo "clang-tidy-14 is missing. Run: sh vendor/setup.sh" >&2
	exit 1
}
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$1/compile_commands.json" | grep "^$PWD/src/" | grep -e "${2:-.}" | sort -u |
	xargs -r -d '\n' -n 1 -P "$(nproc)" clang-tidy-14 -p "$1" --quiet 2>/dev/null
