/*
 * One run of the scaling core, driven line by line (spec replay): each JSON object in gives one out.
 *
 * Knows nothing of files; `ballast replay` and the tests feed it.
 */
#ifndef BALLAST_CLI_REPLAY_SESSION_H
#define BALLAST_CLI_REPLAY_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/core.h"
#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "gen/replay.gen.h"
#include "metrics/text_parser.h"

/* What one event can give at most: nextActions warns seven times, updatedVM calls back twice. */
enum { REPLAY_WARNINGS_MAX = 16, REPLAY_INFOS_MAX = 4, REPLAY_CALLBACKS_MAX = 16 };

struct replay_session {
	struct core core;
	bool initialised;
	bool panicked;   /* the core has broken an invariant: the run is over */
	uint64_t events; /* so far */
	struct metrics_text_parser parser;
	struct arena arena;  /* what the line at hand needs */
	struct buffer state; /* its JSON, as are the next two; kept for their memory */
	struct buffer metrics;
	struct buffer text;
	bool out_of_memory;
	struct slice warnings[REPLAY_WARNINGS_MAX]; /* given by the core during the event at hand, as the rest */
	struct replay_info infos[REPLAY_INFOS_MAX];
	struct replay_callback callbacks[REPLAY_CALLBACKS_MAX];
	struct replay_output output;
};

void replay_session_init(struct replay_session *session); /* the session must not move afterwards */
void replay_session_destroy(struct replay_session *session);

/*
 * Carries out the event in line (a JSON object) and appends the answer, a line with its newline, to *out. An invariant
 * that breaks is an answer too, and sets `panicked`. False for a line that isn't an event (ERROR_SYNTAX, ERROR_LIMIT)
 * and when memory is short; then nothing is appended.
 */
bool replay_session_line(struct replay_session *session, struct slice line, struct buffer *out, struct error *err);

#endif
