/*
 * A request goes down the list of sources: one that isn't configured or can't be reached is passed over, one that
 * refuses ends it (A8). Once a source has answered, only that one is asked.
 */
#include "report/azure_token.h"

#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "gen/report.gen.h"
#include "report/limits.h"
#include "report/secret.h"

enum azure_source { CLIENT_SECRET, WORKLOAD_IDENTITY, MANAGED_IDENTITY };

enum { ARENA_BYTES = 16 * REPORT_REPLY_BYTES, FORM_BYTES = 4 * REPORT_TOKEN_FILE_BYTES, REFRESH_PAUSE_S = 30 };

static const char RESOURCE[] = "https://storage.azure.com"; /* A7 */

struct azure_provider {
	struct report_transport *transport;
	struct loop *loop;
	/* settings, as the environment had them; NULL: not set */
	char *tenant, *client_id, *token_file, *authority, *instance_url;
	struct secret client_secret;
	char *resource;
	/* what is held */
	struct secret token;
	uint64_t expires_ns; /* monotonic */
	uint64_t no_refresh_before_ns;
	/* the call under way */
	azure_token_done *done; /* NULL: none */
	void *context;
	struct loop_task task;
	struct loop_timer wait;
	struct report_call *call;
	enum azure_source source;
	bool settled;  /* `source` is the one for good */
	bool answered; /* the instance's endpoint has, once (A10) */
	unsigned attempts;
	bool failed;
	struct error err;
};

static void try_source(void *context);

/* ---- answers ---- */

static void tell(void *context)
{
	struct azure_provider *provider = context;
	azure_token_done *done = provider->done;
	struct error err = provider->err;

	provider->done = NULL;
	if (provider->failed)
		done(provider->context, (struct slice){ 0 }, &err);
	else
		done(provider->context, secret_slice(&provider->token), NULL);
}

static void answer(struct azure_provider *provider, const struct error *failure)
{
	const uint64_t now_ns = loop_now_ns(provider->loop);

	provider->failed = failure != NULL;
	if (failure != NULL)
		provider->err = *failure;
	/* A token that is still good is better than an error. */
	if (failure != NULL && provider->token.length > 0 && provider->expires_ns > now_ns) {
		provider->failed = false;
		provider->no_refresh_before_ns = now_ns + (uint64_t)REFRESH_PAUSE_S * NS_PER_S;
	}
	loop_run_soon(provider->loop, &provider->task, tell, provider);
}

/* The source can't be used; the next one may be. */
static void pass_over(struct azure_provider *provider, const struct error *err)
{
	if (provider->settled || provider->source == MANAGED_IDENTITY) {
		answer(provider, err);
		return;
	}
	provider->source++;
	provider->attempts = 0;
	try_source(provider);
}

static void retry(struct azure_provider *provider, const struct error *err)
{
	const double factor = 0.8 + 0.5 * rng_unit(loop_rng(provider->loop));
	const double wait_ms = (double)((1U << provider->attempts) - 1) * AZURE_RETRY_FIRST_MS * factor;

	if (provider->attempts >= AZURE_ATTEMPTS)
		answer(provider, err);
	else
		loop_timer_start(provider->loop, &provider->wait, (uint64_t)(wait_ms * NS_PER_MS), try_source,
		                 provider);
}

/* ---- replies ---- */

/* A number, or a string with one. */
static bool read_seconds(struct slice json, uint64_t *ret_seconds)
{
	if (json.length >= 2 && json.data[0] == '"')
		json = slice_from(json.data + 1, json.length - 2);
	return slice_to_u64(json, ret_seconds);
}

static uint64_t lifetime_s(const struct azure_provider *provider, const struct report_azure_token *reply)
{
	const int64_t wall_s = loop_wall_ns(provider->loop) / NS_PER_S;
	const uint64_t most_s = UINT32_MAX;
	uint64_t seconds = 0;

	if (read_seconds(reply->expires_in, &seconds))
		return seconds < most_s ? seconds : most_s;
	if (read_seconds(reply->expires_on, &seconds) && wall_s >= 0 && seconds > (uint64_t)wall_s)
		return seconds - (uint64_t)wall_s < most_s ? seconds - (uint64_t)wall_s : most_s;
	return 0;
}

static bool take_token(struct azure_provider *provider, struct slice json, struct error *err)
{
	struct report_azure_token reply = { 0 };
	struct arena arena;
	bool done = false;

	arena_init(&arena, ARENA_BYTES);
	if (!report_azure_token_from_json(json, &arena, &reply, err))
		goto out;
	if (reply.access_token.length == 0 || !http_is_field_value(reply.access_token)) {
		error_set(err, ERROR_SYNTAX, "the reply has no usable access_token");
		goto out;
	}
	if (!secret_set(&provider->token, reply.access_token, err))
		goto out;
	provider->expires_ns = loop_now_ns(provider->loop) + lifetime_s(provider, &reply) * NS_PER_S;
	provider->no_refresh_before_ns = 0;
	provider->settled = true;
	done = true;
out:
	secret_wipe_decoded(reply.access_token, json);
	arena_destroy(&arena);
	return done;
}

static void describe_refusal(int status, struct slice json, struct error *err)
{
	struct report_azure_error reply = { 0 };
	struct arena arena;
	struct error ignored;

	arena_init(&arena, ARENA_BYTES);
	if (report_azure_error_from_json(json, &arena, &reply, &ignored))
		error_set(err, ERROR_REFUSED, "status %d %.*s: %.*s", status, SLICE_ARGS(reply.error),
		          SLICE_ARGS(reply.error_description));
	else
		error_set(err, ERROR_REFUSED, "status %d", status);
	arena_destroy(&arena);
}

static const char *name_of(enum azure_source source)
{
	switch (source) {
	case CLIENT_SECRET:
		return "client secret";
	case WORKLOAD_IDENTITY:
		return "workload identity";
	case MANAGED_IDENTITY:
		break;
	}
	return "managed identity";
}

/* What the instance's endpoint says when it isn't ready yet (A10). */
static bool may_pass(int status)
{
	return status == 404 || status == 410 || status == 429 || status >= 500;
}

static void on_reply(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct azure_provider *provider = context;
	const bool managed = provider->source == MANAGED_IDENTITY;
	struct error err;

	provider->call = NULL;
	if (reply != NULL)
		provider->answered = provider->answered || managed;
	if (reply != NULL && reply->complete && reply->status == 200) {
		if (take_token(provider, reply->body, &err)) {
			answer(provider, NULL);
			return;
		}
	} else if (reply == NULL) {
		err = *failure;
	} else if (!reply->complete) {
		error_set(&err, ERROR_CLOSED, "the reply ended too early, or is too long");
	} else {
		describe_refusal(reply->status, reply->body, &err);
	}
	error_wrap(&err, "%s", name_of(provider->source));
	if (reply == NULL && managed && !provider->answered)
		pass_over(provider, &err);
	else if (managed && (reply == NULL || may_pass(reply->status)))
		retry(provider, &err);
	else
		answer(provider, &err);
}

/* ---- requests ---- */

void azure_append_form(struct buffer *out, struct slice client_id, struct slice resource, struct slice secret,
                       bool assertion)
{
	buffer_append_text(out, "grant_type=client_credentials&client_id=");
	http_append_escaped(out, client_id);
	buffer_append_text(out, "&scope=");
	http_append_escaped(out, resource);
	buffer_append_text(out, "%2F.default");
	buffer_append_text(out, assertion ? "&client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type"
	                                    "%3Ajwt-bearer&client_assertion="
	                                  : "&client_secret=");
	http_append_escaped(out, secret);
}

/* The authority's address for the tenant (A9). */
static bool find_authority(const struct azure_provider *provider, struct buffer *target, struct http_origin *ret_origin,
                           struct error *err)
{
	struct slice base;

	if (!http_url_parse(slice_of(provider->authority), ret_origin, &base, err))
		return error_wrap(err, "AZURE_AUTHORITY_HOST");
	if (!ret_origin->secure)
		return error_set(err, ERROR_REFUSED, "AZURE_AUTHORITY_HOST must begin with https://");
	while (base.length > 0 && base.data[base.length - 1] == '/')
		base.length--;
	buffer_append_slice(target, base);
	buffer_append_char(target, '/');
	http_append_escaped(target, slice_of(provider->tenant));
	buffer_append_text(target, "/oauth2/v2.0/token");
	return buffer_check(target, "the authority's address", err);
}

static bool exchange(struct azure_provider *provider, struct slice secret, bool assertion, struct error *err)
{
	static const struct http_field FIELDS[] = {
		{ .name = SLICE_INIT("Content-Type"), .value = SLICE_INIT("application/x-www-form-urlencoded") },
		{ .name = SLICE_INIT("Accept"), .value = SLICE_INIT("application/json") },
	};
	struct http_request request = {
		.method = SLICE("POST"),
		.fields = { FIELDS, 2 },
		.total_timeout_ns = (uint64_t)CREDENTIAL_CALL_TIMEOUT_MS * NS_PER_MS,
	};
	struct buffer form = { 0 }, target;

	buffer_init(&target, REPORT_URL_BYTES);
	if (!find_authority(provider, &target, &request.origin, err) || !secret_buffer_init(&form, FORM_BYTES, err))
		goto out;
	azure_append_form(&form, slice_of(provider->client_id), slice_of(provider->resource), secret, assertion);
	if (!buffer_check(&form, "the request for a token", err))
		goto out;
	request.target = buffer_slice(&target);
	request.body = buffer_slice(&form);
	provider->call = report_call_start(provider->transport, &request, on_reply, provider, err);
out:
	buffer_destroy(&form);
	buffer_destroy(&target);
	return provider->call != NULL;
}

static bool exchange_file(struct azure_provider *provider, struct error *err)
{
	struct buffer token = { 0 };
	bool done = secret_buffer_init(&token, REPORT_TOKEN_FILE_BYTES, err) &&
	            file_read(provider->token_file, &token, err) &&
	            exchange(provider, slice_trim(buffer_slice(&token)), true, err);

	buffer_destroy(&token);
	return done;
}

static bool ask_instance(struct azure_provider *provider, struct error *err)
{
	static const struct http_field FIELDS[] = { { .name = SLICE_INIT("Metadata"), .value = SLICE_INIT("true") } };
	const uint64_t limit_ms = provider->answered ? METADATA_CALL_TIMEOUT_MS : AZURE_INSTANCE_PROBE_MS;
	struct http_request request = {
		.method = SLICE("GET"),
		.fields = { FIELDS, 1 },
		.total_timeout_ns = limit_ms * NS_PER_MS,
	};
	struct buffer target;
	struct slice base;

	buffer_init(&target, REPORT_URL_BYTES);
	if (!http_url_parse(slice_of(provider->instance_url), &request.origin, &base, err))
		goto out;
	while (base.length > 0 && base.data[base.length - 1] == '/')
		base.length--;
	buffer_append_slice(&target, base);
	buffer_append_text(&target, "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=");
	http_append_escaped(&target, slice_of(provider->resource));
	if (provider->client_id != NULL) {
		buffer_append_text(&target, "&client_id=");
		http_append_escaped(&target, slice_of(provider->client_id));
	}
	if (!buffer_check(&target, "the address of instance metadata", err))
		goto out;
	request.target = buffer_slice(&target);
	provider->call = report_call_start(provider->transport, &request, on_reply, provider, err);
out:
	buffer_destroy(&target);
	return provider->call != NULL;
}

/* Whether the environment has what the source needs. */
static bool is_configured(const struct azure_provider *provider, enum azure_source source)
{
	switch (source) {
	case CLIENT_SECRET:
		return provider->tenant != NULL && provider->client_id != NULL && provider->client_secret.length > 0;
	case WORKLOAD_IDENTITY:
		return provider->tenant != NULL && provider->client_id != NULL && provider->token_file != NULL;
	case MANAGED_IDENTITY:
		break;
	}
	return true;
}

static bool ask(struct azure_provider *provider, struct error *err)
{
	switch (provider->source) {
	case CLIENT_SECRET:
		return exchange(provider, secret_slice(&provider->client_secret), false, err);
	case WORKLOAD_IDENTITY:
		return exchange_file(provider, err);
	case MANAGED_IDENTITY:
		break;
	}
	return ask_instance(provider, err);
}

static void try_source(void *context)
{
	struct azure_provider *provider = context;
	struct error err;

	while (!is_configured(provider, provider->source))
		provider->source++;
	provider->attempts++;
	if (!ask(provider, &err)) {
		error_wrap(&err, "%s", name_of(provider->source));
		answer(provider, &err);
	}
}

void azure_provider_get(struct azure_provider *provider, azure_token_done *done, void *context)
{
	const uint64_t now_ns = loop_now_ns(provider->loop);

	provider->done = done;
	provider->context = context;
	provider->attempts = 0;
	if (provider->token.length > 0 &&
	    (now_ns + (uint64_t)CREDENTIAL_REFRESH_S * NS_PER_S < provider->expires_ns ||
	     (now_ns < provider->no_refresh_before_ns && now_ns < provider->expires_ns))) {
		answer(provider, NULL);
		return;
	}
	if (!provider->settled)
		provider->source = CLIENT_SECRET;
	try_source(provider);
}

void azure_provider_cancel(struct azure_provider *provider)
{
	if (provider->done == NULL)
		return;
	report_call_cancel(provider->call);
	provider->call = NULL;
	provider->done = NULL;
	loop_timer_stop(provider->loop, &provider->wait);
	loop_task_cancel(provider->loop, &provider->task);
}

void azure_provider_forget(struct azure_provider *provider, struct slice resource)
{
	static const struct slice SCHEME = SLICE_INIT("https://");
	char *copy;

	secret_clear(&provider->token);
	if (resource.length > 0 && resource.data[resource.length - 1] == '/')
		resource.length--;
	if (resource.length <= SCHEME.length || resource.length > REPORT_PREFIX_BYTES ||
	    !slice_starts_with(resource, SCHEME) || slice_equal_text(resource, provider->resource))
		return;
	copy = memory_copy_text(resource.data, resource.length);
	if (copy == NULL)
		return;
	memory_release(provider->resource);
	provider->resource = copy;
}

void azure_provider_destroy(struct azure_provider *provider)
{
	if (provider == NULL)
		return;
	azure_provider_cancel(provider);
	secret_clear(&provider->client_secret);
	secret_clear(&provider->token);
	memory_release(provider->tenant);
	memory_release(provider->client_id);
	memory_release(provider->token_file);
	memory_release(provider->authority);
	memory_release(provider->instance_url);
	memory_release(provider->resource);
	memory_release(provider);
}

/* The variable's value, or the default, copied; NULL for neither. */
static bool copy_setting(char **ret_copy, const struct report_environment *environment, const char *name,
                         const char *otherwise, struct error *err)
{
	const char *value = report_environment_get(environment, name);

	if (value == NULL)
		value = otherwise;
	if (value == NULL)
		return true;
	*ret_copy = memory_copy_text(value, strlen(value));
	if (*ret_copy == NULL)
		return error_set(err, ERROR_NO_MEMORY, "no memory for Azure credentials");
	return true;
}

struct azure_provider *azure_provider_create(struct report_transport *transport, struct error *err)
{
	const struct report_environment *environment = report_transport_environment(transport);
	struct azure_provider *provider = memory_allocate(sizeof *provider);

	if (provider == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for Azure credentials");
		return NULL;
	}
	*provider = (struct azure_provider){ .transport = transport, .loop = report_transport_loop(transport) };
	error_set(err, ERROR_NO_MEMORY, "no memory for Azure credentials"); /* the only thing that can go wrong */
	/* AZURE_POD_IDENTITY_AUTHORITY_HOST moves the instance's endpoint, as it does for Microsoft's own libraries. */
	if (!copy_setting(&provider->tenant, environment, "AZURE_TENANT_ID", NULL, err) ||
	    !copy_setting(&provider->client_id, environment, "AZURE_CLIENT_ID", NULL, err) ||
	    !copy_setting(&provider->token_file, environment, "AZURE_FEDERATED_TOKEN_FILE", NULL, err) ||
	    !copy_setting(&provider->authority, environment, "AZURE_AUTHORITY_HOST",
	                  "https://login.microsoftonline.com/", err) ||
	    !copy_setting(&provider->instance_url, environment, "AZURE_POD_IDENTITY_AUTHORITY_HOST",
	                  "http://169.254.169.254", err) ||
	    !secret_set(&provider->client_secret, slice_of(report_environment_get(environment, "AZURE_CLIENT_SECRET")),
	                err) ||
	    (provider->resource = memory_copy_text(RESOURCE, sizeof RESOURCE - 1)) == NULL) {
		azure_provider_destroy(provider);
		return NULL;
	}
	return provider;
}
