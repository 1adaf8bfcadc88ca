/*
 * Cuts a stream of JSON into values as the bytes arrive, without building anything for the rest.
 *
 * Two modes. VALUES: the stream is a sequence of values, blank or newline separated (a watch). LIST: the stream is one
 * object with an array under a given top-level key (a Kubernetes list, an ExtenderArgs); each element of the array is
 * given to the callback, and the rest of the object is kept as an envelope with an empty array in its place, to be
 * decoded at the end. Where the key has no array, or null, the envelope has what stood there.
 *
 * It looks only at strings, brackets and top-level keys: each value still goes through its decoder, which checks
 * everything. A value that lies within one feed isn't copied. After a failure only json_splitter_destroy may follow.
 */
#ifndef BALLAST_CODEC_JSON_SPLITTER_H
#define BALLAST_CODEC_JSON_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum json_splitter_mode { JSON_SPLITTER_VALUES, JSON_SPLITTER_LIST };

/* Gets one complete value; the slice is valid during the call. Returning false stops the feed; *err stays as set. */
typedef bool json_splitter_callback(void *context, struct slice value, struct error *err);

struct json_splitter {
	enum json_splitter_mode mode;
	struct slice list_key;  /* LIST: must outlive the splitter */
	struct buffer value;    /* the value under way, if it spans two feeds */
	struct buffer envelope; /* LIST: the document without the elements */
	size_t max_value_bytes;
	json_splitter_callback *callback;
	void *context;
	size_t count; /* of values given to the callback */
	/* scanner state; see the body */
	int state;
	int depth; /* of brackets, within the value or the envelope */
	bool in_string;
	bool escaped;
	bool bare;         /* the value is a number, true, false or null */
	bool key_expected; /* LIST: the next string at the top level is a key */
	bool in_key;       /* LIST: within one */
	bool list_follows; /* LIST: the last top-level key was list_key, and its value hasn't begun */
	bool list_seen;    /* LIST: its array has begun */
	size_t key_start;  /* LIST: of the last top-level key in the envelope, with its quote */
};

/* A single value may have max_value_bytes; the envelope max_envelope_bytes. Allocates nothing yet. */
void json_splitter_init(struct json_splitter *splitter, enum json_splitter_mode mode, struct slice list_key,
                        size_t max_value_bytes, size_t max_envelope_bytes, json_splitter_callback *callback,
                        void *context);
/*
 * ERROR_LIMIT: a value or the envelope is too long. ERROR_SYNTAX: something stands where no value can. Or the
 * callback's own.
 */
bool json_splitter_feed(struct json_splitter *splitter, struct slice bytes, struct error *err);
/*
 * At the end of the stream: ERROR_SYNTAX if a value is incomplete. LIST: *ret_envelope is the document without its
 * elements, valid until the splitter is destroyed. VALUES: it is empty.
 */
bool json_splitter_finish(struct json_splitter *splitter, struct slice *ret_envelope, struct error *err);
void json_splitter_destroy(struct json_splitter *splitter);

#endif
