/*
 * Outages: a peer of the agent that goes away for a while, as the command line states it, and what that means for judging.
 */
#ifndef BALLAST_SANDBOX_OUTAGE_H
#define BALLAST_SANDBOX_OUTAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/slice.h"

enum { OUTAGES_MAX = 32, OUTAGE_PEER_BYTES = 16 };

#define OUTAGE_TIME_MAX_NS (UINT64_C(30) * 24 * 3600 * 1000000000) /* of start and of length */

enum outage_peer { OUTAGE_PLUGIN, OUTAGE_MONITOR, OUTAGE_API, OUTAGE_EXTENDER, OUTAGE_RECEIVER };

struct outage {
	enum outage_peer peer;
	unsigned vm;               /* OUTAGE_MONITOR: which one's, from 0 */
	uint64_t start_ns, end_ns; /* since the start of the run */
};

/* "plugin@10s+5s", "monitor:2@10s+5s" (VMs count from 1), "api@1m+500ms", "receiver@5s+5s". ERROR_SYNTAX or _LIMIT otherwise. */
bool outage_parse(struct slice text, struct outage *ret_outage, struct error *err);

/* Whether it can keep a VM from its size. */
bool outage_concerns_vms(const struct outage *outage);

/*
 * Whether the VM had settle_ns without any outage that concerns it before at_ns: only then it can be expected to have the size
 * that it must have.
 */
bool outages_leave_settled(const struct outage *outages, size_t count, unsigned vm, uint64_t at_ns, uint64_t settle_ns);

bool outage_same_peer(const struct outage *a, const struct outage *b);
/* As outage_parse takes it: "plugin", "monitor:2", "api", "extender", "receiver". */
void outage_print_option(const struct outage *outage, char text[OUTAGE_PEER_BYTES]);
/* "scheduler plugin", "vm-monitor of VM 2", "Kubernetes API", "event receiver". */
void outage_print_peer(const struct outage *outage, char *text, size_t size);

#endif
