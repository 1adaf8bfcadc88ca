#!/bin/sh
# What lies in deploy/ renders, is accepted by a real API server, and says what it should.
set -eu
work=$(mktemp -d)
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
	for workload in DaemonSet Deployment; do
		grep -q "^kind: $workload$" "$work/rendered" || continue
		for line in 'runAsNonRoot: true' 'readOnlyRootFilesystem: true' 'allowPrivilegeEscalation: false' 'type: RuntimeDefault' \
			'priorityClassName: system-' 'readinessProbe:' 'livenessProbe:' 'limits:' 'requests:'; do
			grep -q "$line" "$work/rendered" || fail "$folder: the $workload lacks \"$line\""
		done
	done
done

kube_up
kube_ctl apply -f tests/kube/crds.yaml >/dev/null
kube_ctl wait --for=condition=Established --timeout=30s -f tests/kube/crds.yaml >/dev/null
for folder in $folders; do
	# The client's own check of fields, where it knows the kinds; then for real.
	kubectl kustomize "$folder" >"$work/rendered.yaml" 2>/dev/null
	kube_ctl apply -f "$work/rendered.yaml" >"$work/out" 2>&1 || fail "$folder is refused: $(cat "$work/out")"
	sed "s|^|$folder: |" "$work/out"
done

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

# Every metric that rules and dashboard ask for exists in the program.
grep -oE '(autoscaling|schedule|kubeclient)_[a-z_]+' deploy/monitoring/rules.yaml deploy/monitoring/dashboard.json -h |
	sed -E 's/_(bucket|sum|count)$//' | sort -u >"$work/metrics"
while read -r metric; do
	suffix=${metric#autoscaling_agent_}
	grep -rqF "\"$suffix\"" src/agent src/extender || fail "no metric is called $metric"
done <"$work/metrics"
node -e 'JSON.parse(require("fs").readFileSync("deploy/monitoring/dashboard.json"))'

echo "== kube-scheduler takes its configuration"
for template in deploy/scheduler/config-v1beta1.yaml; do
	sed -e 's,/etc/kubernetes/scheduler.conf,@KUBECONFIG@,' -e 's/leaderElect: true/leaderElect: false/' "$template" >"$work/template"
	printf 'healthzBindAddress: 127.0.0.1:@HEALTH@\nmetricsBindAddress: 127.0.0.1:@HEALTH@\n' >>"$work/template"
	kube_start_scheduler "$work/template" 8889
	kube_stop kube-scheduler
done
# The old Policy file.
kube_scheduler_port=$(kube_free_port)
kube_spawn kube-scheduler "$kube_bin/kube-scheduler" --kubeconfig="$kube_run/scheduler.kubeconfig" --leader-elect=false \
	--policy-config-file=deploy/scheduler/policy.json --address=127.0.0.1 --port="$kube_scheduler_port" --secure-port=0
kube_wait kube-scheduler 30 sh -c "[ \"\$(curl -s -m 2 http://127.0.0.1:$kube_scheduler_port/healthz)\" = ok ]"
kube_stop kube-scheduler
echo "manifests: all is well"
