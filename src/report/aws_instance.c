/*
 * Instance metadata, version 2 (spec reporting P14): a token, the role's name, the role's credentials. Without version 2
 * there (or with something in between that swallows the PUT), the older way without a token.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/aws_internal.h"

#define ROLES "/latest/meta-data/iam/security-credentials/"

enum { TOKEN_SECONDS = 300 };

static bool ask_token(struct aws_provider *provider, struct error *err);
static bool ask_role(struct aws_provider *provider, struct error *err);

static void give_up(struct aws_provider *provider, bool may_retry, struct error *err)
{
	error_wrap(err, "instance metadata");
	aws_provider_failed(provider, may_retry, err);
}

/* The metadata service doesn't know the token any more (401): get another, once. */
static bool renew_token(struct aws_provider *provider, const struct report_reply *reply, struct error *err)
{
	if (reply == NULL || reply->status != 401 || provider->token_renewed)
		return false;
	provider->token_renewed = true;
	provider->without_token = false;
	secret_clear(&provider->metadata_token);
	return ask_token(provider, err);
}

/* Whether there is a good reply to go on with; otherwise what can be done was done. */
static bool check_reply(struct aws_provider *provider, const struct report_reply *reply, const struct error *failure)
{
	struct error err;

	provider->call = NULL;
	if (reply != NULL && reply->complete && reply->status == 200)
		return true;
	if (renew_token(provider, reply, &err))
		return false;
	if (reply == NULL)
		err = *failure;
	else if (!reply->complete)
		error_set(&err, ERROR_CLOSED, "the reply ended too early, or is too long");
	else
		error_set(&err, ERROR_REFUSED, "status %d", reply->status);
	give_up(provider, reply == NULL || !reply->complete || aws_status_may_pass(reply->status), &err);
	return false;
}

static bool ask(struct aws_provider *provider, struct slice method, const char *path, report_call_done *done,
                struct error *err)
{
	struct http_field fields[2] = { { .name = SLICE("Accept"), .value = SLICE("*/*") } };
	struct http_request request = { .method = method, .fields = { fields, 1 } };
	struct slice base;

	if (slice_equal(method, SLICE("PUT"))) {
		fields[1] = (struct http_field){ SLICE("X-aws-ec2-metadata-token-ttl-seconds"), SLICE("300") };
		request.fields.count = 2;
	} else if (!provider->without_token) {
		fields[1] = (struct http_field){ SLICE("X-aws-ec2-metadata-token"),
			                         secret_slice(&provider->metadata_token) };
		request.fields.count = 2;
	}
	if (!http_url_parse(slice_of(provider->url), &request.origin, &base, err))
		return false;
	request.target = slice_of(path);
	return aws_provider_call(provider, &request, METADATA_CALL_TIMEOUT_MS, done, err);
}

/* ---- third: the credentials ---- */

static void on_credentials(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct aws_provider *provider = context;
	struct aws_credentials credentials;
	const uint64_t now_ns = loop_now_ns(provider->loop);
	const uint64_t most_ns = now_ns + (uint64_t)INSTANCE_CREDENTIAL_MOST_S * NS_PER_S;
	struct error err;

	if (!check_reply(provider, reply, failure))
		return;
	if (!aws_read_credentials(reply->body, loop_wall_ns(provider->loop), now_ns, &credentials, &err)) {
		give_up(provider, false, &err);
		return;
	}
	/* P15: those of an instance are looked at again every hour. */
	if (!credentials.expire || credentials.expire_ns > most_ns) {
		credentials.expire = true;
		credentials.expire_ns = most_ns;
	}
	aws_provider_fetched(provider, &credentials);
}

/* ---- second: the role ---- */

static void on_role(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct aws_provider *provider = context;
	struct slice lines, role;
	struct buffer path;
	struct error err;

	if (!check_reply(provider, reply, failure))
		return;
	lines = slice_trim(reply->body);
	role = slice_trim(slice_take_until(&lines, '\n'));
	buffer_init(&path, REPORT_URL_BYTES);
	buffer_append_text(&path, ROLES);
	http_append_escaped(&path, role);
	buffer_append_char(&path, '\0');
	if (role.length == 0)
		error_set(&err, ERROR_REFUSED, "the instance has no role");
	else if (buffer_check(&path, "the role's name", &err) &&
	         ask(provider, SLICE("GET"), path.data, on_credentials, &err))
		goto out;
	give_up(provider, false, &err);
out:
	buffer_destroy(&path);
}

static bool ask_role(struct aws_provider *provider, struct error *err)
{
	return ask(provider, SLICE("GET"), ROLES, on_role, err);
}

/* ---- first: the token ---- */

static void on_token(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct aws_provider *provider = context;
	const int status = reply != NULL ? reply->status : 0;
	struct error err;

	provider->call = NULL;
	if (status == 200 && reply->complete && slice_trim(reply->body).length > 0) {
		if (secret_set(&provider->metadata_token, slice_trim(reply->body), &err)) {
			provider->metadata_token_expires_ns =
				loop_now_ns(provider->loop) + (uint64_t)(TOKEN_SECONDS - 10) * NS_PER_S;
			if (ask_role(provider, &err))
				return;
		}
		give_up(provider, false, &err);
		return;
	}
	if (!provider->version_1_disabled && (status == 0 || status == 403 || status == 404 || status == 405)) {
		provider->without_token = true;
		if (!ask_role(provider, &err))
			give_up(provider, false, &err);
		return;
	}
	if (reply == NULL)
		err = *failure;
	else
		error_set(&err, ERROR_REFUSED, "status %d for a token", status);
	give_up(provider, aws_status_may_pass(status), &err);
}

static bool ask_token(struct aws_provider *provider, struct error *err)
{
	return ask(provider, SLICE("PUT"), "/latest/api/token", on_token, err);
}

bool aws_instance_start(struct aws_provider *provider, struct error *err)
{
	const bool has_token = provider->metadata_token.length > 0 &&
	                       loop_now_ns(provider->loop) < provider->metadata_token_expires_ns;

	provider->without_token = provider->token_renewed = false;
	if (!(has_token ? ask_role(provider, err) : ask_token(provider, err)))
		return error_wrap(err, "instance metadata");
	return true;
}
