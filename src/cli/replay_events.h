/*
 * The events of replay, one handler each. Shared by the files of replay only.
 */
#ifndef BALLAST_CLI_REPLAY_EVENTS_H
#define BALLAST_CLI_REPLAY_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/core.h"
#include "base/error.h"
#include "base/slice.h"
#include "cli/replay_session.h"

/*
 * Reads the line as the message of its event and carries it out. Fails with ERROR_INVARIANT when the core does, which
 * is an answer; with another code when the line isn't what it should be.
 */
typedef bool replay_event_handler(struct replay_session *session, struct slice line, struct error *err);

replay_event_handler *replay_events_find(struct slice name); /* NULL for an unknown event */
replay_event_handler replay_on_init;

/* These note what the core says; the session is their context, to be filled in. */
extern const struct core_callbacks REPLAY_CALLBACKS;
void replay_note_scaling_latency(void *context, int64_t latency_ns, uint64_t flags);

#endif
