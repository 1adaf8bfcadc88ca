/*
 * The scheduler plugin's protocol on the wire, versions 2.0 to 5.0 (spec generations 2.2 … 2.5): a request as bytes, a
 * reply as resources. Until 3.0 memory is counted in the VM's slots.
 */
#ifndef BALLAST_AGENT_PLUGIN_MESSAGES_H
#define BALLAST_AGENT_PLUGIN_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/core.h"
#include "agent/plugin_protocol.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

struct plugin_message_context {
	enum plugin_protocol version; /* not AUTO */
	const char *namespace;        /* of the runner pod */
	const char *pod_name;
	uint64_t slot_bytes;           /* not 0 until 3.0 */
	struct resources compute_unit; /* sent from 4.0 on */
};

struct plugin_reply {
	struct resources permit;       /* zero where the reply has none: the core refuses that */
	struct resources compute_unit; /* until 2.1; zero where the reply has none, and later */
};

/* Appends the body. Memory is rounded down to whole slots where slots are sent. */
bool plugin_request_write(const struct plugin_message_context *context, const struct core_plugin_request *request,
                          struct buffer *body, struct error *err);
/* Appends to *form what of the reply was understood, as JSON, for the log. "bad JSON response: …" */
bool plugin_reply_read(const struct plugin_message_context *context, struct slice body, struct plugin_reply *ret_reply,
                       struct buffer *form, struct error *err);

#endif
