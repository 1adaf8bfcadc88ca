/*
 * A push: credentials, then up to three attempts with the same key, each signed anew (spec reporting P10), all within
 * the push's deadline. What an attempt failed of is remembered for the error text, should the deadline come first.
 */
#include "report/s3_put.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "report/aws_credentials.h"
#include "report/digest.h"
#include "report/push_state.h"
#include "report/sigv4.h"
#include "report/xml_text.h"

static const char CAUSE[] = "S3 error"; /* P1 */

enum { CODE_BYTES = 512, NAME_BYTES = 256 };

struct s3_put {
	struct report_client client; /* first */
	struct report_transport *transport;
	struct loop *loop;
	struct aws_provider *provider;
	char *bucket, *region, *endpoint, *base_url, *prefix;
	struct report_key_layout layout;
	struct push_state state;
	struct slice body;
	struct buffer key;
	struct http_origin origin;
	struct buffer target; /* path, and the query behind it */
	size_t path_length;
	char payload_hash[DIGEST_HEX_BYTES];
	struct report_call *call;
	struct loop_timer wait;
	unsigned attempts;
	struct error last; /* of the attempt before; no text: there was none */
};

static void end_failed(struct s3_put *put, const struct error *failure)
{
	struct error err = *failure;

	error_wrap(&err, "S3 error");
	push_state_end(&put->state, CAUSE, &err);
}

static void stop(struct s3_put *put)
{
	report_call_cancel(put->call);
	put->call = NULL;
	aws_provider_cancel(put->provider);
	loop_timer_stop(put->loop, &put->wait);
}

static void on_deadline(void *owner)
{
	struct s3_put *put = owner;
	struct error err;

	stop(put);
	if (put->last.text[0] != '\0')
		error_set(&err, ERROR_TIMEOUT, "context deadline exceeded; before that: %s", put->last.text);
	else
		error_set(&err, ERROR_TIMEOUT, "context deadline exceeded");
	end_failed(put, &err);
}

/* ---- the reply ---- */

static bool is_among(struct slice code, const char *const *codes)
{
	for (; *codes != NULL; codes++)
		if (slice_equal_text(code, *codes))
			return true;
	return false;
}

/* P10. */
static bool may_retry(int status, struct slice code)
{
	static const char *const CODES[] = {
		"RequestTimeout",
		"RequestTimeoutException",
		"SlowDown",
		"Throttling",
		"ThrottlingException",
		"ThrottledException",
		"RequestLimitExceeded",
		"TooManyRequestsException",
		"BandwidthLimitExceeded",
		"RequestThrottled",
		"RequestThrottledException",
		"ProvisionedThroughputExceededException",
		"TransactionInProgressException",
		"EC2ThrottledException",
		"PriorRequestNotComplete",
		"LimitExceededException",
		NULL,
	};

	return status == 500 || status == 502 || status == 503 || status == 504 || is_among(code, CODES);
}

/* Credentials that are still good by our count, and aren't for S3. */
static bool are_outdated(struct slice code)
{
	static const char *const CODES[] = { "ExpiredToken", "ExpiredTokenException", "InvalidToken",
		                             "InvalidAccessKeyId", NULL };

	return is_among(code, CODES);
}

static void begin_attempt(void *context);

static void fail_attempt(struct s3_put *put, bool retry, const struct error *err)
{
	uint64_t most_ns = (uint64_t)NS_PER_S << put->attempts;

	put->last = *err;
	if (!retry || put->attempts >= S3_ATTEMPTS) {
		end_failed(put, err);
		return;
	}
	if (most_ns > (uint64_t)S3_RETRY_MOST_S * NS_PER_S)
		most_ns = (uint64_t)S3_RETRY_MOST_S * NS_PER_S;
	loop_timer_start(put->loop, &put->wait, rng_between(loop_rng(put->loop), 0, most_ns), begin_attempt, put);
}

static void take_refusal(struct s3_put *put, const struct report_reply *reply)
{
	struct buffer code, message;
	struct error err;
	bool retry;

	buffer_init(&code, CODE_BYTES);
	buffer_init(&message, CODE_BYTES);
	(void)xml_find_text(reply->body, "Error/Code", &code, &err);
	(void)xml_find_text(reply->body, "Error/Message", &message, &err);
	retry = may_retry(reply->status, buffer_slice(&code));
	if (are_outdated(buffer_slice(&code)))
		aws_provider_forget(put->provider);
	error_set(&err, ERROR_REFUSED, "PutObject: status %d, %.*s: %.*s", reply->status,
	          SLICE_ARGS(buffer_slice(&code)), SLICE_ARGS(buffer_slice(&message)));
	buffer_destroy(&code);
	buffer_destroy(&message);
	fail_attempt(put, retry, &err);
}

static void on_reply(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct s3_put *put = context;
	struct error err;

	put->call = NULL;
	if (reply == NULL) {
		err = *failure;
		error_wrap(&err, "PutObject");
		fail_attempt(put, true, &err);
	} else if (reply->status >= 200 && reply->status < 300) { /* P6 */
		push_state_end(&put->state, NULL, NULL);
	} else {
		take_refusal(put, reply);
	}
}

/* ---- the request ---- */

/* Signs and sends. */
static bool sign_and_send(struct s3_put *put, const struct aws_credentials *credentials, struct error *err)
{
	enum { CONTENT_LENGTH, CONTENT_TYPE, HOST, CONTENT_HASH, DATE, TOKEN, SIGNED };
	struct http_field fields[SIGNED] = {
		[CONTENT_LENGTH] = { .name = SLICE("content-length") },
		[CONTENT_TYPE] = { SLICE("content-type"), SLICE("application/octet-stream") },
		[HOST] = { .name = SLICE("host") },
		[CONTENT_HASH] = { SLICE("x-amz-content-sha256"), slice_of(put->payload_hash) },
		[DATE] = { .name = SLICE("x-amz-date") },
		[TOKEN] = { SLICE("x-amz-security-token"), secret_slice(&credentials->session_token) },
	};
	const size_t count = credentials->session_token.length > 0 ? SIGNED : SIGNED - 1;
	const struct slice target = buffer_slice(&put->target);
	const struct sigv4_request to_sign = {
		.method = SLICE("PUT"),
		.path = slice_from(target.data, put->path_length),
		.query = slice_from_offset(target, put->path_length + 1),
		.fields = { fields, count },
		.payload_hash = slice_of(put->payload_hash),
	};
	const struct sigv4_identity identity = { secret_slice(&credentials->key_id),
		                                 secret_slice(&credentials->secret_key), slice_of(put->region) };
	struct http_request request = {
		.origin = put->origin, .method = SLICE("PUT"), .target = target, .body = put->body
	};
	struct http_field sent[SIGNED + 1];
	struct buffer host, authorization;
	char length[24], time[SIGV4_TIME_BYTES];
	bool done;

	buffer_init(&host, NAME_BYTES + 16);
	buffer_init(&authorization, REPORT_URL_BYTES);
	report_append_authority(&host, &put->origin);
	(void)snprintf(length, sizeof length, "%zu", put->body.length);
	sigv4_time(loop_wall_ns(put->loop), time);
	fields[CONTENT_LENGTH].value = slice_of(length);
	fields[HOST].value = buffer_slice(&host);
	fields[DATE].value = slice_of(time);
	done = sigv4_append_authorization(&authorization, &to_sign, &identity, time, err);
	if (done) {
		/* Length and Host are the HTTP client's to write. */
		sent[0] = (struct http_field){ SLICE("Accept-Encoding"), SLICE("identity") };
		sent[1] = (struct http_field){ SLICE("Authorization"), buffer_slice(&authorization) };
		sent[2] = fields[CONTENT_TYPE];
		for (size_t i = CONTENT_HASH; i < count; i++)
			sent[i] = fields[i];
		request.fields = (struct http_fields){ sent, count };
		put->call = report_call_start(put->transport, &request, on_reply, put, err);
		done = put->call != NULL;
	}
	buffer_destroy(&host);
	buffer_destroy(&authorization);
	return done;
}

static void on_credentials(void *context, const struct aws_credentials *credentials, const struct error *failure)
{
	struct s3_put *put = context;
	struct error err;

	if (credentials == NULL) {
		err = *failure;
		error_wrap(&err, "getting credentials");
		end_failed(put, &err);
	} else if (!sign_and_send(put, credentials, &err)) {
		fail_attempt(put, true, &err);
	}
}

static void begin_attempt(void *context)
{
	struct s3_put *put = context;

	put->attempts++;
	aws_provider_get(put->provider, on_credentials, put);
}

/* P2, P3, P5: where the object goes. */
static bool make_target(struct s3_put *put, struct error *err)
{
	struct slice base;

	if (!http_url_parse(slice_of(put->base_url), &put->origin, &base, err))
		return error_wrap(err, "the endpoint");
	while (base.length > 0 && base.data[base.length - 1] == '/')
		base.length--;
	buffer_clear(&put->target);
	buffer_append_slice(&put->target, base);
	buffer_append_char(&put->target, '/');
	sigv4_append_path(&put->target, slice_of(put->bucket));
	buffer_append_char(&put->target, '/');
	sigv4_append_path(&put->target, buffer_slice(&put->key));
	put->path_length = put->target.length;
	buffer_append_text(&put->target, "?x-id=PutObject");
	return buffer_check(&put->key, "the object's key", err) &&
	       buffer_check(&put->target, "the object's address", err);
}

/* P4. */
static bool hash_payload(struct s3_put *put, struct error *err)
{
	uint8_t digest[DIGEST_BYTES];

	if (put->origin.secure) {
		(void)snprintf(put->payload_hash, sizeof put->payload_hash, "UNSIGNED-PAYLOAD");
		return true;
	}
	if (!digest_sha256(put->body, digest, err))
		return false;
	digest_to_hex(digest, put->payload_hash);
	return true;
}

static void begin(struct report_client *client, const struct report_push *push, report_push_done *done, void *context)
{
	struct s3_put *put = (struct s3_put *)client;
	struct error err;

	push_state_begin(&put->state, put->loop, push, done, context, on_deadline, put);
	put->body = push->body;
	put->attempts = 0;
	put->last.text[0] = '\0';
	buffer_clear(&put->key);
	report_key_append(&put->key, &put->layout, loop_wall_ns(put->loop), push->id);
	if (make_target(put, &err) && hash_payload(put, &err))
		begin_attempt(put);
	else
		end_failed(put, &err);
}

static void cancel(struct report_client *client)
{
	struct s3_put *put = (struct s3_put *)client;

	stop(put);
	push_state_cancel(&put->state);
}

static size_t describe(const struct report_client *client, struct log_field fields[REPORT_LOG_FIELDS])
{
	const struct s3_put *put = (const struct s3_put *)client;

	fields[0] = log_text("bucket", put->bucket);
	fields[1] = log_slice("key", buffer_slice(&put->key));
	fields[2] = log_text("region", put->region);
	fields[3] = log_text("endpoint", put->endpoint);
	return 4;
}

static void destroy(struct report_client *client)
{
	struct s3_put *put = (struct s3_put *)client;

	if (put->provider != NULL)
		cancel(client);
	aws_provider_destroy(put->provider);
	buffer_destroy(&put->key);
	buffer_destroy(&put->target);
	memory_release(put->bucket);
	memory_release(put->region);
	memory_release(put->endpoint);
	memory_release(put->base_url);
	memory_release(put->prefix);
	memory_release(put);
}

/* P3. */
static char *make_base_url(const struct s3_put *put)
{
	const struct report_environment *environment = report_transport_environment(put->transport);
	const char *url = put->endpoint;
	char own[NAME_BYTES + 64];

	if (url[0] == '\0')
		url = report_environment_get(environment, "AWS_ENDPOINT_URL_S3");
	if (url == NULL)
		url = report_environment_get(environment, "AWS_ENDPOINT_URL");
	if (url == NULL) {
		(void)snprintf(own, sizeof own, "https://s3.%s.amazonaws.com%s", put->region,
		               strncmp(put->region, "cn-", 3) == 0 ? ".cn" : "");
		url = own;
	}
	return memory_copy_text(url, strlen(url));
}

static bool copy_settings(struct s3_put *put, const struct s3_put_options *options, struct error *err)
{
	if (options->bucket.length > NAME_BYTES || options->region.length > NAME_BYTES ||
	    options->endpoint.length > REPORT_URL_BYTES || options->layout.prefix.length > REPORT_PREFIX_BYTES)
		return error_set(err, ERROR_LIMIT, "bucket, region, endpoint or prefix is too long");
	put->bucket = memory_copy_text(options->bucket.data, options->bucket.length);
	put->region = memory_copy_text(options->region.data, options->region.length);
	put->endpoint = memory_copy_text(options->endpoint.data, options->endpoint.length);
	put->prefix = memory_copy_text(options->layout.prefix.data, options->layout.prefix.length);
	if (put->bucket != NULL && put->region != NULL && put->endpoint != NULL && put->prefix != NULL) {
		put->layout = (struct report_key_layout){ options->layout.kind, slice_of(put->prefix) };
		put->base_url = make_base_url(put);
	}
	if (put->base_url == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for an S3 client");
	return true;
}

struct report_client *s3_put_create(struct report_transport *transport, const struct s3_put_options *options,
                                    struct error *err)
{
	static const struct report_client_operations OPERATIONS = {
		.push = begin, .cancel = cancel, .describe = describe, .destroy = destroy
	};
	struct s3_put *put = memory_allocate(sizeof *put);

	if (put == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for an S3 client");
		return NULL;
	}
	*put = (struct s3_put){
		.client = { .name = "s3", .format = REPORT_GZIP_LINES, .operations = &OPERATIONS },
		.transport = transport,
		.loop = report_transport_loop(transport),
	};
	buffer_init(&put->key, REPORT_KEY_BYTES);
	buffer_init(&put->target, 4 * REPORT_URL_BYTES);
	if (!copy_settings(put, options, err) ||
	    (put->provider = aws_provider_create(transport, options->region, err)) == NULL) {
		destroy(&put->client);
		return NULL;
	}
	return &put->client;
}
