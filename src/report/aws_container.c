/*
 * A container's endpoint: ECS, EKS Pod Identity (spec reporting P13). And the JSON that it shares with instance metadata.
 */
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "gen/report.gen.h"
#include "net/address.h"
#include "report/aws_internal.h"

enum { ARENA_BYTES = 16 * REPORT_REPLY_BYTES };

bool aws_read_credentials(struct slice json, int64_t wall_ns, uint64_t now_ns, struct aws_credentials *ret,
                          struct error *err)
{
	struct report_aws_credentials reply = { 0 };
	struct arena arena;
	bool done = false;

	arena_init(&arena, ARENA_BYTES);
	if (!report_aws_credentials_from_json(json, &arena, &reply, err))
		goto out;
	if (reply.code.length > 0 && !slice_equal_fold(reply.code, SLICE("Success")))
		error_set(err, ERROR_REFUSED, "%.*s: %.*s", SLICE_ARGS(reply.code), SLICE_ARGS(reply.message));
	else
		done = aws_fill_credentials(reply.access_key_id, reply.secret_access_key, reply.token, reply.expiration,
		                            wall_ns, now_ns, ret, err);
out:
	secret_wipe_decoded(reply.secret_access_key, json);
	secret_wipe_decoded(reply.token, json);
	arena_destroy(&arena);
	return done;
}

static void describe_refusal(int status, struct slice json, struct error *err)
{
	struct report_aws_container_error reply = { 0 };
	struct arena arena;
	struct error ignored;

	arena_init(&arena, ARENA_BYTES);
	if (report_aws_container_error_from_json(json, &arena, &reply, &ignored))
		error_set(err, ERROR_REFUSED, "status %d %.*s: %.*s", status, SLICE_ARGS(reply.code),
		          SLICE_ARGS(reply.message));
	else
		error_set(err, ERROR_REFUSED, "status %d", status);
	arena_destroy(&arena);
}

static void on_reply(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct aws_provider *provider = context;
	struct aws_credentials credentials;
	struct error err;
	bool may_retry = true;

	provider->call = NULL;
	if (reply == NULL) {
		err = *failure;
	} else if (!reply->complete) {
		error_set(&err, ERROR_CLOSED, "the reply ended too early, or is too long");
	} else if (reply->status != 200) {
		describe_refusal(reply->status, reply->body, &err);
		may_retry = aws_status_may_pass(reply->status);
	} else if (aws_read_credentials(reply->body, loop_wall_ns(provider->loop), loop_now_ns(provider->loop),
	                                &credentials, &err)) {
		aws_provider_fetched(provider, &credentials);
		return;
	} else {
		may_retry = false;
	}
	error_wrap(&err, "the container's credentials");
	aws_provider_failed(provider, may_retry, &err);
}

bool aws_host_is_local(const char *host)
{
	static const char *const ALLOWED[] = { "localhost", "169.254.170.2", "169.254.170.23", "fd00:ec2::23", "::1" };
	struct address address;

	for (size_t i = 0; i < sizeof ALLOWED / sizeof ALLOWED[0]; i++)
		if (strcmp(host, ALLOWED[i]) == 0)
			return true;
	return address_parse(slice_of(host), 0, &address) && !address.is_ipv6 && address.bytes[0] == 127;
}

/* The token that the endpoint wants to see; the file is read anew each time, and wins. */
static bool read_token(const struct aws_provider *provider, struct buffer *token, struct error *err)
{
	if (provider->token_file != NULL) {
		if (!file_read(provider->token_file, token, err))
			return false;
	} else {
		buffer_append_slice(token, secret_slice(&provider->fixed_token));
	}
	if (!http_is_field_value(buffer_slice(token)))
		return error_set(err, ERROR_SYNTAX,
		                 "the authorization token has characters that can't stand in a header");
	return true;
}

bool aws_container_start(struct aws_provider *provider, struct error *err)
{
	struct http_field fields[] = {
		{ .name = SLICE("Accept"), .value = SLICE("application/json") },
		{ .name = SLICE("Authorization") },
	};
	struct http_request request = { .method = SLICE("GET"), .fields = { fields, 1 } };
	struct buffer token = { 0 };
	bool done = false;

	if (!secret_buffer_init(&token, REPORT_TOKEN_FILE_BYTES, err) ||
	    !http_url_parse(slice_of(provider->url), &request.origin, &request.target, err))
		goto out;
	if (!request.origin.secure && !aws_host_is_local(request.origin.host)) {
		error_set(err, ERROR_REFUSED, "\"%s\" may be asked over https only", request.origin.host);
		goto out;
	}
	if (!read_token(provider, &token, err))
		goto out;
	if (token.length > 0) {
		fields[1].value = buffer_slice(&token);
		request.fields.count = 2;
	}
	done = aws_provider_call(provider, &request, METADATA_CALL_TIMEOUT_MS, on_reply, err);
out:
	buffer_destroy(&token);
	if (!done)
		error_wrap(err, "the container's credentials");
	return done;
}
