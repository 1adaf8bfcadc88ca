/*
 * How fast the scaling core decides, and how fast it reads what it decides by. One JSON object on standard output.
 *
 *	decisions_per_s     core_next_actions with new metrics each time, callbacks set
 *	page_us, page_mb_per_s   reading a whole node_exporter page for the five values needed
 *	cycle_us            that, the update and a decision that changes nothing: a scrape of an idle VM
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/core/core.h"
#include "agent/core/metrics_input.h"
#include "base/buffer.h"
#include "base/clock.h"

enum { DECISIONS = 2000000, PAGES = 5000, FILE_BYTES_MAX = 1 << 20 };

static const char NEEDED[] = "# TYPE host_load1 gauge\nhost_load1 0.25\n# TYPE host_load5 gauge\nhost_load5 0.3\n"
			     "# TYPE host_memory_total_bytes gauge\nhost_memory_total_bytes 2e9\n"
			     "# TYPE host_memory_available_bytes gauge\nhost_memory_available_bytes 1.5e9\n"
			     "# TYPE host_memory_cached_bytes gauge\nhost_memory_cached_bytes 3e8\n";

static uint64_t heard; /* so that nothing is optimised away */

static void hear_warning(void *context, const char *text)
{
	(void)context;
	heard += text[0] != '\0';
}

static void hear_calculation(void *context, const struct core_calculation *calculation)
{
	(void)context;
	heard += calculation->target.cpu_milli;
}

static void hear_hypothetical(void *context, int64_t now_ns, uint32_t current_cu, uint32_t goal_cu,
                              const struct goal_parts *parts)
{
	(void)context;
	(void)now_ns;
	heard += current_cu + goal_cu + parts->has_cpu;
}

static struct core_config make_config(void)
{
	return (struct core_config){
		.compute_unit = { .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 },
		.default_scaling_config = {
			.has_load_average_fraction_target = true,
			.load_average_fraction_target = 0.9,
			.has_memory_usage_fraction_target = true,
			.memory_usage_fraction_target = 0.75,
			.has_memory_total_fraction_target = true,
			.memory_total_fraction_target = 0.9,
			.has_enable_lfc_metrics = true,
			.enable_lfc_metrics = true,
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
		.neonvm_retry_wait_ns = INT64_C(5) * NS_PER_S,
		.plugin_request_tick_ns = INT64_C(15) * NS_PER_S,
		.plugin_retry_wait_ns = INT64_C(3) * NS_PER_S,
		.plugin_denied_retry_wait_ns = INT64_C(2) * NS_PER_S,
		.monitor_denied_downscale_cooldown_ns = INT64_C(5) * NS_PER_S,
		.monitor_requested_upscale_valid_period_ns = INT64_C(10) * NS_PER_S,
		.monitor_retry_wait_ns = INT64_C(3) * NS_PER_S,
		.clamp_instead_of_fail = true,
	};
}

static void make_core(struct core *ret_core)
{
	const struct core_callbacks callbacks = {
		.warn = hear_warning,
		.calculated = hear_calculation,
		.hypothetical_scaling = hear_hypothetical,
	};
	const struct vm_info vm = {
		.name = "vm-a",
		.namespace = "apps",
		.cpu = { .min_milli = 250, .max_milli = 8000, .use_milli = 1000 },
		.mem = { .min_slots = 1, .max_slots = 32, .use_slots = 4, .slot_bytes = UINT64_C(1) << 30 },
		.scaling_enabled = true,
	};
	struct core_config config = make_config();
	struct revision_with_time revision = { .updated_at_ns = RFC3339_ZERO };
	struct lfc_metrics lfc = { .window_count = 60 };
	struct error err;

	core_init(ret_core, &config, &vm, &callbacks);
	for (uint32_t i = 0; i < lfc.window_count; i++)
		lfc.window_pages[i] = 20000 + 500 * i;
	core_update_lfc_metrics(ret_core, &lfc);
	core_monitor_active(ret_core, true);
	core_plugin_starting_request(ret_core, 0, core_using(ret_core));
	if (!core_plugin_request_successful(ret_core, 0, revision, core_using(ret_core), &err))
		abort();
}

static double seconds_since(uint64_t start_ns)
{
	return (double)(clock_monotonic_ns() - start_ns) / NS_PER_S;
}

static double measure_decisions(void)
{
	struct core core;
	struct core_actions actions;
	struct error err;

	make_core(&core);

	uint64_t start_ns = clock_monotonic_ns();

	for (int64_t i = 0; i < DECISIONS; i++) {
		struct system_metrics metrics = {
			.load_average_1_min = (double)(i % 64) / 16,
			.load_average_5_min = 1,
			.memory_usage_bytes = 1e9 + (double)(i % 1000) * 1e6,
			.memory_cached_bytes = 5e8,
		};

		core_update_system_metrics(&core, &metrics);
		if (!core_next_actions(&core, i * NS_PER_MS, &actions, &err))
			abort();
		heard += actions.has_plugin_request;
	}
	return DECISIONS / seconds_since(start_ns);
}

static void read_file(const char *path, struct buffer *out)
{
	FILE *file = fopen(path, "rb");
	char part[4096];
	size_t length;

	if (file == NULL) {
		fprintf(stderr, "can't open %s\n", path);
		exit(1);
	}
	while ((length = fread(part, 1, sizeof part, file)) > 0)
		buffer_append(out, part, length);
	fclose(file);
}

static double measure_cycles(struct slice page, bool decide)
{
	struct metrics_text_parser parser;
	struct system_metrics metrics;
	struct core_actions actions;
	struct core core;
	struct error err;

	make_core(&core);
	metrics_text_parser_init(&parser, 1);

	uint64_t start_ns = clock_monotonic_ns();

	for (int64_t i = 0; i < PAGES; i++) {
		if (!metrics_input_read_system(&parser, page, METRICS_INPUT_REJECT_UNUSABLE, &metrics, &err)) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		if (!decide)
			continue;
		core_update_system_metrics(&core, &metrics);
		if (!core_next_actions(&core, i, &actions, &err))
			abort();
		heard += actions.has_wait;
	}

	double us = seconds_since(start_ns) * 1e6 / PAGES;

	metrics_text_parser_destroy(&parser);
	return us;
}

int main(void)
{
	struct buffer page;

	buffer_init(&page, FILE_BYTES_MAX);
	read_file(TESTS_DIR "/data/metrics/node_exporter-1.5.prom", &page);
	buffer_append_text(&page, NEEDED);

	double decisions_per_s = measure_decisions();
	double page_us = measure_cycles(buffer_slice(&page), false);
	double cycle_us = measure_cycles(buffer_slice(&page), true);

	printf("{\"decisions_per_s\":%.0f,\"page_bytes\":%zu,\"page_us\":%.1f,\"page_mb_per_s\":%.0f,\"cycle_us\":%.1f,"
	       "\"heard\":%" PRIu64 "}\n",
	       decisions_per_s, page.length, page_us, (double)page.length / page_us, cycle_us, heard);
	buffer_destroy(&page);
	return 0;
}
