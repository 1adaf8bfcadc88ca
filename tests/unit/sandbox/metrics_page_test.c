#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/metrics_input.h"
#include "base/clock.h"
#include "metrics/text_parser.h"
#include "sandbox/metrics_page.h"

static const uint64_t GIB = 1 << 30;
static const int64_t WALL_NS = INT64_C(1772600767412) * NS_PER_MS;
static const char HOST[] = "vm-compute-quiet-lake-a1b2c3-x7k2"; /* 33 characters */

static struct metrics_page example(void)
{
	return (struct metrics_page){
		.host_name = "vm-pine-x7k2p",
		.boot_wall_ns = WALL_NS - INT64_C(10032) * NS_PER_S,
		.wall_ns = WALL_NS,
		.cpu_milli = 1000,
		.memory_bytes = 4 * GIB,
		.load_average_1_min = 0.42,
		.load_average_5_min = 0.35,
		.load_average_15_min = 0.31,
		.memory_used_bytes = 1158172000,
		.memory_cached_bytes = 1633420000,
		.anonymous_bytes = 742391808,
		.busy_cpu_s = 913.372145,
	};
}

/* NUL-terminated. */
static struct buffer print(const struct metrics_page *page)
{
	struct buffer out;

	buffer_init(&out, METRICS_PAGE_BYTES_MAX);
	metrics_page_append(page, &out);
	buffer_append_char(&out, '\0');
	assert_false(out.failed);
	return out;
}

static struct slice text_of(const struct buffer *printed)
{
	return slice_from(printed->data, printed->length - 1);
}

static void assert_has_line(const struct buffer *printed, const char *line)
{
	const char *found = strstr(printed->data, line);

	if (found == NULL || (found != printed->data && found[-1] != '\n') || found[strlen(line)] != '\n')
		fail_msg("no line %s", line);
}

static struct system_metrics read_back(const struct metrics_page *page)
{
	struct buffer printed = print(page);
	struct metrics_text_parser parser;
	struct system_metrics metrics = { 0 };
	struct error err;

	metrics_text_parser_init(&parser, 7);
	if (!metrics_input_read_system(&parser, text_of(&printed), METRICS_INPUT_REJECT_UNUSABLE, &metrics, &err))
		fail_msg("%s", err.text);
	metrics_text_parser_destroy(&parser);
	buffer_destroy(&printed);
	return metrics;
}

/* What the agent counts for the kernel, on top of total − available (agent-core 6). */
static const double KERNEL_BYTES = 100 << 20;

static bool is_near(double a, double b)
{
	return fabs(a - b) < 0.5;
}

static void the_agent_reads_back_what_was_demanded(void **unused)
{
	struct metrics_page page = example();
	struct system_metrics metrics;

	(void)unused;
	for (unsigned padding_kb = 0; padding_kb <= 60; padding_kb += 20) {
		page.padding_kb = padding_kb;
		metrics = read_back(&page);
		assert_true(metrics.load_average_1_min == (double)0.42F);
		assert_true(metrics.load_average_5_min == (double)0.35F);
		assert_true(is_near(metrics.memory_usage_bytes - KERNEL_BYTES, 1158172000));
		assert_true(is_near(metrics.memory_cached_bytes, 1633420000));
	}
	page.memory_used_bytes = 123456499;
	page.memory_cached_bytes = 123456500;
	metrics = read_back(&page);
	assert_true(is_near(metrics.memory_usage_bytes - KERNEL_BYTES, 123456000));
	assert_true(is_near(metrics.memory_cached_bytes, 123457000));
}

static void a_vm_uses_no_more_than_it_has(void **unused)
{
	struct metrics_page page = example();
	struct system_metrics metrics;
	struct buffer printed;

	(void)unused;
	page.memory_bytes = GIB;
	page.memory_used_bytes = page.memory_cached_bytes = 3 * GIB;
	metrics = read_back(&page);
	assert_true(is_near(metrics.memory_usage_bytes - KERNEL_BYTES,
	                    933536000)); /* 1048576 kB less 1/64, less 98656 kB */
	assert_true(is_near(metrics.memory_cached_bytes, 933536000));
	printed = print(&page);
	assert_has_line(&printed,
	                "host_memory_available_bytes{collector=\"memory\",host=\"vm-pine-x7k2p\"} 0 1772600767412");
	buffer_destroy(&printed);
}

static void k10_a_vm_of_4_gib_shows_its_kernels_total(void **unused)
{
	struct metrics_page page = example();
	struct buffer printed = print(&page);

	(void)unused;
	assert_has_line(
		&printed,
		"host_memory_total_bytes{collector=\"memory\",host=\"vm-pine-x7k2p\"} 4030112000 1772600767412");
	assert_int_equal(metrics_page_kernel_kb(4 * GIB), 4030112);
	assert_int_equal(metrics_page_kernel_kb(0), 0);
	buffer_destroy(&printed);
}

static void lines_look_as_the_collectors(void **unused)
{
	struct metrics_page page = example();
	struct buffer printed = print(&page);

	(void)unused;
	assert_true(slice_starts_with(text_of(&printed),
	                              SLICE("# HELP host_boot_time boot_time\n# TYPE host_boot_time gauge\n"
	                                    "host_boot_time{collector=\"host\",host=\"vm-pine-x7k2p\"} "
	                                    "1772590735 1772600767412\n")));
	assert_has_line(&printed, "# TYPE host_cpu_seconds_total counter");
	assert_has_line(
		&printed,
		"host_cpu_seconds_total{collector=\"cpu\",cpu=\"0\",host=\"vm-pine-x7k2p\",mode=\"nice\"} 0 1772600767412");
	assert_has_line(
		&printed,
		"host_cgroup_cpu_usage_seconds_total{cgroup=\"/\",collector=\"cgroups\",host=\"vm-pine-x7k2p\"} "
		"913.372145 1772600767412");
	assert_has_line(&printed,
	                "host_load1{collector=\"load\",host=\"vm-pine-x7k2p\"} 0.41999998688697815 1772600767412");
	assert_has_line(&printed,
	                "host_load15{collector=\"load\",host=\"vm-pine-x7k2p\"} 0.3100000023841858 1772600767412");
	assert_has_line(&printed,
	                "host_load5{collector=\"load\",host=\"vm-pine-x7k2p\"} 0.3499999940395355 1772600767412");
	assert_has_line(
		&printed,
		"host_memory_available_bytes{collector=\"memory\",host=\"vm-pine-x7k2p\"} 2871940000 1772600767412");
	assert_has_line(&printed,
	                "host_filesystem_used_ratio{collector=\"filesystem\",device=\"/dev/root\",filesystem=\"ext4\","
	                "host=\"vm-pine-x7k2p\",mountpoint=\"/\"} 0.2574913799762726 1772600767412");
	assert_has_line(&printed,
	                "host_filesystem_used_ratio{collector=\"filesystem\",device=\"proc\",filesystem=\"proc\","
	                "host=\"vm-pine-x7k2p\",mountpoint=\"/proc\"} NaN 1772600767412");
	assert_has_line(&printed, "host_logical_cpus{collector=\"cpu\",host=\"vm-pine-x7k2p\"} 1 1772600767412");
	assert_has_line(&printed, "host_uptime{collector=\"host\",host=\"vm-pine-x7k2p\"} 10032 1772600767412");
	assert_int_equal(printed.data[printed.length - 2], '\n');
	buffer_destroy(&printed);
}

static void used_is_what_is_neither_free_nor_cached_nor_buffers(void **unused)
{
	static const char *const NAMES[] = { "total", "free", "cached", "buffers", "used" };
	struct metrics_page page = example();
	struct buffer printed = print(&page);
	long long values[5];

	(void)unused;
	for (int i = 0; i < 5; i++) {
		char start[96];
		const char *line;

		snprintf(start, sizeof start, "\nhost_memory_%s_bytes{collector=\"memory\",host=\"vm-pine-x7k2p\"} ",
		         NAMES[i]);
		line = strstr(printed.data, start);
		assert_non_null(line);
		values[i] = atoll(line + strlen(start));
		assert_int_equal(values[i] % 1000, 0);
	}
	assert_int_equal(values[0] - values[1] - values[2] - values[3], values[4]);
	buffer_destroy(&printed);
}

/*
 * Each family once, bytewise sorted, each sample with sorted labels, its host and the page's timestamp, and no
 * exponent.
 */
static void check_order(struct slice page)
{
	struct metrics_text_parser parser;
	struct metrics_text_sample sample;
	struct slice family = { 0 };
	struct error err;

	metrics_text_parser_init(&parser, 7);
	metrics_text_begin(&parser, page);
	while (metrics_text_next(&parser, &sample, &err)) {
		if (!slice_equal(family, sample.family))
			assert_true(slice_compare(family, sample.family) < 0);
		family = sample.family;
		assert_true(sample.type == METRICS_TEXT_GAUGE || sample.type == METRICS_TEXT_COUNTER);
		assert_true(sample.has_timestamp);
		assert_int_equal(sample.timestamp_ms, WALL_NS / NS_PER_MS);
		for (size_t i = 1; i < sample.label_count; i++)
			assert_true(slice_compare(sample.labels[i - 1].name, sample.labels[i].name) < 0);
		assert_non_null(metrics_text_find_label(&sample, SLICE("collector")));
		assert_true(slice_equal_text(metrics_text_find_label(&sample, SLICE("host"))->raw_value, HOST));
	}
	assert_true(metrics_text_finished(&parser));
	metrics_text_parser_destroy(&parser);
	assert_null(strstr(page.data, "e+"));
	assert_null(strstr(page.data, "\n\n"));
}

static void pages_are_sorted_and_as_large_as_wanted(void **unused)
{
	struct metrics_page page = example();
	size_t least = 0;

	(void)unused;
	page.host_name = HOST;
	for (unsigned padding_kb = 0; padding_kb <= 200; padding_kb += 10) {
		struct buffer printed;

		page.padding_kb = padding_kb;
		printed = print(&page);
		check_order(text_of(&printed));
		if (padding_kb == 0)
			least = printed.length;
		assert_in_range(printed.length, least + padding_kb * 900, least + padding_kb * 1100);
		buffer_destroy(&printed);
	}
	assert_in_range(least, 8000, 12000);
}

static void each_cpu_has_its_series(void **unused)
{
	struct metrics_page page = example();
	struct buffer printed;

	(void)unused;
	page.cpu_milli = 2250;
	printed = print(&page);
	assert_has_line(&printed, "host_logical_cpus{collector=\"cpu\",host=\"vm-pine-x7k2p\"} 3 1772600767412");
	assert_non_null(strstr(printed.data, "cpu=\"2\""));
	assert_null(strstr(printed.data, "cpu=\"3\""));
	buffer_destroy(&printed);
	page.cpu_milli = 250;
	printed = print(&page);
	assert_has_line(&printed, "host_physical_cpus{collector=\"cpu\",host=\"vm-pine-x7k2p\"} 1 1772600767412");
	buffer_destroy(&printed);
}

static void host_names_are_escaped(void **unused)
{
	struct metrics_page page = example();
	struct buffer printed;

	(void)unused;
	page.host_name = "a\"b\\c\nd";
	printed = print(&page);
	assert_has_line(&printed,
	                "host_load1{collector=\"load\",host=\"a\\\"b\\\\c\\nd\"} 0.41999998688697815 1772600767412");
	buffer_destroy(&printed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_agent_reads_back_what_was_demanded),
		cmocka_unit_test(a_vm_uses_no_more_than_it_has),
		cmocka_unit_test(k10_a_vm_of_4_gib_shows_its_kernels_total),
		cmocka_unit_test(lines_look_as_the_collectors),
		cmocka_unit_test(used_is_what_is_neither_free_nor_cached_nor_buffers),
		cmocka_unit_test(pages_are_sorted_and_as_large_as_wanted),
		cmocka_unit_test(each_cpu_has_its_series),
		cmocka_unit_test(host_names_are_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
