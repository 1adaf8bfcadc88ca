/*
 * What an agent's log says of its end.
 */
#ifndef BALLAST_SANDBOX_AGENT_LOG_H
#define BALLAST_SANDBOX_AGENT_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	AGENT_LOG_TAIL_BYTES = 64 * 1024, /* what is read, from the end */
	AGENT_LOG_WORDS_BYTES = 384,      /* plenty for a message and its error */
};

/* The length of the file now: where an agent that is started next begins to write. 0 if it is no regular file. */
uint64_t agent_log_length(const char *path);

/*
 * Of what was written behind that offset: the message and error of the last panic; without one the last line that is no JSON
 * (of a program that failed before it could log); without one the last error. False if there is nothing of the kind.
 */
bool agent_log_last_words(const char *path, uint64_t offset, char ret_words[AGENT_LOG_WORDS_BYTES]);

#endif
