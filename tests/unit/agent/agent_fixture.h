/*
 * What tests of the agent share: a loop, metrics that can be read, a log that can be searched, and a configuration
 * with the shipped values.
 */
#ifndef BALLAST_TESTS_AGENT_FIXTURE_H
#define BALLAST_TESTS_AGENT_FIXTURE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_clock.h"
#include "agent/config.h"
#include "agent/core/core.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/loop_epoll.h"
#include "tests/support/agent_metrics_recorder.h"
#include "tests/support/scripted_api.h"

enum { FIXTURE_LOG_BYTES = 8 * 1024 * 1024 };

struct fixture {
	struct loop *loop;
	struct agent_clock clock;
	struct agent_config config;
	struct agent_metrics *metrics;
	struct log_sink *log_sink;
	FILE *log_file;
	char *log;
	long log_start; /* where the log begins that the test hasn't looked at yet */
};

static int64_t fixture_wall_ns(void *context)
{
	return loop_wall_ns(context);
}

/* The shipped configuration (spec agent-runtime 2.2). */
static inline struct agent_config fixture_config(void)
{
	const uint64_t second = NS_PER_S;

	return (struct agent_config){
		.refresh_state_interval_ns = 5 * second,
		.core = { .compute_unit = { .cpu_milli = 250, .mem_bytes = UINT64_C(1) << 30 },
		          .default_scaling_config = { .has_load_average_fraction_target = true,
		                                      .has_memory_usage_fraction_target = true,
		                                      .has_memory_total_fraction_target = true,
		                                      .has_enable_lfc_metrics = true,
		                                      .has_lfc_use_largest_window = true,
		                                      .has_lfc_to_memory_ratio = true,
		                                      .has_lfc_min_wait_before_downscale_minutes = true,
		                                      .has_lfc_window_size_minutes = true,
		                                      .has_cpu_stable_zone_ratio = true,
		                                      .has_cpu_mixed_zone_ratio = true,
		                                      .load_average_fraction_target = 0.9,
		                                      .memory_usage_fraction_target = 0.75,
		                                      .memory_total_fraction_target = 0.9,
		                                      .lfc_to_memory_ratio = 0.75,
		                                      .lfc_min_wait_before_downscale_minutes = 5,
		                                      .lfc_window_size_minutes = 5 },
		          .neonvm_retry_wait_ns = 5 * (int64_t)second,
		          .plugin_request_tick_ns = 15 * (int64_t)second,
		          .plugin_retry_wait_ns = 3 * (int64_t)second,
		          .plugin_denied_retry_wait_ns = 2 * (int64_t)second,
		          .monitor_denied_downscale_cooldown_ns = 5 * (int64_t)second,
		          .monitor_requested_upscale_valid_period_ns = 10 * (int64_t)second,
		          .monitor_retry_wait_ns = 3 * (int64_t)second,
		          .clamp_instead_of_fail = true },
		.monitor = { .server_port = 10301,
		             .response_timeout_ns = 5 * second,
		             .connection_timeout_ns = 4 * second,
		             .connection_retry_min_wait_ns = 5 * second,
		             .unhealthy_after_silence_ns = 20 * second,
		             .unhealthy_startup_grace_ns = 20 * second,
		             .max_health_check_failures_ns = 30 * second,
		             .max_failed_requests = { .interval_ns = 120 * second, .threshold = 2 } },
		.scheduler = { .scheduler_name = "autoscale-scheduler",
		               .request_port = 10299,
		               .protocol = PLUGIN_PROTOCOL_5_0,
		               .compute_unit_configured = true,
		               .max_failed_requests = { .interval_ns = 120 * second, .threshold = 5 } },
		.neonvm = { .request_timeout_ns = 10 * second,
		            .max_failed_requests = { .interval_ns = 120 * second, .threshold = 2 } },
		.plugin_tick_jitter_ms = 100,
		.system_metrics = { .port = 9100, .request_timeout_ns = 2 * second, .seconds_between_requests = 5 },
		.lfc_metrics = { .port = 9499, .request_timeout_ns = 5 * second, .seconds_between_requests = 15 },
		.scaling_events_cu_multiplier = 0.25,
	};
}

static inline struct vm_info fixture_vm(void)
{
	struct vm_info vm = {
		.cpu = { .min_milli = 250, .max_milli = 2000, .use_milli = 500 },
		.mem = { .min_slots = 1, .max_slots = 8, .use_slots = 2, .slot_bytes = UINT64_C(1) << 30 },
		.scaling_enabled = true,
	};
	struct error err;

	assert_true(vm_info_set_name(&vm, SLICE("apps"), SLICE("vm-a"), &err));
	return vm;
}

static inline void fixture_begin(struct fixture *fixture)
{
	struct error err;

	memset(fixture, 0, sizeof *fixture);
	fixture->loop = loop_epoll_create(&err);
	assert_non_null(fixture->loop);
	fixture->clock = agent_clock_start(fixture->loop);
	fixture->config = fixture_config();
	fixture->metrics = agent_metrics_recorder_create();
	fixture->log_file = tmpfile();
	assert_non_null(fixture->log_file);
	/* Reading moves the descriptor's offset. */
	assert_int_equal(fcntl(fileno(fixture->log_file), F_SETFL, O_APPEND), 0);
	fixture->log_sink = log_sink_create(fileno(fixture->log_file), LOG_FORMAT_JSON, LOG_DEBUG, FIXTURE_LOG_BYTES,
	                                    fixture_wall_ns, fixture->loop, &err);
	assert_non_null(fixture->log_sink);
}

static inline void fixture_end(struct fixture *fixture)
{
	log_sink_destroy(fixture->log_sink, 1000);
	assert_int_equal(fclose(fixture->log_file), 0);
	free(fixture->log);
	agent_metrics_recorder_destroy(fixture->metrics);
	loop_destroy(fixture->loop);
}

static inline double fixture_metric(const struct fixture *fixture, const char *series)
{
	return agent_metrics_recorder_value(fixture->metrics, series);
}

#define assert_metric(fixture, series, expected)                                           \
	do {                                                                               \
		double actual_ = fixture_metric(fixture, series);                          \
		if (actual_ < (expected) || actual_ > (expected))                          \
			fail_msg("%s is %g, not %g", series, actual_, (double)(expected)); \
	} while (0)

/* What was logged since the last call of fixture_log_forget; valid until the next call. */
static inline const char *fixture_log(struct fixture *fixture)
{
	size_t length;
	long end;

	(void)log_flush(fixture->log_sink);
	assert_int_equal(fseek(fixture->log_file, 0, SEEK_END), 0);
	end = ftell(fixture->log_file);
	assert_true(end >= fixture->log_start);
	length = (size_t)(end - fixture->log_start);
	free(fixture->log);
	fixture->log = malloc(length + 1);
	assert_non_null(fixture->log);
	assert_int_equal(fseek(fixture->log_file, fixture->log_start, SEEK_SET), 0);
	assert_int_equal(fread(fixture->log, 1, length, fixture->log_file), length);
	fixture->log[length] = '\0';
	return fixture->log;
}

static inline void fixture_log_forget(struct fixture *fixture)
{
	(void)fixture_log(fixture);
	fixture->log_start = ftell(fixture->log_file);
}

/* How many lines have the part. */
static inline size_t fixture_log_count(struct fixture *fixture, const char *part)
{
	size_t count = 0;

	for (const char *at = strstr(fixture_log(fixture), part); at != NULL; at = strstr(at + 1, part))
		count++;
	return count;
}

#define assert_logged(fixture, part)                                                     \
	do {                                                                             \
		if (fixture_log_count(fixture, part) == 0)                               \
			fail_msg("not logged: %s\nin:\n%s", part, fixture_log(fixture)); \
	} while (0)

#define assert_not_logged(fixture, part)                                             \
	do {                                                                         \
		if (fixture_log_count(fixture, part) != 0)                           \
			fail_msg("logged: %s\nin:\n%s", part, fixture_log(fixture)); \
	} while (0)

static void fixture_do_nothing(void *context)
{
	(void)context;
}

/* Turns the loop a few times, without waiting for anything. */
static inline void fixture_turn(struct fixture *fixture)
{
	for (int i = 0; i < 4; i++) {
		struct loop_task task = { 0 };
		struct error err;

		loop_run_soon(fixture->loop, &task, fixture_do_nothing, NULL);
		assert_true(loop_turn(fixture->loop, &err));
		loop_task_cancel(fixture->loop, &task);
	}
}

/* Runs what is due now, and gives bytes on loopback the time to arrive. */
static inline void fixture_settle(struct fixture *fixture)
{
	test_loop_spin(fixture->loop, 1);
	fixture_turn(fixture);
}

/* Lets so much time pass, in steps, so that timers run in their order, each at its time give or take a step. */
static inline void fixture_pass(struct fixture *fixture, uint64_t ms)
{
	const uint64_t step_ns = 100 * NS_PER_MS;
	const uint64_t end_ns = clock_monotonic_ns() + ms * NS_PER_MS;

	for (uint64_t now_ns = clock_monotonic_ns(); now_ns < end_ns; now_ns = clock_monotonic_ns()) {
		test_clock_skip(end_ns - now_ns < step_ns ? end_ns - now_ns : step_ns);
		fixture_turn(fixture);
	}
}

#endif
