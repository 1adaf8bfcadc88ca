/*
 * A peer's words within an error text: in double quotes, escaped, and no longer than an error text can be.
 */
#ifndef BALLAST_AGENT_QUOTED_H
#define BALLAST_AGENT_QUOTED_H

#include "base/buffer.h"
#include "base/slice.h"

/* Prepares *ret_text, which the caller destroys, with the start of the text in quotes. */
void quoted_init(struct buffer *ret_text, struct slice text);

#endif
