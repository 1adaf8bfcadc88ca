#!/bin/sh
# Is every C file laid out as .clang-format says? With --fix, lays it out. gen/ is protogen's business.
set -eu
cd "$(dirname "$0")/../.."

command -v clang-format-14 >/dev/null || {
	echo "clang-format-14 is missing. Run: sh vendor/setup.sh" >&2
	exit 1
}
case ${1:-} in
--fix) how=-i ;;
*) how='--dry-run --Werror' ;;
esac
# shellcheck disable=SC2086 # $how is words
find src tests vendor/config \( -name node_modules -o -path tests/unit/protogen/golden \) -prune -o -name '*.[ch]' -print0 | xargs -0 -r clang-format-14 --style=file $how
