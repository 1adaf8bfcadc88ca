/*
 * Durations for people: "5s", "1m30s", "250ms", "1h0m0s" (spec agent-runtime 0.4), and reading them from the command
 * line.
 */
#ifndef BALLAST_CODEC_DURATION_TEXT_H
#define BALLAST_CODEC_DURATION_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

void duration_print(int64_t ns, struct buffer *out);
/* "40s", "1m30s", "250ms", "1.5h", "-5s", "0" (no other number alone); what is below a nanosecond is cut off. */
bool duration_parse(struct slice text, int64_t *ret_ns, struct error *err);

#endif
