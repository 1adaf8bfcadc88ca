#include "sandbox/billing_judge.h"

#include <math.h>

#include "base/clock.h"
#include "base/memory.h"

enum {
	ROUNDING_S = 1,
	START_LATEST_S = 5,            /* from an agent's start to its first sample, on a slow machine */
	STAMP_TOLERANCE_NS = 50000000, /* between our clock readings and an agent's */
};

static double seconds_of(int64_t ns)
{
	return (double)ns / NS_PER_S;
}

static double cpus_of(uint32_t milli)
{
	return (double)milli / 1000;
}

bool billing_judge_init(struct billing_judge *judge, size_t vm_count, double collect_s, double accumulate_s,
                        struct error *err)
{
	struct billing_judge_vm *vms = memory_allocate((vm_count + 1) * sizeof *vms);

	if (vms == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the judge of bills");
	*judge = (struct billing_judge){
		.collect_s = collect_s, .accumulate_s = accumulate_s, .vm_count = vm_count, .vms = vms
	};
	return true;
}

void billing_judge_destroy(struct billing_judge *judge)
{
	memory_release(judge->vms);
	*judge = (struct billing_judge){ .vm_count = 0 };
}

/* ---- what is true ---- */

void billing_judge_add_vm(struct billing_judge *judge, size_t vm, uint32_t cpu_milli)
{
	judge->vms[vm] = (struct billing_judge_vm){ .billable = true,
		                                    .cpu_milli = cpu_milli,
		                                    .first_cpu = cpus_of(cpu_milli),
		                                    .most_cpu = cpus_of(cpu_milli) };
}

void billing_judge_start(struct billing_judge *judge, uint64_t now_ns, int64_t wall_ns)
{
	judge->start_ns = now_ns;
	judge->now_ns = now_ns;
	judge->start_wall_ns = wall_ns;
}

static bool runs(const struct billing_judge *judge)
{
	return judge->start_wall_ns != 0 && judge->end_wall_ns == 0;
}

/* How much of the time up to now_ns lies within the excuse. */
static double excused_seconds(const struct billing_judge *judge, uint64_t now_ns)
{
	uint64_t from_ns = judge->now_ns > judge->excused_from_ns ? judge->now_ns : judge->excused_from_ns;
	uint64_t until_ns = now_ns < judge->excused_until_ns ? now_ns : judge->excused_until_ns;

	return until_ns > from_ns ? seconds_of((int64_t)(until_ns - from_ns)) : 0;
}

static void advance(struct billing_judge *judge, uint64_t now_ns)
{
	double seconds = seconds_of((int64_t)(now_ns - judge->now_ns));
	double excused_s = excused_seconds(judge, now_ns);

	if (!runs(judge))
		return;
	for (size_t i = 0; i < judge->vm_count; i++) {
		struct billing_judge_vm *vm = &judge->vms[i];

		vm->used_cpu_s += seconds * cpus_of(vm->cpu_milli);
		vm->excused_cpu_s += excused_s * cpus_of(vm->cpu_milli);
		vm->excused |= excused_s > 0;
	}
	judge->excused_s += excused_s;
	judge->now_ns = now_ns;
}

void billing_judge_end(struct billing_judge *judge, uint64_t now_ns, int64_t wall_ns)
{
	if (!runs(judge))
		return;
	advance(judge, now_ns);
	judge->end_wall_ns = wall_ns;
}

void billing_judge_set_cpu(struct billing_judge *judge, size_t vm, uint32_t cpu_milli, uint64_t now_ns)
{
	struct billing_judge_vm *changed = &judge->vms[vm];

	advance(judge, now_ns);
	if (runs(judge))
		changed->changes_cpu += fabs(cpus_of(cpu_milli) - cpus_of(changed->cpu_milli));
	changed->cpu_milli = cpu_milli;
	changed->most_cpu = fmax(changed->most_cpu, cpus_of(cpu_milli));
}

/* The time since the sample before is lost, too. */
void billing_judge_excuse(struct billing_judge *judge, uint64_t now_ns, uint64_t until_ns)
{
	advance(judge, now_ns);
	if (judge->excused_until_ns <= now_ns) {
		judge->excused_from_ns = now_ns;
		judge->excused_s += judge->collect_s;
		for (size_t i = 0; i < judge->vm_count; i++) {
			judge->vms[i].excused = true;
			judge->vms[i].excused_cpu_s += judge->collect_s * judge->vms[i].most_cpu;
		}
	}
	judge->excused_until_ns = until_ns;
}

/* ---- what was billed ---- */

/* Windows between those instants; none if they are the same. */
static unsigned windows_between(const struct billing_judge *judge, int64_t from_wall_ns, int64_t to_wall_ns)
{
	if (to_wall_ns - from_wall_ns <= STAMP_TOLERANCE_NS)
		return 0;
	return (unsigned)fmax(1, round(seconds_of(to_wall_ns - from_wall_ns) / judge->accumulate_s));
}

bool billing_judge_take(struct billing_judge *judge, size_t vm, const struct billing_judge_event *event,
                        struct error *err)
{
	struct billing_judge_vm *billed = &judge->vms[vm];
	struct billing_judge_sum *sum = &billed->sums[event->metric];

	if (!billed->billable)
		return error_set(err, ERROR_INVARIANT, "it is billed, though no agent looks after its node");
	if (sum->last_stop_wall_ns == 0 && event->metric == BILLING_CPU_SECONDS)
		billed->first_start_wall_ns = event->start_wall_ns;
	if (sum->last_stop_wall_ns != 0 && event->start_wall_ns < sum->last_stop_wall_ns)
		return error_set(err, ERROR_INVARIANT, "a window begins %.3f s before the end of the one before",
		                 seconds_of(sum->last_stop_wall_ns - event->start_wall_ns));
	if (sum->last_stop_wall_ns != 0 && event->start_wall_ns != sum->last_stop_wall_ns && !billed->excused)
		sum->lost += windows_between(judge, sum->last_stop_wall_ns, event->start_wall_ns);
	sum->billed += event->seconds;
	sum->last_stop_wall_ns = event->stop_wall_ns;
	/* The active time comes last. */
	if (event->metric == BILLING_ACTIVE_SECONDS)
		billed->excused = judge->now_ns < judge->excused_until_ns;
	return true;
}

unsigned billing_judge_lost(const struct billing_judge *judge, size_t vm)
{
	const struct billing_judge_vm *billed = &judge->vms[vm];
	unsigned lost = 0;

	if (!billed->billable)
		return 0;
	for (int i = 0; i < BILLING_METRICS; i++) {
		const struct billing_judge_sum *sum = &billed->sums[i];
		int64_t last_ns = sum->last_stop_wall_ns != 0
		                          ? sum->last_stop_wall_ns
		                          : judge->start_wall_ns + (int64_t)START_LATEST_S * NS_PER_S;

		lost += sum->lost;
		if (!billed->excused)
			lost += windows_between(judge, last_ns, judge->end_wall_ns);
	}
	return lost;
}

/* Before an agent's first sample nothing is billed. A run may end before it. */
static double seconds_before_first(const struct billing_judge *judge, const struct billing_judge_vm *vm)
{
	if (vm->first_start_wall_ns == 0)
		return START_LATEST_S;
	return fmin(START_LATEST_S, fmax(0, seconds_of(vm->first_start_wall_ns - judge->start_wall_ns)));
}

/* The last sample is taken when an agent hears that it shall end. */
static double seconds_after_end(const struct billing_judge *judge, const struct billing_judge_vm *vm)
{
	return fmax(0, seconds_of(vm->sums[BILLING_CPU_SECONDS].last_stop_wall_ns - judge->end_wall_ns));
}

bool billing_judge_check(const struct billing_judge *judge, size_t vm, struct error *err)
{
	const struct billing_judge_vm *billed = &judge->vms[vm];
	double cpu_s = (double)billed->sums[BILLING_CPU_SECONDS].billed;
	double active_s = (double)billed->sums[BILLING_ACTIVE_SECONDS].billed;
	double ran_s = seconds_of((int64_t)(judge->now_ns - judge->start_ns));
	double late_s = seconds_before_first(judge, billed) + judge->collect_s;
	double over_s = seconds_after_end(judge, billed) + ROUNDING_S;
	double less = late_s * billed->first_cpu + billed->changes_cpu * judge->collect_s + billed->excused_cpu_s +
	              ROUNDING_S;
	double more = seconds_after_end(judge, billed) * billed->most_cpu + ROUNDING_S;

	if (!billed->billable)
		return true;
	if (cpu_s < billed->used_cpu_s - less || cpu_s > billed->used_cpu_s + more)
		return error_set(
			err, ERROR_INVARIANT,
			"%.0f CPU-seconds were billed, %.2f used; at most %.2f less and %.2f more would be right",
			cpu_s, billed->used_cpu_s, less, more);
	if (active_s < ran_s - late_s - judge->excused_s - ROUNDING_S || active_s > ran_s + over_s)
		return error_set(err, ERROR_INVARIANT, "%.0f active seconds were billed, of %.2f", active_s, ran_s);
	return true;
}
