#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/metrics_input.h"
#include "base/memory.h"
#include "tests/support/vector_file.h"

static struct metrics_text_parser parser;

static int make_parser(void **state)
{
	(void)state;
	metrics_text_parser_init(&parser, 7);
	return 0;
}

static int drop_parser(void **state)
{
	(void)state;
	metrics_text_parser_destroy(&parser);
	return 0;
}

static void describe_system(struct slice page, enum metrics_input_check check, char *text, size_t size)
{
	struct system_metrics metrics;
	struct error err;

	if (!metrics_input_read_system(&parser, page, check, &metrics, &err))
		snprintf(text, size, "error %s", err.text);
	else
		snprintf(text, size, "load1 %.17g, load5 %.17g, usage %.17g, cached %.17g", metrics.load_average_1_min,
		         metrics.load_average_5_min, metrics.memory_usage_bytes, metrics.memory_cached_bytes);
	/* The C library's spelling. */
	for (char *nan = strstr(text, " nan,"); nan != NULL; nan = strstr(text, " nan,"))
		memcpy(nan, " NaN", 4);
}

static void describe_lfc(struct slice page, enum metrics_input_check check, char *text, size_t size)
{
	struct lfc_metrics metrics;
	struct error err;
	int length;

	if (!metrics_input_read_lfc(&parser, page, check, &metrics, &err)) {
		snprintf(text, size, "error %s", err.text);
		return;
	}
	length = snprintf(text, size, "hits %g, misses %g, writes %g, buckets [", metrics.cache_hits_total,
	                  metrics.cache_misses_total, metrics.cache_writes_total);
	for (uint32_t i = 0; i < metrics.window_count; i++)
		length += snprintf(text + length, size - (size_t)length, "%s%g", i > 0 ? ", " : "",
		                   metrics.window_pages[i]);
	snprintf(text + length, size - (size_t)length, "]");
}

static void check_page(const struct vector_block *block)
{
	char text[2048];

	if (strncmp(block->name, "system ", 7) == 0)
		describe_system(block->input, METRICS_INPUT_AS_IS, text, sizeof text);
	else
		describe_lfc(block->input, METRICS_INPUT_AS_IS, text, sizeof text);
	if (strcmp(text, block->expected) != 0)
		fail_msg("%s:\n%s\nis not\n%s", block->name, text, block->expected);
}

static void pages_give_what_the_vectors_say(void **state)
{
	(void)state;
	assert_int_equal(vector_blocks_walk("vectors/core/metrics.txt", check_page), 33);
}

#define SYSTEM_PAGE(load1, total, available)                                                     \
	"# TYPE host_load1 gauge\nhost_load1 " load1 "\n# TYPE host_load5 gauge\nhost_load5 1\n" \
	"# TYPE host_memory_total_bytes gauge\nhost_memory_total_bytes " total "\n"              \
	"# TYPE host_memory_available_bytes gauge\nhost_memory_available_bytes " available "\n"  \
	"# TYPE host_memory_cached_bytes gauge\nhost_memory_cached_bytes 3\n"

static void check_refused_system(struct slice page, const char *expected)
{
	char text[2048];

	describe_system(page, METRICS_INPUT_REJECT_UNUSABLE, text, sizeof text);
	assert_string_equal(text, expected);
	describe_system(page, METRICS_INPUT_AS_IS, text, sizeof text);
	assert_memory_equal(text, "load1", 5);
}

static void the_agent_refuses_values_that_no_machine_has(void **state)
{
	(void)state;
	char text[2048];

	check_refused_system(SLICE(SYSTEM_PAGE("NaN", "8", "5")),
	                     "error failed to extract metrics: host_load1 has the unusable value nan");
	check_refused_system(SLICE(SYSTEM_PAGE("-0.5", "+Inf", "5")),
	                     "error failed to extract metrics: host_load1 has the unusable value -0.5: "
	                     "host_memory_total_bytes has the unusable value inf");
	check_refused_system(SLICE(SYSTEM_PAGE("1", "5", "2e9")), "error failed to extract metrics: "
	                                                          "host_memory_available_bytes is more than "
	                                                          "host_memory_total_bytes");
	describe_system(SLICE(SYSTEM_PAGE("0.5", "5e9", "2e9")), METRICS_INPUT_REJECT_UNUSABLE, text, sizeof text);
	assert_string_equal(text, "load1 0.5, load5 1, usage 3104857600, cached 3");
}

#define LFC_PAGE(hits, second)                                                              \
	"# TYPE lfc_hits gauge\nlfc_hits " hits "\n# TYPE lfc_misses gauge\nlfc_misses 2\n" \
	"# TYPE lfc_writes gauge\nlfc_writes 1\n"                                           \
	"# TYPE lfc_approximate_working_set_size_windows gauge\n"                           \
	"lfc_approximate_working_set_size_windows{duration_seconds=\"60\"} 4\n"             \
	"lfc_approximate_working_set_size_windows{duration_seconds=\"120\"} " second "\n"

static void the_agent_refuses_windows_that_no_cache_has(void **state)
{
	(void)state;
	char text[2048];

	describe_lfc(SLICE(LFC_PAGE("-7", "-Inf")), METRICS_INPUT_REJECT_UNUSABLE, text, sizeof text);
	assert_string_equal(text, "error failed to extract metrics: "
	                          "lfc_approximate_working_set_size_windows{duration_seconds=\"120\"} has the unusable "
	                          "value -inf: lfc_hits has the unusable value -7");
	describe_lfc(SLICE(LFC_PAGE("7", "5")), METRICS_INPUT_REJECT_UNUSABLE, text, sizeof text);
	assert_string_equal(text, "hits 7, misses 2, writes 1, buckets [4, 5]");
}

static void more_windows_than_the_limit_are_an_error(void **state)
{
	(void)state;
	struct buffer page;
	struct lfc_metrics metrics;
	struct error err;

	buffer_init(&page, 1 << 20);
	buffer_append_text(&page, "# TYPE lfc_hits gauge\nlfc_hits 7\n# TYPE lfc_misses gauge\nlfc_misses 2\n"
	                          "# TYPE lfc_writes gauge\nlfc_writes 1\n"
	                          "# TYPE lfc_approximate_working_set_size_windows gauge\n");
	for (int i = LFC_WINDOWS_MAX; i >= 1; i--)
		buffer_append_format(&page, "lfc_approximate_working_set_size_windows{duration_seconds=\"%d\"} %d\n",
		                     i * 60, i);
	assert_true(metrics_input_read_lfc(&parser, buffer_slice(&page), METRICS_INPUT_AS_IS, &metrics, &err));
	assert_int_equal(metrics.window_count, LFC_WINDOWS_MAX);
	assert_number_equal(metrics.window_pages[LFC_WINDOWS_MAX - 1], LFC_WINDOWS_MAX, "the last window");

	buffer_append_format(&page, "lfc_approximate_working_set_size_windows{duration_seconds=\"%d\"} 1\n",
	                     (LFC_WINDOWS_MAX + 1) * 60);
	assert_false(metrics_input_read_lfc(&parser, buffer_slice(&page), METRICS_INPUT_AS_IS, &metrics, &err));
	assert_string_equal(err.text, "failed to extract metrics: more than 512 samples of "
	                              "lfc_approximate_working_set_size_windows");
	buffer_destroy(&page);
}

static void a_long_label_is_cut_in_the_error(void **state)
{
	(void)state;
	struct buffer page;
	struct lfc_metrics metrics;
	struct error err;

	buffer_init(&page, 1 << 20);
	buffer_append_text(&page, "# TYPE lfc_approximate_working_set_size_windows gauge\n"
	                          "lfc_approximate_working_set_size_windows{duration_seconds=\"");
	for (int i = 0; i < 100000; i++)
		buffer_append_text(&page, "\\\\");
	buffer_append_text(&page, "\"} 1\n");
	assert_false(metrics_input_read_lfc(&parser, buffer_slice(&page), METRICS_INPUT_AS_IS, &metrics, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_non_null(strstr(err.text, "strconv.Atoi: parsing \"\\\\\\\\"));
	buffer_destroy(&page);
}

static void being_short_of_memory_is_an_error(void **state)
{
	(void)state;
	struct metrics_text_parser fresh;
	struct system_metrics metrics;
	struct error err;

	for (unsigned long step = 1; step <= 2; step++) {
		metrics_text_parser_init(&fresh, 1);
		memory_fail_at(step);
		assert_false(metrics_input_read_system(&fresh, SLICE(SYSTEM_PAGE("1", "8", "5")), METRICS_INPUT_AS_IS,
		                                       &metrics, &err));
		memory_fail_at(0);
		assert_int_equal(err.code, ERROR_NO_MEMORY);
		/* And nothing is left half made. */
		assert_true(metrics_input_read_system(&fresh, SLICE(SYSTEM_PAGE("1", "8", "5")), METRICS_INPUT_AS_IS,
		                                      &metrics, &err));
		metrics_text_parser_destroy(&fresh);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_give_what_the_vectors_say),
		cmocka_unit_test(the_agent_refuses_values_that_no_machine_has),
		cmocka_unit_test(the_agent_refuses_windows_that_no_cache_has),
		cmocka_unit_test(more_windows_than_the_limit_are_an_error),
		cmocka_unit_test(a_long_label_is_cut_in_the_error),
		cmocka_unit_test(being_short_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_parser, drop_parser);
}
