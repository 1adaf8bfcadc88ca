/*
 * A push: a token (or a signature), then up to four attempts with the same key (spec reporting A5), all within the
 * push's deadline. A token that the service refuses is replaced once, which is no attempt of its own (A7).
 */
#include "report/azure_blob_put.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "report/azure_token.h"
#include "report/digest.h"
#include "report/push_state.h"
#include "report/retry_after.h"
#include "report/secret.h"
#include "report/shared_key.h"
#include "report/xml_text.h"

static const char CAUSE[] = "Azure Blob error"; /* A1 */
static const char VERSION[] = "2023-11-03";

enum { CODE_BYTES = 512, NAME_BYTES = 256, KEY_BYTES = 256, CREATED = 201 /* A4: no other status is success */ };

struct azure_blob_put {
	struct report_client client; /* first */
	struct report_transport *transport;
	struct loop *loop;
	struct azure_provider *provider; /* NULL: shared key */
	char *account;
	struct buffer shared_key;
	char *endpoint, *container, *prefix;
	struct report_key_layout layout;
	struct push_state state;
	struct slice body;
	struct buffer key;
	struct http_origin origin;
	struct buffer target;
	struct report_call *call;
	struct loop_timer wait;
	unsigned attempts;
	bool token_renewed;
	struct error last; /* of the attempt before; no text: there was none */
};

static void end_failed(struct azure_blob_put *put, const struct error *failure)
{
	struct error err = *failure;

	error_wrap(&err, "Azure Blob error");
	push_state_end(&put->state, CAUSE, &err);
}

static void stop(struct azure_blob_put *put)
{
	report_call_cancel(put->call);
	put->call = NULL;
	if (put->provider != NULL)
		azure_provider_cancel(put->provider);
	loop_timer_stop(put->loop, &put->wait);
}

static void on_deadline(void *owner)
{
	struct azure_blob_put *put = owner;
	const bool arrived = report_call_status(put->call) == CREATED;
	struct error err;

	stop(put);
	if (arrived) {
		push_state_end(&put->state, NULL, NULL);
		return;
	}
	if (put->last.text[0] != '\0')
		error_set(&err, ERROR_TIMEOUT, "context deadline exceeded; before that: %s", put->last.text);
	else
		error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	end_failed(put, &err);
}

/* ---- the reply ---- */

static void begin_attempt(void *context);
static void ask_token(struct azure_blob_put *put);

/* reply NULL: none came. */
static void fail_attempt(struct azure_blob_put *put, const struct report_reply *reply, const struct error *err)
{
	const double factor = 0.8 + 0.5 * rng_unit(loop_rng(put->loop));
	const uint64_t most_ns = (uint64_t)AZURE_RETRY_MOST_S * NS_PER_S;
	uint64_t wait_ns;

	put->last = *err;
	wait_ns = (uint64_t)((double)((1U << put->attempts) - 1) * AZURE_RETRY_FIRST_MS * factor * NS_PER_MS);
	if (wait_ns > most_ns)
		wait_ns = most_ns;
	if (reply != NULL)
		(void)retry_after_read(reply->fields, loop_wall_ns(put->loop), &wait_ns);
	if (put->attempts >= AZURE_ATTEMPTS || wait_ns > most_ns)
		end_failed(put, err);
	else
		loop_timer_start(put->loop, &put->wait, wait_ns, begin_attempt, put);
}

static bool may_retry(int status)
{
	return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

static void describe_refusal(const struct report_reply *reply, struct error *err)
{
	struct slice code = http_fields_find(reply->fields, "x-ms-error-code");
	struct buffer from_body, message;

	buffer_init(&from_body, CODE_BYTES);
	buffer_init(&message, CODE_BYTES);
	(void)xml_find_text(reply->body, "Error/Code", &from_body, err);
	(void)xml_find_text(reply->body, "Error/Message", &message, err);
	if (code.length == 0 || code.length > CODE_BYTES)
		code = buffer_slice(&from_body);
	error_set(err, ERROR_REFUSED, "Put Blob: status %d, %.*s: %.*s", reply->status, SLICE_ARGS(code),
	          SLICE_ARGS(buffer_slice(&message)));
	buffer_destroy(&from_body);
	buffer_destroy(&message);
}

/* The value of `resource_id=` in a challenge; empty if it has none. */
static struct slice find_resource(struct slice challenge)
{
	static const struct slice NAME = SLICE_INIT("resource_id=");
	const char *at = challenge.length > 0 ? memmem(challenge.data, challenge.length, NAME.data, NAME.length) : NULL;
	struct slice rest;
	size_t length = 0;

	if (at == NULL)
		return (struct slice){ 0 };
	rest = slice_from_offset(challenge, (size_t)(at - challenge.data) + NAME.length);
	if (rest.length > 0 && rest.data[0] == '"')
		rest = slice_from_offset(rest, 1);
	while (length < rest.length && strchr("\", \t", rest.data[length]) == NULL)
		length++;
	return slice_from(rest.data, length);
}

/* A7. */
static bool renew_token(struct azure_blob_put *put, const struct report_reply *reply)
{
	struct slice challenge = http_fields_find(reply->fields, "www-authenticate");

	if (reply->status != 401 || put->provider == NULL || put->token_renewed ||
	    !slice_starts_with(challenge, SLICE("Bearer ")))
		return false;
	put->token_renewed = true;
	azure_provider_forget(put->provider, find_resource(challenge));
	ask_token(put);
	return true;
}

static void on_reply(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct azure_blob_put *put = context;
	struct error err;

	put->call = NULL;
	if (reply == NULL) {
		err = *failure;
		error_wrap(&err, "Put Blob");
		fail_attempt(put, NULL, &err);
		return;
	}
	if (reply->status == CREATED) {
		push_state_end(&put->state, NULL, NULL);
		return;
	}
	if (renew_token(put, reply))
		return;
	describe_refusal(reply, &err);
	if (may_retry(reply->status))
		fail_attempt(put, reply, &err);
	else
		end_failed(put, &err);
}

/* ---- the request ---- */

/* Sends with a value of the Authorization field; date NULL: no such field. */
static void send_authorized(struct azure_blob_put *put, struct slice authorization, const char *date)
{
	struct http_field fields[] = {
		{ SLICE("Accept"), SLICE("application/xml") },
		{ SLICE("Content-Type"), SLICE("application/octet-stream") },
		{ SLICE("User-Agent"), SLICE("neon-autoscaler ballast") }, /* A2 */
		{ SLICE("x-ms-blob-type"), SLICE("BlockBlob") },
		{ SLICE("x-ms-version"), slice_of(VERSION) },
		{ SLICE("Authorization"), authorization },
		{ SLICE("x-ms-date"), slice_of(date) },
	};
	struct http_request request = {
		.origin = put->origin,
		.method = SLICE("PUT"),
		.target = buffer_slice(&put->target),
		.fields = { fields, sizeof fields / sizeof fields[0] - (date != NULL ? 0 : 1) },
		.body = put->body,
		.idle_timeout_ns = (uint64_t)REPORT_REPLY_IDLE_MS * NS_PER_MS,
	};
	struct error err;

	put->call = report_call_start(put->transport, &request, on_reply, put, &err);
	if (put->call == NULL)
		fail_attempt(put, NULL, &err);
}

static void sign_and_send(struct azure_blob_put *put)
{
	char date[SHARED_KEY_TIME_BYTES];
	struct http_field fields[] = {
		{ SLICE("x-ms-blob-type"), SLICE("BlockBlob") },
		{ SLICE("x-ms-date"), { .data = date, .length = sizeof date - 1 } },
		{ SLICE("x-ms-version"), slice_of(VERSION) },
	};
	const struct shared_key_request request = {
		.method = SLICE("PUT"),
		.content_length = put->body.length,
		.content_type = SLICE("application/octet-stream"),
		.service_fields = { fields, sizeof fields / sizeof fields[0] },
		.path = buffer_slice(&put->target),
	};
	struct buffer authorization;
	struct error err;

	shared_key_time(loop_wall_ns(put->loop), date);
	buffer_init(&authorization, REPORT_URL_BYTES);
	if (shared_key_append_authorization(&authorization, &request, slice_of(put->account),
	                                    buffer_slice(&put->shared_key), &err))
		send_authorized(put, buffer_slice(&authorization), date);
	else
		fail_attempt(put, NULL, &err);
	buffer_destroy(&authorization);
}

static void on_token(void *context, struct slice token, const struct error *failure)
{
	struct azure_blob_put *put = context;
	struct buffer authorization = { 0 };
	struct error err;

	if (token.length == 0) {
		err = *failure;
		error_wrap(&err, "getting a token");
		end_failed(put, &err);
		return;
	}
	if (secret_buffer_init(&authorization, sizeof "Bearer " + token.length, &err)) {
		buffer_append_text(&authorization, "Bearer ");
		buffer_append_slice(&authorization, token);
		send_authorized(put, buffer_slice(&authorization), NULL);
	} else {
		fail_attempt(put, NULL, &err);
	}
	buffer_destroy(&authorization);
}

static void ask_token(struct azure_blob_put *put)
{
	azure_provider_get(put->provider, on_token, put);
}

static void begin_attempt(void *context)
{
	struct azure_blob_put *put = context;

	put->attempts++;
	if (put->provider != NULL)
		ask_token(put);
	else
		sign_and_send(put);
}

/* A3: the key as one segment. */
static void append_escaped_key(struct buffer *out, struct slice key)
{
	for (size_t i = 0; i < key.length; i++) {
		char c = key.data[i];
		bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
		             (c != '\0' && strchr("-_.~$&+:=@", c) != NULL);

		if (plain)
			buffer_append_char(out, c);
		else
			buffer_append_format(out, "%%%02X", (unsigned)(unsigned char)c);
	}
}

bool azure_blob_append_target(struct buffer *out, struct slice base, struct slice container, struct slice key,
                              struct error *err)
{
	while (base.length > 0 && base.data[base.length - 1] == '/')
		base.length--;
	buffer_append_slice(out, base);
	buffer_append_char(out, '/');
	buffer_append_slice(out, container);
	buffer_append_char(out, '/');
	append_escaped_key(out, key);
	return buffer_check(out, "the blob's address", err);
}

static bool make_target(struct azure_blob_put *put, struct error *err)
{
	struct slice base;

	if (!http_url_parse(slice_of(put->endpoint), &put->origin, &base, err))
		return error_wrap(err, "the endpoint");
	if (put->provider != NULL && !put->origin.secure) /* A6 */
		return error_set(err, ERROR_REFUSED,
		                 "authenticated requests are not permitted for non TLS protected (https) endpoints");
	buffer_clear(&put->target);
	return buffer_check(&put->key, "the blob's key", err) &&
	       azure_blob_append_target(&put->target, base, slice_of(put->container), buffer_slice(&put->key), err);
}

static void begin(struct report_client *client, const struct report_push *push, report_push_done *done, void *context)
{
	struct azure_blob_put *put = (struct azure_blob_put *)client;
	struct error err;

	push_state_begin(&put->state, put->loop, push, done, context, on_deadline, put);
	put->body = push->body;
	put->attempts = 0;
	put->token_renewed = false;
	put->last.text[0] = '\0';
	buffer_clear(&put->key);
	report_key_append(&put->key, &put->layout, loop_wall_ns(put->loop), push->id);
	if (make_target(put, &err))
		begin_attempt(put);
	else
		end_failed(put, &err);
}

static void cancel(struct report_client *client)
{
	struct azure_blob_put *put = (struct azure_blob_put *)client;

	stop(put);
	push_state_cancel(&put->state);
}

static size_t describe(const struct report_client *client, struct log_field fields[REPORT_LOG_FIELDS])
{
	const struct azure_blob_put *put = (const struct azure_blob_put *)client;

	fields[0] = log_text("container", put->container);
	fields[1] = log_slice("key", buffer_slice(&put->key));
	fields[2] = log_text("endpoint", put->endpoint);
	return 3;
}

static void destroy(struct report_client *client)
{
	struct azure_blob_put *put = (struct azure_blob_put *)client;

	cancel(client);
	azure_provider_destroy(put->provider);
	buffer_destroy(&put->shared_key);
	buffer_destroy(&put->key);
	buffer_destroy(&put->target);
	memory_release(put->account);
	memory_release(put->endpoint);
	memory_release(put->container);
	memory_release(put->prefix);
	memory_release(put);
}

static bool copy_settings(struct azure_blob_put *put, const struct azure_blob_put_options *options, struct error *err)
{
	if (options->container.length > NAME_BYTES || options->endpoint.length > REPORT_URL_BYTES ||
	    options->layout.prefix.length > REPORT_PREFIX_BYTES)
		return error_set(err, ERROR_LIMIT, "container, endpoint or prefix is too long");
	put->endpoint = memory_copy_text(options->endpoint.data, options->endpoint.length);
	put->container = memory_copy_text(options->container.data, options->container.length);
	put->prefix = memory_copy_text(options->layout.prefix.data, options->layout.prefix.length);
	if (put->endpoint == NULL || put->container == NULL || put->prefix == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for an Azure Blob client");
	put->layout = (struct report_key_layout){ options->layout.kind, slice_of(put->prefix) };
	return true;
}

/* A11: only when asked for by variables of our own. */
static bool set_identity(struct azure_blob_put *put, struct error *err)
{
	const struct report_environment *environment = report_transport_environment(put->transport);
	const char *account = report_environment_get(environment, "BALLAST_AZURE_SHARED_KEY_ACCOUNT");
	const char *key = report_environment_get(environment, "BALLAST_AZURE_SHARED_KEY");

	if (account == NULL || key == NULL) {
		put->provider = azure_provider_create(put->transport, err);
		return put->provider != NULL;
	}
	put->account = memory_copy_text(account, strlen(account));
	if (put->account == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for an Azure Blob client");
	if (!secret_buffer_init(&put->shared_key, KEY_BYTES, err) ||
	    !digest_decode_base64(slice_of(key), &put->shared_key, err))
		return error_wrap(err, "BALLAST_AZURE_SHARED_KEY");
	return true;
}

struct report_client *azure_blob_put_create(struct report_transport *transport,
                                            const struct azure_blob_put_options *options, struct error *err)
{
	static const struct report_client_operations OPERATIONS = {
		.push = begin, .cancel = cancel, .describe = describe, .destroy = destroy
	};
	struct azure_blob_put *put = memory_allocate(sizeof *put);

	if (put == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an Azure Blob client");
		return NULL;
	}
	*put = (struct azure_blob_put){
		.client = { .name = "azureblob", .format = REPORT_GZIP_LINES, .operations = &OPERATIONS },
		.transport = transport,
		.loop = report_transport_loop(transport),
	};
	buffer_init(&put->key, REPORT_KEY_BYTES);
	buffer_init(&put->target, 4 * REPORT_URL_BYTES);
	if (!copy_settings(put, options, err) || !set_identity(put, err)) {
		destroy(&put->client);
		return NULL;
	}
	return &put->client;
}
