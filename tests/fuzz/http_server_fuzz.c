/*
 * Any bytes from a client, through a socket: the server answers, refuses or waits, and tells its handler the end of
 * every call. The first byte chooses how the handler behaves.
 */
#include "http_loopback.h"
#include "net/http_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct scene {
	uint8_t choice;
	struct http_call *open; /* to be answered in a later turn */
	int seen, ended;
	bool client_gone;
} scene;

static bool on_head(void *context, struct http_call *call)
{
	(void)context;
	scene.seen++;
	if ((scene.choice & 3) != 3)
		return true;
	scene.ended++;
	http_call_respond(call, 403, NULL, SLICE("no"));
	return false;
}

static void on_request(void *context, struct http_call *call)
{
	(void)context;
	switch (scene.choice & 3) {
	case 0:
		scene.ended++;
		http_call_respond(call, 200, "text/plain", http_call_path(call));
		break;
	case 1:
		scene.open = call;
		http_call_begin(call, 200, (struct http_fields){ 0 });
		break;
	default:
		scene.ended++;
		http_call_abort(call, (scene.choice & 4) != 0);
		break;
	}
}

static void on_abort(void *context, struct http_call *call)
{
	(void)context;
	scene.ended++;
	if (scene.open == call)
		scene.open = NULL;
}

static void on_close(void *context, const struct error *err)
{
	(void)context;
	(void)err;
	scene.client_gone = true;
}

static void answer_open_call(void)
{
	struct http_call *call = scene.open;

	scene.open = NULL;
	scene.ended++;
	(void)http_call_write(call, http_call_body(call));
	http_call_end(call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct http_server_handler HANDLER = { .on_head = on_head,
		                                            .on_request = on_request,
		                                            .on_abort = on_abort };
	static const struct stream_handler CLIENT = { .on_close = on_close };
	struct http_server_options options = { .address = LOOPBACK, .max_body_bytes = 1000 };
	struct stream_connect_options connect = { .host = "127.0.0.1" };
	struct loop *loop = the_loop();
	struct address address;
	struct error err;

	if (size == 0)
		return 0;
	scene = (struct scene){ .choice = data[0] };

	struct http_server *server = http_server_start(loop, &options, &HANDLER, NULL, &err);

	require(server != NULL && http_server_address(server, &address));
	connect.port = address.port;

	struct stream *client = stream_connect(loop, &connect, &CLIENT, NULL, &err);

	require(client != NULL && stream_write(client, slice_from(data + 1, size - 1), &err));
	for (int i = 0; i < TURNS && !scene.client_gone; i++) {
		turn_once(loop);
		if (scene.open != NULL)
			answer_open_call();
	}
	if (!scene.client_gone)
		stream_close(client);
	for (int i = 0; i < TURNS_AT_MOST && http_server_connection_count(server) > 0; i++)
		turn_once(loop);
	require(http_server_connection_count(server) == 0);
	require(scene.ended == scene.seen);
	http_server_destroy(server);
	turn_once(loop);
	return 0;
}
