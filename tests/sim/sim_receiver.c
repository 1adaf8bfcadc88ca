#include "sim_receiver.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "net/http_server.h"
#include "sandbox/gunzip.h"

enum {
	BODY_BYTES_MAX = 8 * 1024 * 1024,
	LINES_BYTES_MAX = 64 * 1024 * 1024,
	OUTAGE_LOW_MS = 200,
	OUTAGE_HIGH_MS = 60000,
	RESTART_HIGH_MS = 3000,
	SLOW_LOW_MS = 500,
	SLOW_HIGH_MS = 24000, /* some pushes have 20 s */
	WAIT_HIGH_S = 30,     /* that it asks for */
	FREEZE_HIGH_MS = 15000,
	PARTITION_HIGH_MS = 60000,
	REQUESTS_MAX = 40, /* in one second; seen: 15, when all agents find their receiver again at once */
};

/* A request that waits for its answer. */
struct waiting {
	struct waiting *next;
	struct sim_receiver *receiver;
	struct http_call *call;
	enum sim_channel channel;
	struct loop_timer timer; /* not running: it waits for ever */
};

struct sim_receiver {
	struct simulation *simulation;
	struct sim_bills *bills;
	struct loop *loop;
	struct address address;
	struct http_server *server; /* NULL: it is away */
	struct waiting *waiting;
	enum sim_receiver_fault fault;
	uint64_t fault_until_ns;
	unsigned meets; /* of a hundred requests */
	unsigned requests_before;
	struct sim_receiver_counts counts;
};

const char *sim_receiver_fault_name(enum sim_receiver_fault fault)
{
	static const char *const NAMES[SIM_RECEIVER_FAULTS] = { "good",      "away",        "busy",
		                                                "failing",   "slow",        "hanging",
		                                                "head only", "lost answer", "odd answer" };

	return NAMES[fault];
}

/* ---- requests that wait ---- */

static void forget(struct waiting *waiting)
{
	struct sim_receiver *receiver = waiting->receiver;
	struct waiting **place = &receiver->waiting;

	while (*place != waiting)
		place = &(*place)->next;
	*place = waiting->next;
	loop_timer_stop(receiver->loop, &waiting->timer);
	memory_release(waiting);
}

/* NULL without memory. */
static struct waiting *keep_waiting(struct sim_receiver *receiver, struct http_call *call, enum sim_channel channel)
{
	struct waiting *waiting = memory_allocate(sizeof *waiting);

	if (waiting == NULL) {
		http_call_abort(call, true);
		return NULL;
	}
	*waiting =
		(struct waiting){ .next = receiver->waiting, .receiver = receiver, .call = call, .channel = channel };
	receiver->waiting = waiting;
	http_call_set_context(call, waiting);
	return waiting;
}

static void on_abort(void *context, struct http_call *call)
{
	struct waiting *waiting = http_call_context(call);

	(void)context;
	if (waiting != NULL)
		forget(waiting);
}

/* ---- taking ---- */

static bool has_prefix(struct http_call *call, const char *prefix)
{
	return slice_starts_with(http_call_path(call), slice_of(prefix));
}

/* False: nothing of ours. */
static bool find_channel(struct http_call *call, enum sim_channel *ret_channel)
{
	static const char *const PATHS[SIM_CHANNELS] = { "/v1/usage_events", "/" SIM_BILLING_CONTAINER "/b%2F",
		                                         "/" SIM_BILLING_BUCKET "/b/",
		                                         "/" SIM_SCALING_CONTAINER "/s%2F",
		                                         "/" SIM_SCALING_BUCKET "/s/" };

	for (int i = 0; i < SIM_CHANNELS; i++) {
		if (has_prefix(call, PATHS[i]) &&
		    slice_equal_text(http_call_method(call), i == SIM_BILLING_HTTP ? "POST" : "PUT")) {
			*ret_channel = (enum sim_channel)i;
			return true;
		}
	}
	return false;
}

static bool check_head(struct http_call *call, enum sim_channel channel, struct error *err)
{
	struct http_fields fields = http_call_fields(call);
	struct slice type = http_fields_find(fields, "Content-Type");
	struct slice authorization = http_fields_find(fields, "Authorization");
	bool s3 = channel == SIM_BILLING_S3 || channel == SIM_SCALING_S3;

	if (channel == SIM_BILLING_HTTP)
		return (slice_equal_text(type, "application/json") &&
		        http_fields_find(fields, "X-Trace-Id").length > 0) ||
		       error_set(err, ERROR_SYNTAX, "the head of a push");
	return (slice_equal_text(type, "application/octet-stream") &&
	        http_fields_find(fields, "Content-Encoding").data == NULL &&
	        slice_starts_with(authorization, s3 ? SLICE("AWS4-HMAC-SHA256 Credential=") : SLICE("SharedKey ")) &&
	        (s3 || slice_equal_text(http_fields_find(fields, "x-ms-blob-type"), "BlockBlob"))) ||
	       error_set(err, ERROR_SYNTAX, "the head of an object");
}

static void take(struct sim_receiver *receiver, struct http_call *call, enum sim_channel channel)
{
	struct slice body = http_call_body(call);
	struct buffer lines;
	struct error err;
	bool ok;

	buffer_init(&lines, LINES_BYTES_MAX);
	ok = check_head(call, channel, &err) && (channel == SIM_BILLING_HTTP || gunzip(body, &lines, &err)) &&
	     sim_bills_take(receiver->bills, channel, body, channel == SIM_BILLING_HTTP ? body : buffer_slice(&lines),
	                    &err);
	buffer_destroy(&lines);
	if (!ok)
		simulation_broken(receiver->simulation, "well-formed", "a batch for %s: %s",
		                  sim_channel_client(channel), err.text);
	sim_world_note(simulation_world(receiver->simulation), "receiver: takes a batch (%s, %zu bytes)",
	               sim_channel_client(channel), body.length);
}

/* Each kind has a status of its own for success (H2, P6, A4). */
static int success_of(enum sim_channel channel)
{
	return channel == SIM_BILLING_AZURE || channel == SIM_SCALING_AZURE ? 201 : 200;
}

static void take_and_answer(struct sim_receiver *receiver, struct http_call *call, enum sim_channel channel)
{
	take(receiver, call, channel);
	http_call_respond(call, success_of(channel), NULL, SLICE(""));
}

/* ---- misfortunes of a request ---- */

static void answer_busy(struct http_call *call, struct rng *rng)
{
	char seconds[16];
	struct http_field field = { .name = SLICE("Retry-After") };
	struct http_fields fields = { .items = &field };

	(void)snprintf(seconds, sizeof seconds, "%u", (unsigned)rng_between(rng, 0, WAIT_HIGH_S));
	field.value = slice_of(seconds);
	fields.count = rng_between(rng, 0, 2) == 0 ? 1 : 0;
	http_call_respond_with(call, rng_between(rng, 0, 2) == 0 ? 429 : 503, fields, SLICE("busy"));
}

static void answer_failure(struct http_call *call, struct rng *rng)
{
	static const int STATUSES[] = { 500, 502, 504, 403 };

	http_call_respond(call, STATUSES[rng_between(rng, 0, sizeof STATUSES / sizeof STATUSES[0])], "application/xml",
	                  SLICE("<Error><Code>InternalError</Code><Message>We are sorry</Message></Error>"));
}

static void on_waited(void *context)
{
	struct waiting *waiting = context;
	struct http_call *call = waiting->call;
	struct sim_receiver *receiver = waiting->receiver;
	enum sim_channel channel = waiting->channel;

	forget(waiting);
	http_call_set_context(call, NULL);
	take_and_answer(receiver, call, channel);
}

static void wait(struct sim_receiver *receiver, struct http_call *call, enum sim_channel channel, uint64_t wait_ms)
{
	struct waiting *waiting = keep_waiting(receiver, call, channel);

	if (waiting != NULL && wait_ms > 0)
		loop_timer_start(receiver->loop, &waiting->timer, wait_ms * NS_PER_MS, on_waited, waiting);
}

static void answer_head(struct sim_receiver *receiver, struct http_call *call, enum sim_channel channel)
{
	struct http_field field = { .name = SLICE("Content-Length"), .value = SLICE("10") };

	take(receiver, call, channel);
	http_call_begin(call, success_of(channel), (struct http_fields){ .items = &field, .count = 1 });
	(void)http_call_write(call, SLICE("abc"));
	(void)keep_waiting(receiver, call, channel);
}

static void meet(struct sim_receiver *receiver, struct http_call *call, enum sim_channel channel)
{
	struct rng *rng = sim_world_rng(simulation_world(receiver->simulation));

	receiver->counts.faults[receiver->fault]++;
	switch (receiver->fault) {
	case SIM_RECEIVER_BUSY:
		answer_busy(call, rng);
		return;
	case SIM_RECEIVER_FAILS:
		answer_failure(call, rng);
		return;
	case SIM_RECEIVER_SLOW:
		wait(receiver, call, channel, rng_between(rng, SLOW_LOW_MS, SLOW_HIGH_MS));
		return;
	case SIM_RECEIVER_HANGS:
		wait(receiver, call, channel, 0);
		return;
	case SIM_RECEIVER_HEAD_ONLY:
		answer_head(receiver, call, channel);
		return;
	case SIM_RECEIVER_LOST_ANSWER:
		take(receiver, call, channel);
		http_call_abort(call, rng_between(rng, 0, 2) == 0);
		return;
	case SIM_RECEIVER_ODD_ANSWER:
		take(receiver, call, channel);
		http_call_respond(call, channel == SIM_BILLING_HTTP ? 202 : 301, NULL, SLICE(""));
		return;
	default:
		take_and_answer(receiver, call, channel);
		return;
	}
}

static void on_request(void *context, struct http_call *call)
{
	struct sim_receiver *receiver = context;
	enum sim_channel channel;

	receiver->counts.requests++;
	if (!find_channel(call, &channel)) {
		simulation_broken(receiver->simulation, "well-formed", "a request for %.*s",
		                  SLICE_ARGS(http_call_path(call)));
		http_call_respond(call, 404, NULL, SLICE(""));
		return;
	}
	if (receiver->fault != SIM_RECEIVER_GOOD &&
	    rng_between(sim_world_rng(simulation_world(receiver->simulation)), 0, 100) < receiver->meets)
		meet(receiver, call, channel);
	else
		take_and_answer(receiver, call, channel);
}

/* ---- its life ---- */

static bool open_server(struct sim_receiver *receiver, struct error *err)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request, .on_abort = on_abort };
	const struct http_server_options options = { .address = receiver->address, .max_body_bytes = BODY_BYTES_MAX };

	receiver->server = http_server_start(receiver->loop, &options, &HANDLER, receiver, err);
	return receiver->server != NULL;
}

static void close_server(struct sim_receiver *receiver)
{
	while (receiver->waiting != NULL)
		forget(receiver->waiting);
	http_server_destroy(receiver->server);
	receiver->server = NULL;
}

static void restore(struct sim_receiver *receiver)
{
	struct error err;

	receiver->fault = SIM_RECEIVER_GOOD;
	if (receiver->server == NULL && !open_server(receiver, &err))
		simulation_broken(receiver->simulation, "simulator", "the receiver doesn't come back: %s", err.text);
}

static void begin_fault(struct sim_receiver *receiver, enum sim_receiver_fault fault, struct rng *rng)
{
	uint64_t now_ns = simulation_now_ns(receiver->simulation);
	bool restarts = rng_between(rng, 0, 3) == 0;

	if (receiver->fault != SIM_RECEIVER_GOOD)
		restore(receiver);
	receiver->fault = fault;
	receiver->fault_until_ns =
		now_ns + rng_between(rng, OUTAGE_LOW_MS, restarts ? RESTART_HIGH_MS : OUTAGE_HIGH_MS) * NS_PER_MS;
	receiver->meets = rng_between(rng, 0, 2) == 0 ? 100 : 40;
	sim_world_note(simulation_world(receiver->simulation), "receiver: %s", sim_receiver_fault_name(fault));
	if (fault != SIM_RECEIVER_AWAY)
		return;
	receiver->counts.faults[SIM_RECEIVER_AWAY]++;
	close_server(receiver);
}

/* Behind the first three, as in enum sim_receiver_fault. */
static const char *const MISFORTUNES[] = { "freeze", "partition", "cut",       "away",        "busy",       "failing",
	                                   "slow",   "hanging",   "head-only", "lost-answer", "odd-answer", NULL };

static void strike(void *context, struct simulation *simulation, unsigned misfortune, struct rng *rng)
{
	struct sim_receiver *receiver = context;
	uint64_t now_ns = simulation_now_ns(simulation);
	bool silent;

	switch (misfortune) {
	case 0:
		loop_sim_freeze(receiver->loop, now_ns + rng_between(rng, 200, FREEZE_HIGH_MS) * NS_PER_MS);
		return;
	case 1:
		loop_sim_partition(receiver->loop, NULL, now_ns + rng_between(rng, 200, PARTITION_HIGH_MS) * NS_PER_MS);
		return;
	case 2:
		silent = rng_between(rng, 0, 2) == 0;
		(void)loop_sim_cut_connection(receiver->loop, rng_between(rng, 0, 5000), silent);
		return;
	default:
		begin_fault(receiver, (enum sim_receiver_fault)(misfortune - 3 + SIM_RECEIVER_AWAY), rng);
		return;
	}
}

static void calm(void *context, struct simulation *simulation)
{
	struct sim_receiver *receiver = context;

	(void)simulation;
	restore(receiver);
}

static void check(void *context, struct simulation *simulation)
{
	struct sim_receiver *receiver = context;

	if (receiver->fault != SIM_RECEIVER_GOOD && simulation_now_ns(simulation) >= receiver->fault_until_ns)
		restore(receiver);
}

static void check_second(void *context, struct simulation *simulation)
{
	struct sim_receiver *receiver = context;

	if (receiver->counts.requests - receiver->requests_before > REQUESTS_MAX)
		simulation_broken(simulation, "no-busy-loop", "the receiver got %u requests in one second",
		                  receiver->counts.requests - receiver->requests_before);
	receiver->requests_before = receiver->counts.requests;
}

static void destroy(void *context, struct simulation *simulation)
{
	struct sim_receiver *receiver = context;

	(void)simulation;
	if (receiver->server != NULL)
		close_server(receiver);
	if (receiver->loop != NULL)
		loop_destroy(receiver->loop);
	sim_bills_destroy(receiver->bills);
	memory_release(receiver);
}

struct sim_receiver *sim_receiver_create(struct simulation *simulation, struct error *err)
{
	struct sim_receiver *receiver = memory_allocate(sizeof *receiver);
	struct sim_actor actor = {
		.name = "receiver",
		.context = receiver,
		.misfortunes = MISFORTUNES,
		.strike = strike,
		.calm = calm,
		.check = check,
		.check_second = check_second,
		.destroy = destroy,
	};

	if (receiver == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a receiver");
		return NULL;
	}
	receiver->simulation = simulation;
	receiver->bills = sim_bills_create(simulation, err);
	receiver->address = (struct address){ .bytes = { 10, 4, 0, 1 }, .port = AGENT_SETUP_RECEIVER_PORT };
	if (receiver->bills != NULL)
		receiver->loop = loop_sim_create(simulation_world(simulation), "receiver", &receiver->address, err);
	if (receiver->loop == NULL || !open_server(receiver, err) || !simulation_add(simulation, &actor)) {
		destroy(receiver, simulation);
		return NULL;
	}
	return receiver;
}

struct sim_bills *sim_receiver_bills(const struct sim_receiver *receiver)
{
	return receiver->bills;
}

struct loop *sim_receiver_loop(const struct sim_receiver *receiver)
{
	return receiver->loop;
}

struct sim_receiver_counts sim_receiver_counts(const struct sim_receiver *receiver)
{
	return receiver->counts;
}
