/*
 * The core as the agent of late 2023 has it, driven by a script of statements (spec generations 6).
 *
 * VM V: slots of 1 GiB, at least 250m and 1 slot, 1000m and 4 in use, at most 4000m and 16. Compute unit U: 250m and one
 * slot. The waits are those of the sample file. Amounts are MILLI/SLOTS.
 */
#ifndef BALLAST_TESTS_LATE_2023_H
#define BALLAST_TESTS_LATE_2023_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core.h"
#include "agent/core/single_precision.h"

static const int64_t LATE_SECOND_NS = 1000000000;
static const struct revision_with_time LATE_NO_REVISION = { .updated_at_ns = RFC3339_ZERO };

/* What every knob is set to under A. */
static struct core_config late_config(void)
{
	return (struct core_config){
		.default_scaling_config = {
			.has_load_average_fraction_target = true,
			.load_average_fraction_target = 0.9,
			.has_memory_usage_fraction_target = true,
			.memory_usage_fraction_target = 0.75,
			.has_memory_total_fraction_target = true,
			.memory_total_fraction_target = 0.9,
			.has_enable_lfc_metrics = true,
			.has_lfc_use_largest_window = true,
			.has_lfc_to_memory_ratio = true,
			.lfc_to_memory_ratio = 0.75,
			.has_lfc_min_wait_before_downscale_minutes = true,
			.lfc_min_wait_before_downscale_minutes = 5,
			.has_lfc_window_size_minutes = true,
			.lfc_window_size_minutes = 5,
			.has_cpu_stable_zone_ratio = true,
			.has_cpu_mixed_zone_ratio = true,
		},
		.neonvm_retry_wait_ns = 5 * LATE_SECOND_NS,
		.plugin_request_tick_ns = 5 * LATE_SECOND_NS,
		.plugin_retry_wait_ns = 3 * LATE_SECOND_NS,
		.plugin_denied_retry_wait_ns = 2 * LATE_SECOND_NS,
		.monitor_denied_downscale_cooldown_ns = 5 * LATE_SECOND_NS,
		.monitor_requested_upscale_valid_period_ns = 10 * LATE_SECOND_NS,
		.monitor_retry_wait_ns = 3 * LATE_SECOND_NS,
		.compute_unit_from_plugin = true,
		.whole_unit_parts = true,
		.no_metrics_keep = true,
		.downscale_at_once = true,
		.plugin_gate = true,
		.plugin_whole_slots = true,
		.capital_texts = true,
		.monitor_downscale_follow_up_wait_ns = 1 * LATE_SECOND_NS,
	};
}

/* The newest agent with the same waits and the same unit. */
static inline struct core_config late_config_of_newest(void)
{
	struct core_config config = late_config();

	config.compute_unit = (struct resources){ .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 };
	config.compute_unit_from_plugin = false;
	config.whole_unit_parts = false;
	config.no_metrics_keep = false;
	config.downscale_at_once = false;
	config.plugin_gate = false;
	config.plugin_whole_slots = false;
	config.capital_texts = false;
	config.monitor_downscale_follow_up_wait_ns = 0;
	return config;
}

static struct vm_info late_vm(void)
{
	return (struct vm_info){
		.name = "v",
		.namespace = "ns",
		.cpu = { .min_milli = 250, .max_milli = 4000, .use_milli = 1000 },
		.mem = { .min_slots = 1, .max_slots = 16, .use_slots = 4, .slot_bytes = UINT64_C(1) << 30 },
		.scaling_enabled = true,
	};
}

struct late_world {
	struct core_config config;
	struct vm_info vm;
	struct resources unit; /* known from the start, if not zero */
	bool begun;
	struct core core;
	char text[4096]; /* what the statements printed, a line each */
};

static void late_print(struct late_world *world, const char *text)
{
	strncat(world->text, text, sizeof world->text - strlen(world->text) - 1);
}

static struct resources late_read_amount(const struct late_world *world, const char *text)
{
	unsigned milli = 0;
	unsigned slots = 0;

	if (sscanf(text, "%u/%u", &milli, &slots) != 2)
		fail_msg("\"%s\" is no amount", text);
	return (struct resources){ .cpu_milli = milli, .mem_bytes = slots * world->vm.mem.slot_bytes };
}

static void late_print_amount(struct late_world *world, const char *what, struct resources amount)
{
	char text[96];

	assert_int_equal(amount.mem_bytes % world->vm.mem.slot_bytes, 0);
	snprintf(text, sizeof text, " %s %u/%llu", what, amount.cpu_milli,
	         (unsigned long long)(amount.mem_bytes / world->vm.mem.slot_bytes));
	late_print(world, text);
}

static void late_print_wait(struct late_world *world, int64_t wait_ns)
{
	char text[64];

	snprintf(text, sizeof text, " wait %.9g", (double)wait_ns / 1e9);
	late_print(world, text);
}

static struct core *late_core(struct late_world *world)
{
	if (!world->begun) {
		world->begun = true;
		core_init(&world->core, &world->config, &world->vm, &(struct core_callbacks){ 0 });
		if (world->unit.cpu_milli != 0)
			world->core.compute_unit = world->unit;
	}
	return &world->core;
}

/* ---- before the core begins ---- */

static bool late_set_up(struct late_world *world, const char *name, const char *value)
{
	struct resources amount;
	unsigned cpu = 0;
	unsigned slots = 0;

	if (strcmp(name, "generation") == 0) {
		if (strcmp(value, "B") == 0)
			world->config = late_config_of_newest();
	} else if (strcmp(name, "slot") == 0) {
		world->vm.mem.slot_bytes = strtoull(value, NULL, 10) << 20;
	} else if (strcmp(name, "unit") == 0) {
		amount = late_read_amount(world, value);
		world->unit = amount;
	} else if (strcmp(name, "LAFT") == 0) {
		world->config.default_scaling_config.load_average_fraction_target = strtod(value, NULL);
	} else if (strcmp(name, "MUFT") == 0) {
		world->config.default_scaling_config.memory_usage_fraction_target = strtod(value, NULL);
	} else if (strcmp(name, "use") == 0 || strcmp(name, "max") == 0 || strcmp(name, "min") == 0) {
		assert_int_equal(sscanf(value, "%u/%u", &cpu, &slots), 2);
		*(name[0] == 'u'             ? &world->vm.cpu.use_milli
		  : strcmp(name, "max") == 0 ? &world->vm.cpu.max_milli
		                             : &world->vm.cpu.min_milli) = cpu;
		*(name[0] == 'u'             ? &world->vm.mem.use_slots
		  : strcmp(name, "max") == 0 ? &world->vm.mem.max_slots
		                             : &world->vm.mem.min_slots) = (uint16_t)slots;
	} else {
		return false;
	}
	return true;
}

/* ---- events ---- */

static void late_metrics(struct late_world *world, const char *value)
{
	double load1 = 0;
	double gib = 0;
	double load5 = 0;
	int count = sscanf(value, "%lf %lf %lf", &load1, &gib, &load5);
	struct system_metrics metrics = {
		.load_average_1_min = (double)(float)load1,
		.load_average_5_min = (double)(float)(count == 3 ? load5 : load1),
		.memory_usage_bytes = (double)(float)(gib * (UINT64_C(1) << 30)),
	};

	assert_true(count >= 2);
	core_update_system_metrics(late_core(world), &metrics);
}

/* "LOAD1 TOTAL AVAILABLE", from the page's own text. */
static void late_page(struct late_world *world, const char *value)
{
	char *rest;
	float load1 = strtof(value, &rest);
	float total = strtof(rest, &rest);
	float available = strtof(rest, &rest);
	struct system_metrics metrics = system_metrics_from_single(load1, load1, total, available);

	core_update_system_metrics(late_core(world), &metrics);
}

static void late_reply(struct late_world *world, int64_t now_ns, const char *value)
{
	struct resources unit = { 0 };
	const char *has_unit = strstr(value, "unit ");
	struct error err;

	if (has_unit != NULL)
		unit = late_read_amount(world, has_unit + 5);
	if (!core_plugin_request_answered(late_core(world), now_ns, LATE_NO_REVISION, late_read_amount(world, value),
	                                  unit, &err)) {
		late_print(world, " \"");
		late_print(world, err.text);
		late_print(world, "\"");
	}
}

static void late_must(bool ok, const char *name, const struct error *err)
{
	if (!ok)
		fail_msg("%s: %s", name, err->text);
}

/* A request that was made before the script begins. */
static void late_permitted(struct late_world *world, int64_t now_ns, const char *value)
{
	struct core *core = late_core(world);
	struct resources amount = late_read_amount(world, value);
	struct resources unit = core->compute_unit;
	struct error err;

	core_plugin_scheduler_changed(core, true);
	core_plugin_starting_request(core, now_ns, amount);
	late_must(core_plugin_request_answered(core, now_ns, LATE_NO_REVISION, amount, unit, &err), "permitted", &err);
}

static void late_event(struct late_world *world, int64_t now_ns, const char *name, const char *value)
{
	struct core *core = late_core(world);
	struct error err = { .text = "?" };
	bool ok = true;

	if (strcmp(name, "adopted") == 0)
		core_plugin_scheduler_changed(core, true);
	else if (strcmp(name, "gone") == 0)
		core_plugin_scheduler_changed(core, false);
	else if (strcmp(name, "permitted") == 0)
		late_permitted(world, now_ns, value);
	else if (strcmp(name, "reply") == 0)
		late_reply(world, now_ns, value);
	else if (strcmp(name, "request-failed") == 0)
		core_plugin_request_failed(core, now_ns);
	else if (strcmp(name, "metrics") == 0)
		late_metrics(world, value);
	else if (strcmp(name, "page") == 0)
		late_page(world, value);
	else if (strcmp(name, "patched") == 0)
		ok = core_neonvm_request_successful(core, now_ns, &err);
	else if (strcmp(name, "patch-failed") == 0)
		core_neonvm_request_failed(core, now_ns);
	else if (strcmp(name, "connected") == 0)
		core_monitor_active(core, true);
	else if (strcmp(name, "upscale-requested") == 0)
		ok = core_monitor_upscale_requested(core, now_ns, false, true, &err);
	else if (strcmp(name, "upscaled") == 0)
		ok = core_monitor_upscale_request_successful(core, now_ns, &err);
	else if (strcmp(name, "upscale-failed") == 0)
		core_monitor_upscale_request_failed(core, now_ns);
	else if (strcmp(name, "asked-downscale") == 0)
		core_monitor_starting_downscale_request(core, now_ns, late_read_amount(world, value));
	else if (strcmp(name, "allowed") == 0)
		ok = core_monitor_downscale_request_allowed(core, now_ns, LATE_NO_REVISION, &err);
	else if (strcmp(name, "denied") == 0)
		ok = core_monitor_downscale_request_denied(core, now_ns, LATE_NO_REVISION, &err);
	else if (strcmp(name, "downscale-failed") == 0)
		core_monitor_downscale_request_failed(core, now_ns);
	else if (strcmp(name, "-") != 0)
		fail_msg("there is no event \"%s\"", name);
	late_must(ok, name, &err);
}

/* ---- what comes of them ---- */

/* Prints the actions and starts them all. */
static void late_act(struct late_world *world, int64_t now_ns)
{
	struct core *core = late_core(world);
	struct core_actions actions;
	struct error err;

	late_must(core_next_actions(core, now_ns, &actions, &err), "next actions", &err);
	if (actions.has_plugin_request) {
		late_print_amount(world, "plugin", actions.plugin_request.target);
		if (!actions.plugin_request.has_metrics)
			late_print(world, " metrics null");
		core_plugin_starting_request(core, now_ns, actions.plugin_request.target);
	}
	if (actions.has_neonvm_request) {
		late_print_amount(world, "neonvm", actions.neonvm_request.target);
		late_must(core_neonvm_starting_request(core, now_ns, actions.neonvm_request.target, &err), "neonvm",
		          &err);
	}
	if (actions.has_monitor_upscale) {
		late_print_amount(world, "upscale", actions.monitor_upscale.target);
		core_monitor_starting_upscale_request(core, now_ns, actions.monitor_upscale.target);
	}
	if (actions.has_monitor_downscale) {
		late_print_amount(world, "downscale", actions.monitor_downscale.target);
		core_monitor_starting_downscale_request(core, now_ns, actions.monitor_downscale.target);
	}
	if (actions.has_wait)
		late_print_wait(world, actions.wait_ns);
}

static void late_print_desired(struct late_world *world, int64_t now_ns)
{
	struct core_desired desired;
	struct error err;
	int64_t wait_ns;

	late_must(core_desired_resources(late_core(world), now_ns, &desired, &err), "desired", &err);
	late_print_amount(world, "desired", desired.resources);
	if (core_desired_wait(&world->core, &desired, false, &wait_ns))
		late_print_wait(world, wait_ns);
}

/*
 * One statement: a setting ("LAFT 0.5"), "SECONDS desired", or "SECONDS EVENT [VALUE]". An event prints its time and,
 * unless quiet, the actions that follow, which are then under way.
 */
static void late_do(struct late_world *world, char *statement, bool quiet)
{
	char *name = statement + strspn(statement, " ");
	char *value;
	char *end;
	double seconds = strtod(name, &end);
	int64_t now_ns = (int64_t)(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));

	if (*name == '\0')
		return;
	if (end == name || *end != ' ') {
		value = strchr(name, ' ');
		assert_non_null(value);
		*value++ = '\0';
		if (world->begun || !late_set_up(world, name, value))
			fail_msg("\"%s\" is no setting, or comes too late", name);
		return;
	}
	name = end + 1;
	value = strchr(name, ' ');
	if (value != NULL)
		*value++ = '\0';
	if (strcmp(name, "desired") == 0) {
		late_print_desired(world, now_ns);
		return;
	}
	if (!quiet) {
		char text[64];

		snprintf(text, sizeof text, "%s%.9g %s:", world->text[0] != '\0' ? "\n" : "", seconds, name);
		late_print(world, text);
	}
	late_event(world, now_ns, name, value != NULL ? value : "");
	if (!quiet)
		late_act(world, now_ns);
}

static inline void late_begin(struct late_world *world)
{
	memset(world, 0, sizeof *world);
	world->config = late_config();
	world->vm = late_vm();
}

/* Statements are separated by ';' or newlines. */
static inline void late_run(struct late_world *world, char *script, bool quiet)
{
	for (char *statement = strsep(&script, ";\n"); statement != NULL; statement = strsep(&script, ";\n"))
		late_do(world, statement, quiet);
}

#endif
