/*
 * One call at a time: a page of a list, or a watch. Between calls there may be a wait. Everything runs from callbacks
 * of the client and from the timer; each of them counts itself in and out (enter, leave), so that a handler may
 * destroy the store: objects, call and timer are gone at once then, and the last one out frees the rest.
 */
#include "kube/watch_store.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kube/watch_store_internal.h"
#include "net/http_message.h"

enum {
	DOUBLINGS_MAX = 32, /* of a wait; far above what the longest wait allows */
	ARENA_BYTES = 16 * WATCH_STORE_ELEMENT_BYTES,
	QUERY_BYTES = 4 * WATCH_STORE_TEXT_BYTES,
};

static void begin_list(struct watch_store *store);
static void open_watch(struct watch_store *store);

/* ---- coming and going ---- */

static void enter(struct watch_store *store)
{
	store->depth++;
}

static void leave(struct watch_store *store)
{
	store->depth--;
	if (store->depth > 0 || !object_set_closed(&store->objects))
		return;
	json_splitter_destroy(&store->splitter);
	arena_destroy(&store->arena);
	buffer_destroy(&store->resource_version);
	buffer_destroy(&store->continue_token);
	memory_release(store);
}

void watch_store_destroy(struct watch_store *store)
{
	if (store == NULL)
		return;
	enter(store);
	if (store->call != NULL)
		kube_call_cancel(store->call);
	store->call = NULL;
	loop_timer_stop(store->loop, &store->wait);
	object_set_close(&store->objects);
	leave(store);
}

/* ---- waiting ---- */

static uint64_t grown(uint64_t wait_ns, unsigned doublings, unsigned longest_s)
{
	const uint64_t longest_ns = (uint64_t)longest_s * NS_PER_S;

	while (doublings-- > 0 && wait_ns < longest_ns)
		wait_ns = wait_ns * 2 < longest_ns ? wait_ns * 2 : longest_ns;
	return wait_ns;
}

static uint64_t draw_wait(struct watch_store *store)
{
	const struct watch_store_options *options = &store->options;

	return options->retry_unit_ns * rng_between(loop_rng(store->loop), options->retry_low, options->retry_high);
}

static void count_up(unsigned *counter)
{
	if (*counter < DOUBLINGS_MAX)
		++*counter;
}

/* Whether the call that failed found nobody (status 0) and knew at once. */
static bool is_away(const struct watch_store *store, int status)
{
	return status == 0 &&
	       loop_now_ns(store->loop) - store->call_began_ns < (uint64_t)WATCH_STORE_AWAY_MS * NS_PER_MS;
}

/* The wait after a failure. Refused connections beyond their longest wait don't make that of other failures longer. */
static uint64_t wait_after_failure(struct watch_store *store, bool away, uint64_t at_least_ns)
{
	const unsigned longest_s = away ? WATCH_STORE_AWAY_RETRY_MAX_S : WATCH_STORE_RETRY_MAX_S;
	uint64_t wait_ns = grown(draw_wait(store), store->failures, longest_s);

	if (!away || wait_ns < (uint64_t)longest_s * NS_PER_S)
		count_up(&store->failures);
	return wait_ns > at_least_ns ? wait_ns : at_least_ns;
}

static bool is_short(uint64_t lived_ns)
{
	return lived_ns < (uint64_t)WATCH_STORE_SHORT_WATCH_MS * NS_PER_MS;
}

/* How long the watch that is over has lived. What it had of health is taken into account. */
static uint64_t conclude_watch(struct watch_store *store)
{
	uint64_t lived_ns = loop_now_ns(store->loop) - store->opened_ns;

	if (lived_ns >= (uint64_t)WATCH_STORE_HEALTHY_S * NS_PER_S)
		store->failures = 0;
	if (lived_ns >= (uint64_t)WATCH_STORE_CALM_S * NS_PER_S || (store->delivered && !is_short(lived_ns))) {
		store->short_watches = 0;
		store->short_relists = 0;
	} else if (store->delivered) {
		/* The waits begin anew, but aren't left out: short watches with an event each are a loop, too. */
		store->short_watches = store->short_watches > 0;
		store->short_relists = store->short_relists > 0;
	}
	return lived_ns;
}

/*
 * The wait before something that is right to do at once, unless the watch before was short, and the one before that,
 * and so on: *counter tells how many.
 */
static uint64_t wait_after_watch(uint64_t lived_ns, uint64_t unit_ns, unsigned *counter)
{
	uint64_t wait_ns;

	if (!is_short(lived_ns))
		return 0;
	wait_ns = *counter > 0 ? grown(unit_ns, *counter - 1, WATCH_STORE_RETRY_MAX_S) : 0;
	count_up(counter);
	return wait_ns;
}

static void on_list_due(void *context)
{
	struct watch_store *store = context;

	enter(store);
	begin_list(store);
	leave(store);
}

static void on_watch_due(void *context)
{
	struct watch_store *store = context;

	enter(store);
	open_watch(store);
	leave(store);
}

/* Even without a wait from the timer: what fails inside the attempt mustn't try again inside itself. */
static void list_after(struct watch_store *store, uint64_t wait_ns)
{
	store->phase = WATCH_STORE_WAITING;
	/* A half-read object, of megabytes perhaps, doesn't stay over the wait. */
	json_splitter_destroy(&store->splitter);
	loop_timer_start(store->loop, &store->wait, wait_ns, on_list_due, store);
}

static void watch_after(struct watch_store *store, uint64_t wait_ns)
{
	store->phase = WATCH_STORE_WAITING;
	loop_timer_start(store->loop, &store->wait, wait_ns, on_watch_due, store);
}

/* ---- telling ---- */

static void count_call(struct watch_store *store, enum watch_store_call call)
{
	if (store->handler.on_call != NULL)
		store->handler.on_call(store->context, call);
}

static void count_error(struct watch_store *store, enum watch_store_error error)
{
	if (store->handler.on_error != NULL)
		store->handler.on_error(store->context, error);
}

static void set_failing(struct watch_store *store, bool failing)
{
	bool changes = store->failing != failing;

	store->failing = failing;
	if (changes && store->handler.on_failing != NULL)
		store->handler.on_failing(store->context, failing);
}

static void fail_start(struct watch_store *store, const char *what, const struct error *err)
{
	struct error own = *err;

	store->phase = WATCH_STORE_STOPPED;
	object_set_drop_list(&store->objects);
	error_wrap(&own, "initial %s failed", what);
	store->handler.on_start_failed(store->context, &own);
}

/* ---- asking ---- */

static void add_parameter(struct buffer *query, const char *key, struct slice value)
{
	if (query->length > 0)
		buffer_append_char(query, '&');
	buffer_append_format(query, "%s=", key);
	http_append_escaped(query, value);
}

static void add_number(struct buffer *query, const char *key, uint64_t value)
{
	if (query->length > 0)
		buffer_append_char(query, '&');
	buffer_append_format(query, "%s=%llu", key, (unsigned long long)value);
}

/* Parameters in alphabetical order, as the reference sends them. */
static void build_list_query(const struct watch_store *store, struct buffer *query)
{
	if (store->paged)
		add_parameter(query, "continue", buffer_slice(&store->continue_token));
	if (store->type->label_selector != NULL)
		add_parameter(query, "labelSelector", slice_of(store->type->label_selector));
	if (store->options.page_size > 0)
		add_number(query, "limit", store->options.page_size);
}

static void build_watch_query(const struct watch_store *store, uint64_t seconds, struct buffer *query)
{
	add_parameter(query, "allowWatchBookmarks", SLICE("true"));
	if (store->type->label_selector != NULL)
		add_parameter(query, "labelSelector", slice_of(store->type->label_selector));
	add_parameter(query, "resourceVersion", buffer_slice(&store->resource_version));
	add_number(query, "timeoutSeconds", seconds);
	add_parameter(query, "watch", SLICE("true"));
}

/* Sends a request whose method, path and texts are the same for lists and watches. Destroys the query. */
static bool send_request(struct watch_store *store, struct kube_request *request, struct buffer *query,
                         const struct kube_handler *handler, struct error *err)
{
	request->method = SLICE("GET");
	request->path = slice_of(store->type->path);
	request->query = buffer_slice(query);
	request->verb = "get";
	request->resource = store->type->resource;
	store->call_began_ns = loop_now_ns(store->loop);
	store->call = buffer_check(query, "the query", err)
	                      ? kube_client_send(store->client, request, handler, store, err)
	                      : NULL;
	buffer_destroy(query);
	return store->call != NULL;
}

static void restart_splitter(struct watch_store *store, enum json_splitter_mode mode, json_splitter_callback *callback)
{
	json_splitter_destroy(&store->splitter);
	json_splitter_init(&store->splitter, mode, SLICE("items"), WATCH_STORE_ELEMENT_BYTES,
	                   WATCH_STORE_ENVELOPE_BYTES, callback, store);
}

/* ---- lists ---- */

static void fail_list(struct watch_store *store, bool away, const struct error *err, uint64_t retry_after_ns)
{
	store->call = NULL;
	object_set_drop_list(&store->objects);
	count_error(store, WATCH_STORE_ERROR_LIST);
	if (!store->started) {
		fail_start(store, "list", err);
		return;
	}
	log_error(&store->options.logger, "Relist failed", log_error_field(err));
	set_failing(store, true);
	list_after(store, wait_after_failure(store, away, retry_after_ns));
}

static void finish_list(struct watch_store *store)
{
	if (!store->started && !store->options.deliver_before_watch) {
		open_watch(store);
		return;
	}
	set_failing(store, false);
	object_set_apply_list(&store->objects);
	if (object_set_closed(&store->objects))
		return;
	if (store->started)
		log_info(&store->options.logger, "Relist complete, restarting watcher");
	open_watch(store);
}

static void on_list_body(void *context, struct slice bytes)
{
	struct watch_store *store = context;
	struct error err;

	enter(store);
	if (!json_splitter_feed(&store->splitter, bytes, &err)) {
		kube_call_cancel(store->call);
		fail_list(store, false, &err, 0);
	}
	leave(store);
}

static void send_page(struct watch_store *store);

static void on_page_whole(struct watch_store *store)
{
	struct slice envelope;
	struct error err;

	if (!json_splitter_finish(&store->splitter, &envelope, &err) ||
	    !watch_frames_read_envelope(store, envelope, &err))
		fail_list(store, false, &err, 0);
	else if (store->continue_token.length == 0)
		finish_list(store);
	else {
		store->paged = true;
		send_page(store);
	}
}

static void on_list_done(void *context, int status, struct slice body, const struct error *err)
{
	struct watch_store *store = context;
	uint64_t retry_after_ns = kube_call_retry_after_ns(store->call);

	(void)body;
	enter(store);
	store->call = NULL;
	store->start_status = err != NULL ? status : 0;
	if (err == NULL) {
		on_page_whole(store);
	} else if (status == 410 && store->paged && store->list_restarts < WATCH_STORE_LIST_RESTARTS) {
		/* The token got too old while we read: from the start again. */
		store->list_restarts++;
		begin_list(store);
	} else {
		fail_list(store, is_away(store, status), err, retry_after_ns);
	}
	leave(store);
}

static void send_page(struct watch_store *store)
{
	static const struct kube_handler handler = { .on_body = on_list_body, .on_done = on_list_done };
	struct kube_request request = {
		.limiter = store->paged ? NULL : store->options.limiter,
		.answer_timeout_ns = (uint64_t)WATCH_STORE_ANSWER_TIMEOUT_S * NS_PER_S,
		.idle_timeout_ns = (uint64_t)WATCH_STORE_LIST_IDLE_S * NS_PER_S,
		.max_body_bytes = WATCH_STORE_PAGE_BYTES,
	};
	struct buffer query;
	struct error err;

	buffer_init(&query, QUERY_BYTES);
	build_list_query(store, &query);
	restart_splitter(store, JSON_SPLITTER_LIST, watch_frames_read_element);
	if (!send_request(store, &request, &query, &handler, &err))
		fail_list(store, false, &err, 0);
}

static void begin_list(struct watch_store *store)
{
	store->phase = WATCH_STORE_LISTING;
	store->paged = false;
	object_set_drop_list(&store->objects);
	count_call(store, WATCH_STORE_LIST);
	send_page(store);
}

/* lived_ns: of the watch that led here; 0 if it didn't even open. */
static void relist(struct watch_store *store, uint64_t lived_ns)
{
	if (store->call != NULL)
		kube_call_cancel(store->call);
	store->call = NULL;
	store->relist_wanted = false;
	store->list_restarts = 0;
	log_info(&store->options.logger, "Relisting");
	list_after(store, wait_after_watch(lived_ns, draw_wait(store), &store->short_relists));
}

/* ---- watches ---- */

static void fail_open(struct watch_store *store, int status, const struct error *err, uint64_t retry_after_ns)
{
	count_error(store, WATCH_STORE_ERROR_WATCH);
	if (!store->started) {
		fail_start(store, "watch", err);
		return;
	}
	log_error(&store->options.logger, "Re-watch failed", log_error_field(err));
	set_failing(store, true);
	if (status == 410)
		relist(store, 0);
	else
		watch_after(store, wait_after_failure(store, is_away(store, status), retry_after_ns));
}

static void on_watch_open(void *context)
{
	struct watch_store *store = context;
	size_t deferred = object_set_listed_count(&store->objects);

	enter(store);
	store->phase = WATCH_STORE_WATCHING;
	store->opened_ns = loop_now_ns(store->loop);
	store->delivered = false;
	set_failing(store, false);
	if (!store->started) {
		if (deferred > 0) {
			log_info(&store->options.logger, "Handling deferred adds", log_uint("count", deferred));
			object_set_apply_list(&store->objects);
		}
		if (!object_set_closed(&store->objects)) {
			log_info(&store->options.logger, "All setup complete, entering event loop");
			store->started = true;
			if (store->handler.on_started != NULL)
				store->handler.on_started(store->context);
		}
	}
	leave(store);
}

static void on_watch_body(void *context, struct slice bytes)
{
	struct watch_store *store = context;
	struct error err;

	enter(store);
	if (!json_splitter_feed(&store->splitter, bytes, &err) && !object_set_closed(&store->objects)) {
		/* Without a word from the event reader it is the framing that is broken. */
		if (!store->relist_wanted)
			watch_frames_report_bad(store, &err);
		relist(store, conclude_watch(store));
	}
	leave(store);
}

static void on_watch_end(struct watch_store *store)
{
	uint64_t lived_ns = conclude_watch(store);
	const uint64_t unit_ns = (uint64_t)WATCH_STORE_REOPEN_WAIT_MS * NS_PER_MS;

	log_info(&store->options.logger, "Watcher ended gracefully, restarting");
	watch_after(store, wait_after_watch(lived_ns, unit_ns, &store->short_watches));
}

static void on_watch_done(void *context, int status, struct slice body, const struct error *err)
{
	struct watch_store *store = context;
	uint64_t retry_after_ns = kube_call_retry_after_ns(store->call);

	(void)body;
	enter(store);
	store->call = NULL;
	store->start_status = err != NULL ? status : 0;
	if (store->phase == WATCH_STORE_WATCHING || err == NULL)
		on_watch_end(store);
	else
		fail_open(store, status, err, retry_after_ns);
	leave(store);
}

static void open_watch(struct watch_store *store)
{
	static const struct kube_handler handler = { .on_open = on_watch_open,
		                                     .on_body = on_watch_body,
		                                     .on_done = on_watch_done };
	uint64_t seconds = rng_between(loop_rng(store->loop), WATCH_STORE_WATCH_MIN_S, WATCH_STORE_WATCH_MAX_S + 1);
	struct kube_request request = {
		.watch = true,
		.answer_timeout_ns = (uint64_t)WATCH_STORE_OPEN_TIMEOUT_S * NS_PER_S,
		.idle_timeout_ns = (seconds + WATCH_STORE_WATCH_GRACE_S) * NS_PER_S,
		.max_body_bytes = SIZE_MAX,
	};
	struct buffer query;
	struct error err;

	store->phase = WATCH_STORE_OPENING;
	count_call(store, WATCH_STORE_WATCH);
	buffer_init(&query, QUERY_BYTES);
	build_watch_query(store, seconds, &query);
	restart_splitter(store, JSON_SPLITTER_VALUES, watch_frames_read_event);
	if (!send_request(store, &request, &query, &handler, &err))
		fail_open(store, 0, &err, 0);
}

/* ---- the rest of the interface ---- */

struct watch_store *watch_store_start(struct loop *loop, struct kube_client *client,
                                      const struct watch_store_type *type, const struct watch_store_options *options,
                                      const struct watch_store_handler *handler, void *context, struct error *err)
{
	struct watch_store *store = memory_allocate(sizeof *store);

	if (store == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a watch");
		return NULL;
	}
	store->loop = loop;
	store->client = client;
	store->type = type;
	store->options = *options;
	store->handler = *handler;
	store->context = context;
	store->phase = WATCH_STORE_WAITING;
	object_set_init(&store->objects, type, &store->handler, context);
	buffer_init(&store->resource_version, WATCH_STORE_TEXT_BYTES);
	buffer_init(&store->continue_token, WATCH_STORE_TEXT_BYTES);
	arena_init(&store->arena, ARENA_BYTES);
	json_splitter_init(&store->splitter, JSON_SPLITTER_VALUES, SLICE("items"), WATCH_STORE_ELEMENT_BYTES,
	                   WATCH_STORE_ENVELOPE_BYTES, watch_frames_read_event, store);
	loop_timer_start(loop, &store->wait, 0, on_list_due, store);
	return store;
}

int watch_store_start_status(const struct watch_store *store)
{
	return store->start_status;
}

bool watch_store_failing(const struct watch_store *store)
{
	return store->failing;
}

size_t watch_store_count(const struct watch_store *store)
{
	return store->objects.count;
}

void *watch_store_next(const struct watch_store *store, size_t *position)
{
	return object_set_next(&store->objects, position);
}
