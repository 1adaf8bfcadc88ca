#include "agent/admin_token.h"

#include <string.h>
#include <strings.h>

#include "agent/limits.h"
#include "base/file.h"
#include "base/secret.h"

static bool is_given(const struct admin_token *token)
{
	return token->path != NULL && token->path[0] != '\0';
}

/* The file's content, with white space around it. The caller destroys it in any case. */
static bool read_file(const struct admin_token *token, struct buffer *content, struct error *err)
{
	buffer_init_secret(content, AGENT_ADMIN_TOKEN_BYTES);
	/* At once whole, so that no copy is left where the buffer grew. */
	if (buffer_reserve(content, AGENT_ADMIN_TOKEN_BYTES) == NULL)
		return buffer_check(content, "the admin token", err);
	if (!file_read(token->path, content, err))
		return false;
	if (slice_trim(buffer_slice(content)).length == 0)
		return error_set(err, ERROR_SYNTAX, "%s is empty", token->path);
	return true;
}

bool admin_token_check(const struct admin_token *token, struct error *err)
{
	struct buffer content;
	bool ok;

	if (!is_given(token))
		return true;
	ok = read_file(token, &content, err);
	buffer_destroy(&content);
	return ok;
}

/* What the call shows: empty without a field, or with several, or another scheme. */
static struct slice shown(const struct http_call *call)
{
	static const char SCHEME[] = "Bearer ";
	const size_t scheme_length = sizeof SCHEME - 1;
	struct http_fields fields = http_call_fields(call);
	struct slice value = SLICE("");
	int count = 0;

	for (size_t i = 0; i < fields.count; i++) {
		const struct http_field *field = &fields.items[i];

		if (field->name.length == strlen("Authorization") &&
		    strncasecmp(field->name.data, "Authorization", field->name.length) == 0) {
			value = field->value;
			count++;
		}
	}
	if (count != 1 || value.length <= scheme_length || strncasecmp(value.data, SCHEME, scheme_length) != 0)
		return SLICE("");
	return slice_trim(slice_from_offset(value, scheme_length));
}

static void note_state(struct admin_token *token, const struct error *err)
{
	if (err != NULL && !token->failing)
		log_error(&token->logger, "Unable to read the admin token; nobody is let in",
		          log_text("path", token->path), log_error_field(err));
	token->failing = err != NULL;
}

static bool matches(struct admin_token *token, struct slice text)
{
	struct buffer content;
	struct error err;
	bool ok = read_file(token, &content, &err);

	note_state(token, ok ? NULL : &err);
	ok = ok && text.length > 0 && secret_equal(text, slice_trim(buffer_slice(&content)));
	buffer_destroy(&content);
	return ok;
}

bool admin_token_admits(struct admin_token *token, struct http_call *call)
{
	static const struct http_field FIELDS[] = {
		{ SLICE_INIT("Content-Type"), SLICE_INIT("text/plain; charset=utf-8") },
		{ SLICE_INIT("WWW-Authenticate"), SLICE_INIT("Bearer") },
	};

	if (token == NULL || !is_given(token) || matches(token, shown(call)))
		return true;
	http_call_respond_with(call, 401, (struct http_fields){ FIELDS, sizeof FIELDS / sizeof FIELDS[0] },
	                       SLICE("401 unauthorized\n"));
	return false;
}
