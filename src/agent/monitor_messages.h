/*
 * The messages of the vm-monitor connection as bytes (spec protocols 5, agent-runtime 11.2 … 11.4): what the agent
 * sends, and what it makes of what comes in. Knows no connection.
 */
#ifndef BALLAST_AGENT_MONITOR_MESSAGES_H
#define BALLAST_AGENT_MONITOR_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/resources.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum monitor_type {
	MONITOR_UNKNOWN_TYPE,
	MONITOR_DOWNSCALE_REQUEST,    /* only sent */
	MONITOR_UPSCALE_NOTIFICATION, /* only sent */
	MONITOR_HEALTH_CHECK,
	MONITOR_INVALID_MESSAGE,
	MONITOR_INTERNAL_ERROR,
	MONITOR_UPSCALE_REQUEST,
	MONITOR_UPSCALE_CONFIRMATION,
	MONITOR_DOWNSCALE_RESULT,
};

/* "HealthCheck"; "other" for MONITOR_UNKNOWN_TYPE: the peer isn't trusted, so its own words are no metric label. */
const char *monitor_type_name(enum monitor_type type);

/* Each appends one message with its newline. */
void monitor_write_protocol_range(struct buffer *out);
void monitor_write_downscale_request(struct buffer *out, uint64_t id, struct resources target);
void monitor_write_upscale_notification(struct buffer *out, uint64_t id, struct resources granted);
void monitor_write_health_check(struct buffer *out, uint64_t id);
void monitor_write_invalid_message(struct buffer *out, uint64_t id, struct slice text);

/* What a message is, or what is wrong with it: each fault has its own answer (11.4.3). */
enum monitor_reading {
	MONITOR_READ,
	MONITOR_NOT_JSON,
	MONITOR_BAD_FORM, /* no object, or no usable type or id; or memory is short (ERROR_NO_MEMORY), not the peer's fault */
	MONITOR_TYPE_UNKNOWN, /* type_text and id are there */
	MONITOR_BAD_FIELDS,   /* type and id are there */
};

struct monitor_message {
	enum monitor_type type;
	uint64_t id;
	struct slice type_text;
	bool ok;             /* of a DownscaleResult */
	struct slice status; /* likewise */
	struct slice error;  /* of an InvalidMessage or InternalError */
};

/*
 * Reads one message; slices are of the text or the arena. *err says what is wrong, its root what a close reason quotes.
 */
enum monitor_reading monitor_read_message(struct slice text, struct arena *arena, struct monitor_message *ret_message,
                                          struct error *err);

/* The answer to the protocol range. False with ERROR_SYNTAX if it isn't one, or ERROR_REFUSED if it says no. */
bool monitor_read_protocol_response(struct slice text, struct arena *arena, struct error *err);

/* Enough for an arena that reads a message of AGENT_MONITOR_MESSAGE_BYTES. */
enum { MONITOR_ARENA_BYTES = 1024 * 1024 };

#endif
