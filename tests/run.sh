#!/bin/sh
# Sets up, builds, tests; leaves the release program at build/ballast. Arguments go to ctest:
#
#   sh tests/run.sh                    everything, the sanitizer and fuzzing trees too
#   sh tests/run.sh -L unit            one label (they are listed in tests/CMakeLists.txt)
#   sh tests/run.sh -R unit.codec      by name
set -eu
cd "$(dirname "$0")/.."

sh vendor/setup.sh
cmake --preset release -DBALLAST_TESTS=ON -DBALLAST_WERROR=ON
cmake --build build
log=build/Testing/Temporary/LastTest.log
rm -f "$log"
status=0
ctest --test-dir build --output-on-failure -j "$(nproc)" "$@" || status=$?
# ctest keeps to itself what skipped tests say: why, and how to get what they lack (a control plane for those in tests/kube).
[ ! -f "$log" ] || sed -n '/^skipped: /p' "$log" | sort -u
exit "$status"
