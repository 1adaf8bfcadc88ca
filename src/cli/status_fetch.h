/*
 * Gets a state dump from an agent.
 */
#ifndef BALLAST_CLI_STATUS_FETCH_H
#define BALLAST_CLI_STATUS_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "net/http_client.h"

enum { STATUS_DUMP_BYTES_MAX = 32 << 20 };

struct status_source {
	const char *url; /* for messages */
	struct http_origin origin;
	struct slice target;
	const char *token_file; /* NULL: none; read for each request, since tokens are replaced */
	uint64_t timeout_ns;    /* of all of it */
};

/* Reads a URL; only http. The source points into it. */
bool status_source_init(struct status_source *source, const char *url, struct error *err);
/* Fills dump, whose limit is STATUS_DUMP_BYTES_MAX. False with a text that begins with the URL or the token file. */
bool status_fetch(const struct status_source *source, struct buffer *dump, struct error *err);

#endif
