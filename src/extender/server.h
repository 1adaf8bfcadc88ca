/*
 * The extender's port (spec extender 2): takes the scheduler's requests as they arrive, has them decided, and gives the
 * answers as fast as the scheduler takes them.
 *
 * What all requests hold together is bounded (process_limits.h): beyond that, bodies wait in the senders' sockets.
 */
#ifndef BALLAST_EXTENDER_SERVER_H
#define BALLAST_EXTENDER_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "extender/filter_call.h"
#include "extender/tls_files.h"
#include "net/address.h"
#include "net/loop.h"

struct extender_server;

/* Everything pointed at must outlive the server. */
struct extender_server_options {
	struct address address;
	const struct tls_files *tls; /* NULL: plain HTTP */
	const char *metrics_path;    /* empty: no page */
	const struct filter_environment *environment;
};

struct extender_server *extender_server_start(const struct extender_server_options *options, struct error *err);
bool extender_server_address(const struct extender_server *server, struct address *ret_address);
/* What the requests under way hold at present. */
size_t extender_server_held_bytes(const struct extender_server *server);
/* When the filter call began that has waited longest for its answer (of the loop's clock); UINT64_MAX: none waits. */
uint64_t extender_server_oldest_call_ns(const struct extender_server *server);
/* Stops accepting; requests under way are answered, for at most timeout_ns. Then on_drained comes. */
void extender_server_drain(struct extender_server *server, uint64_t timeout_ns, void (*on_drained)(void *context),
                           void *context);
/* Closes everything without callbacks. NULL is fine. */
void extender_server_destroy(struct extender_server *server);

#endif
