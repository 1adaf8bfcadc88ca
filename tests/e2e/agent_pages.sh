#!/bin/sh
# What a running agent serves, in a small sandbox: two pages of metrics, probes and the state dump.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/agent_common.inc

TMPDIR=$work "$ballast" sandbox --vms 2 --duration 40s >"$work/report" 2>"$work/events" &
sandbox=$!
children=$sandbox

find_agent() {
	address=$(sed -n 's/.*started the agent of node-a.*[ /]\(127\.[0-9]*\.[0-9]*\.[0-9]*\).*/\1/p' "$work/events" | head -n 1)
	[ -n "$address" ]
}
wait_until 20 find_agent || give_up "no agent: $(cat "$work/events" "$work/report")"
wait_until 20 curl -sf -o "$work/page" "http://$address:9100/readyz" || give_up "the agent doesn't get ready"

# ask NAME PATH-WITH-PORT [curl option...]: the reply's head in $work/NAME.head, its body in $work/NAME.
ask() {
	file=$work/$1
	url=http://$address:$2
	shift 2
	curl -s --max-time 10 -D "$file.head" -o "$file" "$@" "$url" || fail "$url: curl ended with status $?"
}

# expect_reply NAME STATUS TYPE
expect_reply() {
	head -n 1 "$work/$1.head" | grep -q "^HTTP/1.1 $2 " || fail "$1: $(head -n 1 "$work/$1.head") instead of $2"
	type=$(tr -d '\r' <"$work/$1.head" | sed -n 's/^[Cc]ontent-[Tt]ype: //p')
	[ "$type" = "$3" ] || fail "$1: the type is $type"
}

# expect_body NAME TEXT: exactly, newlines at the end aside.
expect_body() {
	[ "$(cat "$work/$1")" = "$2" ] || fail "$1: the body is: $(head -c 300 "$work/$1")"
}

# expect_series NAME < LIST: the page has a sample of each series in the list.
expect_series() {
	while read -r series; do
		grep -q -F -- "$series " "$work/$1" || fail "$1: there is no $series"
	done
}

# expect_families NAME < LIST: "type family" in each line; the page has these families and no others.
expect_families() {
	sort >"$work/wanted"
	sed -n 's/^# TYPE \([^ ]*\) \(.*\)/\2 \1/p' "$work/$1" | sort >"$work/found"
	diff "$work/wanted" "$work/found" >"$work/diff" || fail "$1: families missing (<) or surplus (>):
$(grep '^[<>]' "$work/diff")"
	sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/$1" | LC_ALL=C sort -c || fail "$1: families aren't in order"
	sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/$1" | while read -r family; do
		grep -q "^# HELP $family ." "$work/$1" || fail "$1: $family is without help"
	done
}

check_with_promtool() {
	promtool check metrics <"$work/$1" >"$work/lints" 2>&1
	status=$?
	case $status in
	0 | 3) ;; # 3: it parses, but there are lints
	*) fail "$1: promtool ended with status $status: $(cat "$work/lints")" ;;
	esac
	grep -v -x -F -f tests/promtool.allow "$work/lints" >"$work/surplus" && fail "$1: $(cat "$work/surplus")"
}

page_type='text/plain; version=0.0.4; charset=utf-8; escaping=values'
text_type='text/plain; charset=utf-8'

# ---- from the start, whatever the VMs do ----

ask agent-page 9100/metrics
expect_reply agent-page 200 "$page_type"
{
	for what in scheduler_plugin_requested scheduler_plugin_accepted monitor_requested monitor_approved neonvm_requested; do
		memory=mem_change_total
		[ $what != neonvm_requested ] || memory=mem_changed_total
		for direction in inc dec; do
			echo "autoscaling_agent_${what}_cpu_change_total{direction=\"$direction\"}"
			echo "autoscaling_agent_${what}_$memory{direction=\"$direction\"}"
		done
	done
	for state in ok stuck panicked; do
		echo "autoscaling_agent_runners_current{is_endpoint=\"true\",state=\"$state\"}"
		echo "autoscaling_agent_runners_current{is_endpoint=\"false\",state=\"$state\"}"
	done
	for watcher in VirtualMachines 'Scheduler Pod'; do
		for method in List Watch; do
			echo "autoscaling_agent_watchers_client_calls_total{method=\"$method\",watcher_instance=\"$watcher\"}"
		done
		echo "autoscaling_agent_watchers_alive_current{watcher_instance=\"$watcher\"}"
		echo "autoscaling_agent_watchers_failing_current{watcher_instance=\"$watcher\"}"
	done
	echo autoscaling_agent_runner_thread_panics_total
	echo autoscaling_agent_runner_starts
	echo autoscaling_agent_runner_restarts
	echo autoscaling_agent_runner_next_actions_total
	echo 'promhttp_metric_handler_errors_total{cause="gathering"}'
	echo 'promhttp_metric_handler_errors_total{cause="encoding"}'
} | expect_series agent-page >"$work/missing" 2>&1
[ -s "$work/missing" ] && fail "$(cat "$work/missing")"

# ---- once the VMs have been scaled ----

# A VM of this sandbox grows within its first seconds; a health check comes after 5 s.
has_scaled() {
	ask agent-page 9100/metrics
	grep -q '^autoscaling_agent_scaling_latency_seconds_count' "$work/agent-page" &&
		grep -q '^autoscaling_agent_monitor_outbound_requests_total{.*HealthCheck' "$work/agent-page"
}
wait_until 25 has_scaled || fail "no VM was scaled: $(cat "$work/agent-page" "$work/events")"

expect_reply agent-page 200 "$page_type"
check_with_promtool agent-page
sed 's/^/autoscaling_agent_/' >"$work/by-prefix" <<'END'
scheduler_plugin_requests_total counter
scheduler_plugin_requested_cpu_change_total counter
scheduler_plugin_requested_mem_change_total counter
scheduler_plugin_accepted_cpu_change_total counter
scheduler_plugin_accepted_mem_change_total counter
monitor_outbound_requests_total counter
monitor_requested_cpu_change_total counter
monitor_requested_mem_change_total counter
monitor_approved_cpu_change_total counter
monitor_approved_mem_change_total counter
neonvm_outbound_requests_total counter
neonvm_requested_cpu_change_total counter
neonvm_requested_mem_changed_total counter
runners_current gauge
runner_thread_panics_total counter
runner_starts counter
runner_restarts counter
runner_next_actions_total counter
scaling_latency_seconds histogram
plugin_latency_seconds histogram
neonvm_latency_seconds histogram
watchers_client_calls_total counter
watchers_events_total counter
watchers_alive_current gauge
watchers_failing_current gauge
scaling_events_total gauge
END
while read -r family type; do
	grep -q -x "# TYPE $family $type" "$work/agent-page" || fail "agent-page: there is no $type $family"
done <"$work/by-prefix"
grep -q 'go_\|python_' "$work/agent-page" && fail "agent-page: metrics of another runtime"
buckets='.005 .01 .025 .05 .1 .15 .2 .25 .3 .35 .4 .45 .5 .6 .7 .8 .9 1 1.25 1.5 1.75 2 2.5 3 3.5 4 4.5 5 6 7 8 9 10 15 20 25 30 40 50 60 +Inf'
for family in scaling plugin neonvm; do
	found=$(sed -n "s/^autoscaling_agent_${family}_latency_seconds_bucket{direction=\"inc\",le=\"0*\([^\"]*\)\"} [0-9]*\$/\1/p" \
		"$work/agent-page" | tr '\n' ' ')
	[ "$found" = "$buckets " ] || fail "agent-page: buckets of ${family}_latency_seconds are $found"
done

ask vm-page 9101/metrics
expect_reply vm-page 200 "$page_type"
check_with_promtool vm-page
expect_families vm-page <<'END'
gauge autoscaling_vm_cpu_cores
gauge autoscaling_vm_memory_bytes
gauge autoscaling_vm_restart_count
gauge autoscaling_vm_extra_ip
gauge autoscaling_vm_desired_cu
counter promhttp_metric_handler_errors_total
END
# node-a has the two that are scaled, and one that isn't to be.
[ "$(grep -c '^autoscaling_vm_restart_count{' "$work/vm-page")" -eq 3 ] || fail "vm-page: not three VMs: $(cat "$work/vm-page")"
for vm in pine oak; do
	labels="endpoint_id=\"ep-$vm\",project_id=\"project-$vm\""
	for value in spec_max spec_min spec_use status_use; do
		echo "autoscaling_vm_cpu_cores{$labels,value=\"$value\",vm_name=\"$vm\",vm_namespace=\"apps\"}"
		echo "autoscaling_vm_memory_bytes{$labels,value=\"$value\",vm_name=\"$vm\",vm_namespace=\"apps\"}"
	done
	for component in total cpu mem; do
		echo "autoscaling_vm_desired_cu{component=\"$component\",$labels,vm_name=\"$vm\",vm_namespace=\"apps\"}"
	done
done >"$work/series"
expect_series vm-page <"$work/series"

# ---- the rest of those ports ----

ask any-method 9100/metrics -X DELETE
expect_reply any-method 200 "$page_type"
for port in 9100 9101; do
	ask not-found-$port $port/
	expect_reply not-found-$port 404 "$text_type"
	expect_body not-found-$port '404 page not found'
	ask below-$port $port/metrics/
	expect_reply below-$port 404 "$text_type"
done
for probe in livez readyz; do
	ask $probe 9100/$probe
	expect_reply $probe 200 "$text_type"
	expect_body $probe ok
done

# ---- the state dump ----

ask dump 10300/any/path -X GET -d '{}'
expect_reply dump 200 "$text_type"
node -e '
	const fs = require("fs");
	const keys = (value, wanted, where) => {
		const found = Object.keys(value).join();

		if (found !== wanted)
			throw new Error(`${where} has the keys ${found}`);
	};
	const text = fs.readFileSync(process.argv[1], "utf8");
	const dump = JSON.parse(text);

	if (JSON.stringify(dump).length !== text.length)
		throw new Error("it is not compact");
	keys(dump, "stopped,pods", "the dump");
	if (dump.stopped !== false)
		throw new Error("stopped");
	if (dump.pods.map((pod) => pod.podName.name.split("-")[0]).join() !== "oak,pine")
		throw new Error(`pods ${dump.pods.map((pod) => pod.podName.name)}`);
	for (const pod of dump.pods) {
		keys(pod, "podName,status,runner", "a pod");
		keys(pod.podName, "namespace,name", "podName");
		keys(pod.status, "startTime,endState,previousEndStates,lastSuccessfulMonitorComm,failedMonitorRequestCounter," +
			"failedNeonVMRequestCounter,failedSchedulerRequestCounter,vmInfo,endpointID,endpointAssignedAt,state," +
			"stateUpdatedAt", "status");
		keys(pod.runner, "podIP,executorState,monitor,backgroundWorkerCount", "runner");
		keys(pod.runner.executorState, "Config,Debug,VM,Plugin,Monitor,NeonVM,Metrics,LFCMetrics,TargetRevision," +
			"LastDesiredResources", "executorState");
		keys(pod.runner.executorState.Monitor, "OngoingRequest,RequestedUpscale,DeniedDownscale,Approved," +
			"DownscaleFailureAt,UpscaleFailureAt,CurrentRevision", "Monitor");
		if (pod.status.state !== "ok" || pod.runner.backgroundWorkerCount !== 13)
			throw new Error(`state ${pod.status.state}, ${pod.runner.backgroundWorkerCount} workers`);
	}' "$work/dump" 2>"$work/complaint" || fail "the dump: $(grep Error "$work/complaint"): $(cat "$work/dump")"

ask dump-of-null 10300/ -X GET -d null
expect_reply dump-of-null 200 "$text_type"
for body in '' '{' '[]' '"x"'; do
	ask bad-body 10300/ -X GET -d "$body"
	expect_reply bad-body 400 "$text_type"
	expect_body bad-body 'bad JSON'
done
ask no-body 10300/
expect_reply no-body 400 "$text_type"
for method in POST PUT; do
	ask other-method 10300/ -X $method -d '{}'
	expect_reply other-method 405 "$text_type"
	expect_body other-method 'request method must be GET'
done

# ---- the end ----

kill "$sandbox"
wait "$sandbox"
status=$?
[ "$status" -le 1 ] || fail "the sandbox ended with status $status" # 1: it was stopped in the middle of a phase
grep -q 'the agent of node-a ended: exit status 0' "$work/events" || fail "the agent's end: $(tail -n 3 "$work/events")"
curl -s -o "$work/page" "http://$address:9100/livez" && fail "the agent goes on behind the sandbox"

[ "$failures" -eq 0 ]
