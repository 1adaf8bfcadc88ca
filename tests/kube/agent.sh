#!/bin/sh
# The agent against a real API server: what agent.js says.
set -eu
work=$(mktemp -d)
ballast=$(cd "$(dirname "${BALLAST:?the program to test}")" && pwd)/$(basename "$BALLAST")
parts=$(cd "${BUILD_DIR:-$(dirname "$ballast")}" && pwd)/tests/kube.vm_parts
. "$(dirname "$0")/control_plane.inc"
trap 'kube_down; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

kube_up
[ -x "$parts" ] || kube_die "$parts isn't built"
kube_ctl apply -f "$kube_here/crds.yaml" >/dev/null
kube_ctl wait --for=condition=Established --timeout=30s -f "$kube_here/crds.yaml" >/dev/null
kube_ctl apply -k "$kube_root/deploy/agent-events" >/dev/null 2>&1

# What agent.js asks of the control plane while it runs.
kube_control_head >"$work/control"
cat >>"$work/control" <<'CONTROL'
token() {
	kube_get /api/v1/namespaces/kube-system/serviceaccounts/autoscaler-agent/token -X POST -H 'Content-Type: application/json' \
		-d '{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":[],"expirationSeconds":3600}}' |
		node -e 'console.log(JSON.parse(require("fs").readFileSync(0)).status.token)' >"$1.new"
	mv "$1.new" "$1"
}
case $1 in
compact) kube_compact ;;
stop)
	kube_stop kube-apiserver
	kube_raise_version # past what anybody has heard of: they must list anew
	;;
start) kube_start_apiserver ;;
first-token) token "$2" ;;
certificate)
	# The agent's account as a client certificate: NAME.crt and NAME.key, for so many seconds.
	kube_sign_for "$2" "$3" /CN=system:serviceaccount:kube-system:autoscaler-agent
	;;
token)
	# Tokens are bound to the account's UID.
	kube_ctl -n kube-system delete serviceaccount autoscaler-agent >/dev/null
	kube_ctl -n kube-system create serviceaccount autoscaler-agent >/dev/null
	token "$2"
	;;
esac
CONTROL
chmod +x "$work/control"
mkdir "$kube_run/account"
cp "$kube_ca" "$kube_run/account/ca.crt"
"$work/control" first-token "$kube_run/account/token"
prefix=127.$(($$ % 199 + 24)).$(($$ / 199 % 254 + 1))
kube_drive node "$kube_here/agent.js" "$kube_run" "$prefix" "$kube_api" "$ballast" "$work/control" "$parts"
