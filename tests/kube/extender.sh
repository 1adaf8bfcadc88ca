#!/bin/sh
# The extender between a real kube-scheduler and a real API server: what extender.js says.
set -eu
work=$(mktemp -d)
ballast=$(cd "$(dirname "${BALLAST:?the program to test}")" && pwd)/$(basename "$BALLAST")
controller=$(cd "${BUILD_DIR:-$(dirname "$ballast")}" && pwd)/tests/kube.reservation_controller
. "$(dirname "$0")/control_plane.inc"
trap 'kube_down; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

kube_up
[ -x "$controller" ] || kube_die "$controller isn't built"
kube_ctl apply -f "$kube_here/crds.yaml" >/dev/null
kube_ctl wait --for=condition=Established --timeout=30s -f "$kube_here/crds.yaml" >/dev/null
kube_ctl apply -k "$kube_root/deploy/extender" >/dev/null 2>&1

prefix=127.$(($$ % 199 + 24)).$(($$ / 199 % 254 + 1))
# The configuration as it is shipped, with test addresses and short waits; $1: further changes.
scheduler_template() {
	sed -e 's,/etc/kubernetes/scheduler.conf,@KUBECONFIG@,' -e 's/leaderElect: true/leaderElect: false/' \
		-e "s,http://127.0.0.1:8889,http://$prefix.1:@EXTENDER@," -e "$1" "$kube_root/deploy/scheduler/config-v1beta1.yaml"
	printf '%s: %s\n' healthzBindAddress 127.0.0.1:@HEALTH@ metricsBindAddress 127.0.0.1:@HEALTH@ \
		podInitialBackoffSeconds 1 podMaxBackoffSeconds 1
}
scheduler_template '' >"$work/nodes.yaml"
scheduler_template 's/nodeCacheCapable: false/nodeCacheCapable: true/' >"$work/names.yaml"
scheduler_template 's/ignorable: true/ignorable: false/' >"$work/strict.yaml"

# What extender.js asks of the control plane while it runs.
kube_control_head >"$work/control"
cat >>"$work/control" <<'CONTROL'
case $1 in
scheduler)
	kube_stop kube-scheduler
	[ "$2" = none ] || kube_start_scheduler "$work/$2.yaml" 8889
	;;
nodes-rule) kube_ctl apply -f "$kube_root/deploy/extender/names/rbac.yaml" ;;
token)
	kube_get /api/v1/namespaces/kube-system/serviceaccounts/ballast-extender/token -X POST -H 'Content-Type: application/json' \
		-d '{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":[],"expirationSeconds":3600}}' |
		node -e 'console.log(JSON.parse(require("fs").readFileSync(0)).status.token)' >"$2"
	;;
esac
CONTROL
chmod +x "$work/control"
mkdir "$kube_run/account"
cp "$kube_ca" "$kube_run/account/ca.crt"
"$work/control" token "$kube_run/account/token"
status=0
kube_drive node "$kube_here/extender.js" "$kube_run" "$prefix" "$kube_api" "$ballast" "$work/control" "$controller" || status=$?
[ "$status" = 0 ] || tail -n 15 "$kube_run/kube-scheduler.log" "$kube_run/controller.log"
exit "$status"
