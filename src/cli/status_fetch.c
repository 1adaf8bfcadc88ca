#include "cli/status_fetch.h"

#include "base/file.h"
#include "net/loop_epoll.h"

enum { TOKEN_BYTES_MAX = 64 * 1024, ANSWER_SHOWN_MAX = 200 };

struct fetch {
	struct loop *loop;
	struct buffer *dump;
	struct error *err;
	bool ok;
};

/* The first line of what the agent says instead of a dump. */
static bool refuse(int status, struct slice body, struct error *err)
{
	struct slice line = slice_take_until(&body, '\n');
	char shown[ANSWER_SHOWN_MAX + 1];
	size_t length = 0;

	for (; length < line.length && length < ANSWER_SHOWN_MAX; length++)
		shown[length] = line.data[length] >= ' ' && line.data[length] < 0x7f ? line.data[length] : '?';
	shown[length] = '\0';
	return error_set(err, ERROR_REFUSED, "status %d%s%s", status, length > 0 ? ": " : "", shown);
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct fetch *fetch = context;

	if (err != NULL) {
		*fetch->err = *err;
	} else if (response->status != 200) {
		(void)refuse(response->status, response->body, fetch->err);
	} else {
		buffer_append_slice(fetch->dump, response->body);
		fetch->ok = buffer_check(fetch->dump, "the dump", fetch->err);
	}
	loop_stop(fetch->loop);
}

/* Appends "Bearer TOKEN". The token never gets into a message. */
static bool read_token(const char *path, struct buffer *credentials, struct error *err)
{
	struct buffer file;
	struct slice token;
	bool ok;

	buffer_init_secret(&file, TOKEN_BYTES_MAX);
	ok = file_read(path, &file, err);
	token = slice_trim(buffer_slice(&file));
	if (ok && (token.length == 0 || !http_is_field_value(token)))
		ok = error_set(err, ERROR_SYNTAX, "%s: there is no token in it", path);
	if (ok) {
		buffer_append_text(credentials, "Bearer ");
		buffer_append_slice(credentials, token);
		ok = buffer_check(credentials, "the token", err);
	}
	buffer_destroy(&file);
	return ok;
}

static bool exchange(struct loop *loop, const struct http_request *request, struct buffer *dump, struct error *err)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	struct fetch fetch = { .loop = loop, .dump = dump, .err = err };
	struct http_client *client = http_client_create(loop, err);
	bool ok;

	if (client == NULL)
		return false;
	ok = http_client_send(client, request, &HANDLER, &fetch, err) != NULL && loop_run(loop, err) && fetch.ok;
	http_client_destroy(client);
	return ok;
}

bool status_source_init(struct status_source *source, const char *url, struct error *err)
{
	struct http_origin origin;
	struct slice target;

	if (!http_url_parse(slice_of(url), &origin, &target, err))
		return false;
	if (origin.secure)
		return error_set(err, ERROR_SYNTAX, "an agent serves its state by http only");
	source->url = url;
	source->origin = origin;
	source->target = target;
	return true;
}

bool status_fetch(const struct status_source *source, struct buffer *dump, struct error *err)
{
	struct buffer credentials;
	struct http_field fields[2] = { { SLICE("Content-Type"), SLICE("application/json") } };
	struct http_request request = {
		.origin = source->origin,
		.method = SLICE("GET"),
		.target = source->target,
		.fields = { fields, 1 },
		.body = SLICE("{}"), /* without one, the agent answers 400 */
		.connect_timeout_ns = source->timeout_ns,
		.total_timeout_ns = source->timeout_ns,
		.max_body_bytes = STATUS_DUMP_BYTES_MAX,
		.fresh_connection = true,
	};
	struct loop *loop = NULL;
	bool ok = true;

	buffer_init_secret(&credentials, TOKEN_BYTES_MAX + sizeof "Bearer ");
	if (source->token_file != NULL) {
		ok = read_token(source->token_file, &credentials, err);
		fields[1] = (struct http_field){ SLICE("Authorization"), buffer_slice(&credentials) };
		request.fields.count = 2;
	}
	if (ok) {
		loop = loop_epoll_create(err);
		ok = loop != NULL && exchange(loop, &request, dump, err);
		if (!ok)
			(void)error_wrap(err, "%s", source->url);
	}
	if (loop != NULL)
		loop_destroy(loop);
	buffer_destroy(&credentials);
	return ok;
}
