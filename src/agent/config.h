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
#include "agent/plugin_protocol.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

/* A century: longer waits make no difference, and instants stay far from overflowing. */
#define AGENT_CONFIG_SECONDS_MAX UINT64_C(3155760000)

/*
 * Whose agent the program stands in for: the one of late 2023 (A) or the newest (B). The file's schema decides (spec
 * generations 1.1). Where only behaviour is meant, look at the settings below that say what; the generation itself is
 * for texts, metric families and the shapes of documents.
 */
enum agent_generation { AGENT_GENERATION_B, AGENT_GENERATION_A };

/* "A" or "B". */
const char *agent_generation_name(enum agent_generation generation);

/* More failures than threshold within the interval make a runner stuck (6.6). */
struct agent_failure_rate {
	uint64_t interval_ns;
	uint64_t threshold;
};

struct agent_scrape_config {
	uint16_t port;
	uint64_t request_timeout_ns;       /* A: may be 0, then every scrape times out at once */
	uint64_t seconds_between_requests; /* whole seconds: the first delay is drawn from them (8.1) */
	bool first_at_once;                /* the first scrape has no delay (generations 4.3) */
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
	enum plugin_protocol protocol;
	/*
	 * Whether the file has a compute unit, core.compute_unit. If not, which only A allows, each runner learns it
	 * from the replies of the plugin, and protocol is AUTO, 2.0 or 2.1.
	 */
	bool compute_unit_configured;
	bool sticky; /* A: a scheduler is kept while it is active; B: the newest one counts (generations 4.1) */
	struct agent_failure_rate max_failed_requests;
};

struct agent_neonvm_config {
	uint64_t request_timeout_ns; /* of a patch and of a scheduler request (10.3) */
	struct agent_failure_rate max_failed_requests;
	bool no_revisions; /* A: the patch has no spec.targetRevision (generations 4.4), latencies aren't observed */
};

struct agent_dump_config {
	bool present;
	uint16_t port;
	uint64_t timeout_ns;
	enum agent_generation generation; /* whose shape the document has (generations 4.8) */
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
	bool present; /* A without `.billing`: nothing is collected, and there are no families of metrics for it */
	struct slice cpu_metric_name;
	struct slice active_time_metric_name;
	uint64_t collect_every_ns;
	uint64_t accumulate_every_ns;
	struct agent_http_push_config http; /* A: with the sender of generations 4.10 */
	struct agent_azure_push_config azure_blob;
	struct agent_s3_push_config s3;
};

struct agent_config {
	enum agent_generation generation;
	uint64_t refresh_state_interval_ns; /* never 0; with refresh_adaptively, the longest that it may take */
	bool refresh_adaptively; /* A: a runner's state is looked at when it may change, too (generations 4.6) */
	/*
	 * From computeUnit, defaultConfig and the retry waits, with the knobs of the generation (generations 3); clamps
	 * instead of failing; the tick is whole.
	 */
	struct core_config core;
	uint64_t plugin_tick_jitter_ms; /* each runner takes a random time below this off the tick; A: 0 */
	struct agent_monitor_config monitor;
	struct agent_scheduler_config scheduler;
	struct agent_neonvm_config neonvm;
	struct agent_scrape_config system_metrics;
	bool lenient_metrics;       /* A: no Prometheus parsing, single precision (generations 4.3) */
	const char *metrics_prefix; /* of the names on the page then: "host_" */
	bool no_lfc_metrics;        /* A: the file cache isn't scraped, whatever annotations say */
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
 * joined; those of generation A begin with capitals (generations 1.1). That may be more than an error can hold:
 * *ret_error_text then has the whole of it, in the arena (or in *err). It is set on failure only.
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
	const char *generation;                /* whose schema the file follows: "A" or "B" */
	const char *key_of_a, *key_of_b;       /* of a mixture: what makes it one; else both NULL */
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
