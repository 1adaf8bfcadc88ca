/*
 * Expiry is kept on the monotonic clock: what counts is how long the credentials were good for when they came. If the
 * wall clock was wrong at that time, the receiver says so (S3: ExpiredToken), and they are forgotten.
 */
#include "report/aws_credentials.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "codec/rfc3339.h"
#include "report/aws_internal.h"

enum { REFRESH_PAUSE_LEAST_S = 5 * 60, REFRESH_PAUSE_MOST_S = 15 * 60 }; /* P15 */

/* ---- parts that sources use ---- */

void aws_credentials_clear(struct aws_credentials *credentials)
{
	secret_clear(&credentials->key_id);
	secret_clear(&credentials->secret_key);
	secret_clear(&credentials->session_token);
	*credentials = (struct aws_credentials){ 0 };
}

bool aws_fill_credentials(struct slice key_id, struct slice secret_key, struct slice session_token,
                          struct slice expiration, int64_t wall_ns, uint64_t now_ns, struct aws_credentials *ret,
                          struct error *err)
{
	struct aws_credentials credentials = { 0 };
	int64_t until_ns;

	if (key_id.length == 0 || secret_key.length == 0)
		return error_set(err, ERROR_SYNTAX, "the reply has no credentials");
	/* The year 9999 says "never" too; it is beyond what we count. */
	if (expiration.length > 0 && !rfc3339_parse(expiration, &until_ns, err)) {
		if (err->code != ERROR_LIMIT)
			return error_wrap(err, "when the credentials expire");
	} else if (expiration.length > 0) {
		credentials.expire = true;
		credentials.expire_ns = now_ns + (until_ns > wall_ns ? (uint64_t)(until_ns - wall_ns) : 0);
	}
	if (!secret_set(&credentials.key_id, key_id, err) || !secret_set(&credentials.secret_key, secret_key, err) ||
	    !secret_set(&credentials.session_token, session_token, err)) {
		aws_credentials_clear(&credentials);
		return false;
	}
	*ret = credentials;
	return true;
}

bool aws_status_may_pass(int status)
{
	return status == 0 || status == 429 || status >= 500;
}

bool aws_provider_call(struct aws_provider *provider, const struct http_request *request, uint64_t timeout_ms,
                       report_call_done *done, struct error *err)
{
	struct http_request limited = *request;

	limited.total_timeout_ns = timeout_ms * NS_PER_MS;
	provider->call = report_call_start(provider->transport, &limited, done, provider, err);
	return provider->call != NULL;
}

/* ---- answers ---- */

static bool is_expired(const struct aws_provider *provider)
{
	return provider->held.expire && provider->held.expire_ns <= loop_now_ns(provider->loop);
}

static void tell(void *context)
{
	struct aws_provider *provider = context;
	aws_credentials_done *done = provider->done;
	struct error err = provider->err;

	provider->done = NULL;
	if (provider->failed)
		done(provider->context, NULL, &err);
	else
		done(provider->context, &provider->held, NULL);
}

static void answer(struct aws_provider *provider, const struct error *failure)
{
	provider->failed = failure != NULL;
	if (failure != NULL)
		provider->err = *failure;
	loop_run_soon(provider->loop, &provider->task, tell, provider);
}

void aws_provider_fetched(struct aws_provider *provider, struct aws_credentials *credentials)
{
	aws_credentials_clear(&provider->held);
	provider->held = *credentials;
	*credentials = (struct aws_credentials){ 0 };
	provider->has = true;
	provider->no_refresh_before_ns = 0;
	answer(provider, NULL);
}

static void start(void *context);

static void fail(struct aws_provider *provider, const struct error *err)
{
	/* An instance's old credentials are better than none (P15); those of others, while they count. */
	if (provider->has && (provider->source == AWS_INSTANCE || !is_expired(provider))) {
		provider->no_refresh_before_ns =
			loop_now_ns(provider->loop) + rng_between(loop_rng(provider->loop),
		                                                  (uint64_t)REFRESH_PAUSE_LEAST_S * NS_PER_S,
		                                                  (uint64_t)REFRESH_PAUSE_MOST_S * NS_PER_S);
		answer(provider, NULL);
		return;
	}
	answer(provider, err);
}

void aws_provider_failed(struct aws_provider *provider, bool may_retry, const struct error *err)
{
	provider->call = NULL;
	if (may_retry && provider->attempts < S3_ATTEMPTS) {
		/* P10, as for the objects themselves. */
		uint64_t most_ns = (uint64_t)NS_PER_S << provider->attempts;

		loop_timer_start(provider->loop, &provider->wait, rng_between(loop_rng(provider->loop), 0, most_ns),
		                 start, provider);
		return;
	}
	fail(provider, err);
}

/* ---- asking ---- */

static bool start_source(struct aws_provider *provider, struct error *err)
{
	switch (provider->source) {
	case AWS_WEB_IDENTITY:
		return aws_web_identity_start(provider, err);
	case AWS_CONTAINER:
		return aws_container_start(provider, err);
	case AWS_INSTANCE:
		return aws_instance_start(provider, err);
	case AWS_STATIC: /* are held already */
	case AWS_NONE:
		break;
	}
	return error_set(err, ERROR_REFUSED, "the environment offers no AWS credentials");
}

static void start(void *context)
{
	struct aws_provider *provider = context;
	struct error err;

	provider->attempts++;
	if (!start_source(provider, &err))
		fail(provider, &err);
}

static bool needs_refresh(const struct aws_provider *provider)
{
	const uint64_t now_ns = loop_now_ns(provider->loop);

	if (!provider->has)
		return true;
	if (!provider->held.expire)
		return false;
	if (now_ns < provider->no_refresh_before_ns && (provider->source == AWS_INSTANCE || !is_expired(provider)))
		return false;
	return now_ns + (uint64_t)CREDENTIAL_REFRESH_S * NS_PER_S >= provider->held.expire_ns;
}

void aws_provider_get(struct aws_provider *provider, aws_credentials_done *done, void *context)
{
	provider->done = done;
	provider->context = context;
	provider->attempts = 0;
	if (needs_refresh(provider))
		start(provider);
	else
		answer(provider, NULL);
}

void aws_provider_cancel(struct aws_provider *provider)
{
	if (provider->done == NULL)
		return;
	report_call_cancel(provider->call);
	provider->call = NULL;
	provider->done = NULL;
	loop_timer_stop(provider->loop, &provider->wait);
	loop_task_cancel(provider->loop, &provider->task);
}

void aws_provider_forget(struct aws_provider *provider)
{
	if (provider->source == AWS_STATIC)
		return;
	provider->has = false;
	aws_credentials_clear(&provider->held);
}

void aws_provider_destroy(struct aws_provider *provider)
{
	if (provider == NULL)
		return;
	aws_provider_cancel(provider);
	aws_credentials_clear(&provider->held);
	secret_clear(&provider->fixed_token);
	secret_clear(&provider->metadata_token);
	memory_release(provider->region);
	memory_release(provider->url);
	memory_release(provider->role);
	memory_release(provider->session_name);
	memory_release(provider->token_file);
	memory_release(provider);
}

/* ---- choosing the source (P11) ---- */

static bool copy(char **ret_copy, const char *text, struct error *err)
{
	if (text == NULL)
		return true;
	*ret_copy = memory_copy_text(text, strlen(text));
	if (*ret_copy == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for the AWS settings");
	return true;
}

static bool copy_joined(char **ret_copy, const char *first, const char *second, const char *third, struct error *err)
{
	struct buffer text;

	buffer_init(&text, REPORT_URL_BYTES);
	buffer_append_format(&text, "%s%s%s", first, second, third);
	buffer_append_char(&text, '\0');
	if (!buffer_check(&text, "an address in the AWS settings", err)) {
		buffer_destroy(&text);
		return false;
	}
	*ret_copy = text.data;
	return true;
}

static const char *first_of(const struct report_environment *environment, const char *name, const char *alias)
{
	const char *value = report_environment_get(environment, name);

	return value != NULL ? value : report_environment_get(environment, alias);
}

static bool is_true(const char *value)
{
	return value != NULL && slice_equal_fold(slice_of(value), SLICE("true"));
}

static bool choose_web_identity(struct aws_provider *provider, const struct report_environment *environment,
                                struct error *err)
{
	const char *role = report_environment_get(environment, "AWS_ROLE_ARN");
	const char *url = report_environment_get(environment, "AWS_ENDPOINT_URL_STS");
	const bool china = strncmp(provider->region, "cn-", 3) == 0;

	provider->source = AWS_WEB_IDENTITY;
	if (role == NULL)
		return error_set(err, ERROR_SYNTAX, "AWS_WEB_IDENTITY_TOKEN_FILE is set, but not AWS_ROLE_ARN");
	return copy(&provider->role, role, err) &&
	       copy(&provider->session_name, report_environment_get(environment, "AWS_ROLE_SESSION_NAME"), err) &&
	       copy(&provider->token_file, report_environment_get(environment, "AWS_WEB_IDENTITY_TOKEN_FILE"), err) &&
	       (url != NULL ? copy(&provider->url, url, err)
	                    : copy_joined(&provider->url, "https://sts.", provider->region,
	                                  china ? ".amazonaws.com.cn" : ".amazonaws.com", err));
}

static bool choose_container(struct aws_provider *provider, const struct report_environment *environment,
                             struct error *err)
{
	const char *full = report_environment_get(environment, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
	const char *relative = report_environment_get(environment, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
	const char *token = report_environment_get(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN");

	provider->source = AWS_CONTAINER;
	return (full != NULL ? copy(&provider->url, full, err)
	                     : copy_joined(&provider->url, "http://169.254.170.2", relative, "", err)) &&
	       copy(&provider->token_file,
	            report_environment_get(environment, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"), err) &&
	       secret_set(&provider->fixed_token, slice_of(token), err);
}

static bool choose_instance(struct aws_provider *provider, const struct report_environment *environment,
                            struct error *err)
{
	const char *url = report_environment_get(environment, "AWS_EC2_METADATA_SERVICE_ENDPOINT");

	if (is_true(report_environment_get(environment, "AWS_EC2_METADATA_DISABLED")))
		return true;
	provider->source = AWS_INSTANCE;
	provider->version_1_disabled = is_true(report_environment_get(environment, "AWS_EC2_METADATA_V1_DISABLED"));
	return copy(&provider->url, url != NULL ? url : "http://169.254.169.254", err);
}

static bool choose(struct aws_provider *provider, struct error *err)
{
	const struct report_environment *environment = report_transport_environment(provider->transport);
	const char *key_id = first_of(environment, "AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY");
	const char *secret_key = first_of(environment, "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY");

	if (key_id != NULL && secret_key != NULL) {
		provider->source = AWS_STATIC;
		provider->has = true;
		return secret_set(&provider->held.key_id, slice_of(key_id), err) &&
		       secret_set(&provider->held.secret_key, slice_of(secret_key), err) &&
		       secret_set(&provider->held.session_token,
		                  slice_of(report_environment_get(environment, "AWS_SESSION_TOKEN")), err);
	}
	if (report_environment_get(environment, "AWS_WEB_IDENTITY_TOKEN_FILE") != NULL)
		return choose_web_identity(provider, environment, err);
	if (report_environment_get(environment, "AWS_CONTAINER_CREDENTIALS_FULL_URI") != NULL ||
	    report_environment_get(environment, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != NULL)
		return choose_container(provider, environment, err);
	return choose_instance(provider, environment, err);
}

struct aws_provider *aws_provider_create(struct report_transport *transport, struct slice region, struct error *err)
{
	struct aws_provider *provider = memory_allocate(sizeof *provider);

	if (provider == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for AWS credentials");
		return NULL;
	}
	*provider = (struct aws_provider){ .transport = transport, .loop = report_transport_loop(transport) };
	provider->region = memory_copy_text(region.data, region.length);
	if (provider->region == NULL)
		error_set(err, ERROR_NO_MEMORY, "no memory for AWS credentials");
	if (provider->region == NULL || !choose(provider, err)) {
		aws_provider_destroy(provider);
		return NULL;
	}
	return provider;
}
