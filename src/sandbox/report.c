#include "sandbox/report.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

enum { GOALS_SHOWN = 8 /* of each VM, in the table */ };

/* ---- gathering ---- */

static void describe_vm(struct sandbox_report_vm *vm, const struct judge *judge, const struct cluster *cluster,
                        unsigned index)
{
	const struct workload_vm *planned = &judge->workload->vms[index];
	const struct judge_vm *seen = &judge->vms[index];
	struct cluster_vm_state state = cluster_vm_state(cluster, index);

	*vm = (struct sandbox_report_vm){
		.name = slice_of(planned->name),
		.workload = slice_of(workload_kind_name(planned->kind)),
		.min_cu = planned->min,
		.max_cu = planned->bound != 0 ? planned->bound : planned->max,
		.final_cu = (double)state.size.cpu_milli / WORKLOAD_UNIT_CPU_MILLI,
		.expected_final_cu = workload_phase(judge->workload, index, judge->phase)->expected,
		.judged = seen->judged_before,
		.patches = state.patches,
		.upscales = seen->upscales,
		.downscales = seen->downscales,
		.denied_downscales = state.guest.downscales_denied,
		.seconds_to_reach_goal = seen->seconds_to_reach_goal,
		.seconds_to_reach_goal_count = seen->times_count,
	};
}

static void add_up_monitors(struct sandbox_report_monitor *monitor, const struct cluster *cluster, unsigned vms)
{
	for (unsigned i = 0; i < vms; i++) {
		struct guest_counters guest = cluster_vm_state(cluster, i).guest;

		monitor->connections += guest.connections;
		monitor->upscales += guest.upscales;
		monitor->downscales += guest.downscales_approved;
		monitor->health_checks += guest.health_checks;
	}
}

static size_t count_goals(const struct judge *judge)
{
	size_t count = 0;

	for (unsigned i = 0; i < judge->workload->options.vms; i++)
		count += judge->vms[i].goal_count;
	return count;
}

static void describe_goals(struct report *report, const struct judge *judge)
{
	struct sandbox_report_goal *next = report->goals;

	for (unsigned i = 0; i < judge->workload->options.vms; i++) {
		const struct judge_vm *seen = &judge->vms[i];

		report->message.vms[i].goals = next;
		report->message.vms[i].goals_count = seen->goal_count;
		for (size_t j = 0; j < seen->goal_count; j++)
			*next++ = (struct sandbox_report_goal){
				.phase = seen->goals[j].phase + 1,
				.expected_cu = seen->goals[j].expected,
				.has_seconds_to_reach_goal = seen->goals[j].reached,
				.seconds_to_reach_goal = seen->goals[j].seconds,
			};
	}
}

static void describe_outages(struct report *report, const struct sandbox_options *options)
{
	for (size_t i = 0; i < options->outage_count; i++) {
		const struct outage *outage = &options->outages[i];

		outage_print_option(outage, report->peers[i]);
		report->outages[i] = (struct sandbox_report_outage){
			.peer = slice_of(report->peers[i]),
			.start_seconds = (double)outage->start_ns / NS_PER_S,
			.end_seconds = (double)outage->end_ns / NS_PER_S,
		};
	}
	report->message.outages = report->outages;
	report->message.outages_count = options->outage_count;
}

bool report_init(struct report *report, const struct judge *judge, const struct cluster *cluster, uint64_t duration_ns,
                 const struct report_usage *usage, struct error *err)
{
	const struct workload_options *options = &judge->workload->options;
	struct scheduler_plugin_counters scheduler = cluster_scheduler_counters(cluster);
	struct control_plane_counters api = cluster_api_counters(cluster);
	struct sandbox_report_report *message = &report->message;
	uint64_t duration_ms = (duration_ns + NS_PER_MS / 2) / NS_PER_MS;

	*report = (struct report){
		.anything_judged = judge->judgements > 0,
		.message = {
			.generation = slice_of(sandbox_generation_name(&options->generation)),
			.seed = options->seed,
			.duration_seconds = (double)duration_ms / 1000,
			.speed = options->speed,
			.nodes = options->nodes,
			.phases = judge->phase + 1,
			.ignored_vms = cluster_vm_count(cluster) - options->vms,
			.vms_count = options->vms,
			.scheduler = { .requests = scheduler.requests, .denials = scheduler.denials,
			               .protocol_version = slice_of(plugin_release_version_name(scheduler.version)) },
			.api = { .lists = api.lists, .watches = api.watches, .patches = api.patches },
			.agent = { .max_resident_kib = usage->max_resident_kib, .cpu_seconds = (double)usage->cpu_us / 1e6 },
		},
	};
	message->vms = memory_allocate(options->vms * sizeof *message->vms);
	report->mismatches = memory_allocate((judge->sentence_count + 1) * sizeof *report->mismatches);
	report->goals = memory_allocate((count_goals(judge) + 1) * sizeof *report->goals);
	if (message->vms == NULL || report->mismatches == NULL || report->goals == NULL) {
		report_destroy(report);
		return error_set(err, ERROR_NO_MEMORY, "out of memory for the report");
	}
	for (unsigned i = 0; i < options->vms; i++)
		describe_vm(&message->vms[i], judge, cluster, i);
	describe_goals(report, judge);
	describe_outages(report, judge->options);
	add_up_monitors(&message->monitor, cluster, options->vms);
	for (size_t i = 0; i < judge->sentence_count; i++)
		report->mismatches[message->mismatches_count++] = slice_of(judge->sentences[i]);
	if (judge->sentences_left_out > 0)
		report->mismatches[message->mismatches_count++] = SLICE("there were more mismatches");
	message->mismatches = report->mismatches;
	return true;
}

bool report_add_pods(struct report *report, unsigned count, struct error *err)
{
	report->pods = memory_allocate((count + 1) * sizeof *report->pods);
	report->message.pods = memory_allocate((count + 1) * sizeof *report->message.pods);
	report->message.pods_count = count;
	return (report->pods != NULL && report->message.pods != NULL) ||
	       error_set(err, ERROR_NO_MEMORY, "out of memory for the report");
}

void report_destroy(struct report *report)
{
	memory_release(report->message.pods);
	memory_release(report->pods);
	memory_release(report->message.vms);
	memory_release(report->mismatches);
	memory_release(report->goals);
	*report = (struct report){ .mismatches = NULL };
}

/* ---- printing ---- */

bool report_print_json(const struct report *report, struct buffer *out, struct error *err)
{
	if (!sandbox_report_report_to_json(&report->message, out, err))
		return false;
	buffer_append_char(out, '\n');
	return buffer_check(out, "report", err);
}

static void print_vm(const struct sandbox_report_vm *vm, struct buffer *out)
{
	char range[32];

	(void)snprintf(range, sizeof range, "%u-%u", vm->min_cu, vm->max_cu);
	buffer_append_format(out, "%-12.*s %-11.*s %5s %6g %5u %-6s %8u %4u %5u %7u  ", SLICE_ARGS(vm->name),
	                     SLICE_ARGS(vm->workload), range, vm->final_cu, vm->expected_final_cu,
	                     vm->judged ? "yes" : "no", vm->patches, vm->upscales, vm->downscales,
	                     vm->denied_downscales);
	for (size_t i = 0; i < vm->goals_count && i < GOALS_SHOWN; i++) {
		const struct sandbox_report_goal *goal = &vm->goals[i];

		buffer_append_format(out, "%s%u: ", i > 0 ? ", " : "", goal->phase);
		if (goal->has_seconds_to_reach_goal)
			buffer_append_format(out, "%.1f", goal->seconds_to_reach_goal);
		else
			buffer_append_char(out, '-');
	}
	if (vm->goals_count > GOALS_SHOWN)
		buffer_append_text(out, " …");
	buffer_append_char(out, '\n');
}

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* "2 lists", "1 watch". */
static void print_count(struct buffer *out, unsigned count, const char *what, const char *plural_ending,
                        const char *next)
{
	buffer_append_format(out, "%u %s%s%s", count, what, count == 1 ? "" : plural_ending, next);
}

static void print_pods(const struct sandbox_report_report *message, struct buffer *out)
{
	const struct sandbox_report_placement *placement = &message->placement;

	buffer_append_text(out, "pod             volumes node      calls  seconds expected judged\n");
	for (size_t i = 0; i < message->pods_count; i++) {
		const struct sandbox_report_pod *pod = &message->pods[i];

		buffer_append_format(out, "%-15.*s %7u %-9.*s %5u  ", SLICE_ARGS(pod->name), pod->volumes,
		                     SLICE_ARGS(pod->has_node ? pod->node : SLICE("-")), pod->filter_calls);
		if (pod->has_seconds_to_bind)
			buffer_append_format(out, "%7.1f", pod->seconds_to_bind);
		else
			buffer_append_format(out, "%7s", "-");
		buffer_append_format(out, " %-8.*s %s\n", SLICE_ARGS(pod->expected), pod->judged ? "yes" : "no");
	}
	buffer_append_format(out, "\nplacement         %u bound", placement->bound);
	if (placement->has_pods_per_minute)
		buffer_append_format(out, ", %.1f pods per minute", placement->pods_per_minute);
	buffer_append_text(out, ", ");
	print_count(out, placement->filter_calls, "filter call", "s", "");
	buffer_append_format(out, " (%u failed)\n", placement->failed_filter_calls);
	buffer_append_format(out,
	                     "capacity          %u promised twice; %u reservations granted, %u rejected; %u volumes "
	                     "made, %u refused\n",
	                     message->capacity.promised_twice, message->capacity.reserved, message->capacity.rejected,
	                     message->capacity.volumes, message->capacity.refused_volumes);
	buffer_append_format(out, "extender          %.1f MiB resident, %.2f s of CPU, %u restart%s\n",
	                     (double)message->extender.max_resident_kib / 1024, message->extender.cpu_seconds,
	                     message->extender.restarts, plural(message->extender.restarts));
}

static void print_sums(const struct sandbox_report_report *message, struct buffer *out)
{
	buffer_append_text(out, "scheduler plugin  ");
	print_count(out, message->scheduler.requests, "request", "s", ", ");
	print_count(out, message->scheduler.denials, "denial", "s", "\n");
	buffer_append_text(out, "vm-monitors       ");
	print_count(out, message->monitor.connections, "connection", "s", ", ");
	print_count(out, message->monitor.upscales, "upscale", "s", ", ");
	print_count(out, message->monitor.downscales, "downscale", "s", ", ");
	print_count(out, message->monitor.health_checks, "health check", "s", "\n");
	buffer_append_text(out, "Kubernetes API    ");
	print_count(out, message->api.lists, "list", "s", ", ");
	print_count(out, message->api.watches, "watch", "es", ", ");
	print_count(out, message->api.patches, "patch", "es", "\n");
	buffer_append_format(out, "agent             %.1f MiB resident, %.2f s of CPU\n",
	                     (double)message->agent.max_resident_kib / 1024, message->agent.cpu_seconds);
	buffer_append_format(out, "billing           %llu of %.1f CPU-seconds used, ",
	                     (unsigned long long)message->billing.billed_cpu_seconds,
	                     message->billing.expected_cpu_seconds);
	print_count(out, message->billing.duplicates, "duplicate", "s", ", ");
	buffer_append_format(out, "%u lost; %u scaling events\n", message->billing.lost,
	                     message->billing.scaling_events);
	buffer_append_text(out, "left alone        ");
	print_count(out, message->ignored_vms, "VM", "s", " not to be scaled\n");
	for (size_t i = 0; i < message->faults_count; i++)
		buffer_append_format(out, "%s%.*s %u%s", i == 0 ? "faults            " : ", ",
		                     SLICE_ARGS(message->faults[i].kind), message->faults[i].count,
		                     i + 1 == message->faults_count ? "\n" : "");
	for (size_t i = 0; i < message->outages_count; i++)
		buffer_append_format(out, "%s%.*s from %g s to %g s%s", i == 0 ? "outages           " : ", ",
		                     SLICE_ARGS(message->outages[i].peer), message->outages[i].start_seconds,
		                     message->outages[i].end_seconds, i + 1 == message->outages_count ? "\n" : "");
	buffer_append_char(out, '\n');
}

bool report_print_text(const struct report *report, struct buffer *out, struct error *err)
{
	const struct sandbox_report_report *message = &report->message;

	buffer_append_format(
		out, "ballast sandbox: %u VM%s on %u node%s, %sseed %llu, speed %g, %.1f s, %u phase%s\n\n",
		(unsigned)message->vms_count, plural(message->vms_count), message->nodes, plural(message->nodes),
		slice_equal_text(message->generation, "A") ? "generation A, " : "", (unsigned long long)message->seed,
		message->speed, message->duration_seconds, message->phases, plural(message->phases));
	if (message->vms_count > 0)
		buffer_append_text(out,
		                   "VM           workload    range  final  goal judged  patches   up  down  denied  "
		                   "phase: seconds to its goal\n");
	for (size_t i = 0; i < message->vms_count; i++)
		print_vm(&message->vms[i], out);
	if (message->vms_count > 0)
		buffer_append_char(out, '\n');
	if (message->pods_count > 0)
		print_pods(message, out);
	print_sums(message, out);
	if (message->mismatches_count == 0 && !report->anything_judged)
		buffer_append_text(out, "Ended before anything could be judged.\n");
	else if (message->mismatches_count == 0)
		buffer_append_text(out, "Everything went as the workload states it.\n");
	else
		buffer_append_format(out, "%zu mismatch%s:\n", message->mismatches_count,
		                     message->mismatches_count == 1 ? "" : "es");
	for (size_t i = 0; i < message->mismatches_count; i++)
		buffer_append_format(out, "  %.*s\n", SLICE_ARGS(message->mismatches[i]));
	return buffer_check(out, "report", err);
}
