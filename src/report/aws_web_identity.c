/*
 * A web identity: the token that Kubernetes puts into a file is exchanged for credentials at STS (spec reporting P12).
 */
#include "base/clock.h"
#include "base/file.h"
#include "report/aws_internal.h"
#include "report/xml_text.h"

enum { SESSION_NAME_BYTES = 24, CODE_BYTES = 256, EXPIRATION_BYTES = 64, FORM_BYTES = 4 * REPORT_TOKEN_FILE_BYTES };

void aws_append_sts_form(struct buffer *out, struct slice role, struct slice session_name, struct slice token)
{
	buffer_append_text(out, "Action=AssumeRoleWithWebIdentity&RoleArn=");
	http_append_escaped(out, role);
	buffer_append_text(out, "&RoleSessionName=");
	http_append_escaped(out, session_name);
	buffer_append_text(out, "&Version=2011-06-15&WebIdentityToken=");
	http_append_escaped(out, token);
}

bool aws_read_sts_reply(struct slice xml, int64_t wall_ns, uint64_t now_ns, struct aws_credentials *ret,
                        struct error *err)
{
#define IN_CREDENTIALS(name) "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/" name
	static const char *const PATHS[] = { IN_CREDENTIALS("AccessKeyId"), IN_CREDENTIALS("SecretAccessKey"),
		                             IN_CREDENTIALS("SessionToken"), IN_CREDENTIALS("Expiration") };
	enum { COUNT = sizeof PATHS / sizeof PATHS[0] };
	struct buffer texts[COUNT] = { 0 };
	bool done = true;

	for (size_t i = 0; i < COUNT && done; i++)
		done = secret_buffer_init(&texts[i], REPORT_HEADER_VALUE_BYTES, err) &&
		       xml_find_text(xml, PATHS[i], &texts[i], err);
	if (done)
		done = aws_fill_credentials(buffer_slice(&texts[0]), buffer_slice(&texts[1]), buffer_slice(&texts[2]),
		                            buffer_slice(&texts[3]), wall_ns, now_ns, ret, err);
	for (size_t i = 0; i < COUNT; i++)
		buffer_destroy(&texts[i]);
	return done;
}

/* An error's code and message; their absence leaves the status to tell. */
static bool describe_refusal(int status, struct slice xml, struct error *err)
{
	struct buffer code, message;
	struct error ignored;
	bool may_retry;

	buffer_init(&code, CODE_BYTES);
	buffer_init(&message, CODE_BYTES);
	(void)xml_find_text(xml, "ErrorResponse/Error/Code", &code, &ignored);
	(void)xml_find_text(xml, "ErrorResponse/Error/Message", &message, &ignored);
	error_set(err, ERROR_REFUSED, "STS: status %d %.*s: %.*s", status, SLICE_ARGS(buffer_slice(&code)),
	          SLICE_ARGS(buffer_slice(&message)));
	may_retry = aws_status_may_pass(status) || slice_equal(buffer_slice(&code), SLICE("InvalidIdentityToken")) ||
	            slice_equal(buffer_slice(&code), SLICE("IDPCommunicationError"));
	buffer_destroy(&code);
	buffer_destroy(&message);
	return may_retry;
}

static void on_reply(void *context, const struct report_reply *reply, const struct error *failure)
{
	struct aws_provider *provider = context;
	struct aws_credentials credentials;
	struct error err;

	provider->call = NULL;
	if (reply == NULL || !reply->complete) {
		if (reply == NULL)
			err = *failure;
		else
			error_set(&err, ERROR_CLOSED, "the reply ended too early, or is too long");
		error_wrap(&err, "STS");
		aws_provider_failed(provider, true, &err);
	} else if (reply->status != 200) {
		bool may_retry = describe_refusal(reply->status, reply->body, &err);

		aws_provider_failed(provider, may_retry, &err);
	} else if (aws_read_sts_reply(reply->body, loop_wall_ns(provider->loop), loop_now_ns(provider->loop),
	                              &credentials, &err)) {
		aws_provider_fetched(provider, &credentials);
	} else {
		error_wrap(&err, "STS");
		aws_provider_failed(provider, false, &err);
	}
}

static void append_form(struct aws_provider *provider, struct buffer *form, struct slice token)
{
	struct buffer now;

	buffer_init(&now, SESSION_NAME_BYTES);
	buffer_append_format(&now, "%lld", (long long)loop_wall_ns(provider->loop));
	aws_append_sts_form(form, slice_of(provider->role),
	                    provider->session_name != NULL ? slice_of(provider->session_name) : buffer_slice(&now),
	                    token);
	buffer_destroy(&now);
}

bool aws_web_identity_start(struct aws_provider *provider, struct error *err)
{
	static const struct http_field FIELDS[] = {
		{ .name = SLICE_INIT("Content-Type"), .value = SLICE_INIT("application/x-www-form-urlencoded") },
		{ .name = SLICE_INIT("Accept"), .value = SLICE_INIT("*/*") },
	};
	struct http_request request = { .method = SLICE("POST"), .fields = { FIELDS, 2 } };
	struct buffer token = { 0 }, form = { 0 };
	bool done = false;

	if (!secret_buffer_init(&token, REPORT_TOKEN_FILE_BYTES, err) || !secret_buffer_init(&form, FORM_BYTES, err) ||
	    !file_read(provider->token_file, &token, err))
		goto out;
	append_form(provider, &form, slice_trim(buffer_slice(&token)));
	if (!buffer_check(&form, "the request to STS", err) ||
	    !http_url_parse(slice_of(provider->url), &request.origin, &request.target, err))
		goto out;
	request.body = buffer_slice(&form);
	done = aws_provider_call(provider, &request, CREDENTIAL_CALL_TIMEOUT_MS, on_reply, err);
out:
	buffer_destroy(&token);
	buffer_destroy(&form);
	if (!done)
		error_wrap(err, "STS");
	return done;
}
