/*
 * A cluster of which a test says what is true: it takes the place of sandbox/cluster.c in a test program. To be included by
 * one file of it.
 */
#ifndef BALLAST_TESTS_UNIT_SANDBOX_FAKE_CLUSTER_H
#define BALLAST_TESTS_UNIT_SANDBOX_FAKE_CLUSTER_H

#include "sandbox/cluster.h"

enum { FAKE_VMS_MAX = 8 };

struct cluster {
	unsigned vm_count;
	struct cluster_vm_state vms[FAKE_VMS_MAX];
	struct control_plane_counters api;
	struct scheduler_plugin_counters scheduler;
};

unsigned cluster_vm_count(const struct cluster *cluster)
{
	return cluster->vm_count;
}

const char *cluster_vm_name(const struct cluster *cluster, unsigned vm)
{
	static const char *const names[FAKE_VMS_MAX] = { "pine",  "oak",   "elm",     "birch",
		                                         "cedar", "maple", "other-1", "other-2" };

	(void)cluster;
	return names[vm];
}

struct cluster_vm_state cluster_vm_state(const struct cluster *cluster, unsigned vm)
{
	return cluster->vms[vm];
}

struct control_plane_counters cluster_api_counters(const struct cluster *cluster)
{
	return cluster->api;
}

struct scheduler_plugin_counters cluster_scheduler_counters(const struct cluster *cluster)
{
	return cluster->scheduler;
}

/* The VM has that many units, and everybody agrees on it. */
static inline void fake_cluster_set(struct cluster *cluster, unsigned vm, unsigned units)
{
	struct cluster_vm_state *state = &cluster->vms[vm];

	state->size = state->plugged = state->permitted = cluster_units(units);
	state->monitor = GUEST_MONITOR_CONNECTED;
	state->monitor_believes_bytes = units * WORKLOAD_UNIT_BYTES;
}

#endif
