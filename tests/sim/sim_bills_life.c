/*
 * The agent bills of two samples in a row the smaller one (B3). So of a VM that comes, goes or changes between two
 * samples up to one collect period is billed as the better one for whoever pays; and a VM that went and came back between
 * two samples is billed as if it had been there. From this the bounds of what may be billed follow. A process that stands
 * still takes no samples, so for what is missing, that time is excused.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "sim_bills_internal.h"

enum {
	ROUNDING_S = 1,
	/* How old the latest may be that must have been billed: a window, a push's period, and what a push takes. */
	SETTLED_S = SIM_ACCUMULATE_S + SIM_COLLECT_S + SIM_PUSH_S + 5,
	PUSH_LATE_S = SIM_COLLECT_S + 1, /* a process that stood still for less than is noticed */
};

const char *sim_channel_client(enum sim_channel channel)
{
	static const char *const NAMES[SIM_CHANNELS] = { "http", "azureblob", "s3", "azureblob", "s3" };

	return NAMES[channel];
}

struct sim_life *sim_life_begin(struct sim_bills *bills, const char *name, int64_t wall_ns)
{
	struct sim_life *life = memory_allocate(sizeof *life);

	if (life == NULL)
		return NULL;
	life->bills = bills;
	(void)snprintf(life->name, sizeof life->name, "%s", name);
	life->begin_wall_ns = wall_ns;
	life->bound = REPORT_QUEUE_EVENTS;
	life->viewed_ns = simulation_now_ns(bills->simulation);
	for (int i = 0; i < SIM_CHANNELS; i++)
		table_init(&life->chains[i].events);
	life->next = bills->lives;
	bills->lives = life;
	return life;
}

struct sim_life_vm *sim_life_vm(struct sim_life *life, struct slice endpoint_id)
{
	for (int i = 0; i < SIM_BILLED_VMS; i++) {
		struct sim_life_vm *vm = &life->vms[i];

		if (vm->endpoint[0] == '\0')
			(void)snprintf(vm->endpoint, sizeof vm->endpoint, "%.*s", SLICE_ARGS(endpoint_id));
		if (slice_equal_text(endpoint_id, vm->endpoint))
			return vm;
	}
	return NULL;
}

/* ---- what the agent sees ---- */

static void advance(struct sim_life *life, double seconds)
{
	for (int i = 0; i < SIM_BILLED_VMS; i++) {
		struct sim_life_vm *vm = &life->vms[i];

		if (!vm->present)
			continue;
		vm->seen.active_s += seconds;
		vm->seen.cpu_s += seconds * vm->cpu_milli / 1000;
		life->bills->counts.seen_s += seconds;
	}
}

/* Notes where things stood at each full second since the last turn. */
static void note_past(struct sim_life *life, uint64_t now_ns)
{
	for (uint64_t second = life->viewed_ns / NS_PER_S + 1; second <= now_ns / NS_PER_S; second++) {
		advance(life, (double)(second * NS_PER_S - life->viewed_ns) / (double)NS_PER_S);
		life->viewed_ns = second * NS_PER_S;
		for (int i = 0; i < SIM_BILLED_VMS; i++)
			life->vms[i].past[second % SIM_PAST_S] = life->vms[i].seen;
		life->past_seconds++;
	}
}

void sim_life_view_begin(struct sim_life *life)
{
	uint64_t now_ns = simulation_now_ns(life->bills->simulation);
	double since_s = (double)(now_ns - life->viewed_ns) / (double)NS_PER_S;

	if (since_s > SIM_COLLECT_S) {
		life->frozen_s += since_s;
		life->frozen_until_ns = now_ns;
	}
	note_past(life, now_ns);
	advance(life, (double)(now_ns - life->viewed_ns) / (double)NS_PER_S);
	life->viewed_ns = now_ns;
	for (int i = 0; i < SIM_BILLED_VMS; i++) {
		life->vms[i].was_present = life->vms[i].present;
		life->vms[i].present = false;
	}
}

/* What goes down and up again between two samples, neither of them sees. */
static void note_change(const struct sim_life *life, struct sim_life_vm *vm, double by)
{
	if (life->viewed_ns < vm->changed_ns + (uint64_t)SIM_COLLECT_S * NS_PER_S ||
	    life->viewed_ns < life->frozen_until_ns + (uint64_t)SIM_COLLECT_S * NS_PER_S)
		vm->unseen_cpu += by + vm->changed_by;
	vm->changes_cpu += by;
	vm->changed_by = by;
	vm->changed_ns = life->viewed_ns;
}

void sim_life_view_vm(struct sim_life *life, struct slice uid, struct slice endpoint_id, uint32_t cpu_milli)
{
	struct sim_life_vm *vm = sim_life_vm(life, endpoint_id);
	uint64_t hash = slice_hash(uid);
	double cpu = (double)cpu_milli / 1000;

	if (vm == NULL)
		return;
	if (!vm->was_present || vm->uid != hash)
		vm->episodes++;
	else if (vm->cpu_milli != cpu_milli)
		note_change(life, vm, fabs(cpu - (double)vm->cpu_milli / 1000));
	vm->present = true;
	vm->uid = hash;
	vm->cpu_milli = cpu_milli;
	vm->most_cpu = fmax(vm->most_cpu, cpu);
}

void sim_life_bound(struct sim_life *life, uint64_t events)
{
	life->bounded = true;
	life->bound = events;
}

void sim_life_starved(struct sim_life *life)
{
	life->starved = true;
}

void sim_life_clock_set(struct sim_life *life)
{
	life->clock_set = true;
}

/* ---- what must have been billed ---- */

static double gaps(const struct sim_life_vm *vm)
{
	return vm->episodes > 1 ? vm->episodes - 1 : 0;
}

void sim_life_check_most(struct sim_life *life, const struct sim_life_vm *vm, enum sim_channel channel)
{
	const struct sim_amounts *billed = &vm->billed[channel];
	uint64_t now_ns = simulation_now_ns(life->bills->simulation);
	double since_s = vm->present ? (double)(now_ns - life->viewed_ns) / (double)NS_PER_S : 0;
	double active_s = vm->seen.active_s + since_s + gaps(vm) * SIM_COLLECT_S + ROUNDING_S;
	double cpu_s = vm->seen.cpu_s + since_s * vm->most_cpu + vm->unseen_cpu * SIM_COLLECT_S +
	               gaps(vm) * SIM_COLLECT_S * vm->most_cpu + ROUNDING_S;

	if (billed->active_s > active_s || billed->cpu_s > cpu_s)
		simulation_broken(life->bills->simulation, "billed-once",
		                  "%s billed %.0f active and %.0f CPU-seconds of %s over %s, and saw %.1f and %.1f; at "
		                  "most %.1f and %.1f would be right",
		                  life->name, billed->active_s, billed->cpu_s, vm->endpoint,
		                  sim_channel_client(channel), vm->seen.active_s, vm->seen.cpu_s, active_s, cpu_s);
}

static void check_least(struct sim_life *life, const struct sim_life_vm *vm, enum sim_channel channel,
                        struct sim_amounts seen)
{
	const struct sim_amounts *billed = &vm->billed[channel];
	double edges_s = vm->episodes * 2.0 * SIM_COLLECT_S + life->frozen_s;
	double active_s = seen.active_s - edges_s - ROUNDING_S;
	double cpu_s = seen.cpu_s - edges_s * vm->most_cpu - vm->changes_cpu * SIM_COLLECT_S - ROUNDING_S;

	if (billed->active_s < active_s || billed->cpu_s < cpu_s)
		simulation_broken(life->bills->simulation, "all-billed",
		                  "%s billed %.0f active and %.0f CPU-seconds of %s over %s, and saw %.1f and %.1f; at "
		                  "least %.1f and %.1f would be right",
		                  life->name, billed->active_s, billed->cpu_s, vm->endpoint,
		                  sim_channel_client(channel), seen.active_s, seen.cpu_s, active_s, cpu_s);
}

/* What failed is only tried again when something comes after it (S4): of a node without VMs it may wait for long. */
static bool may_be_stuck(const struct sim_life *life, int channel)
{
	const struct sim_chain *chain = &life->chains[channel];

	return chain->progress.waiting > 0 &&
	       life->viewed_ns > chain->submitted_ns + (uint64_t)(SIM_ACCUMULATE_S + SIM_COLLECT_S) * NS_PER_S;
}

static void check_least_of_all(struct sim_life *life, bool to_the_end)
{
	uint64_t second = life->viewed_ns / NS_PER_S - SETTLED_S;

	if (life->starved || life->bounded)
		return;
	for (int i = 0; i < SIM_BILLED_VMS && life->vms[i].endpoint[0] != '\0'; i++) {
		const struct sim_life_vm *vm = &life->vms[i];

		for (int channel = 0; channel < SIM_BILLING_CHANNELS; channel++)
			if (to_the_end || !may_be_stuck(life, channel))
				check_least(life, vm, (enum sim_channel)channel,
				            to_the_end ? vm->seen : vm->past[second % SIM_PAST_S]);
	}
}

/* ---- what is on the way ---- */

/* Each event that was handed out has come, waits, or was dropped because it had to be. */
static void check_none_lost(struct sim_life *life, enum sim_channel channel)
{
	const struct sim_chain *chain = &life->chains[channel];
	const struct report_progress *progress = &chain->progress;
	const char *kind = channel < SIM_BILLING_CHANNELS ? "billing" : "scaling";

	if (chain->delivered + progress->waiting + progress->dropped < progress->submitted)
		simulation_broken(life->bills->simulation, "none-lost",
		                  "%s: of %llu %s events for %s %llu have come, %llu wait, %llu were dropped",
		                  life->name, (unsigned long long)progress->submitted, kind,
		                  sim_channel_client(channel), (unsigned long long)chain->delivered,
		                  (unsigned long long)progress->waiting, (unsigned long long)progress->dropped);
	if (chain->delivered > progress->submitted)
		simulation_broken(life->bills->simulation,
		                  channel < SIM_BILLING_CHANNELS ? "billed-once" : "reported-once",
		                  "%s: %llu %s events came over %s, and there were %llu", life->name,
		                  (unsigned long long)chain->delivered, kind, sim_channel_client(channel),
		                  (unsigned long long)progress->submitted);
}

static void check_none_dropped(const struct sim_life *life, enum sim_channel channel)
{
	uint64_t dropped = life->chains[channel].progress.dropped;

	if (dropped > 0 && !life->starved && !life->bounded)
		simulation_broken(life->bills->simulation, "none-lost", "%s dropped %llu events for %s", life->name,
		                  (unsigned long long)dropped, sim_channel_client(channel));
}

void sim_life_progress(struct sim_life *life, enum sim_channel channel, const struct report_progress *progress)
{
	uint64_t now_ns = simulation_now_ns(life->bills->simulation);

	if (progress->submitted > life->chains[channel].progress.submitted)
		life->chains[channel].submitted_ns = now_ns;
	life->chains[channel].progress = *progress;
	check_none_lost(life, channel);
	if (progress->waiting > life->bound)
		simulation_broken(life->bills->simulation, "queue-bounded", "%s: %llu events wait for %s", life->name,
		                  (unsigned long long)progress->waiting, sim_channel_client(channel));
	if (progress->pushing && now_ns > life->frozen_until_ns + (uint64_t)PUSH_LATE_S * NS_PER_S &&
	    now_ns > progress->push_began_ns + progress->push_timeout_ns + (uint64_t)PUSH_LATE_S * NS_PER_S)
		simulation_broken(life->bills->simulation, "push-ends", "%s: a push to %s is under way for %.1f s",
		                  life->name, sim_channel_client(channel),
		                  (double)(now_ns - progress->push_began_ns) / (double)NS_PER_S);
}

void sim_life_check_settled(struct sim_life *life)
{
	for (int channel = 0; channel < SIM_CHANNELS; channel++) {
		check_none_lost(life, (enum sim_channel)channel);
		check_none_dropped(life, (enum sim_channel)channel);
	}
	if (life->past_seconds > SETTLED_S)
		check_least_of_all(life, false);
}

void sim_life_end(struct sim_life *life, bool all_delivered)
{
	sim_life_view_begin(life);
	for (int channel = 0; channel < SIM_CHANNELS; channel++)
		check_none_lost(life, (enum sim_channel)channel);
	if (!all_delivered)
		return;
	for (int channel = 0; channel < SIM_CHANNELS; channel++) {
		const struct sim_chain *chain = &life->chains[channel];

		check_none_dropped(life, (enum sim_channel)channel);
		if (chain->delivered < chain->progress.submitted && !life->starved && !life->bounded)
			simulation_broken(life->bills->simulation, "none-lost",
			                  "%s ended in good time, and %llu of its events for %s never came", life->name,
			                  (unsigned long long)(chain->progress.submitted - chain->delivered),
			                  sim_channel_client((enum sim_channel)channel));
	}
	life->bills->counts.lives_billed_to_the_end++;
	check_least_of_all(life, true);
}
