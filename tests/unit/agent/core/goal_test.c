#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/float_math.h"
#include "agent/core/goal.h"
#include "agent/core/working_set.h"
#include "tests/support/vector_file.h"

#include <math.h>

static const struct resources COMPUTE_UNIT = { .cpu_milli = 500, .mem_bytes = UINT64_C(2) << 30 };

/* Configuration K of the specification's vectors. */
static struct scaling_config config_k(void)
{
	return (struct scaling_config){
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = 0.8,
		.has_memory_usage_fraction_target = true,
		.memory_usage_fraction_target = 0.6,
		.has_memory_total_fraction_target = true,
		.memory_total_fraction_target = 0.85,
		.has_enable_lfc_metrics = true,
		.has_lfc_use_largest_window = true,
		.has_lfc_to_memory_ratio = true,
		.lfc_to_memory_ratio = 0.7,
		.has_lfc_min_wait_before_downscale_minutes = true,
		.lfc_min_wait_before_downscale_minutes = 4,
		.has_lfc_window_size_minutes = true,
		.lfc_window_size_minutes = 3,
		.has_cpu_stable_zone_ratio = true,
		.has_cpu_mixed_zone_ratio = true,
	};
}

static void change_config(struct scaling_config *config, char *changes)
{
	char *rest;

	for (char *change = strtok_r(changes, " ", &rest); change != NULL; change = strtok_r(NULL, " ", &rest)) {
		const char *value = strchr(change, '=') + 1;

		if (strcmp(change, "largest=true") == 0)
			config->lfc_use_largest_window = true;
		else if (strncmp(change, "stable=", 7) == 0)
			config->cpu_stable_zone_ratio = vector_number(value);
		else if (strncmp(change, "mixed=", 6) == 0)
			config->cpu_mixed_zone_ratio = vector_number(value);
		else if (strncmp(change, "total=", 6) == 0)
			config->memory_total_fraction_target = vector_number(value);
		else if (strncmp(change, "load=", 5) == 0)
			config->load_average_fraction_target = vector_number(value);
		else if (strcmp(change, "-") != 0)
			fail_msg("unknown change %s", change);
	}
}

static void note_warning(void *context, const char *text)
{
	const char **warning = context;

	assert_null(*warning);
	*warning = text;
}

static void check_part(const char *name, bool present, double actual, const char *expected)
{
	assert_int_equal(present, strcmp(expected, "-") != 0);
	if (present)
		assert_number_equal(actual, vector_number(expected), name);
}

static void check_goal(const struct vector_row *row)
{
	char *const *fields = row->fields;
	struct scaling_config config = config_k();
	struct lfc_metrics lfc = { 0 };
	double system[4];
	const char *warning = NULL;
	struct goal goal;
	struct error err;

	assert_int_equal(row->count, 11);
	change_config(&config, fields[1]);
	assert_int_equal(vector_numbers(fields[2], system, 4), 4);
	if (strcmp(fields[3], "-") != 0)
		lfc.window_count = (uint32_t)vector_numbers(fields[3], lfc.window_pages, LFC_WINDOWS_MAX);

	struct system_metrics metrics = { system[0], system[1], system[2], system[3] };
	struct goal_input input = {
		.config = &config,
		.compute_unit = COMPUTE_UNIT,
		.system = &metrics,
		.lfc = lfc.window_count > 0 ? &lfc : NULL,
		.warn = note_warning,
		.warn_context = &warning,
	};

	assert_true(goal_calculate(&input, &goal, &err));
	assert_true(goal.has_all_metrics);
	check_part(fields[0], goal.parts.has_cpu, goal.parts.cpu, fields[4]);
	check_part(fields[0], goal.parts.has_mem, goal.parts.mem, fields[5]);
	check_part(fields[0], goal.parts.has_lfc, goal.parts.lfc, fields[6]);
	check_part(fields[0], goal.has_lfc_report, goal.lfc_report.estimate_wss_pages, fields[7]);
	check_part(fields[0], goal.has_lfc_report, goal.lfc_report.predicted_next_wss_pages, fields[8]);
	if (goal.has_lfc_report)
		assert_number_equal(goal.lfc_report.required_cu, goal.parts.lfc, fields[0]);
	assert_number_equal(goal.compute_units, vector_number(fields[9]), fields[0]);
	if (strcmp(fields[10], "w2") == 0)
		assert_string_equal(warning, "not enough working set size values to make scaling determination");
	else
		assert_null(warning);
}

static void goals_are_those_of_the_vectors(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/core/goal.txt", check_goal), 30);
}

static void check_working_set(const struct vector_row *row)
{
	double series[32];
	double result;
	struct error err;

	assert_int_equal(row->count, 6);

	size_t count = vector_numbers(row->fields[1], series, 32);
	double factor = vector_number(row->fields[2]);

	if (row->fields[0][0] == 'W')
		assert_true(working_set_estimate(series, count, factor, atoi(row->fields[3]), atoi(row->fields[4]),
		                                 &result, &err));
	else
		assert_true(working_set_project_next_highest(series, count, factor, &result, &err));
	assert_number_equal(result, vector_number(row->fields[5]), row->fields[0]);
}

static void working_sets_are_those_of_the_vectors(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/core/working_set.txt", check_working_set), 16);
}

static void an_estimate_needs_a_sane_window_and_a_series(void **state)
{
	(void)state;
	const double series[] = { 1, 2, 3 };
	double result = -1;
	struct error err;

	assert_false(working_set_estimate(series, 3, 3, 5, 1, &result, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_false(working_set_estimate(series, 3, 3, 1, 3, &result, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_false(working_set_estimate(series, 0, 3, 2, 3, &result, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_number_equal(result, -1, "untouched");
	assert_true(working_set_estimate(series, 3, 3, INT64_MAX, INT64_MAX, &result, &err));
	assert_number_equal(result, 3, "the last, when the offset is beyond");
}

static void a_projection_needs_two_values(void **state)
{
	(void)state;
	const double series[] = { 1 };
	double result = -1;
	struct error err;

	assert_false(working_set_project_next_highest(series, 1, 0.5, &result, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_number_equal(result, -1, "untouched");
}

static struct goal_input input_with(const struct scaling_config *config, const struct system_metrics *system,
                                    const struct lfc_metrics *lfc)
{
	return (struct goal_input){ .config = config, .compute_unit = COMPUTE_UNIT, .system = system, .lfc = lfc };
}

static void missing_metrics_are_warned_about_and_leave_their_parts_absent(void **state)
{
	(void)state;
	struct scaling_config config = config_k();
	struct lfc_metrics lfc = { .window_count = 8, .window_pages = { 5e5, 5e5, 5e5, 5e5, 5e5, 5e5, 5e5, 5e5 } };
	const char *warning = NULL;
	struct goal_input input = input_with(&config, NULL, &lfc);
	struct goal goal;
	struct error err;

	input.warn = note_warning;
	input.warn_context = &warning;
	assert_true(goal_calculate(&input, &goal, &err));
	assert_string_equal(warning, "Making scaling decision without all required metrics available");
	assert_false(goal.has_all_metrics);
	assert_false(goal.parts.has_cpu);
	assert_false(goal.parts.has_mem);
	assert_true(goal.parts.has_lfc);
	assert_int_equal(goal.compute_units, 3); /* 2.72 */
}

static void file_cache_metrics_are_required_only_when_enabled(void **state)
{
	(void)state;
	struct scaling_config config = config_k();
	struct system_metrics system = { 0 };
	struct goal_input input = input_with(&config, &system, NULL);
	struct goal goal;
	struct error err;

	assert_true(goal_calculate(&input, &goal, &err));
	assert_true(goal.has_all_metrics);
	config.enable_lfc_metrics = true;
	assert_true(goal_calculate(&input, &goal, &err));
	assert_false(goal.has_all_metrics);
}

static void a_needed_field_that_is_absent_breaks_the_invariant(void **state)
{
	(void)state;
	struct scaling_config config = config_k();
	struct system_metrics system = { 0 };
	struct lfc_metrics lfc = { .window_count = 8 };
	struct goal_input input = input_with(&config, &system, &lfc);
	struct goal goal;
	struct error err;

	config.has_lfc_use_largest_window = false;
	assert_false(goal_calculate(&input, &goal, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	/* But not when nothing asks for it. */
	input.lfc = NULL;
	assert_true(goal_calculate(&input, &goal, &err));
}

static void windows_that_make_no_sense_break_the_invariant(void **state)
{
	(void)state;
	struct scaling_config config = config_k();
	struct system_metrics system = { 0 };
	struct lfc_metrics lfc = { .window_count = 8 };
	struct goal_input input = input_with(&config, &system, &lfc);
	struct goal goal;
	struct error err;

	/* A negative offset. */
	config.lfc_use_largest_window = true;
	config.lfc_min_wait_before_downscale_minutes = 0;
	assert_false(goal_calculate(&input, &goal, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	/* Fewer than two windows to project from. */
	config.lfc_min_wait_before_downscale_minutes = 1;
	lfc.window_pages[0] = 2;
	lfc.window_pages[7] = 1;
	assert_false(goal_calculate(&input, &goal, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	/* An offset beyond the windows that a negative window size lets through. */
	config.lfc_min_wait_before_downscale_minutes = 100;
	config.lfc_window_size_minutes = -95;
	assert_false(goal_calculate(&input, &goal, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	/* Numbers that overflow are no more than too many windows. */
	config.lfc_min_wait_before_downscale_minutes = INT64_MAX;
	config.lfc_window_size_minutes = INT64_MAX;
	assert_true(goal_calculate(&input, &goal, &err));
	assert_number_equal(goal.parts.lfc, 0, "too few windows");
}

static void conversions_are_defined_for_every_double(void **state)
{
	(void)state;
	assert_int_equal(float_to_u32(2.9), 2);
	assert_int_equal(float_to_u32(-1.5), UINT32_MAX);
	assert_int_equal(float_to_u32(4294967296.0 + 7), 7);
	assert_int_equal(float_to_u32(9223372036854775808.0), 0);
	assert_int_equal(float_to_u32(-9223372036854775808.0), 0);
	assert_int_equal(float_to_u32(NAN), 0);
	assert_int_equal(float_to_u32(INFINITY), 0);
	assert_true(float_to_u64(2.9) == 2);
	assert_true(float_to_u64(-0.5) == 0);
	assert_true(float_to_u64(-2.5) == UINT64_MAX - 1);
	assert_true(float_to_u64(9223372036854775808.0) == UINT64_C(1) << 63);
	assert_true(float_to_u64(18446744073709549568.0) == UINT64_C(18446744073709549568));
	assert_true(float_to_u64(18446744073709551616.0) == UINT64_C(1) << 63);
	assert_true(float_to_u64(-1e30) == UINT64_C(1) << 63);
	assert_true(float_to_u64(NAN) == UINT64_C(1) << 63);
	assert_true(float_to_u64(-INFINITY) == UINT64_C(1) << 63);
}

static void maxima_and_minima_hand_nan_on(void **state)
{
	(void)state;
	assert_true(isnan(float_max(NAN, 1)));
	assert_true(isnan(float_max(INFINITY, NAN)));
	assert_true(isnan(float_min(1, NAN)));
	assert_number_equal(float_max(-1, 2), 2, "max");
	assert_number_equal(float_min(-1, 2), -1, "min");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goals_are_those_of_the_vectors),
		cmocka_unit_test(working_sets_are_those_of_the_vectors),
		cmocka_unit_test(an_estimate_needs_a_sane_window_and_a_series),
		cmocka_unit_test(a_projection_needs_two_values),
		cmocka_unit_test(missing_metrics_are_warned_about_and_leave_their_parts_absent),
		cmocka_unit_test(file_cache_metrics_are_required_only_when_enabled),
		cmocka_unit_test(a_needed_field_that_is_absent_breaks_the_invariant),
		cmocka_unit_test(windows_that_make_no_sense_break_the_invariant),
		cmocka_unit_test(conversions_are_defined_for_every_double),
		cmocka_unit_test(maxima_and_minima_hand_nan_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
