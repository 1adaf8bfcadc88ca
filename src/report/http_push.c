#include "report/http_push.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "report/object_key.h"
#include "report/push_state.h"

enum { CAUSE_BYTES = 512 };

struct http_push {
	struct report_client client; /* first */
	struct report_transport *transport;
	struct push_state state;
	struct report_call *call;
	struct buffer url;
	char trace_id[REPORT_ID_BYTES];
	char cause[CAUSE_BYTES];
};

/*
 * Keeps the metric's label a closed set (H4). Texts with a name in them have the configured one, and the one resolver's
 * address.
 */
static const char *known_cause(const char *root)
{
	static const char *const KNOWN[] = {
		"context deadline exceeded",
		"connection refused",
		"connection reset by peer",
		"no route to host",
		"network is unreachable",
		"connection timed out",
		"broken pipe",
		"EOF",
		"unexpected EOF",
	};
	static const char *const BEGINNINGS[] = { "lookup ", "x509: ", "tls: ", "malformed HTTP " };

	for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++)
		if (strcmp(root, KNOWN[i]) == 0)
			return root;
	for (size_t i = 0; i < sizeof BEGINNINGS / sizeof BEGINNINGS[0] - 1; i++)
		if (strncmp(root, BEGINNINGS[i], strlen(BEGINNINGS[i])) == 0)
			return root;
	return strncmp(root, BEGINNINGS[3], strlen(BEGINNINGS[3])) == 0 ? "malformed HTTP response" : "other";
}

static void end_failed(struct http_push *push, const struct error *failure)
{
	struct error err = *failure;

	(void)snprintf(push->cause, sizeof push->cause, "%s", known_cause(error_root(&err)));
	error_wrap(&err, "Error making request");
	push_state_end(&push->state, push->cause, &err);
}

static void on_reply(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct http_push *push = context;
	struct error err;

	push->call = NULL;
	if (reply == NULL) {
		end_failed(push, failure);
		return;
	}
	if (reply->status == 200) { /* H2: and no other */
		push_state_end(&push->state, NULL, NULL);
		return;
	}
	error_set(&err, ERROR_REFUSED, "Unexpected HTTP status code %d", reply->status);
	(void)snprintf(push->cause, sizeof push->cause, "HTTP code %d", reply->status);
	push_state_end(&push->state, push->cause, &err);
}

static void on_deadline(void *owner)
{
	struct http_push *push = owner;
	struct error err;

	report_call_cancel(push->call);
	push->call = NULL;
	error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	end_failed(push, &err);
}

static void begin(struct report_client *client, const struct report_push *what, report_push_done *done, void *context)
{
	struct http_push *push = (struct http_push *)client;
	struct http_field fields[] = {
		{ .name = SLICE("Content-Type"), .value = SLICE("application/json") },
		{ .name = SLICE("X-Trace-Id") },
		{ .name = SLICE("User-Agent"), .value = SLICE("ballast") },
	};
	struct http_request request = {
		.method = SLICE("POST"),
		.fields = { .items = fields, .count = sizeof fields / sizeof fields[0] },
		.body = what->body,
	};
	struct error err;

	push_state_begin(&push->state, report_transport_loop(push->transport), what, done, context, on_deadline, push);
	(void)snprintf(push->trace_id, sizeof push->trace_id, "%s", what->id);
	fields[1].value = slice_of(push->trace_id);
	if (!http_url_parse(buffer_slice(&push->url), &request.origin, &request.target, &err) ||
	    (push->call = report_call_start(push->transport, &request, on_reply, push, &err)) == NULL)
		end_failed(push, &err);
}

static void cancel(struct report_client *client)
{
	struct http_push *push = (struct http_push *)client;

	report_call_cancel(push->call);
	push->call = NULL;
	push_state_cancel(&push->state);
}

static size_t describe(const struct report_client *client, struct log_field fields[REPORT_LOG_FIELDS])
{
	const struct http_push *push = (const struct http_push *)client;

	fields[0] = log_slice("url", buffer_slice(&push->url));
	fields[1] = log_text("method", "POST");
	fields[2] = log_text("traceID", push->trace_id);
	return 3;
}

static void destroy(struct report_client *client)
{
	struct http_push *push = (struct http_push *)client;

	cancel(client);
	buffer_destroy(&push->url);
	memory_release(push);
}

struct report_client *http_push_create(struct report_transport *transport, const struct http_push_options *options,
                                       struct error *err)
{
	static const struct report_client_operations OPERATIONS = {
		.push = begin, .cancel = cancel, .describe = describe, .destroy = destroy
	};
	struct http_push *push = memory_allocate(sizeof *push);

	if (push == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an HTTP client");
		return NULL;
	}
	*push = (struct http_push){
		.client = { .name = "http", .format = REPORT_JSON_ARRAY, .operations = &OPERATIONS },
		.transport = transport,
	};
	buffer_init(&push->url, REPORT_URL_BYTES);
	buffer_append_slice(&push->url, options->url);
	buffer_append_text(&push->url, "/usage_events"); /* H1: plain concatenation */
	if (!buffer_check(&push->url, "the URL of the HTTP client", err)) {
		destroy(&push->client);
		return NULL;
	}
	return &push->client;
}
