/*
 * The report at the end of a sandbox run: one JSON object (proto/sandbox_report.proto) or a table for people.
 */
#ifndef BALLAST_SANDBOX_REPORT_H
#define BALLAST_SANDBOX_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "gen/sandbox_report.gen.h"
#include "sandbox/cluster.h"
#include "sandbox/faults.h"
#include "sandbox/judge.h"
#include "sandbox/pod_cluster.h"

enum { REPORT_BYTES_MAX = 16 * 1024 * 1024 };

/* What the agents' processes used. */
struct report_usage {
	uint64_t max_resident_kib;
	uint64_t cpu_us;
};

/* What a pod's line points into. */
struct report_pod {
	struct pod_cluster_state state;
};

/* Everything that is reported. Lists point into the judge, or at memory of the report's own. */
struct report {
	struct sandbox_report_report message;
	struct slice *mismatches;
	struct sandbox_report_goal *goals; /* of all VMs, one after the other */
	struct sandbox_report_outage outages[OUTAGES_MAX];
	char peers[OUTAGES_MAX][OUTAGE_PEER_BYTES];
	struct report_pod *pods;
	struct sandbox_report_fault_count faults[FAULT_COUNT];
	bool anything_judged; /* in any phase */
};

/* Gathers. Judge and cluster must outlive the report, which isn't to be moved. */
bool report_init(struct report *report, const struct judge *judge, const struct cluster *cluster, uint64_t duration_ns,
                 const struct report_usage *usage, struct error *err);
/* Makes room for so many pods in message.pods and pods, zeroed. */
bool report_add_pods(struct report *report, unsigned count, struct error *err);
void report_destroy(struct report *report); /* fine on a zeroed one */

/* One JSON object and a newline. */
bool report_print_json(const struct report *report, struct buffer *out, struct error *err);
/* The table; mismatches below it. */
bool report_print_text(const struct report *report, struct buffer *out, struct error *err);

#endif
