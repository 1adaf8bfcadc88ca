/*
 * Who may read the agent's metrics and state dump: everybody, or whoever shows the bearer token in a file (RFC 6750
 * 2.1). Ours; the reference's ports are open.
 *
 * The file is read for each request, so that a token replaced by the kubelet counts at once, and memory holds none
 * between requests. A file that can't be read, is empty or over AGENT_ADMIN_TOKEN_BYTES lets nobody in.
 */
#ifndef BALLAST_AGENT_ADMIN_TOKEN_H
#define BALLAST_AGENT_ADMIN_TOKEN_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"
#include "net/http_server.h"

struct admin_token {
	const char *path; /* NULL or empty: everybody may */
	struct logger logger;
	bool failing; /* the file couldn't be read; it was logged */
};

/* Whether the file can be read and holds a token: to be told at the start. True without a path. */
bool admin_token_check(const struct admin_token *token, struct error *err);

/* Whether the call may go on. If not it is answered, with 401. token NULL: everybody may. */
bool admin_token_admits(struct admin_token *token, struct http_call *call);

#endif
