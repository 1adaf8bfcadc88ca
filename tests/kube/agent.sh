#!/bin/sh
# The agent against a real API server: what agent.js says.
set -eu
work=$(mktemp -d)
ballast=$(cd "$(dirname "${BALLAST:?the program to test}")" && pwd)/$(basename "$BALLAST")
. "$(dirname "$0")/control_plane.inc"
trap 'kube_down; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

kube_up
kube_ctl apply -f "$kube_here/crds.yaml" >/dev/null
kube_ctl wait --for=condition=Established --timeout=30s -f "$kube_here/crds.yaml" >/dev/null
kube_ctl apply -k "$kube_root/deploy/agent-events" >/dev/null 2>&1

# What agent.js asks of the control plane while it runs.
cat >"$work/control" <<CONTROL
#!/bin/sh
set -eu
work='$work' KUBE_BIN='$kube_bin'
cd '$kube_here'
. ./control_plane.inc
kube_find
kube_run='$kube_run' kube_pki='$kube_pki' kube_port='$kube_port' kube_etcd_port='$kube_etcd_port' kube_api='$kube_api' kube_ca='$kube_ca'
token() {
	kube_get /api/v1/namespaces/kube-system/serviceaccounts/autoscaler-agent/token -X POST -H 'Content-Type: application/json' \
		-d '{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":[],"expirationSeconds":3600}}' |
		node -e 'console.log(JSON.parse(require("fs").readFileSync(0)).status.token)' >"\$1.new"
	mv "\$1.new" "\$1"
}
case \$1 in
compact) kube_compact ;;
restart)
	kube_stop kube-apiserver
	kube_start_apiserver
	;;
first-token) token "\$2" ;;
certificate)
	# The agent's account as a client certificate: NAME.crt and NAME.key, for so many seconds.
	kube_sign_for "\$2" "\$3" /CN=system:serviceaccount:kube-system:autoscaler-agent
	;;
token)
	# Tokens are bound to the account's UID.
	kube_ctl -n kube-system delete serviceaccount autoscaler-agent >/dev/null
	kube_ctl -n kube-system create serviceaccount autoscaler-agent >/dev/null
	token "\$2"
	;;
esac
CONTROL
chmod +x "$work/control"
mkdir "$kube_run/account"
cp "$kube_ca" "$kube_run/account/ca.crt"
"$work/control" first-token "$kube_run/account/token"
prefix=127.$(($$ % 199 + 24)).$(($$ / 199 % 254 + 1))
node "$kube_here/agent.js" "$kube_run" "$prefix" "$kube_api" "$ballast" "$work/control"
