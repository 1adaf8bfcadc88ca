#!/bin/sh
# What agent and extender cost before a real API server with 100 nodes and 100 VMs: time from start to work, resident memory. One JSON
# object on standard output. About a minute; needs what tests/kube needs (see tests/kube/control_plane.inc).
#
#   usage: kube_bench.sh [BUILD]     BUILD: the build folder, with ballast and tests/kube.vm_parts
set -eu
build=$(cd "${1:-$(dirname "$0")/../../build}" && pwd)
work=$(mktemp -d)
. "$(dirname "$0")/../kube/control_plane.inc"
trap 'kube_down; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

kube_up
[ -x "$build/tests/kube.vm_parts" ] || kube_die "$build/tests/kube.vm_parts isn't built"
kube_ctl apply -f "$kube_root/tests/kube/crds.yaml" >/dev/null
kube_ctl wait --for=condition=Established --timeout=30s -f "$kube_root/tests/kube/crds.yaml" >/dev/null
for folder in agent extender extender/names; do
	kube_ctl apply -k "$kube_root/deploy/$folder" >/dev/null 2>&1
done
prefix=127.$(($$ % 199 + 24)).$(($$ / 199 % 254 + 1))
kube_drive node "$kube_here/kube_bench.js" "$kube_run" "$prefix" "$kube_api" "$build/ballast" "$build/tests/kube.vm_parts"
