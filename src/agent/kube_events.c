/*
 * A tally for each VM and reason says when an Event of it was sent last, and what has happened since that none has
 * told of. VMs are told apart by uid: what happened to one isn't counted for a later one of its name. What is
 * submitted is first counted there; if nothing speaks against it, all that is counted becomes one Event, which goes to
 * the queue. Whether a queued one arrives is known only later: if not, its count goes back to the tally.
 */
#include "agent/kube_events.h"

#include "agent/kube_event_body.h"
#include "agent/limits.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/table.h"
#include "base/token_bucket.h"
#include "gen/kube.gen.h"
#include "net/http_message.h"

enum {
	RATE_PER_S = 1,
	BURST = 25,
	REPEAT_S = 60,   /* between Events of one VM and reason */
	LOG_S = 60,      /* between log lines about failures */
	REFUSED_S = 600, /* after a 403 */
	TIMEOUT_S = 10,  /* of a request, retries included */

	KEY_BYTES = 1024,      /* two names of Kubernetes, a uid and a reason */
	PATH_BYTES = 1024,     /* a namespace has at most 63 bytes */
	BODY_BYTES = 16384,    /* a message of 1024 bytes, escaped, and names */
	REPLY_BYTES = 1 << 20, /* the Event, which isn't looked at */
	STATUS_ARENA_BYTES = 256 * 1024,
};

/* What is known about one VM and reason. */
struct tally {
	bool was_sent;
	uint64_t sent_at_ns; /* by the loop's clock */
	uint32_t count;      /* what happened since that no Event has told of … */
	int64_t first_ns;    /* … from then (wall clock) */
};

/* An Event that waits, or is on its way. */
struct sending {
	struct kube_events *events;
	struct sending *next;
	struct kube_call *call; /* NULL: it waits */
	char *key;              /* of its tally */
	uint32_t count;
	int64_t first_ns;
	struct buffer path;
	struct buffer body;
};

struct kube_events {
	struct kube_events_options options;
	struct kube_event_sink sink;
	struct token_bucket bucket;
	struct table tallies; /* see append_key → struct tally */
	struct sending *first_waiting, *last_waiting;
	struct sending *under_way;
	size_t waiting_count, under_way_count;
	int64_t last_suffix;
	bool refused; /* until … */
	uint64_t refused_until_ns;
	bool logged;
	uint64_t logged_at_ns;
	uint64_t unlogged_failures;
};

static uint64_t seconds(uint64_t count)
{
	return count * NS_PER_S;
}

/* ---- failures ---- */

static void log_failure(struct kube_events *events, const struct error *err)
{
	uint64_t now_ns = loop_now_ns(events->options.loop);

	if (events->logged && now_ns - events->logged_at_ns < seconds(LOG_S)) {
		events->unlogged_failures++;
		return;
	}
	log_warn(&events->options.logger, "Failed to write a Kubernetes Event", log_error_field(err),
	         log_uint("failuresNotLogged", events->unlogged_failures));
	events->logged = true;
	events->logged_at_ns = now_ns;
	events->unlogged_failures = 0;
}

static bool is_refused(struct kube_events *events)
{
	events->refused = events->refused && loop_now_ns(events->options.loop) < events->refused_until_ns;
	return events->refused;
}

/* ---- tallies ---- */

/* One that says no more than one that is new. */
static bool is_spent(const struct kube_events *events, const struct tally *tally)
{
	return tally->count == 0 &&
	       (!tally->was_sent || loop_now_ns(events->options.loop) - tally->sent_at_ns >= seconds(REPEAT_S));
}

static void remove_tally(struct kube_events *events, struct slice key)
{
	memory_release(table_remove(&events->tallies, key));
}

/* Mostly those of VMs that have gone; if there are too many others, the oldest. */
static void make_room(struct kube_events *events)
{
	struct table *tallies = &events->tallies;
	struct table_entry *entry;

	for (entry = table_next(tallies, NULL); entry != NULL; entry = table_next(tallies, entry)) {
		if (is_spent(events, entry->value))
			remove_tally(events, slice_from(entry->key, entry->key_length));
	}
	if (tallies->count < AGENT_KUBE_EVENT_TALLIES)
		return;
	entry = table_next(tallies, NULL);
	remove_tally(events, slice_from(entry->key, entry->key_length));
}

static struct tally *find_tally(struct kube_events *events, struct slice key, struct error *err)
{
	struct tally *tally = table_find(&events->tallies, key);

	if (tally != NULL)
		return tally;
	if (events->tallies.count >= AGENT_KUBE_EVENT_TALLIES)
		make_room(events);
	tally = memory_allocate(sizeof *tally);
	if (tally != NULL && table_set(&events->tallies, key, tally))
		return tally;
	memory_release(tally);
	error_set(err, ERROR_NO_MEMORY, "out of memory");
	return NULL;
}

static void add_to_tally(struct tally *tally, uint32_t count, int64_t first_ns)
{
	if (tally->count == 0 || first_ns < tally->first_ns)
		tally->first_ns = first_ns;
	tally->count = count < UINT32_MAX - tally->count ? tally->count + count : UINT32_MAX;
}

/* ---- sending ---- */

static void free_sending(struct sending *sending)
{
	buffer_destroy(&sending->path);
	buffer_destroy(&sending->body);
	memory_release(sending->key);
	memory_release(sending);
}

/* It won't arrive; what it tells of is told with the next one. */
static void give_back(struct sending *sending)
{
	struct tally *tally = table_find(&sending->events->tallies, slice_of(sending->key));

	if (tally != NULL)
		add_to_tally(tally, sending->count, sending->first_ns);
	free_sending(sending);
}

static struct sending *take_waiting(struct kube_events *events)
{
	struct sending *sending = events->first_waiting;

	if (sending == NULL)
		return NULL;
	events->first_waiting = sending->next;
	if (events->first_waiting == NULL)
		events->last_waiting = NULL;
	events->waiting_count--;
	sending->next = NULL;
	return sending;
}

static void add_waiting(struct kube_events *events, struct sending *sending)
{
	if (events->last_waiting != NULL)
		events->last_waiting->next = sending;
	else
		events->first_waiting = sending;
	events->last_waiting = sending;
	events->waiting_count++;
}

static void remove_under_way(struct sending *sending)
{
	struct sending **at = &sending->events->under_way;

	while (*at != sending)
		at = &(*at)->next;
	*at = sending->next;
	sending->events->under_way_count--;
}

/* In a namespace that is being deleted nothing can be made, which is a 403 too and says nothing about rights. */
static bool is_missing_right(int status, struct slice refusal)
{
	struct kube_status message;
	struct arena arena;
	struct error ignored;
	bool missing = status == 403;

	arena_init(&arena, STATUS_ARENA_BYTES);
	if (missing && kube_status_from_json(refusal, &arena, &message, &ignored) && message.has_details) {
		for (size_t i = 0; i < message.details.causes_count; i++)
			missing =
				missing && !slice_equal_text(message.details.causes[i].reason, "NamespaceTerminating");
	}
	arena_destroy(&arena);
	return missing;
}

static void refuse(struct kube_events *events, const struct error *err)
{
	struct sending *sending;

	if (!is_refused(events))
		log_warn(
			&events->options.logger,
			"Kubernetes Events aren't written for 10 minutes: the agent's ClusterRole lacks the rule for them",
			log_text("missingRule", "apiGroups: [\"\"], resources: [events], verbs: [create]"),
			log_error_field(err));
	events->refused = true;
	events->refused_until_ns = loop_now_ns(events->options.loop) + seconds(REFUSED_S);
	while ((sending = take_waiting(events)) != NULL)
		give_back(sending);
}

static void start_waiting(struct kube_events *events);

static void on_body(void *context, struct slice bytes)
{
	(void)context;
	(void)bytes;
}

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct sending *sending = context;
	struct kube_events *events = sending->events;
	bool missing_right = err != NULL && is_missing_right(status, kube_call_refusal(sending->call));

	(void)body;
	remove_under_way(sending);
	if (err == NULL)
		free_sending(sending);
	else
		give_back(sending);
	if (missing_right)
		refuse(events, err);
	else if (err != NULL)
		log_failure(events, err);
	start_waiting(events);
}

static void start(struct kube_events *events, struct sending *sending)
{
	static const struct kube_handler HANDLER = { .on_body = on_body, .on_done = on_done };
	const struct kube_request request = {
		.method = SLICE("POST"),
		.path = buffer_slice(&sending->path),
		.content_type = SLICE("application/json"),
		.body = buffer_slice(&sending->body),
		.timeout_ns = seconds(TIMEOUT_S),
		.max_body_bytes = REPLY_BYTES,
		.verb = "create",
		.resource = "events",
	};
	struct error err;

	sending->call = kube_client_send(events->options.client, &request, &HANDLER, sending, &err);
	if (sending->call == NULL) {
		give_back(sending);
		log_failure(events, &err);
		return;
	}
	sending->next = events->under_way;
	events->under_way = sending;
	events->under_way_count++;
}

static void start_waiting(struct kube_events *events)
{
	struct sending *sending;

	while (events->under_way_count < AGENT_KUBE_EVENTS_UNDER_WAY && (sending = take_waiting(events)) != NULL)
		start(events, sending);
}

/* ---- what comes in ---- */

static uint64_t next_suffix(struct kube_events *events, int64_t now_ns)
{
	events->last_suffix = now_ns > events->last_suffix ? now_ns : events->last_suffix + 1;
	return (uint64_t)events->last_suffix;
}

/* What an Event is about. */
struct subject {
	struct slice uid; /* empty: not known */
	struct slice key; /* of its tally */
};

static struct sending *make_sending(struct kube_events *events, const struct kube_event *event,
                                    const struct subject *subject, const struct tally *tally, struct error *err)
{
	const struct kube_events_options *options = &events->options;
	int64_t now_ns = loop_wall_ns(options->loop);
	const struct kube_event_facts facts = {
		.event = event,
		.uid = subject->uid,
		.node_name = slice_of(options->node_name),
		.count = tally->count,
		.first_ns = tally->first_ns,
		.last_ns = now_ns,
		.name_suffix = next_suffix(events, now_ns),
	};
	struct sending *sending = memory_allocate(sizeof *sending);

	if (sending == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory");
		return NULL;
	}
	sending->events = events;
	sending->count = tally->count;
	sending->first_ns = tally->first_ns;
	buffer_init(&sending->path, PATH_BYTES);
	buffer_init(&sending->body, BODY_BYTES);
	buffer_append_text(&sending->path, "/api/v1/namespaces/");
	http_append_escaped(&sending->path, event->namespace);
	buffer_append_text(&sending->path, "/events");
	sending->key = memory_copy_text(subject->key.data, subject->key.length);
	if (sending->key == NULL)
		error_set(err, ERROR_NO_MEMORY, "out of memory");
	else if (buffer_check(&sending->path, "the path of an Event", err) &&
	         kube_event_append_body(&facts, &sending->body, err))
		return sending;
	free_sending(sending);
	return NULL;
}

static bool may_send(struct kube_events *events, const struct tally *tally)
{
	uint64_t now_ns = loop_now_ns(events->options.loop);

	return !is_refused(events) && events->waiting_count < AGENT_KUBE_EVENTS_WAITING &&
	       (!tally->was_sent || now_ns - tally->sent_at_ns >= seconds(REPEAT_S)) &&
	       token_bucket_wait(&events->bucket, now_ns) == 0;
}

static bool take_event(struct kube_events *events, const struct kube_event *event, const struct subject *subject,
                       struct error *err)
{
	uint64_t now_ns = loop_now_ns(events->options.loop);
	struct tally *tally = find_tally(events, subject->key, err);
	struct sending *sending;

	if (tally == NULL)
		return false;
	add_to_tally(tally, 1, loop_wall_ns(events->options.loop));
	if (!may_send(events, tally))
		return true;
	sending = make_sending(events, event, subject, tally, err);
	if (sending == NULL)
		return false;
	(void)token_bucket_take(&events->bucket, now_ns);
	tally->was_sent = true;
	tally->sent_at_ns = now_ns;
	tally->count = 0;
	add_waiting(events, sending);
	start_waiting(events);
	return true;
}

/* "namespace/name/uid/reason": a VM that is made anew under an old name is another one. */
static void append_key(const struct kube_event *event, struct slice uid, struct buffer *key)
{
	buffer_append_format(key, "%.*s/%.*s/%.*s/%s", SLICE_ARGS(event->namespace), SLICE_ARGS(event->name),
	                     SLICE_ARGS(uid), kube_event_reason_name(event->reason));
}

static void submit(void *context, const struct kube_event *event)
{
	struct kube_events *events = context;
	const struct kube_events_options *options = &events->options;
	struct subject subject = { .uid = options->uid_of(options->context, event->namespace, event->name) };
	struct buffer key;
	struct error err;

	buffer_init(&key, KEY_BYTES);
	append_key(event, subject.uid, &key);
	subject.key = buffer_slice(&key);
	if (!buffer_check(&key, "the names of an Event", &err) || !take_event(events, event, &subject, &err))
		log_failure(events, &err);
	buffer_destroy(&key);
}

/* ---- life ---- */

struct kube_events *kube_events_create(const struct kube_events_options *options, struct error *err)
{
	struct kube_events *events = memory_allocate(sizeof *events);

	if (events == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory");
		return NULL;
	}
	if (!token_bucket_init(&events->bucket, RATE_PER_S, BURST, loop_now_ns(options->loop), err)) {
		memory_release(events);
		return NULL;
	}
	events->options = *options;
	events->sink = (struct kube_event_sink){ .context = events, .submit = submit };
	table_init(&events->tallies);
	return events;
}

void kube_events_destroy(struct kube_events *events)
{
	struct sending *sending;

	if (events == NULL)
		return;
	while ((sending = take_waiting(events)) != NULL)
		free_sending(sending);
	while ((sending = events->under_way) != NULL) {
		remove_under_way(sending);
		kube_call_cancel(sending->call);
		free_sending(sending);
	}
	for (struct table_entry *entry = table_next(&events->tallies, NULL); entry != NULL;
	     entry = table_next(&events->tallies, entry))
		memory_release(entry->value);
	table_destroy(&events->tallies);
	memory_release(events);
}

const struct kube_event_sink *kube_events_sink(const struct kube_events *events)
{
	return &events->sink;
}
