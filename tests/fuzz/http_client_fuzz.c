/*
 * Any bytes from a server, through a socket: the client gets one end of its exchange, whatever comes. The first byte
 * chooses how the exchange is read and whether the server ends the connection.
 */
#include "http_loopback.h"
#include "net/http_client.h"

enum { STREAMING_BIT = 1, HEAD_BIT = 2, END_BIT = 4, PAUSE_BIT = 8, BODY_LIMIT_BYTES = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct scene {
	uint8_t choice;
	struct slice answer;
	struct stream *server;
	struct http_exchange *exchange;
	size_t body_bytes;
	int heads;
	bool done;
} scene;

static void on_head(void *context, const struct http_response *response)
{
	(void)context;
	require(++scene.heads == 1 && response->status >= 200);
}

static void on_body(void *context, struct slice bytes)
{
	(void)context;
	scene.body_bytes += bytes.length;
	require(bytes.length > 0 && scene.body_bytes <= BODY_LIMIT_BYTES && scene.heads == 1);
	if ((scene.choice & PAUSE_BIT) != 0) {
		http_exchange_pause(scene.exchange);
		http_exchange_resume(scene.exchange);
	}
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	(void)context;
	require(!scene.done);
	scene.done = true;
	require(err != NULL || (response != NULL && response->body.length <= BODY_LIMIT_BYTES));
	require(err == NULL || err->text[0] != '\0');
}

static void server_data(void *context, struct slice bytes)
{
	struct error err;

	(void)context;
	if (slice_contains(bytes, SLICE("\r\n\r\n")))
		require(stream_write(scene.server, scene.answer, &err));
	if ((scene.choice & END_BIT) != 0) {
		stream_finish(scene.server, NS_PER_MS);
		scene.server = NULL;
	}
}

static void server_close(void *context, const struct error *err)
{
	(void)context;
	(void)err;
	scene.server = NULL;
}

static void accept_one(void *context, struct stream *stream)
{
	static const struct stream_handler SERVER = { .on_data = server_data, .on_close = server_close };

	(void)context;
	if (scene.server != NULL)
		stream_close(scene.server);
	scene.server = stream;
	stream_set_handler(stream, &SERVER, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream_listener_options options = { .address = LOOPBACK };
	struct http_request request = { .origin.host = "127.0.0.1",
		                        .target = SLICE("/"),
		                        .max_body_bytes = BODY_LIMIT_BYTES };
	struct loop *loop = the_loop();
	struct address address;
	struct error err;

	if (size == 0)
		return 0;
	scene = (struct scene){ .choice = data[0], .answer = slice_from(data + 1, size - 1) };

	struct stream_listener *listener = stream_listen(loop, &options, accept_one, NULL, &err);
	struct http_client *client = http_client_create(loop, &err);
	const struct http_handler handler = { .on_head = on_head,
		                              .on_done = on_done,
		                              .on_body = (data[0] & STREAMING_BIT) != 0 ? on_body : NULL };

	require(listener != NULL && client != NULL && stream_listener_address(listener, &address));
	request.origin.port = address.port;
	request.method = (data[0] & HEAD_BIT) != 0 ? SLICE("HEAD") : SLICE("GET");
	scene.exchange = http_client_send(client, &request, &handler, NULL, &err);
	require(scene.exchange != NULL);
	for (int i = 0; i < ((scene.choice & END_BIT) != 0 ? TURNS_AT_MOST : TURNS) && !scene.done; i++)
		turn_once(loop);
	require(scene.done || (scene.choice & END_BIT) == 0);
	http_client_destroy(client);
	stream_listener_close(listener);
	if (scene.server != NULL)
		stream_close(scene.server);
	turn_once(loop);
	return 0;
}
