#!/bin/sh
# cppcheck over the product's sources. A false alarm gets `// cppcheck-suppress NAME` with the reason beside it; what is
# noise everywhere is listed in cppcheck-suppressions.txt.
#
#   usage: cppcheck.sh BUILD_DIR   (its results for unchanged files are kept there)
set -eu
cd "$(dirname "$0")/../.."

kept=$1/cppcheck
mkdir -p "$kept"
[ -n "$(find src -name '*.c' | head -n 1)" ] || exit 0
exec cppcheck --quiet --error-exitcode=1 --std=c11 --platform=unix64 --library=posix,gnu \
	--enable=warning,style,performance,portability --inline-suppr \
	--suppressions-list=tests/checks/cppcheck-suppressions.txt \
	--cppcheck-build-dir="$kept" -j "$(nproc)" -I src -I . -D_GNU_SOURCE -DBALLAST_VERSION='"0"' src
