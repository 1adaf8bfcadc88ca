/*
 * The WebSocket protocol (RFC 6455) after the handshake, for either side: bytes in, events and bytes out. It knows no
 * loop.
 *
 *	while ((event = websocket_engine_next(&engine, &bytes, &details)) != WEBSOCKET_EVENT_MORE) …
 *	… send engine.output, then buffer_release it
 *
 * What is to be sent (own messages, pongs, close frames) gathers in `output`; its owner sends it and empties it. One
 * message is held in memory at a time, up to the given limit; between messages the engine holds no memory at all.
 */
#ifndef BALLAST_NET_WEBSOCKET_ENGINE_H
#define BALLAST_NET_WEBSOCKET_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum {
	WEBSOCKET_HEADER_BYTES = 14,   /* the longest frame header */
	WEBSOCKET_CONTROL_BYTES = 125, /* RFC 6455 5.5 */
	WEBSOCKET_REASON_BYTES = 123,
};

enum websocket_close_code {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_GOING_AWAY = 1001,
	WEBSOCKET_PROTOCOL_ERROR = 1002,
	WEBSOCKET_UNSUPPORTED = 1003,
	WEBSOCKET_NO_STATUS = 1005, /* never on the wire */
	WEBSOCKET_ABNORMAL = 1006,  /* never on the wire */
	WEBSOCKET_INVALID_DATA = 1007,
	WEBSOCKET_POLICY = 1008,
	WEBSOCKET_TOO_BIG = 1009,
	WEBSOCKET_INTERNAL_ERROR = 1011,
};

enum websocket_role { WEBSOCKET_CLIENT, WEBSOCKET_SERVER };

enum websocket_event {
	WEBSOCKET_EVENT_MORE,    /* everything was taken; feed more */
	WEBSOCKET_EVENT_MESSAGE, /* details: payload, is_text */
	/* The peer's close frame came; it is answered in output unless ours went first. details: code, payload = reason */
	WEBSOCKET_EVENT_CLOSE,
	/* The peer broke the rules; our close frame is in output unless one went first. details: also err */
	WEBSOCKET_EVENT_FAULT,
};

/* Valid until the engine is called again. */
struct websocket_details {
	struct slice payload;
	bool is_text;
	int code;
	struct error err;
};

/* Where a UTF-8 text stands between two of its bytes: how many more the character needs, and what the next may be. */
struct websocket_utf8 {
	unsigned char needed;
	unsigned char least, most;
};

struct websocket_engine {
	enum websocket_role role;
	size_t max_message_bytes;
	bool (*random)(void *context, void *data, size_t length); /* for a client's masks */
	void *random_context;
	struct buffer output;

	/* the frame at hand */
	unsigned char header[WEBSOCKET_HEADER_BYTES];
	unsigned char header_length;
	bool in_payload;
	uint64_t payload_left;
	unsigned char mask[4];
	unsigned char mask_at;
	unsigned char control[WEBSOCKET_CONTROL_BYTES]; /* payload of a control frame */
	unsigned char control_length;

	/* the message at hand */
	struct buffer message;
	bool message_given; /* the caller has it; it goes at the next call */
	bool in_message;
	bool is_text;
	struct websocket_utf8 utf8;

	bool close_sent;
	bool over; /* the peer's close frame, or a fault: nothing more is read */
};

/* random may be NULL for a server. Allocates nothing yet. */
void websocket_engine_init(struct websocket_engine *engine, enum websocket_role role, size_t max_message_bytes,
                           bool (*random)(void *context, void *data, size_t length), void *random_context);
void websocket_engine_destroy(struct websocket_engine *engine);

/* Takes bytes from the front of *bytes and says what came. After CLOSE and FAULT it only swallows. */
enum websocket_event websocket_engine_next(struct websocket_engine *engine, struct slice *bytes,
                                           struct websocket_details *ret_details);

/*
 * Each appends one frame to output; false with *err (ERROR_CLOSED after a close frame, memory, no randomness) and
 * nothing appended.
 */
bool websocket_engine_send(struct websocket_engine *engine, struct slice message, bool is_text, struct error *err);
bool websocket_engine_ping(struct websocket_engine *engine, struct slice payload, struct error *err);
/*
 * The close frame, once: a second one is ignored. A code that may not be on the wire sends none. The reason is cut to
 * 123 bytes at a character's border, and before anything that isn't UTF-8.
 */
bool websocket_engine_close(struct websocket_engine *engine, int code, struct slice reason, struct error *err);

/* Whether a close frame may carry the code (RFC 6455 7.4 and IANA's registry). */
bool websocket_code_is_valid(int code);

#endif
