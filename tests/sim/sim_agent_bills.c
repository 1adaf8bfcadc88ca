/*
 * What is noted of an agent for its bills: what its VM watch shows, and how far its events are on their way.
 */
#include "sim_agent_internal.h"

/* What may be billed (spec reporting B3, steps 4 and 5). */
static bool may_be_billed(const struct vm_watch_vm *vm)
{
	static const char *const PHASES[] = { "Running", "PreMigrating", "Migrating", "Scaling" };

	for (size_t i = 0; i < sizeof PHASES / sizeof PHASES[0]; i++)
		if (slice_equal_text(vm->phase, PHASES[i]))
			return vm->has_billing_endpoint_id && vm->has_status_cpu;
	return false;
}

static void note_view(struct sim_agent *self)
{
	const struct vm_watch *watch = self->agent.vm_watch;
	struct vm_watch_vm vm;
	size_t position = 0;

	sim_life_view_begin(self->life);
	if (watch != NULL && self->agent.reporting != NULL && !self->agent.stopping && !vm_watch_failing(watch))
		while (vm_watch_next(watch, &position, &vm))
			if (may_be_billed(&vm))
				sim_life_view_vm(self->life, vm.uid, vm.billing_endpoint_id, vm.status_cpu_milli);
}

static void note_progress(struct sim_agent *self)
{
	for (int i = 0; i < SIM_CHANNELS && self->agent.reporting != NULL; i++) {
		enum sim_channel channel = (enum sim_channel)i;
		struct report_progress progress;

		if (event_reporting_progress(self->agent.reporting,
		                             channel < SIM_BILLING_CHANNELS ? AGENT_SENDER_BILLING
		                                                            : AGENT_SENDER_SCALING_EVENTS,
		                             sim_channel_client(channel), &progress))
			sim_life_progress(self->life, channel, &progress);
	}
}

void sim_agent_note_bills(struct sim_agent *self)
{
	if (self->life == NULL)
		return;
	if (self->starved)
		sim_life_starved(self->life);
	note_view(self);
	note_progress(self);
}

void sim_agent_check_view(struct sim_agent *self)
{
	const struct vm_watch *watch = self->agent.vm_watch;
	const struct sim_cluster *cluster = self->options.cluster;
	unsigned count = 0;
	size_t position = 0;
	struct vm_watch_vm vm;

	while (vm_watch_next(watch, &position, &vm)) {
		if (!may_be_billed(&vm))
			continue;
		count++;
		if (!sim_cluster_is_billed_on_node(cluster, vm.name, self->options.node))
			simulation_broken(self->simulation, "billed-by-one", "%s bills %.*s, which isn't there",
			                  self->name, SLICE_ARGS(vm.name));
	}
	if (count != sim_cluster_vms_billed_on_node(cluster, self->options.node))
		simulation_broken(self->simulation, "billed-by-one", "%s bills %u VMs of %u", self->name, count,
		                  sim_cluster_vms_billed_on_node(cluster, self->options.node));
}
