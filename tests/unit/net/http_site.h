/*
 * A server for tests whose handler does what the path says, and records what it is told. Shared by the tests of server,
 * client and websocket.
 */
#ifndef BALLAST_TESTS_UNIT_NET_HTTP_SITE_H
#define BALLAST_TESTS_UNIT_NET_HTTP_SITE_H

#include "net/http_client.h"
#include "net/http_parser.h"
#include "net/http_server.h"
#include "peer.h"

enum { SITE_BODY_BYTES = 100000 };

struct site {
	struct loop *loop;
	struct http_server *server;
	struct address address;
	unsigned requests, aborts, heads;
	struct http_call *call; /* the last one that was kept open: /hold, /stream */
	struct buffer streamed; /* on_body */
	bool pauses;            /* on_body pauses at each piece */
	bool destroyed;
	void (*on_request)(struct site *site, struct http_call *call); /* replaces the paths */
	bool (*on_head)(struct site *site, struct http_call *call);
};

/* What was asked, in one line: `METHOD target "body"`. */
static inline void site_echo(struct http_call *call)
{
	struct buffer text;
	struct slice query = http_call_query(call);

	buffer_init(&text, 2 * SITE_BODY_BYTES);
	buffer_append_format(&text, "%.*s ", SLICE_ARGS(http_call_method(call)));
	buffer_append_slice(&text, http_call_path(call));
	if (query.length > 0)
		buffer_append_format(&text, "?%.*s", SLICE_ARGS(query));
	buffer_append_text(&text, " \"");
	buffer_append_slice(&text, http_call_body(call));
	buffer_append_text(&text, "\"");
	http_call_respond(call, text.failed ? 503 : 200, "text/plain", buffer_slice(&text));
	buffer_destroy(&text);
}

static inline bool site_on_head(void *context, struct http_call *call)
{
	struct site *site = context;

	site->heads++;
	return site->on_head == NULL || site->on_head(site, call);
}

static inline void site_on_body(void *context, struct http_call *call, struct slice bytes)
{
	struct site *site = context;

	buffer_append_slice(&site->streamed, bytes);
	site->call = call;
	if (site->pauses)
		http_call_pause_body(call);
}

static inline void site_on_request(void *context, struct http_call *call)
{
	struct site *site = context;
	struct slice path = http_call_path(call);

	site->requests++;
	if (site->on_request != NULL) {
		site->on_request(site, call);
	} else if (slice_equal(path, SLICE("/hold"))) {
		site->call = call;
	} else if (slice_equal(path, SLICE("/stream"))) {
		site->call = call;
		http_call_begin(call, 200, (struct http_fields){ 0 });
	} else if (slice_equal(path, SLICE("/destroy"))) {
		http_server_destroy(site->server);
		site->destroyed = true;
	} else if (slice_equal(path, SLICE("/cut"))) {
		http_call_abort(call, false);
	} else if (slice_equal(path, SLICE("/reset"))) {
		http_call_abort(call, true);
	} else {
		site_echo(call);
	}
}

static inline void site_on_abort(void *context, struct http_call *call)
{
	struct site *site = context;

	site->aborts++;
	if (site->call == call)
		site->call = NULL;
}

static inline struct http_server_options site_options(void)
{
	return (struct http_server_options){
		.address = { .bytes = { 127, 0, 0, 1 } },
		.max_body_bytes = SITE_BODY_BYTES,
	};
}

static inline void site_init_with(struct site *site, struct loop *loop, const struct http_server_options *options,
                                  const struct http_server_handler *handler)
{
	struct error err;

	*site = (struct site){ .loop = loop };
	buffer_init(&site->streamed, PEER_RECEIVED_BYTES);
	site->server = http_server_start(loop, options, handler, site, &err);
	assert_non_null(site->server);
	assert_true(http_server_address(site->server, &site->address));
}

static inline void site_init(struct site *site, struct loop *loop)
{
	static const struct http_server_handler HANDLER = { .on_head = site_on_head,
		                                            .on_request = site_on_request,
		                                            .on_abort = site_on_abort };
	struct http_server_options options = site_options();

	site_init_with(site, loop, &options, &HANDLER);
}

static inline void site_destroy(struct site *site)
{
	if (!site->destroyed)
		http_server_destroy(site->server);
	buffer_destroy(&site->streamed);
}

static inline void peer_connect_site(struct peer *peer, struct site *site)
{
	struct stream_connect_options options = { .host = "127.0.0.1", .port = site->address.port };

	peer_init(peer, site->loop);
	peer_connect(peer, &options);
}

static inline bool received(const struct peer *peer, const char *text)
{
	return slice_contains(buffer_slice(&peer->received), slice_of(text));
}

static inline bool received_at_end(const struct peer *peer, const char *text)
{
	struct slice all = buffer_slice(&peer->received);
	size_t length = strlen(text);

	return all.length >= length && slice_equal(slice_from_offset(all, all.length - length), slice_of(text));
}

/* Sends text on a connection of its own, waits until that is over, and leaves what came in peer->received. */
static inline void ask_and_close(struct peer *peer, struct site *site, struct slice text)
{
	peer_connect_site(peer, site);
	peer_write(peer, text);
	TURN_UNTIL(site->loop, peer->closed > 0);
}

#endif
