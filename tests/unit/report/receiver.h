/*
 * What the tests of clients and credential sources share: a server that records requests and answers by script, plain
 * or with TLS, an environment of variables, and a client whose pushes are waited for.
 */
#ifndef BALLAST_TESTS_UNIT_REPORT_RECEIVER_H
#define BALLAST_TESTS_UNIT_REPORT_RECEIVER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../net/tls_scene.h"
#include "net/http_server.h"
#include "report/report_client.h"
#include "report/report_transport.h"

enum { ASKED_MAX = 16, ASKED_BODY_BYTES = 4096, VARIABLES_MAX = 16, FIELDS_BYTES = 8192 };

/* One answer of the script. */
struct reply {
	int status; /* 0: cut the connection; -1: reset it; -2: never answer */
	const char *body;
	struct http_field fields[2];
};

struct asked {
	char line[1024];           /* "PUT /target" */
	char fields[FIELDS_BYTES]; /* "name: value\n" each, names in lower case */
	char body[ASKED_BODY_BYTES];
	size_t body_length;
};

struct variable {
	const char *name;
	char value[512];
};

struct receiver {
	struct loop *loop;
	struct tls_ca *ca; /* NULL: plain */
	struct tls_settings *tls;
	struct http_server *server;
	struct address address;
	char url[64], authority[32];
	struct asked asked[ASKED_MAX];
	unsigned count;
	const struct reply *script; /* by number of the request; the last one stays */
	size_t script_length;
	struct variable variables[VARIABLES_MAX];
	size_t variable_count;
	struct report_transport *transport;
	char ca_path[64];
	/* the push waited for */
	unsigned over;
	bool succeeded;
	char cause[256];
	struct error err;
};

static inline void receiver_record(struct receiver *receiver, struct http_call *call)
{
	struct asked *asked = &receiver->asked[receiver->count];
	struct http_fields fields = http_call_fields(call);
	struct slice query = http_call_query(call), body = http_call_body(call);
	size_t length = 0;

	assert_true(receiver->count < ASKED_MAX);
	snprintf(asked->line, sizeof asked->line, "%.*s %.*s%s%.*s", SLICE_ARGS(http_call_method(call)),
	         SLICE_ARGS(http_call_path(call)), query.length > 0 ? "?" : "", SLICE_ARGS(query));
	asked->fields[0] = '\0';
	for (size_t i = 0; i < fields.count && length < sizeof asked->fields; i++) {
		size_t start = length;

		length += (size_t)snprintf(asked->fields + length, sizeof asked->fields - length, "%.*s: %.*s\n",
		                           SLICE_ARGS(fields.items[i].name), SLICE_ARGS(fields.items[i].value));
		for (size_t j = start; asked->fields[j] != ':'; j++)
			if (asked->fields[j] >= 'A' && asked->fields[j] <= 'Z')
				asked->fields[j] = (char)(asked->fields[j] + 32);
	}
	asked->body_length = body.length;
	snprintf(asked->body, sizeof asked->body, "%.*s", SLICE_ARGS(body));
	receiver->count++;
}

static inline void receiver_on_request(void *context, struct http_call *call)
{
	struct receiver *receiver = context;
	const struct reply *reply;
	size_t number = receiver->count;

	receiver_record(receiver, call);
	assert_true(receiver->script_length > 0);
	reply = &receiver->script[number < receiver->script_length ? number : receiver->script_length - 1];
	if (reply->status == 0 || reply->status == -1)
		http_call_abort(call, reply->status == -1);
	else if (reply->status > 0)
		http_call_respond_with(call, reply->status,
		                       (struct http_fields){ reply->fields, reply->fields[1].name.length > 0   ? 2U
		                                                            : reply->fields[0].name.length > 0 ? 1U
		                                                                                               : 0U },
		                       slice_of(reply->body));
}

static inline void receiver_on_abort(void *context, struct http_call *call)
{
	(void)context;
	(void)call;
}

static inline struct tls_settings *receiver_tls(void *context)
{
	return ((struct receiver *)context)->tls;
}

static inline const char *receiver_variable(void *context, const char *name)
{
	struct receiver *receiver = context;

	for (size_t i = 0; i < receiver->variable_count; i++)
		if (strcmp(receiver->variables[i].name, name) == 0)
			return receiver->variables[i].value;
	return NULL;
}

static inline void receiver_set(struct receiver *receiver, const char *name, const char *value)
{
	struct variable *variable = &receiver->variables[receiver->variable_count++];

	assert_true(receiver->variable_count <= VARIABLES_MAX);
	variable->name = name;
	snprintf(variable->value, sizeof variable->value, "%s", value);
}

/* Writes a file that is removed with the receiver's folder-less friends: the caller unlinks it. */
static inline void write_file(char path[64], struct slice content)
{
	int descriptor;

	snprintf(path, 64, "/tmp/ballast-report-XXXXXX");
	descriptor = mkstemp(path);
	assert_true(descriptor >= 0);
	assert_int_equal(write(descriptor, content.data, content.length), content.length);
	close(descriptor);
}

static inline void receiver_init(struct receiver *receiver, bool secure)
{
	static const struct http_server_handler HANDLER = { .on_request = receiver_on_request,
		                                            .on_abort = receiver_on_abort };
	struct http_server_options options = { .address = LOOPBACK, .max_body_bytes = 1 << 20 };
	struct report_environment environment = { receiver_variable, receiver };
	struct error err;

	*receiver = (struct receiver){ .loop = new_loop() };
	if (secure) {
		receiver->ca = make_ca(receiver->loop);
		receiver->tls = make_server(receiver->loop, receiver->ca, &REQUEST);
		options.tls = receiver_tls;
		write_file(receiver->ca_path, tls_ca_certificate_pem(receiver->ca));
		receiver_set(receiver, "SSL_CERT_FILE", receiver->ca_path);
	}
	receiver->server = http_server_start(receiver->loop, &options, &HANDLER, receiver, &err);
	assert_non_null(receiver->server);
	assert_true(http_server_address(receiver->server, &receiver->address));
	snprintf(receiver->authority, sizeof receiver->authority, "127.0.0.1:%u", receiver->address.port);
	snprintf(receiver->url, sizeof receiver->url, "%s://%s", secure ? "https" : "http", receiver->authority);
	receiver->transport = report_transport_create(receiver->loop, &environment, &err);
	assert_non_null(receiver->transport);
}

static inline void receiver_destroy(struct receiver *receiver)
{
	report_transport_destroy(receiver->transport);
	if (receiver->server != NULL)
		http_server_destroy(receiver->server);
	turn_for(receiver->loop, 2);
	tls_settings_release(receiver->tls);
	if (receiver->ca != NULL) {
		tls_ca_destroy(receiver->ca);
		unlink(receiver->ca_path);
	}
	loop_destroy(receiver->loop);
}

#define SAY(code, text)                          \
	{                                        \
		.status = (code), .body = (text) \
	}
#define SAY_WITH(code, text, ...)                                           \
	{                                                                   \
		.status = (code), .body = (text), .fields = { __VA_ARGS__ } \
	}
#define NO_ANSWER SAY(-2, NULL)

#define receiver_play(receiver, ...)                                          \
	do {                                                                  \
		static const struct reply SCRIPT[] = { __VA_ARGS__ };         \
		(receiver)->script = SCRIPT;                                  \
		(receiver)->script_length = sizeof SCRIPT / sizeof SCRIPT[0]; \
		(receiver)->count = 0;                                        \
	} while (0)

static inline void receiver_pushed(void *context, const struct report_failure *failure)
{
	struct receiver *receiver = context;

	receiver->over++;
	receiver->succeeded = failure == NULL;
	receiver->cause[0] = receiver->err.text[0] = '\0';
	if (failure != NULL) {
		snprintf(receiver->cause, sizeof receiver->cause, "%s", failure->cause);
		receiver->err = *failure->err;
	}
}

static inline void receiver_begin_push(struct receiver *receiver, struct report_client *client, struct slice body,
                                       uint64_t timeout_ms)
{
	receiver->over = 0;
	client->operations->push(
		client,
		&(struct report_push){ .body = body, .id = "ID", .timeout_ns = timeout_ms * (uint64_t)NS_PER_MS },
		receiver_pushed, receiver);
	assert_int_equal(receiver->over, 0);
}

/* Pushes and waits for the end. */
static inline bool receiver_push(struct receiver *receiver, struct report_client *client, struct slice body,
                                 uint64_t timeout_ms)
{
	receiver_begin_push(receiver, client, body, timeout_ms);
	TURN_UNTIL(receiver->loop, receiver->over > 0);
	assert_int_equal(receiver->over, 1);
	return receiver->succeeded;
}

/* Whether the request had that field, "name: value". */
static inline bool had_field(const struct asked *asked, const char *field)
{
	const char *at = strstr(asked->fields, field);

	return at != NULL && (at == asked->fields || at[-1] == '\n') && at[strlen(field)] == '\n';
}

static inline bool had_field_named(const struct asked *asked, const char *name)
{
	char start[128];
	const char *at;

	snprintf(start, sizeof start, "%s: ", name);
	at = strstr(asked->fields, start);
	return at != NULL && (at == asked->fields || at[-1] == '\n');
}

#endif
