#include "agent/scheduler_client.h"

#include <stdio.h>
#include <string.h>

#include "agent/json_cause.h"
#include "agent/limits.h"
#include "agent/quoted.h"
#include "agent/url_text.h"
#include "codec/json_reader.h"
#include "gen/plugin.gen.h"

enum {
	PLUGIN_PROTOCOL_VERSION = 7, /* v5.0, spec protocols 4.1 */
	REQUEST_BYTES = 4096,
	CODE_BYTES = 128,
	REPLY_ARENA_BYTES = 12 * AGENT_SCHEDULER_REPLY_BYTES,
};

static const char NO_SCHEDULER[] = "no known ready scheduler to send request to";

/* ---- counting ---- */

/* Keeps the label's values a closed set: texts of the network layer may carry addresses or names. */
static const char *known_reason(const char *root)
{
	static const char *const KNOWN[] = {
		"connection refused",
		"connection reset by peer",
		"no route to host",
		"network is unreachable",
		"connection timed out",
		"broken pipe",
		"EOF",
		"unexpected EOF",
		"context canceled",
		"context deadline exceeded",
		NO_SCHEDULER,
	};

	for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
		if (strcmp(root, KNOWN[i]) == 0)
			return KNOWN[i];
	}
	return "other";
}

static void count_transport_failure(struct scheduler_client *client, const struct error *err)
{
	char code[CODE_BYTES];

	(void)snprintf(code, sizeof code, "[error doing request: %s]", known_reason(error_root(err)));
	agent_metrics_count_scheduler_request(client->metrics, code);
}

static void count_status(struct scheduler_client *client, int status)
{
	char code[CODE_BYTES];

	(void)snprintf(code, sizeof code, "%d", status);
	agent_metrics_count_scheduler_request(client->metrics, code);
}

static enum scheduler_outcome classify(const struct scheduler_client *client, struct resources permit)
{
	if (resources_equal(permit, client->target))
		return SCHEDULER_APPROVED;
	if (client->last_permit.present && !resources_equal(permit, client->last_permit.value))
		return SCHEDULER_PARTIALLY_APPROVED;
	return SCHEDULER_DENIED;
}

static void count_outcome(struct scheduler_client *client, const struct scheduler_result *result)
{
	if (result->outcome == SCHEDULER_PARTIALLY_APPROVED)
		agent_metrics_count_partial_approval(client->metrics, AGENT_DIRECTION_INC);
	else if (result->outcome == SCHEDULER_DENIED)
		agent_metrics_count_full_denial(client->metrics, AGENT_DIRECTION_INC);
	if (result->outcome != SCHEDULER_FAILED && client->last_permit.present)
		agent_metrics_count_change(client->metrics, AGENT_CHANGE_SCHEDULER_ACCEPTED, client->last_permit.value,
		                           result->permit);
}

static void finish(struct scheduler_client *client, const struct scheduler_result *result)
{
	count_outcome(client, result);
	client->handler.on_done(client->handler.context, result);
}

static void finish_failed(struct scheduler_client *client, const struct error *err)
{
	const struct scheduler_result result = { .outcome = SCHEDULER_FAILED, .error = err };

	log_error(&client->logger, "Scheduler request failed", log_text("taskName", "executor: plugin"),
	          log_error_field(err));
	finish(client, &result);
}

/* ---- reply ---- */

/* Fills *err with the first bytes of a reply that is no 200. */
static void describe_refusal(int status, struct slice body, struct error *err)
{
	struct buffer quoted;

	quoted_init(&quoted, body);
	error_set(err, ERROR_REFUSED, "received response status %d body %.*s", status,
	          SLICE_ARGS(buffer_slice(&quoted)));
	buffer_destroy(&quoted);
}

static bool read_reply(struct slice body, struct resources *ret_permit, struct buffer *response, struct error *err)
{
	struct plugin_plugin_response reply;
	struct json_reader reader;
	struct arena arena;
	bool done = false;

	arena_init(&arena, REPLY_ARENA_BYTES);
	if (!json_reader_open(&reader, body, &arena, err) || !plugin_plugin_response_decode(&reader, &reply, err) ||
	    !json_reader_finish(&reader, err)) {
		(void)json_cause_restate(&reader, false, err);
		error_wrap(err, "bad JSON response");
		goto out;
	}
	/* A missing permit is one of nothing: the core refuses it. */
	if (!reply.has_permit) {
		reply.has_permit = true;
		reply.permit = (struct plugin_resources){ 0 };
	}
	if (!plugin_plugin_response_to_json(&reply, response, err))
		goto out;
	*ret_permit = (struct resources){ .cpu_milli = reply.permit.cpu_milli, .mem_bytes = reply.permit.mem_bytes };
	done = true;
out:
	arena_destroy(&arena);
	return done;
}

static void log_reply(const struct scheduler_client *client, struct resources permit, struct slice response)
{
	struct log_field task = log_text("taskName", "executor: plugin");
	struct log_field field = log_json("response", response);

	if (resources_has_less(permit, client->target))
		log_warn(&client->logger, "Received response from scheduler", task, field);
	else
		log_debug(&client->logger, "Received response from scheduler", task, field);
}

static void on_failed(struct scheduler_client *client, const struct error *failure)
{
	struct error err = *failure;

	error_wrap(&err, "Post \"%s\"", client->url);
	if (client->status != 0) {
		error_wrap(&err, "error reading body for response");
	} else {
		count_transport_failure(client, &err);
		error_wrap(&err, "error doing request");
	}
	finish_failed(client, &err);
}

static void on_refused(struct scheduler_client *client, struct slice body)
{
	struct error err;

	describe_refusal(client->status, body, &err);
	finish_failed(client, &err);
}

static void on_reply(struct scheduler_client *client, struct slice body)
{
	struct scheduler_result result = { .outcome = SCHEDULER_FAILED };
	struct buffer text;
	struct error err;

	buffer_init(&text, AGENT_SCHEDULER_REPLY_BYTES);
	if (read_reply(body, &result.permit, &text, &err)) {
		result.outcome = classify(client, result.permit);
		result.response = buffer_slice(&text);
		log_reply(client, result.permit, result.response);
		finish(client, &result);
	} else {
		finish_failed(client, &err);
	}
	buffer_destroy(&text);
}

/* failure NULL: what is there of the body is enough to go by. */
static void conclude(struct scheduler_client *client, const struct error *failure)
{
	struct buffer body = client->body;
	struct error err;

	/* The handler may ask again from within: nothing of this request stays in its way. */
	buffer_init(&client->body, AGENT_SCHEDULER_REPLY_BYTES);
	client->exchange = NULL;
	if (failure != NULL)
		on_failed(client, failure);
	else if (!buffer_check(&body, "the response body", &err))
		on_failed(client, &err);
	else if (client->status == 200)
		on_reply(client, buffer_slice(&body));
	else
		on_refused(client, buffer_slice(&body));
	buffer_destroy(&body);
}

static void note_head(struct scheduler_client *client, const struct http_response *response)
{
	client->status = response->status;
	count_status(client, response->status);
}

static void on_head(void *context, const struct http_response *response)
{
	note_head(context, response);
}

/* What goes beyond the limit isn't read: of a refusal there is more than enough to quote. */
static void on_body(void *context, struct slice bytes)
{
	struct scheduler_client *client = context;
	const size_t room = client->body.limit_bytes - client->body.length;
	struct error err;

	buffer_append_slice(&client->body, slice_from(bytes.data, bytes.length < room ? bytes.length : room));
	if (bytes.length <= room)
		return;
	http_exchange_cancel(client->exchange);
	error_set(&err, ERROR_LIMIT, "response body is over %zu bytes", client->body.limit_bytes);
	conclude(client, client->status == 200 ? &err : NULL);
}

static void on_done(void *context, const struct http_response *response, const struct error *failure)
{
	struct scheduler_client *client = context;

	/* A head that was refused comes with the end. */
	if (client->status == 0 && response != NULL)
		note_head(client, response);
	conclude(client, failure);
}

/* ---- request ---- */

static bool write_request(const struct scheduler_client *client, const struct core_plugin_request *request,
                          struct buffer *body, struct error *err)
{
	const struct resources unit = client->config->core.compute_unit;
	const struct resources permit = request->last_permit.value;
	struct plugin_agent_request message = {
		.proto_version = PLUGIN_PROTOCOL_VERSION,
		.pod = { .namespace = slice_of(client->namespace), .name = slice_of(client->pod_name) },
		.compute_unit = { .cpu_milli = unit.cpu_milli, .mem_bytes = unit.mem_bytes },
		.resources = { .cpu_milli = request->target.cpu_milli, .mem_bytes = request->target.mem_bytes },
		.last_permit_presence = JSON_NULL,
		.metrics_presence = JSON_NULL,
	};

	if (request->last_permit.present) {
		message.last_permit_presence = JSON_VALUE;
		message.last_permit =
			(struct plugin_resources){ .cpu_milli = permit.cpu_milli, .mem_bytes = permit.mem_bytes };
	}
	if (request->has_metrics) {
		message.metrics_presence = JSON_VALUE;
		message.metrics.load_average_1_min = request->load_average_1_min;
	}
	if (!plugin_agent_request_to_json(&message, body, err))
		return error_wrap(err, "error encoding request JSON");
	return true;
}

static bool send_request(struct scheduler_client *client, const char *host, struct slice body, struct error *err)
{
	static const struct http_field FIELDS[] = {
		{ .name = { "content-type", 12 }, .value = { "application/json", 16 } },
	};
	static const struct http_handler HANDLER = { .on_head = on_head, .on_body = on_body, .on_done = on_done };
	struct http_request request = {
		.origin = { .port = client->config->scheduler.request_port },
		.method = SLICE("POST"),
		.target = SLICE("/"),
		.fields = { .items = FIELDS, .count = sizeof FIELDS / sizeof FIELDS[0] },
		.body = body,
		/* Not scheduler.requestTimeoutSeconds: the reference doesn't use that (10.3). */
		.total_timeout_ns = client->config->neonvm.request_timeout_ns,
		.max_body_bytes = SIZE_MAX, /* on_body has the limit */
	};

	url_text(client->url, "http", host, request.origin.port, "/");
	if ((size_t)snprintf(request.origin.host, sizeof request.origin.host, "%s", host) >= sizeof request.origin.host)
		return error_set(err, ERROR_LIMIT, "the scheduler's address is too long");
	client->exchange = http_client_send(client->http, &request, &HANDLER, client, err);
	return client->exchange != NULL;
}

void scheduler_client_request(struct scheduler_client *client, const struct core_plugin_request *request)
{
	const char *host = client->handler.current_scheduler(client->handler.context);
	struct buffer body;
	struct error err;

	client->status = 0;
	client->last_permit = request->last_permit;
	client->target = request->target;
	if (client->last_permit.present)
		agent_metrics_count_change(client->metrics, AGENT_CHANGE_SCHEDULER_REQUESTED, client->last_permit.value,
		                           client->target);
	buffer_init(&body, REQUEST_BYTES);
	if (!write_request(client, request, &body, &err)) {
		finish_failed(client, &err);
	} else if (host == NULL) {
		error_set(&err, ERROR_REFUSED, "%s", NO_SCHEDULER);
		count_transport_failure(client, &err);
		finish_failed(client, &err);
	} else if (!send_request(client, host, buffer_slice(&body), &err)) {
		on_failed(client, &err);
	}
	buffer_destroy(&body);
}

void scheduler_client_init(struct scheduler_client *client, const struct scheduler_client *settings)
{
	*client = *settings;
	client->exchange = NULL;
	client->status = 0;
	buffer_init(&client->body, AGENT_SCHEDULER_REPLY_BYTES);
}

void scheduler_client_stop(struct scheduler_client *client)
{
	struct error err;

	if (client->exchange == NULL)
		return;
	http_exchange_cancel(client->exchange);
	error_set(&err, ERROR_CANCELLED, "context canceled");
	conclude(client, &err);
}
