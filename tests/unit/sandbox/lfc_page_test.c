#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/metrics_input.h"
#include "metrics/text_parser.h"
#include "sandbox/lfc_page.h"

static void numbers_have_exponents_from_a_million_on(void **unused)
{
	static const struct {
		uint64_t value;
		const char *text;
	} CASES[] = {
		{ 0, "0" },
		{ 49121, "49121" },
		{ 999999, "999999" },
		{ 1000000, "1e+06" },
		{ 15349876, "1.5349876e+07" },
		{ 3142582272, "3.142582272e+09" },
		{ 9007199254740993, "9.007199254740992e+15" },
		{ 12345678901234567, "1.2345678901234568e+16" },
	};

	(void)unused;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct buffer out;

		buffer_init(&out, 64);
		lfc_page_append_number(&out, CASES[i].value);
		if (!slice_equal_text(buffer_slice(&out), CASES[i].text))
			fail_msg("%.*s", SLICE_ARGS(buffer_slice(&out)));
		buffer_destroy(&out);
	}
}

static struct lfc_page example(void)
{
	struct lfc_page page = { .cache_limit_bytes = 3142582272, .hits = 15349876, .misses = 90210, .writes = 412345 };

	for (unsigned i = 0; i < LFC_PAGE_WINDOWS; i++)
		page.window_pages[i] = 20000 + 1713 * i;
	return page;
}

static struct buffer print(const struct lfc_page *page)
{
	struct buffer out;

	buffer_init(&out, LFC_PAGE_BYTES_MAX);
	lfc_page_append(page, &out);
	buffer_append_char(&out, '\0');
	assert_false(out.failed);
	return out;
}

static void windows_stand_in_the_order_of_their_texts(void **unused)
{
	struct lfc_page page = example();
	struct buffer printed = print(&page);
	const char *at = printed.data;
	static const char *const LABELS[] = { "1020", "1080", "1140", "120", "1200", "300",
		                              "3000", "360",  "3600", "60",  "600",  "960" };

	(void)unused;
	assert_true(slice_starts_with(
		slice_of(printed.data),
		SLICE("# HELP lfc_approximate_working_set_size_windows Approximate working set size in "
	              "pages of 8192 bytes\n"
	              "# TYPE lfc_approximate_working_set_size_windows gauge\n"
	              "lfc_approximate_working_set_size_windows{duration_seconds=\"1020\"} 47408\n")));
	for (size_t i = 0; i < sizeof LABELS / sizeof LABELS[0]; i++) {
		char label[16];

		snprintf(label, sizeof label, "\"%s\"", LABELS[i]);
		at = strstr(at, label);
		assert_non_null(at);
	}
	assert_non_null(strstr(at,
	                       "# HELP lfc_cache_size_limit LFC cache size limit in bytes\n"
	                       "# TYPE lfc_cache_size_limit gauge\n"
	                       "lfc_cache_size_limit 3.142582272e+09\n"
	                       "# HELP lfc_hits lfc_hits\n# TYPE lfc_hits gauge\nlfc_hits 1.5349876e+07\n"
	                       "# HELP lfc_misses lfc_misses\n# TYPE lfc_misses gauge\nlfc_misses 90210\n"
	                       "# HELP lfc_used LFC chunks used (chunk = 1MB)\n# TYPE lfc_used gauge\nlfc_used 945\n"
	                       "# HELP lfc_writes lfc_writes\n# TYPE lfc_writes gauge\nlfc_writes 412345\n"));
	assert_in_range(printed.length, 4000, 6000);
	buffer_destroy(&printed);
}

static void the_agent_reads_back_what_was_demanded(void **unused)
{
	struct lfc_page page = example();
	struct metrics_text_parser parser;
	struct lfc_metrics metrics;
	struct buffer printed;
	struct error err;

	(void)unused;
	page.window_pages[59] = 12345678;
	printed = print(&page);
	metrics_text_parser_init(&parser, 7);
	if (!metrics_input_read_lfc(&parser, slice_of(printed.data), METRICS_INPUT_REJECT_UNUSABLE, &metrics, &err))
		fail_msg("%s", err.text);
	metrics_text_parser_destroy(&parser);
	buffer_destroy(&printed);
	assert_int_equal(metrics.window_count, 60);
	for (unsigned i = 0; i < LFC_PAGE_WINDOWS; i++)
		assert_int_equal((uint64_t)metrics.window_pages[i], page.window_pages[i]);
	assert_int_equal((uint64_t)metrics.cache_hits_total, page.hits);
	assert_int_equal((uint64_t)metrics.cache_misses_total, page.misses);
	assert_int_equal((uint64_t)metrics.cache_writes_total, page.writes);
}

static void no_more_chunks_are_used_than_there_are(void **unused)
{
	struct lfc_page page = example();
	struct buffer printed;

	(void)unused;
	page.cache_limit_bytes = 141 << 20;
	printed = print(&page);
	assert_non_null(strstr(printed.data, "\nlfc_used 141\n"));
	buffer_destroy(&printed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_exponents_from_a_million_on),
		cmocka_unit_test(windows_stand_in_the_order_of_their_texts),
		cmocka_unit_test(the_agent_reads_back_what_was_demanded),
		cmocka_unit_test(no_more_chunks_are_used_than_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
