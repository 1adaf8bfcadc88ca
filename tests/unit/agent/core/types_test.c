#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/resources.h"
#include "agent/core/revision.h"
#include "agent/core/scaling_config.h"
#include "agent/core/vm_info.h"
#include "codec/json_reader.h"
#include "codec/json_writer.h"
#include "codec/quantity.h"
#include "tests/support/vector_file.h"

static const struct resources COMPUTE_UNIT = { .cpu_milli = 500, .mem_bytes = UINT64_C(2) << 30 };

static uint64_t read_whole(const char *text, char **ret_end)
{
	uint64_t value = strtoull(text, ret_end, 10);

	assert_true(*ret_end > text);
	return value;
}

static struct resources read_resources(const char *text)
{
	char *end;
	uint64_t cpu_milli = read_whole(text, &end);
	uint64_t mem_bytes = read_whole(end, &end);

	assert_int_equal(*end, '\0');
	return (struct resources){ .cpu_milli = (uint32_t)cpu_milli, .mem_bytes = mem_bytes };
}

static struct optional_resources read_bound(const char *text)
{
	if (strcmp(text, "-") == 0)
		return (struct optional_resources){ .present = false };
	return resources_some(read_resources(text));
}

static void print_resources(struct resources amount, char *text, size_t size)
{
	snprintf(text, size, "%u %llu", amount.cpu_milli, (unsigned long long)amount.mem_bytes);
}

static void print_divided(char *const *arguments, char *text, size_t size)
{
	struct resources_quotient quotient;
	struct error err;

	assert_true(resources_divide(read_resources(arguments[0]), COMPUTE_UNIT, &quotient, &err));
	if (quotient.whole)
		snprintf(text, size, "%u", quotient.units);
	else
		snprintf(text, size, "-");
}

static void print_clamped(char *const *arguments, bool lenient, char *text, size_t size)
{
	struct resources clamped = { .cpu_milli = 77 };
	struct error err;

	if (resources_clamp(read_resources(arguments[0]), read_resources(arguments[1]), read_bound(arguments[2]),
	                    read_bound(arguments[3]), lenient, &clamped, &err)) {
		print_resources(clamped, text, size);
		return;
	}
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_int_equal(clamped.cpu_milli, 77);
	snprintf(text, size, "FAIL");
}

static void print_buffer(struct buffer *buffer, char *text, size_t size)
{
	assert_false(buffer->failed);
	snprintf(text, size, "%.*s", SLICE_ARGS(buffer_slice(buffer)));
	buffer_destroy(buffer);
}

static void print_text_form(const char *what, const char *argument, char *text, size_t size)
{
	struct buffer buffer;

	buffer_init(&buffer, 256);
	if (strcmp(what, "text") == 0)
		resources_print(read_resources(argument), &buffer);
	else if (strcmp(what, "cpu text") == 0)
		milli_cpu_print((uint32_t)strtoul(argument, NULL, 10), &buffer);
	else
		bytes_print(strtoull(argument, NULL, 10), &buffer);
	print_buffer(&buffer, text, size);
}

static void print_to_json(const char *what, const char *argument, char *text, size_t size)
{
	struct json_writer writer;
	struct buffer buffer;

	buffer_init(&buffer, 256);
	json_writer_init(&writer, &buffer);
	if (strcmp(what, "cpu to JSON") == 0)
		json_writer_milli_cpu(&writer, (uint32_t)strtoul(argument, NULL, 10));
	else
		json_writer_quantity(&writer, strtoull(argument, NULL, 10));
	print_buffer(&buffer, text, size);
}

static void print_from_json(const char *what, const char *argument, char *text, size_t size)
{
	struct json_reader reader;
	struct arena arena;
	struct error err;

	arena_init(&arena, 1 << 16);
	assert_true(json_reader_open(&reader, slice_of(argument), &arena, &err));
	if (strcmp(what, "cpu from JSON") == 0) {
		uint32_t milli;

		assert_true(json_reader_milli_cpu(&reader, &milli, &err));
		snprintf(text, size, "%u", milli);
	} else {
		uint64_t bytes;

		assert_true(json_reader_quantity(&reader, &bytes, &err));
		snprintf(text, size, "%llu", (unsigned long long)bytes);
	}
	arena_destroy(&arena);
}

static void print_using_after(const char *argument, char *text, size_t size)
{
	struct vm_info vm = { .mem = { .slot_bytes = 256 << 20 } };
	struct error err;

	assert_true(vm_info_set_using(&vm, read_resources(argument), &err));
	print_resources(vm_info_using(&vm), text, size);
}

static struct revision read_revision(const char *text)
{
	char *end;
	uint64_t value = read_whole(text, &end);

	return (struct revision){ .value = (int64_t)value, .flags = read_whole(end, &end) };
}

static void print_min_revision(char *const *arguments, char *text, size_t size)
{
	struct revision least = revision_min(read_revision(arguments[0]), read_revision(arguments[1]));

	snprintf(text, size, "%lld %llu", (long long)least.value, (unsigned long long)least.flags);
}

static void print_nonzero(const char *argument, char *text, size_t size)
{
	struct error err = { .text = "ok" };

	if (resources_validate_nonzero(read_resources(argument), &err))
		assert_string_equal(err.text, "ok");
	snprintf(text, size, "%s", err.text);
}

static void print_of_two(const char *what, char *const *arguments, char *text, size_t size)
{
	struct resources a = read_resources(arguments[0]);

	if (strcmp(what, "multiply") == 0)
		print_resources(resources_multiply(a, (uint16_t)strtoul(arguments[1], NULL, 10)), text, size);
	else if (strcmp(what, "subtract") == 0)
		print_resources(resources_subtract(a, read_resources(arguments[1])), text, size);
	else if (strcmp(what, "add") == 0)
		print_resources(resources_add(a, read_resources(arguments[1])), text, size);
	else if (strcmp(what, "greater") == 0)
		snprintf(text, size, "%s", resources_has_greater(a, read_resources(arguments[1])) ? "true" : "false");
	else if (strcmp(what, "less") == 0)
		snprintf(text, size, "%s", resources_has_less(a, read_resources(arguments[1])) ? "true" : "false");
	else
		fail_msg("unknown operation %s", what);
}

static void check_row(const struct vector_row *row)
{
	const char *what = row->fields[1];
	char *const *arguments = row->fields + 2;
	const char *expected = row->fields[row->count - 1];
	char text[sizeof((struct error *)NULL)->text];

	if (strcmp(what, "divide") == 0)
		print_divided(arguments, text, sizeof text);
	else if (strcmp(what, "clamp") == 0)
		print_clamped(arguments, false, text, sizeof text);
	else if (strcmp(what, "lenient clamp") == 0)
		print_clamped(arguments, true, text, sizeof text);
	else if (strstr(what, "to JSON") != NULL)
		print_to_json(what, arguments[0], text, sizeof text);
	else if (strstr(what, "from JSON") != NULL)
		print_from_json(what, arguments[0], text, sizeof text);
	else if (strstr(what, "text") != NULL)
		print_text_form(what, arguments[0], text, sizeof text);
	else if (strcmp(what, "using after") == 0)
		print_using_after(arguments[0], text, sizeof text);
	else if (strcmp(what, "min revision") == 0)
		print_min_revision(arguments, text, sizeof text);
	else if (strcmp(what, "non-zero") == 0)
		print_nonzero(arguments[0], text, sizeof text);
	else
		print_of_two(what, arguments, text, sizeof text);
	if (strcmp(text, expected) != 0)
		fail_msg("line %zu (%s): %s is not %s", row->line, row->fields[0], text, expected);
}

static void amounts_behave_as_the_vectors_say(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/core/types.txt", check_row), 49);
}

static void a_unit_of_nothing_divides_nothing(void **state)
{
	(void)state;
	struct resources_quotient quotient;
	struct error err;

	assert_false(resources_divide(COMPUTE_UNIT, (struct resources){ 0, 1 }, &quotient, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_false(resources_divide(COMPUTE_UNIT, (struct resources){ 1, 0 }, &quotient, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
}

static void slots_of_nothing_hold_nothing(void **state)
{
	(void)state;
	struct vm_info vm = { .cpu = { .use_milli = 3 } };
	struct error err;

	assert_false(vm_info_set_using(&vm, COMPUTE_UNIT, &err));
	assert_int_equal(err.code, ERROR_INVARIANT);
	assert_int_equal(vm.cpu.use_milli, 3);
}

static void names_that_are_too_long_are_refused(void **state)
{
	(void)state;
	struct vm_info vm;
	char name[VM_NAME_BYTES_MAX + 1];
	struct error err;

	memset(name, 'x', sizeof name);
	assert_true(vm_info_set_name(&vm, SLICE("ns"), slice_from(name, VM_NAME_BYTES_MAX), &err));
	assert_string_equal(vm.namespace, "ns");
	assert_int_equal(strlen(vm.name), VM_NAME_BYTES_MAX);
	assert_false(vm_info_set_name(&vm, SLICE("ns"), slice_from(name, sizeof name), &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "VM name of 254 bytes is longer than 253");
	assert_false(vm_info_set_name(&vm, slice_from(name, VM_NAMESPACE_BYTES_MAX + 1), SLICE("x"), &err));
	assert_string_equal(err.text, "VM namespace of 64 bytes is longer than 63");
}

static void ty13_overrides_replace_only_what_they_have(void **state)
{
	(void)state;
	struct scaling_config defaults = {
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = 0.8,
		.has_lfc_window_size_minutes = true,
		.lfc_window_size_minutes = 3,
	};
	struct scaling_config overrides = {
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = 0.5,
		.has_enable_lfc_metrics = true,
		.enable_lfc_metrics = true,
	};
	struct scaling_config merged = scaling_config_merge(&defaults, &overrides);

	assert_true(merged.load_average_fraction_target == 0.5);
	assert_int_equal(merged.lfc_window_size_minutes, 3);
	assert_true(merged.has_enable_lfc_metrics && merged.enable_lfc_metrics);
	assert_false(merged.has_lfc_use_largest_window);
}

static void ty14_all_problems_are_found_in_order(void **state)
{
	(void)state;
	struct scaling_config config = {
		.has_load_average_fraction_target = true,
		.load_average_fraction_target = 2.5,
		.has_memory_usage_fraction_target = true,
		.memory_usage_fraction_target = -1,
	};
	struct error err;

	assert_false(scaling_config_validate(&config, true, &err));
	assert_string_equal(err.text, ".loadAverageFractionTarget must be set to value < 2 : "
	                              ".memoryUsageFractionTarget must be set to value >= 0: "
	                              ".memoryTotalFractionTarget is a required field: "
	                              ".enableLFCMetrics is a required field: "
	                              ".lfcToMemoryRatio is a required field: "
	                              ".lfcWindowSizeMinutes is a required field: "
	                              ".lfcMinWaitBeforeDownscaleMinutes is a required field: "
	                              ".cpuStableZoneRatio is a required field: "
	                              ".cpuMixedZoneRatio is a required field");
	assert_false(scaling_config_validate(&config, false, &err));
	assert_string_equal(err.text, ".loadAverageFractionTarget must be set to value < 2 : "
	                              ".memoryUsageFractionTarget must be set to value >= 0");
	assert_int_equal(scaling_config_find_problems(&config, true).count, SCALING_CONFIG_PROBLEMS_MAX);
}

static void fractions_have_ranges(void **state)
{
	(void)state;
	struct scaling_config config = {
		.has_load_average_fraction_target = true,
		.has_memory_usage_fraction_target = true,
		.has_memory_total_fraction_target = true,
	};
	struct error err;

	assert_true(scaling_config_validate(&config, false, &err));
	config.load_average_fraction_target = 1.99;
	config.memory_usage_fraction_target = 0.99;
	config.memory_total_fraction_target = 0.99;
	assert_true(scaling_config_validate(&config, false, &err));
	config.load_average_fraction_target = 2;
	config.memory_usage_fraction_target = 1;
	config.memory_total_fraction_target = 1;
	assert_false(scaling_config_validate(&config, false, &err));
	assert_string_equal(err.text, ".loadAverageFractionTarget must be set to value < 2 : "
	                              ".memoryUsageFractionTarget must be set to value < 1 : "
	                              ".memoryTotalFractionTarget must be set to value < 1 ");
}

static void products_saturate_where_they_are_asked_to(void **state)
{
	const struct resources unit = { .cpu_milli = 1U << 20, .mem_bytes = UINT64_C(1) << 40 };
	struct resources product = resources_multiply_saturating(unit, 4095);

	(void)state;
	assert_int_equal(product.cpu_milli, 4095U << 20);
	assert_true(product.mem_bytes == UINT64_C(4095) << 40);
	product = resources_multiply_saturating(unit, 4096);
	assert_int_equal(product.cpu_milli, UINT32_MAX);
	assert_true(product.mem_bytes == UINT64_C(4096) << 40);
	product = resources_multiply_saturating((struct resources){ 1, UINT64_MAX / 2 }, 3);
	assert_int_equal(product.cpu_milli, 3);
	assert_true(product.mem_bytes == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_saturate_where_they_are_asked_to),
		cmocka_unit_test(amounts_behave_as_the_vectors_say),
		cmocka_unit_test(a_unit_of_nothing_divides_nothing),
		cmocka_unit_test(slots_of_nothing_hold_nothing),
		cmocka_unit_test(names_that_are_too_long_are_refused),
		cmocka_unit_test(ty13_overrides_replace_only_what_they_have),
		cmocka_unit_test(ty14_all_problems_are_found_in_order),
		cmocka_unit_test(fractions_have_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
