/*
 * The registry and the parser while each allocation fails once; and what the process tells of itself while each of its
 * system calls does.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "metrics/process_metrics.h"
#include "metrics/registry.h"
#include "metrics/text_parser.h"
#include "tests/support/failing_files.h"

enum { PAGE_BYTES = 1024 * 1024, SERIES = 40 };

static bool print(const struct metrics_registry *registry, struct error *err)
{
	struct buffer page;
	bool ok;

	buffer_init(&page, PAGE_BYTES);
	ok = metrics_registry_print(registry, &page, err);
	buffer_destroy(&page);
	return ok;
}

/* Series that there is no memory for are missing; what is there is right. */
static void use_series(struct metrics_family *counter, struct metrics_family *histogram)
{
	char text[16];

	for (unsigned i = 0; i < SERIES; i++) {
		struct slice values[2] = { SLICE("a"), { text, (size_t)snprintf(text, sizeof text, "%u", i) } };

		metrics_add(counter, values, 2);
		metrics_observe(histogram, values, 0.3);
		assert_true(metrics_value(counter, values) == 0 || metrics_value(counter, values) == 2);
	}
	assert_in_range(metrics_series_count(counter), SERIES - 1, SERIES);
	assert_in_range(metrics_series_count(histogram), SERIES - 1, SERIES);
}

static bool use_registry(void *context, struct error *err)
{
	static const double BOUNDS[] = { 0.1, 1 };
	static const struct metrics_family_options COUNTER = {
		.kind = METRICS_COUNTER, .name = "c_total", .help = "h", .labels = { "x", "y" }
	};
	static const struct metrics_family_options HISTOGRAM = { .kind = METRICS_HISTOGRAM,
		                                                 .name = "h",
		                                                 .help = "h",
		                                                 .labels = { "x", "y" },
		                                                 .bounds = BOUNDS,
		                                                 .bound_count = 2 };
	struct metrics_registry *registry = metrics_registry_create(err);
	struct metrics_family *counter, *histogram;
	struct process_metrics process;
	bool ok = false;

	(void)context;
	if (registry == NULL)
		return false;
	counter = metrics_registry_add(registry, &COUNTER, err);
	histogram = counter != NULL ? metrics_registry_add(registry, &HISTOGRAM, err) : NULL;
	if (histogram != NULL && process_metrics_init(&process, registry, err)) {
		use_series(counter, histogram);
		process_metrics_update(&process);
		ok = print(registry, err);
	}
	metrics_registry_destroy(registry);
	return ok;
}

static bool parse_page(void *context, struct error *err)
{
	struct metrics_text_parser parser;
	struct metrics_text_sample sample;
	struct buffer page, value;
	unsigned samples = 0;

	(void)context;
	buffer_init(&page, PAGE_BYTES);
	for (unsigned i = 0; i < SERIES; i++)
		buffer_append_format(&page, "# HELP f%u text\n# TYPE f%u counter\nf%u{a=\"x\\ny\"} 1\n", i, i, i);
	if (!buffer_check(&page, "the page", err)) {
		buffer_destroy(&page);
		return false;
	}
	buffer_init(&value, PAGE_BYTES);
	metrics_text_parser_init(&parser, 1);
	metrics_text_begin(&parser, buffer_slice(&page));
	err->code = ERROR_NONE;
	while (metrics_text_next(&parser, &sample, err)) {
		metrics_text_append_value(&sample.labels[0], &value);
		samples++;
	}
	if (err->code == ERROR_NONE)
		(void)buffer_check(&value, "values", err);
	if (err->code == ERROR_NONE)
		assert_int_equal(samples, SERIES);
	metrics_text_parser_destroy(&parser);
	buffer_destroy(&value);
	buffer_destroy(&page);
	return err->code == ERROR_NONE;
}

static void each_failed_allocation_is_told_or_leaves_out_one_series(void **state)
{
	static const struct torture_case CASES[] = {
		{ "registry", use_registry, 100 },
		{ "text parser", parse_page, 5 },
	};

	(void)state;
	torture_each_case(CASES, sizeof CASES / sizeof CASES[0], NULL);
}

/* ---- system calls ---- */

static double number_behind(const struct buffer *page, const char *name)
{
	double number = -1;
	const char *at = strstr(page->data, name);

	return at != NULL && sscanf(at + strlen(name), " %lf", &number) == 1 ? number : -1;
}

/* What can't be read stays as it was; the rest is told. */
static bool tell_of_process(void *context)
{
	struct error err;
	struct metrics_registry *registry = metrics_registry_create(&err);
	struct process_metrics process;
	struct buffer page;
	bool all;

	(void)context;
	assert_non_null(registry);
	assert_true(process_metrics_init(&process, registry, &err));
	process_metrics_update(&process);
	buffer_init(&page, PAGE_BYTES);
	assert_true(metrics_registry_print(registry, &page, &err));
	buffer_append_char(&page, '\0');
	all = number_behind(&page, "\nprocess_resident_memory_bytes") > 100000 &&
	      number_behind(&page, "\nprocess_start_time_seconds") > 1e9 &&
	      number_behind(&page, "\nprocess_open_fds") >= 3;
	assert_true(number_behind(&page, "\nprocess_max_fds") > 3);
	buffer_destroy(&page);
	metrics_registry_destroy(registry);
	return all;
}

static void each_failed_call_leaves_out_what_it_was_for(void **state)
{
	static const struct torture_fault FAULTS[] = {
		{ TORTURE_OPEN, EMFILE, false },
		{ TORTURE_READ, EIO, false },
		{ TORTURE_READ, TORTURE_SHORT, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++)
		assert_true(torture_calls(&FAULTS[i], tell_of_process, NULL) >= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failed_allocation_is_told_or_leaves_out_one_series),
		cmocka_unit_test(each_failed_call_leaves_out_what_it_was_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
