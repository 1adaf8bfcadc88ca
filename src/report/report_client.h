/*
 * What a sink sends batches through: an HTTP receiver, an S3 bucket, an Azure Blob container (http_push.h, s3_put.h,
 * azure_blob_put.h make them). A client sends one batch at a time, and makes of the id it is given the object's key or
 * the request's trace id.
 */
#ifndef BALLAST_REPORT_REPORT_CLIENT_H
#define BALLAST_REPORT_REPORT_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "base/slice.h"
#include "report/limits.h"

enum report_batch_format {
	REPORT_JSON_ARRAY, /* {"events":[…]} (spec reporting J4) */
	REPORT_GZIP_LINES, /* one event per line, compressed (J5) */
};

/* One attempt to send one batch. */
struct report_push {
	struct slice body; /* must stay until the push is over */
	const char *id;    /* K1, new for each attempt; copied */
	uint64_t timeout_ns;
};

struct report_failure {
	const struct error *err; /* the text for the log */
	const char *cause;       /* for the metric, from a small set: no per-request data (H4, P1, A1) */
};

/* failure NULL: the receiver has the batch. */
typedef void report_push_done(void *context, const struct report_failure *failure);

struct report_client;

struct report_client_operations {
	/* Calls done exactly once, never from inside, unless cancelled first. There must be no other push under way. */
	void (*push)(struct report_client *client, const struct report_push *push, report_push_done *done,
	             void *context);
	void (*cancel)(struct report_client *client); /* no-op without a push under way */
	/* Fields that tell in the log where the last push went (section 12); valid until the next push. Returns how many. */
	size_t (*describe)(const struct report_client *client, struct log_field fields[REPORT_LOG_FIELDS]);
	void (*destroy)(struct report_client *client); /* cancels */
};

/* The first member of each client. */
struct report_client {
	const char *name; /* metric label: "http", "azureblob", "s3" (W7) */
	enum report_batch_format format;
	const struct report_client_operations *operations;
};

/* NULL is fine. For a client that no sink has taken. */
static inline void report_client_destroy(struct report_client *client)
{
	if (client != NULL)
		client->operations->destroy(client);
}

#endif
