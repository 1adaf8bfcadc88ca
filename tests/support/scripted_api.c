#include "tests/support/scripted_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/clock.h"

enum { INPUT_BYTES = 4 * 1024 * 1024, PATIENCE_S = 10 };

struct scripted_connection {
	struct scripted_api *api;
	struct scripted_connection *next, *previous;
	struct stream *stream;
	size_t number;
	struct buffer input;
};

struct scripted_api {
	struct loop *loop;
	struct tls_settings *tls;
	struct stream_listener *listener;
	uint16_t port;
	struct scripted_connection *connections;
	size_t connection_count;
	struct scripted_request requests[SCRIPTED_API_REQUESTS];
	char *texts[SCRIPTED_API_REQUESTS];
	size_t request_count;
};

/* ---- the clocks ---- */

static uint64_t skipped_ns;
static int64_t wall_step_ns;

static uint64_t real_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return real_ns(CLOCK_MONOTONIC) + skipped_ns;
}

int64_t clock_wall_ns(void)
{
	return (int64_t)(real_ns(CLOCK_REALTIME) + skipped_ns) + wall_step_ns;
}

void test_clock_skip(uint64_t ns)
{
	skipped_ns += ns;
}

void test_clock_step_wall(int64_t ns)
{
	wall_step_ns += ns;
}

/* ---- turning the loop ---- */

static void wake(void *context)
{
	(void)context;
}

/* One turn that doesn't wait for long. */
static void turn(struct loop *loop)
{
	struct loop_timer timer = { 0 };
	struct error err;

	loop_timer_start(loop, &timer, 5 * NS_PER_MS, wake, NULL);
	if (!loop_turn(loop, &err))
		fail_msg("loop_turn: %s", err.text);
	loop_timer_stop(loop, &timer);
}

void test_loop_spin(struct loop *loop, unsigned real_ms)
{
	uint64_t until_ns = real_ns(CLOCK_MONOTONIC) + (uint64_t)real_ms * NS_PER_MS;

	do
		turn(loop);
	while (real_ns(CLOCK_MONOTONIC) < until_ns);
}

void test_loop_until(struct loop *loop, const bool *flag)
{
	uint64_t until_ns = real_ns(CLOCK_MONOTONIC) + (uint64_t)PATIENCE_S * NS_PER_S;

	while (!*flag && real_ns(CLOCK_MONOTONIC) < until_ns)
		turn(loop);
	if (!*flag)
		fail_msg("what the test waits for didn't happen");
}

struct scripted_request *scripted_api_wait(struct scripted_api *api, size_t number_of_requests)
{
	uint64_t until_ns = real_ns(CLOCK_MONOTONIC) + (uint64_t)PATIENCE_S * NS_PER_S;

	while (api->request_count < number_of_requests && real_ns(CLOCK_MONOTONIC) < until_ns)
		turn(api->loop);
	if (api->request_count < number_of_requests)
		fail_msg("%zu requests came, the test waits for %zu", api->request_count, number_of_requests);
	return &api->requests[number_of_requests - 1];
}

/* ---- connections ---- */

static void forget(struct scripted_connection *connection)
{
	struct scripted_api *api = connection->api;

	for (size_t i = 0; i < api->request_count; i++)
		if (api->requests[i].on == connection)
			api->requests[i].on = NULL;
	if (connection->previous != NULL)
		connection->previous->next = connection->next;
	else
		api->connections = connection->next;
	if (connection->next != NULL)
		connection->next->previous = connection->previous;
	buffer_destroy(&connection->input);
	free(connection);
}

static void on_close(void *context, const struct error *err)
{
	struct scripted_connection *connection = context;
	struct scripted_api *api = connection->api;

	(void)err;
	for (size_t i = 0; i < api->request_count; i++)
		if (api->requests[i].on == connection)
			api->requests[i].gone = true;
	forget(connection);
}

static struct slice field_of(struct slice head, const char *name)
{
	while (head.length > 0) {
		struct slice line = slice_take_until(&head, '\n');
		struct slice key = slice_take_until(&line, ':');

		if (slice_equal_fold(key, slice_of(name)))
			return slice_trim(line);
	}
	return (struct slice){ 0 };
}

struct slice scripted_field(const struct scripted_request *request, const char *name)
{
	return field_of(request->head, name);
}

/* Records the request at the start of the input; false if it isn't whole yet. */
static bool take_request(struct scripted_connection *connection)
{
	struct scripted_api *api = connection->api;
	struct slice input = buffer_slice(&connection->input);
	const char *end = input.length > 0 ? memmem(input.data, input.length, "\r\n\r\n", 4) : NULL;
	struct scripted_request *request = &api->requests[api->request_count];
	uint64_t body_length = 0;
	size_t head_length;
	struct slice line;
	char *text;

	if (end == NULL)
		return false;
	head_length = (size_t)(end - input.data) + 4;
	(void)slice_to_u64(field_of(slice_from(input.data, head_length), "Content-Length"), &body_length);
	if (input.length < head_length + body_length)
		return false;
	if (api->request_count == SCRIPTED_API_REQUESTS)
		fail_msg("too many requests for one test");
	text = malloc(head_length + body_length + 1);
	memcpy(text, input.data, head_length + body_length);
	api->texts[api->request_count++] = text;
	*request = (struct scripted_request){
		.head = slice_from(text, head_length),
		.body = slice_from(text + head_length, body_length),
		.at_ns = loop_now_ns(api->loop),
		.connection = connection->number,
		.on = connection,
	};
	line = request->head;
	request->method = slice_take_until(&line, ' ');
	request->target = slice_take_until(&line, ' ');
	buffer_consume(&connection->input, head_length + body_length);
	return true;
}

static void on_data(void *context, struct slice bytes)
{
	struct scripted_connection *connection = context;

	buffer_append_slice(&connection->input, bytes);
	while (take_request(connection))
		;
}

static void on_accept(void *context, struct stream *stream)
{
	static const struct stream_handler handler = { .on_data = on_data, .on_close = on_close };
	struct scripted_api *api = context;
	struct scripted_connection *connection = calloc(1, sizeof *connection);

	connection->api = api;
	connection->stream = stream;
	connection->number = api->connection_count++;
	buffer_init(&connection->input, INPUT_BYTES);
	connection->next = api->connections;
	if (connection->next != NULL)
		connection->next->previous = connection;
	api->connections = connection;
	stream_set_handler(stream, &handler, connection);
}

static struct tls_settings *current_tls(void *context)
{
	struct scripted_api *api = context;

	return api->tls;
}

static void listen_on(struct scripted_api *api, uint16_t port)
{
	struct stream_listener_options options = { .tls = api->tls != NULL ? current_tls : NULL,
		                                   .max_connections = 1024 };
	struct address address;
	struct error err;

	assert_true(address_parse(SLICE("127.0.0.1"), port, &options.address));
	api->listener = stream_listen(api->loop, &options, on_accept, api, &err);
	if (api->listener == NULL)
		fail_msg("stream_listen: %s", err.text);
	assert_true(stream_listener_address(api->listener, &address));
	api->port = address.port;
}

struct scripted_api *scripted_api_start(struct loop *loop, struct tls_settings *tls)
{
	struct scripted_api *api = calloc(1, sizeof *api);

	api->loop = loop;
	if (tls != NULL)
		api->tls = tls_settings_hold(tls);
	listen_on(api, 0);
	return api;
}

void scripted_api_set_tls(struct scripted_api *api, struct tls_settings *tls)
{
	tls_settings_release(api->tls);
	api->tls = tls_settings_hold(tls);
}

uint16_t scripted_api_port(const struct scripted_api *api)
{
	return api->port;
}

void scripted_api_stop_listening(struct scripted_api *api)
{
	stream_listener_close(api->listener);
	api->listener = NULL;
}

void scripted_api_listen_again(struct scripted_api *api)
{
	listen_on(api, api->port);
}

void scripted_api_destroy(struct scripted_api *api)
{
	while (api->connections != NULL) {
		stream_close(api->connections->stream);
		forget(api->connections);
	}
	if (api->listener != NULL)
		stream_listener_close(api->listener);
	for (size_t i = 0; i < api->request_count; i++)
		free(api->texts[i]);
	tls_settings_release(api->tls);
	free(api);
}

size_t scripted_api_request_count(const struct scripted_api *api)
{
	return api->request_count;
}

size_t scripted_api_connection_count(const struct scripted_api *api)
{
	return api->connection_count;
}

struct scripted_request *scripted_api_request(struct scripted_api *api, size_t number)
{
	assert_true(number < api->request_count);
	return &api->requests[number];
}

/* ---- answers ---- */

void scripted_raw(struct scripted_request *request, struct slice bytes)
{
	struct error err;

	if (request->on == NULL)
		fail_msg("the connection to be answered on is closed");
	if (stream_write(request->on->stream, bytes, &err))
		return;
	/* Where a test makes allocations fail, the server is one that breaks down. */
	if (err.code != ERROR_NO_MEMORY)
		fail_msg("stream_write: %s", err.text);
	scripted_reset(request);
}

static void raw_text(struct scripted_request *request, const char *text)
{
	scripted_raw(request, slice_of(text));
}

void scripted_reply(struct scripted_request *request, int status, const char *fields, const char *body)
{
	char head[1024];

	(void)snprintf(head, sizeof head,
	               "HTTP/1.1 %d Scripted\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n",
	               status, fields, strlen(body));
	raw_text(request, head);
	if (request->on != NULL)
		raw_text(request, body);
}

void scripted_begin(struct scripted_request *request, int status, const char *fields)
{
	char head[1024];

	(void)snprintf(head, sizeof head,
	               "HTTP/1.1 %d Scripted\r\nContent-Type: application/json\r\n%sTransfer-Encoding: chunked\r\n\r\n",
	               status, fields);
	raw_text(request, head);
}

void scripted_chunk(struct scripted_request *request, struct slice bytes)
{
	char head[32];

	(void)snprintf(head, sizeof head, "%zx\r\n", bytes.length);
	raw_text(request, head);
	scripted_raw(request, bytes);
	raw_text(request, "\r\n");
}

void scripted_chunk_text(struct scripted_request *request, const char *text)
{
	scripted_chunk(request, slice_of(text));
}

void scripted_end(struct scripted_request *request)
{
	raw_text(request, "0\r\n\r\n");
}

void scripted_close(struct scripted_request *request)
{
	struct scripted_connection *connection = request->on;

	stream_finish(connection->stream, NS_PER_S);
	forget(connection);
}

void scripted_reset(struct scripted_request *request)
{
	struct scripted_connection *connection = request->on;

	stream_abort(connection->stream);
	forget(connection);
}

char *test_file_read(const char *path_below_tests, size_t *ret_length)
{
	char path[1024];
	char *text = malloc(16 * 1024 * 1024);
	FILE *file;

	(void)snprintf(path, sizeof path, "%s/%s", TESTS_DIR, path_below_tests);
	file = fopen(path, "rb");
	if (file == NULL)
		fail_msg("%s can't be opened", path);
	*ret_length = fread(text, 1, 16 * 1024 * 1024 - 1, file);
	text[*ret_length] = '\0';
	(void)fclose(file);
	return text;
}
