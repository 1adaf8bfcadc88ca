/*
 * What one request needs from its first send to its end is kept in the client, also where it was sent: a scheduler that
 * changes meanwhile makes no difference to it.
 */
#include "agent/scheduler_client.h"

#include <stdio.h>
#include <string.h>

#include "agent/limits.h"
#include "agent/plugin_messages.h"
#include "agent/quoted.h"
#include "agent/url_text.h"

enum { REQUEST_BYTES = 4096, CODE_BYTES = 128 };

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
	if (resources_equal(permit, client->request.target))
		return SCHEDULER_APPROVED;
	if (client->request.last_permit.present && !resources_equal(permit, client->request.last_permit.value))
		return SCHEDULER_PARTIALLY_APPROVED;
	return SCHEDULER_DENIED;
}

static void count_outcome(struct scheduler_client *client, const struct scheduler_result *result)
{
	if (result->outcome == SCHEDULER_PARTIALLY_APPROVED)
		agent_metrics_count_partial_approval(client->metrics, AGENT_DIRECTION_INC);
	else if (result->outcome == SCHEDULER_DENIED)
		agent_metrics_count_full_denial(client->metrics, AGENT_DIRECTION_INC);
	if (result->outcome != SCHEDULER_FAILED && client->request.last_permit.present)
		agent_metrics_count_change(client->metrics, AGENT_CHANGE_SCHEDULER_ACCEPTED,
		                           client->request.last_permit.value, result->permit);
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

static struct plugin_message_context message_context(const struct scheduler_client *client)
{
	return (struct plugin_message_context){
		.version = client->version,
		.namespace = client->namespace,
		.pod_name = client->pod_name,
		.slot_bytes = client->slot_bytes,
		.compute_unit = client->config->core.compute_unit,
	};
}

/* Until 2.1 the plugin says what a compute unit is, and agents have to agree with it (2.7). */
static void compare_unit(const struct scheduler_client *client, struct resources unit)
{
	struct resources own = client->config->core.compute_unit;

	if (client->version > PLUGIN_PROTOCOL_2_1 || resources_equal(unit, own) ||
	    !plugin_versions_complain_of_unit(client->versions, client->uid))
		return;
	log_warn(&client->logger, "The scheduler plugin's compute unit isn't the configured one",
	         log_text("taskName", "executor: plugin"), log_uint("pluginMilliCPU", unit.cpu_milli),
	         log_uint("pluginMemory", unit.mem_bytes), log_uint("milliCPU", own.cpu_milli),
	         log_uint("memory", own.mem_bytes));
}

/* What to do about a plugin that wants something else than is sent, when that can't be found out by asking. */
static void advise(const struct scheduler_client *client, struct slice body)
{
	char wants[PLUGIN_VERSION_TEXT_BYTES];
	const char *key = "scheduler.protocolVersion";

	if (client->status != 400 || !plugin_versions_read_refusal(body, wants))
		return;
	if (!client->config->scheduler.compute_unit_configured)
		key = client->config->scheduler.protocol == PLUGIN_PROTOCOL_AUTO
		              ? "scaling.computeUnit"
		              : "scheduler.protocolVersion, scaling.computeUnit";
	log_warn(&client->logger, "The scheduler plugin wants another version of the protocol",
	         log_text("taskName", "executor: plugin"), log_text("wants", wants),
	         log_text("sent", plugin_version_name(client->version)), log_text("configurationKey", key));
}

static void log_reply(const struct scheduler_client *client, struct resources permit, struct slice response)
{
	struct log_field task = log_text("taskName", "executor: plugin");
	struct log_field field = log_json("response", response);

	if (resources_has_less(permit, client->request.target))
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

static void send_request(struct scheduler_client *client);

static void on_refused(struct scheduler_client *client, struct slice body)
{
	struct error err;

	if (client->status == 400 && client->sends < PLUGIN_VERSIONS_SENDS &&
	    plugin_versions_refused(client->versions, client->uid, client->version, body, &client->version)) {
		send_request(client);
		return;
	}
	describe_refusal(client->status, body, &err);
	advise(client, body);
	finish_failed(client, &err);
}

static void on_reply(struct scheduler_client *client, struct slice body)
{
	const struct plugin_message_context context = message_context(client);
	struct scheduler_result result = { .outcome = SCHEDULER_FAILED };
	struct plugin_reply reply;
	struct buffer text;
	struct error err;

	if (plugin_versions_accepted(client->versions, client->uid, client->version))
		log_info(&client->logger, "Found out which version of the protocol the scheduler plugin takes",
		         log_text("taskName", "executor: plugin"),
		         log_text("version", plugin_version_name(client->version)));
	buffer_init(&text, AGENT_SCHEDULER_REPLY_BYTES);
	if (plugin_reply_read(&context, body, &reply, &text, &err)) {
		result.permit = reply.permit;
		result.outcome = classify(client, result.permit);
		result.response = buffer_slice(&text);
		log_reply(client, result.permit, result.response);
		if (client->config->scheduler.compute_unit_configured)
			compare_unit(client, reply.compute_unit);
		else
			result.compute_unit = reply.compute_unit;
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

static bool send_body(struct scheduler_client *client, struct slice body, struct error *err)
{
	static const struct http_field FIELDS[] = {
		{ .name = { "content-type", 12 }, .value = { "application/json", 16 } },
	};
	static const struct http_handler HANDLER = { .on_head = on_head, .on_body = on_body, .on_done = on_done };
	uint64_t now_ns = loop_now_ns(client->loop);
	struct http_request request = {
		.origin = { .port = client->config->scheduler.request_port },
		.method = SLICE("POST"),
		.target = SLICE("/"),
		.fields = { .items = FIELDS, .count = sizeof FIELDS / sizeof FIELDS[0] },
		.body = body,
		/* 0 would be no limit. */
		.total_timeout_ns = client->deadline_ns > now_ns ? client->deadline_ns - now_ns : 1,
		.max_body_bytes = SIZE_MAX, /* on_body has the limit */
	};

	if ((size_t)snprintf(request.origin.host, sizeof request.origin.host, "%s", client->host) >=
	    sizeof request.origin.host)
		return error_set(err, ERROR_LIMIT, "the scheduler's address is too long");
	client->exchange = http_client_send(client->http, &request, &HANDLER, client, err);
	return client->exchange != NULL;
}

static bool write_request(const struct scheduler_client *client, struct buffer *body, struct error *err)
{
	const struct plugin_message_context context = message_context(client);

	if (!plugin_request_write(&context, &client->request, body, err))
		return error_wrap(err, "error encoding request JSON");
	return true;
}

/* Sends the request in the client's version: once more, if the plugin refused another one. */
static void send_request(struct scheduler_client *client)
{
	struct buffer body;
	struct error err;

	client->status = 0;
	client->sends++;
	buffer_init(&body, REQUEST_BYTES);
	if (!write_request(client, &body, &err))
		finish_failed(client, &err);
	else if (!send_body(client, buffer_slice(&body), &err))
		on_failed(client, &err);
	buffer_destroy(&body);
}

void scheduler_client_request(struct scheduler_client *client, const struct core_plugin_request *request)
{
	const struct scheduler_peer *peer = client->handler.current_scheduler(client->handler.context);
	struct error err;

	client->request = *request;
	client->sends = 0;
	/* Not scheduler.requestTimeoutSeconds: the reference doesn't use that (10.3). */
	client->deadline_ns = loop_now_ns(client->loop) + client->config->neonvm.request_timeout_ns;
	if (request->last_permit.present)
		agent_metrics_count_change(client->metrics, AGENT_CHANGE_SCHEDULER_REQUESTED,
		                           request->last_permit.value, request->target);
	if (peer == NULL) {
		error_set(&err, ERROR_REFUSED, "%s", NO_SCHEDULER);
		count_transport_failure(client, &err);
		finish_failed(client, &err);
		return;
	}
	(void)snprintf(client->host, sizeof client->host, "%s", peer->ip);
	(void)snprintf(client->uid, sizeof client->uid, "%s", peer->uid);
	url_text(client->url, "http", client->host, client->config->scheduler.request_port, "/");
	client->version = plugin_versions_current(client->versions, client->uid);
	send_request(client);
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
