/*
 * Writes to a real API server, in order and one at a time; each is repeated until the server has taken it or has said what is wrong with it, also
 * over a restart of the server.
 */
#ifndef BALLAST_TESTS_KUBE_API_WRITER_H
#define BALLAST_TESTS_KUBE_API_WRITER_H

#include <stddef.h>

#include "base/slice.h"
#include "kube/client.h"
#include "net/loop.h"

struct api_writer;

struct api_write {
	const char *method; /* "POST", "PATCH", "DELETE": a literal */
	const char *path;
	struct slice body; /* of a PATCH: a merge patch */
	void *subject;     /* for on_written */
};

struct api_writer_counters {
	unsigned written;  /* that the server took */
	unsigned repeated; /* attempts that came to nothing: the server was away, or busy */
	unsigned too_late; /* the object had gone */
};

/* answer: the object as the server has it now, or empty if it has gone or that isn't known. */
typedef void api_written(void *context, void *subject, struct slice answer);

/* What a server refuses for good is the end of the program. */
struct api_writer *api_writer_create(struct loop *loop, struct kube_client *client, api_written *on_written,
                                     void *context);
void api_writer_destroy(struct api_writer *writer);
/* Everything is copied but the subject. */
void api_writer_write(struct api_writer *writer, const struct api_write *write);
struct api_writer_counters api_writer_counters(const struct api_writer *writer);

#endif
