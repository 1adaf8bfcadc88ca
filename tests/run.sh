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
# ctest shows nothing of what skipped tests say: how to get a control plane for those in tests/kube.
[ $# -gt 0 ] || sh -c '. "$0"; kube_find' tests/kube/control_plane.inc || true
exec ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
