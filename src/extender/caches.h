/*
 * What the extender knows of the cluster without asking: claims, StorageClasses and Volumes, kept up to date by watches;
 * and nodes, but only once a scheduler sends names instead of nodes (spec extender 12 A2, I1, I9).
 *
 * Of each object only what decisions need is kept. While a watch is broken, lookups see the last known state.
 */
#ifndef BALLAST_EXTENDER_CACHES_H
#define BALLAST_EXTENDER_CACHES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/log.h"
#include "extender/extender_metrics.h"
#include "extender/settings.h"
#include "extender/storage_view.h"
#include "extender/volume_counts.h"
#include "kube/client.h"
#include "net/loop.h"

struct caches;

/* Everything pointed at must outlive the caches. */
struct caches_options {
	struct loop *loop;
	struct kube_client *client;
	struct extender_metrics *metrics;
	const struct extender_settings *settings;
	struct log_sink *log_sink;
};

struct caches_handler {
	/* All three lists are complete and their watches open. */
	void (*on_synced)(void *context);
	/* A kind doesn't exist on the server (spec P7): nothing more will happen. The caches may be stopped in here. */
	void (*on_missing)(void *context, const struct error *err);
};

/* Starts; no callback comes from inside. Other failures than a missing kind are tried again for ever. */
struct caches *caches_start(const struct caches_options *options, const struct caches_handler *handler, void *context,
                            struct error *err);
void caches_stop(struct caches *caches); /* NULL is fine */

/* For the engine; valid until the caches are stopped. Nodes are in it once caches_nodes says CACHES_NODES_READY. */
const struct storage_view *caches_view(const struct caches *caches);
/* NULL with *err when memory was short while a Volume came, and still is. */
const struct volume_counts *caches_volume_counts(struct caches *caches, struct error *err);

enum caches_nodes {
	CACHES_NODES_LOADING,
	CACHES_NODES_READY,
	CACHES_NODES_REFUSED, /* we may not list or watch nodes; it is tried again later */
};

/* Asks for the cache of nodes, which starts it the first time. */
enum caches_nodes caches_nodes(struct caches *caches);
/* While they are loading: whether that may end by a time of the loop; not if an attempt failed and the next is later. */
bool caches_nodes_may_come(const struct caches *caches, uint64_t until_ns);

/* For logs: "persistentvolumeclaims", … of a cache that isn't complete yet, or NULL. */
const char *caches_missing(const struct caches *caches);

#endif
