/*
 * Each kind has a watch store and an index by key. When memory is too short for the index or for the count of Volumes, it
 * is marked incomplete, and made again from the store when it is needed: nothing is lost but time.
 */
#include "extender/caches.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/table.h"
#include "extender/cached_object.h"
#include "extender/process_limits.h"
#include "kube/watch_store.h"

enum cache_number { CLAIMS, CLASSES, VOLUMES, NODES, CACHE_COUNT, NEEDED_COUNT = NODES };

struct cache {
	struct caches *caches;
	enum cache_number number;
	struct watch_store *store;
	struct table index; /* key → struct cached_object; not of Volumes */
	bool index_incomplete;
	bool synced;
	bool refused;
	unsigned failures;
	struct loop_timer retry;
	uint64_t retry_due_ns;
	struct arena arena; /* for the object being decoded */
};

struct caches {
	struct caches_options options;
	struct caches_handler handler;
	void *context;
	struct cache all[CACHE_COUNT];
	struct volume_counts counts;
	bool counts_incomplete;
	struct storage_view view;
	bool told;
};

static const char *const RESOURCES[CACHE_COUNT] = {
	[CLAIMS] = "persistentvolumeclaims",
	[CLASSES] = "storageclasses.storage.k8s.io",
	[VOLUMES] = "volumes.csi-baremetal.dell.com",
	[NODES] = "nodes",
};

static struct logger cache_logger(const struct cache *cache)
{
	static const char *const NAMES[CACHE_COUNT] = {
		[CLAIMS] = "extender.watch.claims",
		[CLASSES] = "extender.watch.classes",
		[VOLUMES] = "extender.watch.volumes",
		[NODES] = "extender.watch.nodes",
	};

	return (struct logger){ .sink = cache->caches->options.log_sink,
		                .name = NAMES[cache->number],
		                .context_json = "\"component\":\"Extender\"" };
}

/* ---- indexes ---- */

static void *decode(void *context, struct slice json, struct slice *ret_uid, struct slice *ret_name, struct error *err)
{
	static cached_object_decoder *const DECODERS[CACHE_COUNT] = {
		[CLAIMS] = cached_claim_decode,
		[CLASSES] = cached_class_decode,
		[VOLUMES] = cached_volume_decode,
		[NODES] = cached_node_decode,
	};
	struct cache *cache = context;
	struct cached_object *object =
		DECODERS[cache->number](json, cache->caches->options.settings, &cache->arena, ret_name, err);

	if (object != NULL)
		*ret_uid = object->uid;
	return object;
}

static void release(void *context, void *object)
{
	(void)context;
	memory_release(object);
}

static void on_add(void *context, void *added)
{
	struct cache *cache = context;
	struct caches *caches = cache->caches;
	struct cached_object *object = added;
	struct error ignored;

	if (cache->number == VOLUMES)
		caches->counts_incomplete |= !volume_counts_add(&caches->counts, object->volume_node_id, &ignored);
	else
		cache->index_incomplete |= !table_set(&cache->index, object->key, object);
}

static void on_delete(void *context, void *deleted)
{
	struct cache *cache = context;
	struct cached_object *object = deleted;

	if (cache->number == VOLUMES)
		volume_counts_remove(&cache->caches->counts, object->volume_node_id);
	else if (table_find(&cache->index, object->key) == object) /* not its successor of the same name */
		table_remove(&cache->index, object->key);
}

/* A name's index entry stays with the newest object of that name. */
static void on_update(void *context, void *before, void *after)
{
	struct cache *cache = context;
	const struct cached_object *object = after;
	const void *indexed = cache->number != VOLUMES ? table_find(&cache->index, object->key) : NULL;

	if (indexed != NULL && indexed != before)
		return;
	on_delete(context, before);
	on_add(context, after);
}

/* An index that couldn't be kept is searched without it. */
static const struct cached_object *find(const struct cache *cache, struct slice key)
{
	const struct cached_object *object = table_find(&cache->index, key);
	size_t position = 0;

	if (object != NULL || !cache->index_incomplete || cache->store == NULL)
		return object;
	while ((object = watch_store_next(cache->store, &position)) != NULL) {
		if (slice_equal(object->key, key))
			return object;
	}
	return NULL;
}

static bool find_claim(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim)
{
	const struct caches *caches = context;
	const struct cached_object *object;
	struct buffer key;

	/* Names hold no '/', so that keys are unambiguous whatever a request names. */
	if (namespace.length == 0)
		return false;
	buffer_init(&key, EXTENDER_PATH_BYTES);
	buffer_append_slice(&key, namespace);
	buffer_append_char(&key, '/');
	buffer_append_slice(&key, name);
	object = key.failed ? NULL : find(&caches->all[CLAIMS], buffer_slice(&key));
	buffer_destroy(&key);
	if (object == NULL)
		return false;
	*ret_claim = object->claim;
	return true;
}

static bool find_class(void *context, struct slice name, struct class_view *ret_class)
{
	const struct caches *caches = context;
	const struct cached_object *object = find(&caches->all[CLASSES], name);

	if (object == NULL)
		return false;
	*ret_class = object->class;
	return true;
}

static bool find_node(void *context, struct slice name, struct node_id *ret_id)
{
	const struct caches *caches = context;
	const struct cached_object *object = find(&caches->all[NODES], name);

	if (object == NULL)
		return false;
	*ret_id = object->node;
	return true;
}

/* ---- starting, again and again ---- */

static bool start_store(struct cache *cache, struct error *err);

static void try_again(void *context);

static void try_again_after(struct cache *cache, uint64_t wait_ns)
{
	struct loop *loop = cache->caches->options.loop;

	cache->retry_due_ns = loop_now_ns(loop) + wait_ns;
	loop_timer_start(loop, &cache->retry, wait_ns, try_again, cache);
}

static void try_again(void *context)
{
	struct cache *cache = context;
	struct error err;

	if (!start_store(cache, &err))
		try_again_after(cache, (uint64_t)CACHES_RETRY_MAX_MS * NS_PER_MS);
}

static uint64_t wait_after_failure(struct cache *cache)
{
	uint64_t wait_ms =
		rng_between(loop_rng(cache->caches->options.loop), CACHES_RETRY_LOW_MS, CACHES_RETRY_HIGH_MS);

	for (unsigned i = 0; i < cache->failures && wait_ms < CACHES_RETRY_MAX_MS; i++)
		wait_ms *= 2;
	cache->failures++;
	return (wait_ms < CACHES_RETRY_MAX_MS ? wait_ms : CACHES_RETRY_MAX_MS) * NS_PER_MS;
}

static void on_started(void *context)
{
	struct cache *cache = context;
	struct caches *caches = cache->caches;
	struct logger logger = cache_logger(cache);

	cache->synced = true;
	cache->refused = false;
	log_info(&logger, "In sync", log_uint("objects", watch_store_count(cache->store)));
	if (cache->number == NODES)
		caches->view.find_node = find_node;
	if (caches->told || caches_missing(caches) != NULL)
		return;
	caches->told = true;
	caches->handler.on_synced(caches->context);
}

static void drop_store(struct cache *cache)
{
	watch_store_destroy(cache->store);
	cache->store = NULL;
	table_destroy(&cache->index);
	table_init(&cache->index);
	cache->index_incomplete = false;
	if (cache->number == VOLUMES) {
		volume_counts_clear(&cache->caches->counts);
		cache->caches->counts_incomplete = false;
	}
}

/* Rather than something that passes: a token or a version that is out of date, or a server with too much to do. */
static bool is_refusal(int status)
{
	switch (status) {
	case 401:
	case 408:
	case 409:
	case 410:
	case 429:
		return false;
	default:
		return status >= 400 && status < 500;
	}
}

static void on_start_failed(void *context, const struct error *err)
{
	struct cache *cache = context;
	struct caches *caches = cache->caches;
	struct logger logger = cache_logger(cache);
	int status = watch_store_start_status(cache->store);
	uint64_t wait_ns = wait_after_failure(cache);
	struct error own = *err;

	drop_store(cache);
	if (status == 404 && cache->number < NEEDED_COUNT) {
		error_wrap(&own, "%s", RESOURCES[cache->number]);
		caches->handler.on_missing(caches->context, &own);
		return;
	}
	if (cache->number == NODES && is_refusal(status)) {
		cache->refused = true;
		wait_ns = (uint64_t)CACHES_NODES_RETRY_S * NS_PER_S;
	}
	log_error(&logger, "Failed to list or watch; trying again", log_error_field(&own),
	          log_duration("wait", (int64_t)wait_ns));
	try_again_after(cache, wait_ns);
}

static void on_failing(void *context, bool failing)
{
	struct cache *cache = context;

	extender_metrics_set_watch_failing(cache->caches->options.metrics, RESOURCES[cache->number], failing);
}

static bool start_store(struct cache *cache, struct error *err)
{
	static const struct watch_store_type TYPES[CACHE_COUNT] = {
		[CLAIMS] = { .path = "/api/v1/persistentvolumeclaims",
		             .resource = "persistentvolumeclaims",
		             .decode = decode,
		             .release = release },
		[CLASSES] = { .path = "/apis/storage.k8s.io/v1/storageclasses",
		              .resource = "storageclasses.storage.k8s.io",
		              .decode = decode,
		              .release = release },
		[VOLUMES] = { .path = "/apis/csi-baremetal.dell.com/v1/volumes",
		              .resource = "volumes.csi-baremetal.dell.com",
		              .decode = decode,
		              .release = release },
		[NODES] = { .path = "/api/v1/nodes", .resource = "nodes", .decode = decode, .release = release },
	};
	static const struct watch_store_handler HANDLER = {
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_started = on_started,
		.on_start_failed = on_start_failed,
		.on_failing = on_failing,
	};
	const struct watch_store_options settings = {
		.retry_unit_ns = NS_PER_MS,
		.retry_low = CACHES_RETRY_LOW_MS,
		.retry_high = CACHES_RETRY_HIGH_MS,
		.page_size = CACHES_PAGE_SIZE,
		.logger = cache_logger(cache),
	};

	cache->store = watch_store_start(cache->caches->options.loop, cache->caches->options.client,
	                                 &TYPES[cache->number], &settings, &HANDLER, cache, err);
	return cache->store != NULL;
}

/* ---- life ---- */

struct caches *caches_start(const struct caches_options *options, const struct caches_handler *handler, void *context,
                            struct error *err)
{
	struct caches *caches = memory_allocate(sizeof *caches);

	if (caches == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for the caches");
		return NULL;
	}
	caches->options = *options;
	caches->handler = *handler;
	caches->context = context;
	caches->view = (struct storage_view){ .context = caches, .find_claim = find_claim, .find_class = find_class };
	volume_counts_init(&caches->counts);
	for (int i = 0; i < CACHE_COUNT; i++) {
		caches->all[i].caches = caches;
		caches->all[i].number = (enum cache_number)i;
		table_init(&caches->all[i].index);
		arena_init(&caches->all[i].arena, CACHES_ARENA_BYTES);
	}
	for (int i = 0; i < NEEDED_COUNT; i++) {
		if (!start_store(&caches->all[i], err)) {
			caches_stop(caches);
			return NULL;
		}
		extender_metrics_set_watch_failing(options->metrics, RESOURCES[i], false);
	}
	return caches;
}

void caches_stop(struct caches *caches)
{
	if (caches == NULL)
		return;
	for (int i = 0; i < CACHE_COUNT; i++) {
		struct cache *cache = &caches->all[i];

		loop_timer_stop(caches->options.loop, &cache->retry);
		watch_store_destroy(cache->store);
		table_destroy(&cache->index);
		arena_destroy(&cache->arena);
	}
	volume_counts_destroy(&caches->counts);
	memory_release(caches);
}

/* ---- looking ---- */

const struct storage_view *caches_view(const struct caches *caches)
{
	return &caches->view;
}

const struct volume_counts *caches_volume_counts(struct caches *caches, struct error *err)
{
	const struct cached_object *object;
	size_t position = 0;

	if (!caches->counts_incomplete)
		return &caches->counts;
	volume_counts_clear(&caches->counts);
	while ((object = watch_store_next(caches->all[VOLUMES].store, &position)) != NULL) {
		if (!volume_counts_add(&caches->counts, object->volume_node_id, err))
			return NULL;
	}
	caches->counts_incomplete = false;
	return &caches->counts;
}

enum caches_nodes caches_nodes(struct caches *caches)
{
	struct cache *cache = &caches->all[NODES];

	if (cache->synced)
		return CACHES_NODES_READY;
	if (cache->refused)
		return CACHES_NODES_REFUSED;
	if (cache->store == NULL && !loop_timer_running(&cache->retry))
		try_again(cache);
	return CACHES_NODES_LOADING;
}

bool caches_nodes_may_come(const struct caches *caches, uint64_t until_ns)
{
	const struct cache *cache = &caches->all[NODES];

	return !loop_timer_running(&cache->retry) || cache->retry_due_ns < until_ns;
}

const char *caches_missing(const struct caches *caches)
{
	for (int i = 0; i < NEEDED_COUNT; i++) {
		if (!caches->all[i].synced)
			return RESOURCES[i];
	}
	return NULL;
}
