/*
 * One end of a websocket that records what it is told, for tests.
 */
#ifndef BALLAST_TESTS_UNIT_NET_WEBSOCKET_END_H
#define BALLAST_TESTS_UNIT_NET_WEBSOCKET_END_H

#include "http_site.h"
#include "net/websocket.h"

struct websocket_end {
	struct websocket *websocket; /* NULL once it is over */
	unsigned opened, messages, closed;
	struct buffer text; /* the messages, one after another, each with a newline */
	int code;
	char reason[WEBSOCKET_REASON_BYTES + 1];
	bool clean; /* on_close without an error */
	struct error err;
	bool echoes;
	/* What to do inside the callbacks. */
	void (*in_open)(struct websocket_end *end);
	void (*in_message)(struct websocket_end *end);
	void (*in_close)(struct websocket_end *end);
};

static inline void end_on_open(void *context)
{
	struct websocket_end *end = context;

	end->opened++;
	if (end->in_open != NULL)
		end->in_open(end);
}

static inline void end_on_message(void *context, struct slice message, bool is_text)
{
	struct websocket_end *end = context;
	struct error err;

	end->messages++;
	buffer_append_slice(&end->text, message);
	buffer_append_char(&end->text, '\n');
	if (end->echoes)
		(void)websocket_send(end->websocket, message, is_text, &err);
	if (end->in_message != NULL)
		end->in_message(end);
}

static inline void end_on_close(void *context, int code, struct slice reason, const struct error *err)
{
	struct websocket_end *end = context;

	end->closed++;
	end->websocket = NULL;
	end->code = code;
	assert_true(reason.length < sizeof end->reason);
	if (reason.length > 0)
		memcpy(end->reason, reason.data, reason.length);
	end->reason[reason.length] = '\0';
	end->clean = err == NULL;
	if (err != NULL)
		end->err = *err;
	if (end->in_close != NULL)
		end->in_close(end);
}

static const struct websocket_handler END_HANDLER = { .on_open = end_on_open,
	                                              .on_message = end_on_message,
	                                              .on_close = end_on_close };

static inline void end_init(struct websocket_end *end)
{
	*end = (struct websocket_end){ 0 };
	buffer_init(&end->text, PEER_RECEIVED_BYTES);
}

static inline void end_destroy(struct websocket_end *end)
{
	if (end->websocket != NULL)
		websocket_abort(end->websocket);
	buffer_destroy(&end->text);
}

static inline struct websocket_connect_options end_options(uint16_t port)
{
	return (struct websocket_connect_options){
		.stream = { .host = "127.0.0.1", .port = port },
		.path = "/monitor",
		.handshake_timeout_ns = 4 * (uint64_t)NS_PER_S,
		.max_message_bytes = 32768,
	};
}

static inline void end_connect(struct websocket_end *end, struct loop *loop, uint16_t port)
{
	struct websocket_connect_options options = end_options(port);
	struct error err;

	end->websocket = websocket_connect(loop, &options, &END_HANDLER, end, &err);
	if (end->websocket == NULL)
		fail_msg("%s", err.text);
}

static inline bool end_has(const struct websocket_end *end, const char *text)
{
	return slice_equal_text(buffer_slice(&end->text), text);
}

static inline void end_send(struct websocket_end *end, const char *text)
{
	struct error err;

	if (!websocket_send(end->websocket, slice_of(text), true, &err))
		fail_msg("%s", err.text);
}

#endif
