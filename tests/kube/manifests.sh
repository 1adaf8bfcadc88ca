#!/bin/sh
# What lies in deploy/ renders, is accepted by a real API server, and says what it should.
set -eu
work=$(mktemp -d)
ballast=$(cd "$(dirname "${BALLAST:?the program to test}")" && pwd)/$(basename "$BALLAST")
. "$(dirname "$0")/control_plane.inc"
trap 'kube_down; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
cd "$kube_root"
fail() {
	echo "manifests: $*" >&2
	exit 1
}

folders='deploy/agent deploy/agent-events deploy/extender deploy/extender/daemonset deploy/extender/deployment deploy/extender/names deploy/monitoring'
for folder in $folders; do
	kubectl kustomize "$folder" >"$work/rendered" 2>"$work/errors" || fail "$folder doesn't render: $(cat "$work/errors")"
	grep -q '^kind: ' "$work/rendered" || fail "$folder renders nothing"
done
# The overlay that README shows: its image and its configuration are taken.
mkdir "$work/overlay"
ln -s "$kube_root" "$work/overlay/ballast"
sed 's/"requestPort": 10299/"requestPort": 10298/' deploy/agent/config.json >"$work/overlay/config.json"
sed -n '/^# kustomization.yaml, beside/,/^```$/{/^```$/!p;}' README.md >"$work/overlay/kustomization.yaml"
kubectl kustomize "$work/overlay" >"$work/rendered" 2>"$work/errors" || fail "README's overlay doesn't render: $(cat "$work/errors")"
grep -q 'image: REGISTRY/ballast-agent:VERSION' "$work/rendered" || fail "README's overlay doesn't change the image"
grep -q '"requestPort": 10298' "$work/rendered" || fail "README's overlay doesn't change the configuration"
[ "$(grep -c 'autoscaler-agent-config-' "$work/rendered")" = 2 ] || fail "README's overlay leaves the old configuration in use"
for file in deploy/agent/*.json; do
	"$ballast" check-config "$file" || fail "$file isn't a configuration"
done

kube_up
kube_ctl apply -f tests/kube/crds.yaml >/dev/null
kube_ctl wait --for=condition=Established --timeout=30s -f tests/kube/crds.yaml >/dev/null
for folder in $folders; do
	# The client's own check of fields, where it knows the kinds; then for real.
	kubectl kustomize "$folder" >"$work/rendered.yaml" 2>/dev/null
	kube_ctl apply -f "$work/rendered.yaml" >"$work/out" 2>&1 || fail "$folder is refused: $(cat "$work/out")"
	sed "s|^|$folder: |" "$work/out"
	name=$(echo "${folder#deploy/}" | tr / -)
	kube_ctl get -f "$work/rendered.yaml" -o json >"$work/$name.json"
done

echo "== what they say, and the daemons as they start them"
for daemon in agent extender; do
	account=autoscaler-agent
	[ "$daemon" = agent ] || account=ballast-extender
	mkdir "$work/account-$daemon"
	cp "$kube_ca" "$work/account-$daemon/ca.crt"
	kube_get "/api/v1/namespaces/kube-system/serviceaccounts/$account/token" -X POST -H 'Content-Type: application/json' \
		-d '{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","spec":{"audiences":[],"expirationSeconds":3600}}' |
		node -e 'console.log(JSON.parse(require("fs").readFileSync(0)).status.token)' >"$work/account-$daemon/token"
done
prefix=127.$(($$ % 199 + 24)).$(($$ / 199 % 254 + 1))
node "$kube_here/manifests.js" "$work" "$prefix" "$kube_api" "$ballast" agent agent-events extender extender-deployment extender-names

# A field that the API server doesn't know is dropped without a word: what was stored must have everything that was sent.
kubectl kustomize deploy/agent 2>/dev/null >"$work/rendered.yaml"
stored=$(kube_ctl -n kube-system get daemonset autoscaler-agent -o jsonpath='{.spec.template.spec.containers[0].env[*].name} {.spec.template.spec.securityContext.seccompProfile.type} {.spec.template.spec.terminationGracePeriodSeconds} {.spec.template.spec.volumes[0].configMap.name}')
case $stored in
"CONFIG_PATH K8S_NODE_NAME K8S_POD_IP RuntimeDefault 30 autoscaler-agent-config-"*) ;;
*) fail "the stored DaemonSet differs: $stored" ;;
esac

echo "== Prometheus rules and the dashboard"
awk '/^spec:/ { inside = 1; next } inside { sub(/^  /, ""); print }' deploy/monitoring/rules.yaml >"$work/rules.yaml"
promtool check rules "$work/rules.yaml" || fail "promtool doesn't like the rules"

cp tests/kube/rules_test.yaml "$work/"
promtool test rules "$work/rules_test.yaml" || fail "the alerts don't come when they should"
# That what they ask for exists: agent.js, extender.js.

echo "== kube-scheduler takes its configuration"
for template in deploy/scheduler/config-v1beta1.yaml; do
	sed -e 's,/etc/kubernetes/scheduler.conf,@KUBECONFIG@,' -e 's/leaderElect: true/leaderElect: false/' "$template" >"$work/template"
	printf 'healthzBindAddress: 127.0.0.1:@HEALTH@\nmetricsBindAddress: 127.0.0.1:@HEALTH@\n' >>"$work/template"
	kube_start_scheduler "$work/template" 8889
	kube_stop kube-scheduler
done
# This scheduler knows no other version; what isn't its name is the same in all.
for version in v1 v1beta2 v1beta3; do
	grep -qx "apiVersion: kubescheduler.config.k8s.io/$version" "deploy/scheduler/config-$version.yaml" || fail "config-$version.yaml is of another version"
	sed "s,config.k8s.io/$version\$,config.k8s.io/v1beta1,;1d" "deploy/scheduler/config-$version.yaml" >"$work/other"
	sed 1d deploy/scheduler/config-v1beta1.yaml | diff - "$work/other" || fail "config-$version.yaml differs in more than its version"
done
# The old Policy file.
kube_scheduler_port=$(kube_free_port)
kube_spawn kube-scheduler "$kube_bin/kube-scheduler" --kubeconfig="$kube_run/scheduler.kubeconfig" --leader-elect=false \
	--policy-config-file=deploy/scheduler/policy.json --address=127.0.0.1 --port="$kube_scheduler_port" --secure-port=0
kube_wait kube-scheduler 30 sh -c "[ \"\$(curl -s -m 2 http://127.0.0.1:$kube_scheduler_port/healthz)\" = ok ]"
kube_stop kube-scheduler
echo "manifests: all is well"
