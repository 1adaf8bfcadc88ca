/*
 * Any lines as a replay: each is an event with an answer of one line, or an error; a sound line after a bad one works
 * as before.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/replay_session.h"

enum { MAX_BYTES = 64 * 1024, OUT_BYTES = 16 * 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Exactly one line more, or nothing. */
static void run_line(struct replay_session *session, struct slice line, struct buffer *out)
{
	size_t before = out->length;
	struct error err;

	if (!replay_session_line(session, line, out, &err)) {
		require(out->length == before);
		require(err.code == ERROR_SYNTAX || err.code == ERROR_LIMIT);
		return;
	}
	require(out->length > before + 1 && out->data[out->length - 1] == '\n');
	require(memchr(out->data + before, '\n', out->length - before) == out->data + out->length - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice rest = slice_from(data, size);
	struct replay_session *session;
	struct buffer out;

	if (size > MAX_BYTES)
		return 0;
	session = malloc(sizeof *session);
	require(session != NULL);
	replay_session_init(session);
	buffer_init(&out, OUT_BYTES);
	while (rest.length > 0 && !session->panicked) {
		const char *end = memchr(rest.data, '\n', rest.length);
		size_t length = end != NULL ? (size_t)(end - rest.data) : rest.length;

		run_line(session, slice_from(rest.data, length), &out);
		rest = slice_from_offset(rest, end != NULL ? length + 1 : length);
		buffer_clear(&out);
	}
	replay_session_destroy(session);
	buffer_destroy(&out);
	free(session);
	return 0;
}
