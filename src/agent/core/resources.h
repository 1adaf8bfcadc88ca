/*
 * Amounts of CPU and memory, and the arithmetic the scaling core does with them (spec agent-core 1.1, T-1 … T-7).
 *
 * Comparisons look at both fields: of two amounts each may be greater than the other, in one field each.
 */
#ifndef BALLAST_AGENT_CORE_RESOURCES_H
#define BALLAST_AGENT_CORE_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

struct resources {
	uint32_t cpu_milli;
	uint64_t mem_bytes;
};

struct optional_resources {
	bool present;
	struct resources value;
};

struct optional_resources resources_some(struct resources value);

bool resources_equal(struct resources a, struct resources b);
bool resources_has_greater(struct resources a, struct resources b); /* a is greater in any field */
bool resources_has_less(struct resources a, struct resources b);    /* a is less in any field */

struct resources resources_min(struct resources a, struct resources b); /* field by field, as all below */
struct resources resources_max(struct resources a, struct resources b);
struct resources resources_add(struct resources a, struct resources b);      /* wraps at 32 and 64 bits */
struct resources resources_subtract(struct resources a, struct resources b); /* 0 instead of a negative result */
struct resources resources_multiply(struct resources unit, uint16_t factor); /* wraps at 32 and 64 bits */

struct resources resources_multiply_saturating(struct resources unit, uint32_t factor); /* the largest value instead */

/*
 * Whether amount is a whole multiple of unit, the same in both fields, and which; quotients are cut to 16 bits (T-2).
 */
struct resources_quotient {
	bool whole;
	uint16_t units; /* 0 unless whole */
};

/* ERROR_INVARIANT when the unit has a zero field: nothing can be counted in it. */
bool resources_check_unit(struct resources unit, struct error *err);
/* As resources_check_unit. */
bool resources_divide(struct resources amount, struct resources unit, struct resources_quotient *ret_quotient,
                      struct error *err);

/* False with "vCPUs must be non-zero" or "mem must be non-zero" (T-3). */
bool resources_validate_nonzero(struct resources amount, struct error *err);

/* "{VCPU:0.25 Mem:1Gi}", as error texts quote it (T-7). */
void resources_print(struct resources amount, struct buffer *out);

/*
 * Moves current towards desired, decreasing no further than lower and increasing no further than upper where these are
 * present (N-3). A lower bound above current, or an upper one below it, in any field, is ERROR_INVARIANT; with
 * `lenient` such a bound counts as if it were current (spec README, decision 1).
 */
bool resources_clamp(struct resources current, struct resources desired, struct optional_resources lower,
                     struct optional_resources upper, bool lenient, struct resources *ret_clamped, struct error *err);

#endif
