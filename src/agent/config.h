/*
 * The agent's configuration, checked and in the units the program works with (spec agent-runtime 2).
 *
 * The file's own shape is proto/agent_config.proto; everything that runs reads this struct instead, so that another
 * schema of the file would change the loader alone. Seconds of the file are nanoseconds here, and at most
 * AGENT_CONFIG_SECONDS_MAX of them.
 */
#ifndef BALLAST_AGENT_CONFIG_H
#define BALLAST_AGENT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/core.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* A century: longer waits make no difference, and instants stay far from overflowing. */
#define AGENT_CONFIG_SECONDS_MAX UINT64_C(3155760000)

/* More failures than threshold within the interval make a runner stuck (6.6). */
struct agent_failure_rate {
	uint64_t interval_ns;
	uint64_t threshold;
};

struct agent_scrape_config {
	uint16_t port;
	uint64_t request_timeout_ns;
	uint64_t seconds_between_requests; /* whole seconds: the first delay is drawn from them (8.1) */
};

struct agent_monitor_config {
	uint16_t server_port;
	uint64_t response_timeout_ns;
	uint64_t connection_timeout_ns;
	uint64_t connection_retry_min_wait_ns;
	uint64_t unhealthy_after_silence_ns;
	uint64_t unhealthy_startup_grace_ns;
	uint64_t max_health_check_failures_ns; /* maxHealthCheckSequentialFailuresSeconds */
	struct agent_failure_rate max_failed_requests;
};

struct agent_scheduler_config {
	const char *scheduler_name;
	uint16_t request_port;
	struct agent_failure_rate max_failed_requests;
};

struct agent_neonvm_config {
	uint64_t request_timeout_ns; /* of a patch and of a scheduler request (10.3) */
	struct agent_failure_rate max_failed_requests;
};

struct agent_dump_config {
	bool present;
	uint16_t port;
	uint64_t timeout_ns;
};

/* What the clients that push events have in common. */
struct agent_push_config {
	uint64_t every_ns;
	uint64_t request_timeout_ns;
	uint64_t max_batch_size; /* events */
};

struct agent_http_push_config {
	bool present;
	struct agent_push_config push;
	struct slice url;
};

struct agent_azure_push_config {
	bool present;
	struct agent_push_config push;
	struct slice container;
	struct slice endpoint;
	struct slice prefix_in_container;
};

struct agent_s3_push_config {
	bool present;
	struct agent_push_config push;
	struct slice bucket;
	struct slice region;
	struct slice endpoint; /* empty: the region's own */
	struct slice prefix_in_bucket;
};

struct agent_billing_config {
	struct slice cpu_metric_name;
	struct slice active_time_metric_name;
	uint64_t collect_every_ns;
	uint64_t accumulate_every_ns;
	struct agent_http_push_config http;
	struct agent_azure_push_config azure_blob;
	struct agent_s3_push_config s3;
};

struct agent_config {
	uint64_t refresh_state_interval_ns; /* never 0 */
	/* From computeUnit, defaultConfig and the retry waits; clamps instead of failing; the tick is whole. */
	struct core_config core;
	struct agent_monitor_config monitor;
	struct agent_scheduler_config scheduler;
	struct agent_neonvm_config neonvm;
	struct agent_scrape_config system_metrics;
	struct agent_scrape_config lfc_metrics;
	struct agent_dump_config dump;
	double scaling_events_cu_multiplier;
	struct slice scaling_events_region_name;
	struct agent_azure_push_config scaling_events_azure_blob;
	struct agent_s3_push_config scaling_events_s3;
	struct agent_billing_config billing;
	struct slice json; /* the file re-encoded, for the log line "Got config" */
};

/* Room that the arena of agent_config_load should allow: a file has at most AGENT_CONFIG_FILE_BYTES. */
enum { AGENT_CONFIG_FILE_BYTES = 256 * 1024, AGENT_CONFIG_ARENA_BYTES = 24 * AGENT_CONFIG_FILE_BYTES };

/*
 * Reads and checks the file. What *ret_config points at lives in the arena. Errors have the texts of spec agent-runtime
 * 2.1 and 2.3: "error opening config file …", "error decoding JSON config in …", "invalid config: …" with all problems
 * joined. That may be more than an error can hold: *ret_error_text then has the whole of it, in the arena (or in *err).
 * It is set on failure only.
 */
bool agent_config_load(const char *path, struct arena *arena, struct agent_config *ret_config,
                       struct slice *ret_error_text, struct error *err);

/* One thing that is wrong with a file, for a person. */
struct agent_config_finding {
	unsigned line;
	struct slice path; /* "scaling.computeUnit.mem"; empty: the document itself */
	struct slice text; /* "cannot be zero" */
};

struct agent_config_report {
	const char *generation;                /* whose schema the file follows: "B" */
	struct agent_config_finding *findings; /* by line */
	size_t count;
	size_t left_out; /* there were still more */
};

/*
 * Finds everything that is wrong with the file, also several decode errors, where agent_config_load stops at the first.
 * False, with *err, only when the file can't be read or memory is short. What *ret_report points at lives in the arena.
 */
bool agent_config_check(const char *path, struct arena *arena, struct agent_config_report *ret_report,
                        struct error *err);

/* The same for a file's text, wherever it comes from; the text must outlive *ret_report. */
bool agent_config_check_text(struct slice text, struct arena *arena, struct agent_config_report *ret_report,
                             struct error *err);

#endif
