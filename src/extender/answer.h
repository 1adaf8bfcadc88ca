/*
 * Answers to the scheduler (spec extender 3, J1 to J4), in pieces: the nodes in an answer are the request's own bytes,
 * so that an answer of tens of megabytes needs no copy.
 *
 *	struct slice piece;
 *
 *	… Content-Length: answer_length(&answer) …
 *	while (answer_next(&answer, &piece))
 *		http_call_write(call, piece);
 *
 * Pieces lie in the answer or the request, which must both stay until the last one was taken.
 */
#ifndef BALLAST_EXTENDER_ANSWER_H
#define BALLAST_EXTENDER_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "extender/prioritize.h"
#include "extender/request.h"

struct answer {
	struct slice fixed; /* stands for text; needs no memory */
	struct buffer text; /* all but the nodes */
	size_t split;       /* where in text they go */
	const struct request *request;
	const bool *matched; /* which nodes; NULL: all */
	bool with_nodes;
	size_t length;
	/* answer_next */
	int stage;
	size_t next_node;
	bool comma;
};

/* An answer without a body yet. Allocates nothing. */
void answer_init(struct answer *answer);
void answer_destroy(struct answer *answer);
/* Retry: "nothing yet". Needs no memory, so that it can be given when there is none. */
void answer_retry(struct answer *answer);
/* Its text, for a call that couldn't even be made. */
struct slice answer_retry_text(void);
/*
 * Each puts another answer in the place of the one before, which stays on failure (ERROR_NO_MEMORY, ERROR_LIMIT).
 */

/* Fail-A. */
bool answer_refusal(struct answer *answer, struct slice error, struct error *err);
/* Pending with error empty, else Fail-B: names instead of nodes if the request came so (I9). */
bool answer_pending(struct answer *answer, const struct request *request, struct slice error, struct error *err);
/* F3: all nodes (or names), as they came. */
bool answer_all_nodes(struct answer *answer, const struct request *request, struct error *err);
/*
 * F19: the matched nodes; the others with their reasons in FailedNodes, also those without an id (decision 10 of the
 * spec's README). matched must stay like the request.
 */
bool answer_matched_nodes(struct answer *answer, const struct request *request, const bool *matched,
                          struct arena *arena, struct error *err);
/* S3. */
bool answer_scores(struct answer *answer, const struct priority_list *list, struct error *err);
/* S1: `null`. */
bool answer_null(struct answer *answer, struct error *err);
/* H9: a body of length 0. */
void answer_empty(struct answer *answer);
/* B1. */
bool answer_binding(struct answer *answer, struct slice error, struct error *err);

size_t answer_length(const struct answer *answer);
/* The next piece, never empty; false behind the last one. */
bool answer_next(struct answer *answer, struct slice *ret_piece);
/* From the first piece again. */
void answer_rewind(struct answer *answer);

#endif
