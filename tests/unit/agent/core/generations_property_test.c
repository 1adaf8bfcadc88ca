/*
 * Random histories under generation A (spec generations 3, "Completeness"): what must hold in all of them, and that each
 * knob is one: with it switched back alone, the core decides otherwise somewhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/unit/agent/core/late_2023.h"

enum { HISTORIES = 400, STEPS = 120 };

enum knob {
	NO_KNOB,
	UNIT_KNOWN,        /* G2 */
	MEMORY_ROUNDED_UP, /* G4 */
	KEEPS_USE,         /* G7 */
	NO_FOLLOW_UP,      /* G11 */
	UNIT_BY_UNIT,      /* G12 */
	NO_GATE,           /* G14 */
	NOTHING_FORGOTTEN, /* G15 */
	KNOBS,
};

static struct core make_core(enum knob switched_back)
{
	struct core_config config = late_config();
	struct vm_info vm = late_vm();
	struct core core;

	config.clamp_instead_of_fail = true;
	vm.cpu.use_milli = 1300; /* off the ratio of the unit */
	if (switched_back == MEMORY_ROUNDED_UP)
		config.whole_unit_parts = false;
	if (switched_back == KEEPS_USE)
		config.no_metrics_keep = false;
	if (switched_back == NO_FOLLOW_UP)
		config.monitor_downscale_follow_up_wait_ns = 0;
	if (switched_back == UNIT_BY_UNIT)
		config.downscale_at_once = false;
	if (switched_back == NO_GATE)
		config.plugin_gate = false;
	core_init(&core, &config, &vm, &(struct core_callbacks){ 0 });
	if (switched_back == UNIT_KNOWN)
		core.compute_unit = (struct resources){ .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 };
	return core;
}

/* ---- events ---- */

enum event {
	TIME_PASSES,
	METRICS,
	ADOPTED,
	GONE,
	REPLY,
	REQUEST_FAILED,
	CONNECTED,
	DISCONNECTED,
	UPSCALE_REQUESTED,
	MONITOR_ALLOWED,
	MONITOR_DENIED,
	MONITOR_FAILED,
	PATCHED,
	PATCH_FAILED,
	EVENTS,
};

struct happening {
	enum event event;
	int64_t now_ns;
	struct system_metrics metrics;
	struct resources permit;
	struct resources unit;
};

static bool is_possible(const struct core *core, enum event event)
{
	switch (event) {
	case REPLY:
	case REQUEST_FAILED:
		return core->plugin.ongoing_request;
	case CONNECTED:
		return !core->monitor.approved.present;
	case DISCONNECTED:
	case UPSCALE_REQUESTED:
		return core->monitor.approved.present;
	case MONITOR_ALLOWED:
	case MONITOR_FAILED:
		return core->monitor.approved.present && core->monitor.ongoing != CORE_MONITOR_IDLE;
	case MONITOR_DENIED:
		return core->monitor.approved.present && core->monitor.ongoing == CORE_MONITOR_DOWNSCALE;
	case PATCHED:
	case PATCH_FAILED:
		return core->neonvm.ongoing_requested.present;
	default:
		return true;
	}
}

/* All of what was asked, or some of it: whole slots, not less than what is in use. */
static struct resources draw_permit(const struct core *core, struct rng *rng)
{
	struct resources asked = core->plugin.last_request;
	struct resources use = core_using(core);

	if (rng_between(rng, 0, 3) > 0)
		return asked;
	return (struct resources){
		.cpu_milli = asked.cpu_milli > use.cpu_milli ? (asked.cpu_milli + use.cpu_milli) / 2 : use.cpu_milli,
		.mem_bytes = use.mem_bytes,
	};
}

static struct happening draw(const struct core *core, int64_t now_ns, struct rng *rng)
{
	struct happening happening = {
		.now_ns = now_ns,
		.metrics = { .load_average_1_min = (double)rng_between(rng, 0, 400) / 100,
		             .memory_usage_bytes = (double)rng_between(rng, 0, 900) / 100 * 1073741824 },
		.unit = { .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 },
	};

	do {
		happening.event = (enum event)rng_between(rng, 0, EVENTS);
	} while (!is_possible(core, happening.event) ||
	         (happening.event == METRICS && !core->has_metrics && rng_between(rng, 0, 4) > 0));
	happening.metrics.load_average_5_min = happening.metrics.load_average_1_min;
	if (happening.event == REPLY) {
		happening.permit = draw_permit(core, rng);
		happening.unit = resources_multiply(happening.unit, rng_between(rng, 0, 8) == 0 ? 2 : 1);
	}
	return happening;
}

/* False: the core refuses what happened, or broke. */
static bool happen(struct core *core, const struct happening *happening, enum knob switched_back)
{
	const int64_t now_ns = happening->now_ns;
	struct core_plugin_state plugin = core->plugin;
	struct error err;

	switch (happening->event) {
	case TIME_PASSES:
	case EVENTS:
		break;
	case METRICS:
		core_update_system_metrics(core, &happening->metrics);
		break;
	case ADOPTED:
	case GONE:
		core_plugin_scheduler_changed(core, happening->event == ADOPTED);
		if (switched_back == NOTHING_FORGOTTEN) {
			plugin.alive = core->plugin.alive;
			core->plugin = plugin;
		}
		break;
	case REPLY:
		return core_plugin_request_answered(core, now_ns, LATE_NO_REVISION, happening->permit, happening->unit,
		                                    &err);
	case REQUEST_FAILED:
		core_plugin_request_failed(core, now_ns);
		break;
	case CONNECTED:
		core_monitor_active(core, true);
		break;
	case DISCONNECTED:
		core_monitor_reset(core);
		break;
	case UPSCALE_REQUESTED:
		return core_monitor_upscale_requested(core, now_ns, false, true, &err);
	case MONITOR_ALLOWED:
		if (core->monitor.ongoing == CORE_MONITOR_UPSCALE)
			return core_monitor_upscale_request_successful(core, now_ns, &err);
		return core_monitor_downscale_request_allowed(core, now_ns, LATE_NO_REVISION, &err);
	case MONITOR_DENIED:
		return core_monitor_downscale_request_denied(core, now_ns, LATE_NO_REVISION, &err);
	case MONITOR_FAILED:
		if (core->monitor.ongoing == CORE_MONITOR_UPSCALE)
			core_monitor_upscale_request_failed(core, now_ns);
		else
			core_monitor_downscale_request_failed(core, now_ns);
		break;
	case PATCHED:
		return core_neonvm_request_successful(core, now_ns, &err);
	case PATCH_FAILED:
		core_neonvm_request_failed(core, now_ns);
		break;
	}
	return true;
}

/* ---- decisions ---- */

static bool same_actions(const struct core_actions *a, const struct core_actions *b)
{
	return a->has_wait == b->has_wait && (!a->has_wait || a->wait_ns == b->wait_ns) &&
	       a->has_plugin_request == b->has_plugin_request &&
	       (!a->has_plugin_request || resources_equal(a->plugin_request.target, b->plugin_request.target)) &&
	       a->has_neonvm_request == b->has_neonvm_request &&
	       (!a->has_neonvm_request || resources_equal(a->neonvm_request.target, b->neonvm_request.target)) &&
	       a->has_monitor_upscale == b->has_monitor_upscale &&
	       (!a->has_monitor_upscale || resources_equal(a->monitor_upscale.target, b->monitor_upscale.target)) &&
	       a->has_monitor_downscale == b->has_monitor_downscale &&
	       (!a->has_monitor_downscale || resources_equal(a->monitor_downscale.target, b->monitor_downscale.target));
}

static bool start_all(struct core *core, int64_t now_ns, const struct core_actions *actions)
{
	struct error err;

	if (actions->has_plugin_request)
		core_plugin_starting_request(core, now_ns, actions->plugin_request.target);
	if (actions->has_neonvm_request &&
	    !core_neonvm_starting_request(core, now_ns, actions->neonvm_request.target, &err))
		return false;
	if (actions->has_monitor_upscale)
		core_monitor_starting_upscale_request(core, now_ns, actions->monitor_upscale.target);
	if (actions->has_monitor_downscale)
		core_monitor_starting_downscale_request(core, now_ns, actions->monitor_downscale.target);
	return true;
}

/* What holds of every decision under A. */
static void check_actions(const struct core *core, int64_t now_ns, const struct core_actions *actions)
{
	const struct core_monitor_state *monitor = &core->monitor;
	struct resources use = core_using(core);

	if (!core->plugin.alive)
		assert_false(actions->has_plugin_request); /* G14 */
	if (actions->has_plugin_request)
		assert_int_equal(actions->plugin_request.target.mem_bytes % core->vm.mem.slot_bytes, 0);
	if (actions->has_monitor_downscale && monitor->denied_downscale.present)
		assert_true(now_ns >= monitor->denied_downscale.at_ns + LATE_SECOND_NS); /* G11 */
	if (actions->has_neonvm_request && core->plugin.permit.present)
		assert_false(resources_has_greater(actions->neonvm_request.target,
		                                   resources_max(core->plugin.permit.value, use)));
	if (core->compute_unit.cpu_milli == 0 && actions->has_monitor_downscale)
		assert_true(resources_equal(actions->monitor_downscale.target,
		                            resources_min(use, monitor->approved.value))); /* G2 */
	if (actions->has_wait)
		assert_true(actions->wait_ns > 0);
}

/* Runs A's core and the other side by side; true if they part. */
static bool history_parts(uint64_t seed, enum knob switched_back, size_t *decisions)
{
	struct core core = make_core(NO_KNOB);
	struct core other = make_core(switched_back);
	struct rng rng;
	int64_t now_ns = 0;

	rng_seed(&rng, seed);
	for (int step = 0; step < STEPS; step++) {
		struct happening happening;
		struct core_actions actions;
		struct core_actions of_other;
		struct error err = { .text = "" };

		now_ns += (int64_t)rng_between(&rng, 1, 20) * (LATE_SECOND_NS / 10);
		happening = draw(&core, now_ns, &rng);
		if (!is_possible(&other, happening.event))
			return true;
		if (happen(&core, &happening, NO_KNOB) != happen(&other, &happening, switched_back))
			return true;
		if (!core_next_actions(&core, now_ns, &actions, &err))
			fail_msg("seed %llu, step %d: %s", (unsigned long long)seed, step, err.text);
		check_actions(&core, now_ns, &actions);
		if (!core_next_actions(&other, now_ns, &of_other, &err) || !same_actions(&actions, &of_other))
			return true;
		(*decisions)++;
		if (!start_all(&core, now_ns, &actions) || !start_all(&other, now_ns, &of_other))
			return true;
	}
	return false;
}

static size_t histories_that_part(enum knob switched_back, size_t *decisions)
{
	size_t parting = 0;

	*decisions = 0;
	for (uint64_t seed = 1; seed <= HISTORIES; seed++)
		parting += history_parts(seed, switched_back, decisions);
	return parting;
}

static void the_same_settings_decide_the_same(void **state)
{
	size_t decisions;

	(void)state;
	assert_int_equal(histories_that_part(NO_KNOB, &decisions), 0);
	assert_int_equal(decisions, HISTORIES * STEPS);
}

static void each_knob_alone_changes_decisions(void **state)
{
	size_t decisions;

	(void)state;
	for (enum knob knob = UNIT_KNOWN; knob < KNOBS; knob++) {
		if (histories_that_part(knob, &decisions) == 0)
			fail_msg("knob %d changes nothing", knob);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_settings_decide_the_same),
		cmocka_unit_test(each_knob_alone_changes_decisions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
