/*
 * How a sandbox run shall go: read from the texts of the command line, and checked as a whole.
 */
#ifndef BALLAST_SANDBOX_SANDBOX_OPTIONS_H
#define BALLAST_SANDBOX_SANDBOX_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sandbox/faults.h"
#include "sandbox/generation.h"
#include "sandbox/outage.h"

enum { SANDBOX_DEFAULT_VMS = 6, SANDBOX_DEFAULT_NODES = 3, SANDBOX_DEFAULT_SPEED = 4, SANDBOX_DEFAULT_SECONDS = 60 };

enum { SANDBOX_WAIT_MOST_S = 4 }; /* what the extender takes */

enum sandbox_report { SANDBOX_REPORT_TEXT, SANDBOX_REPORT_JSON };

struct sandbox_options {
	unsigned vms; /* that are scaled, on node-a and the full node */
	unsigned nodes;
	unsigned pods;                    /* 0: no extender either */
	uint64_t wait_for_reservation_ns; /* the extender's; 0: it doesn't wait */
	bool node_names;                  /* the scheduler sends the extender names only */
	enum fault_level faults;
	uint64_t seed;
	double speed;
	struct sandbox_generation generation;
	uint64_t duration_ns; /* 0: until a signal */
	bool stops_agent;
	uint64_t stop_agent_ns;
	const char *grace; /* for the agents; NULL: their default */
	uint64_t grace_ns;
	bool shows_events; /* those that the receiver gets */
	struct outage outages[OUTAGES_MAX];
	size_t outage_count;
	enum sandbox_report report;
	bool live; /* a table on standard output while it runs; else lines on standard error */
	const char
		*agent_log; /* a file to which the agents' logs are appended; NULL: files beside their configuration */
};

/* NULL texts stand for "not given". */
struct sandbox_option_texts {
	const char *speed;
	const char *duration;
	const char *stop_agent_at;
	const char *plugin_protocol;
	const char *metrics_prefix;
	const char *wait_for_reservation;
	const char *grace;
	const char *const *outages;
	size_t outage_count;
};

/*
 * Reads the texts into *options, whose other members are set already, and checks everything together. Without a duration: 60
 * seconds, or no end if the run is live. False with a sentence for the user.
 */
bool sandbox_options_read(struct sandbox_options *options, const struct sandbox_option_texts *texts, struct error *err);

/* When the run ends by itself, since its start; 0: never. */
uint64_t sandbox_options_end_ns(const struct sandbox_options *options);

#endif
