/*
 * Kubernetes Quantity, and the two scalars made of it: milli-CPU and bytes (spec protocols sections 2 and 3).
 *
 * A quantity is parsed from its text, never through a double.
 */
#ifndef BALLAST_CODEC_QUANTITY_H
#define BALLAST_CODEC_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum quantity_format { QUANTITY_DECIMAL, QUANTITY_BINARY, QUANTITY_EXPONENT };

/* An exact fixed-point number: value in units of 10^-9, and the family it prints in. */
struct quantity {
	__extension__ __int128 nanos;
	enum quantity_format format;
};

/*
 * White space around is trimmed. Syntax errors have exactly the texts E1 and E2 of spec protocols 2.4. Beyond ±(2^63 -
 * 1) a binary quantity is capped; any other is refused with ERROR_LIMIT, as are texts of more than 256 characters.
 */
bool quantity_parse(struct slice text, struct quantity *ret_quantity, struct error *err);
int64_t quantity_value(struct quantity quantity);                  /* rounded away from zero, saturating */
int64_t quantity_milli_value(struct quantity quantity);            /* likewise, times 1000 */
void quantity_print(struct quantity quantity, struct buffer *out); /* protocols 2.5 */
struct quantity quantity_from_bytes(uint64_t bytes);               /* binary family, decimal below 1024 */

/* "0.25" for 250: decimal vCPUs as in texts (protocols 3). */
void milli_cpu_print(uint32_t milli, struct buffer *out);
/* "4Gi" (protocols 3). */
void bytes_print(uint64_t bytes, struct buffer *out);
/* The CPU as a quantity string: "250m", "2" (agent-runtime 12.1). */
void milli_cpu_print_quantity(uint32_t milli, struct buffer *out);

#endif
