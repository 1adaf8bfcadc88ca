/*
 * The state dump: what the agent is doing, as JSON over HTTP, for people with curl (spec agent-runtime 13).
 *
 *	curl -X GET -d '{}' http://node:10300/
 */
#ifndef BALLAST_AGENT_STATE_DUMP_H
#define BALLAST_AGENT_STATE_DUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/admin_token.h"
#include "agent/supervisor.h"
#include "base/error.h"
#include "base/log.h"
#include "net/address.h"
#include "net/loop.h"

struct state_dump_server;

struct state_dump_server_options {
	struct loop *loop;
	struct address address;
	uint64_t timeout_ns; /* for a request to come in whole */
	const struct supervisor *supervisor;
	enum agent_generation generation; /* whose shape the dump has */
	struct log_sink *log_sink;
	struct admin_token *admin_token; /* NULL: everybody may ask */
};

/* Everything in options must outlive the server. */
struct state_dump_server *state_dump_server_start(const struct state_dump_server_options *options, struct error *err);
bool state_dump_server_address(const struct state_dump_server *server, struct address *ret_address);
/* Closes everything at once. NULL is fine. */
void state_dump_server_stop(struct state_dump_server *server);

#endif
