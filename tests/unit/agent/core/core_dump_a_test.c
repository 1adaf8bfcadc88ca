/*
 * The core's part of generation A's state dump: the example of spec generations 4.8.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/core/core_dump_a.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "tests/support/vector_file.h"
#include "tests/unit/agent/core/late_2023.h"

enum { ROOM = 65536 };

/* 2023-11-29T12:00:00Z */
static const int64_t NOON_NS = INT64_C(1701259200) * 1000000000;
static const int64_t TENTH_NS = 100000000;

static struct resources amount(uint32_t milli, uint64_t slots)
{
	return (struct resources){ .cpu_milli = milli, .mem_bytes = slots << 30 };
}

static void make_core(struct core *ret_core)
{
	struct core_config config = late_config();
	struct vm_info vm = late_vm();

	assert_true(vm_info_set_name(&vm, SLICE("default"), SLICE("compute-calm-sea"), NULL));
	vm.has_scaling_config = true;
	vm.scaling_config = (struct scaling_config){
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = 0.7,
		.has_memory_usage_fraction_target = true,
		.memory_usage_fraction_target = 0.8,
	};
	core_init(ret_core, &config, &vm, &(struct core_callbacks){ 0 });
}

static void fill_plugin(struct core *core)
{
	core->compute_unit = amount(250, 1);
	core->plugin = (struct core_plugin_state){
		.alive = true,
		.has_last_request = true,
		.last_request_at_ns = NOON_NS,
		.last_request = amount(1500, 6),
		.last_failure_at = instant_some(NOON_NS - 5 * TENTH_NS),
		.permit = resources_some(amount(1250, 5)),
	};
}

static void fill_monitor(struct core *core)
{
	core->monitor = (struct core_monitor_state){
		.ongoing = CORE_MONITOR_UPSCALE,
		.ongoing_requested = amount(1250, 5),
		.requested_upscale = { .present = true,
		                       .memory = true,
		                       .at_ns = NOON_NS + 6 * TENTH_NS,
		                       .base = amount(1000, 4) },
		.denied_downscale = { .present = true,
		                      .at_ns = NOON_NS + 8 * TENTH_NS,
		                      .current = amount(1000, 4),
		                      .requested = amount(250, 1) },
		.approved = resources_some(amount(1000, 4)),
	};
}

static void check(const struct core *core, const char *file)
{
	struct state_dump_a_state dump;
	struct arena arena;
	struct buffer text;
	struct error err;
	size_t length;
	char *expected = vector_read_file(file, &length);

	arena_init(&arena, ROOM);
	buffer_init(&text, ROOM);
	if (!core_dump_a(core, &arena, &dump, &err) || !state_dump_a_state_to_json(&dump, &text, &err))
		fail_msg("%s", err.text);
	buffer_append_text(&text, "\n");
	buffer_append_char(&text, '\0');
	assert_string_equal(text.data, expected);
	memory_release(expected);
	buffer_destroy(&text);
	arena_destroy(&arena);
}

static void a_busy_core_looks_as_in_the_example(void **state)
{
	struct core core;

	(void)state;
	make_core(&core);
	fill_plugin(&core);
	fill_monitor(&core);
	core.neonvm.ongoing_requested = resources_some(amount(1250, 5));
	core_update_system_metrics(&core, &(struct system_metrics){ .load_average_1_min = 0.25,
	                                                            .load_average_5_min = 0.25,
	                                                            .memory_usage_bytes = 1610612736 });
	check(&core, "vectors/generations/core_dump_busy.json");
}

static void a_new_core_has_nothing_but_its_vm(void **state)
{
	struct core core;

	(void)state;
	make_core(&core);
	core.vm.has_scaling_config = false;
	check(&core, "vectors/generations/core_dump_new.json");
}

/* README, decision 3: what the annotation leaves out comes from the defaults, and that is shown. */
static void an_annotation_of_one_field_is_shown_with_the_default_of_the_other(void **state)
{
	struct core core;
	struct state_dump_a_state dump;
	struct arena arena;
	struct error err;

	(void)state;
	make_core(&core);
	core.vm.scaling_config.has_load_average_fraction_target = false;
	arena_init(&arena, ROOM);
	assert_true(core_dump_a(&core, &arena, &dump, &err));
	assert_true(dump.vm.has_scaling_config);
	assert_true(dump.vm.scaling_config.load_average_fraction_target == 0.9);
	assert_true(dump.vm.scaling_config.memory_usage_fraction_target == 0.8);
	arena_destroy(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_busy_core_looks_as_in_the_example),
		cmocka_unit_test(a_new_core_has_nothing_but_its_vm),
		cmocka_unit_test(an_annotation_of_one_field_is_shown_with_the_default_of_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
