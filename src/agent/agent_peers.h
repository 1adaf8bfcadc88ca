/*
 * What runners reach through the rest of the agent: the scheduler that is current, and the VirtualMachine objects.
 */
#ifndef BALLAST_AGENT_AGENT_PEERS_H
#define BALLAST_AGENT_AGENT_PEERS_H

#include <stdint.h>

#include "agent/agent_metrics.h"
#include "agent/runner.h"
#include "agent/scheduler_tracking.h"
#include "base/token_bucket.h"
#include "kube/client.h"

/* All of it must outlive the runners. */
struct agent_peers {
	struct kube_client *kube;
	struct token_bucket *limiter; /* of patches */
	uint64_t patch_timeout_ns;
	bool without_revision;                 /* patches have no target revision */
	struct scheduler_tracking *schedulers; /* NULL: none any more */
	struct agent_metrics *metrics;
};

struct runner_peers agent_peers_for_runners(struct agent_peers *peers);

#endif
