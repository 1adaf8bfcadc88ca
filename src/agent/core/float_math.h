/*
 * Floating point as the reference does it (spec agent-core 0): NaN wins over every number, and conversions to integers
 * are defined for every value, as on amd64.
 */
#ifndef BALLAST_AGENT_CORE_FLOAT_MATH_H
#define BALLAST_AGENT_CORE_FLOAT_MATH_H

#include <math.h>
#include <stdint.h>

/* NaN if either is; unlike fmax. Called for every window of every decision, hence inline. */
static inline double float_max(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (double)NAN;
	return a > b ? a : b;
}

static inline double float_min(double a, double b)
{
	if (isnan(a) || isnan(b))
		return (double)NAN;
	return a < b ? a : b;
}

/* The low 32 bits of x truncated to a signed 64-bit number; 0 when it isn't one. */
uint32_t float_to_u32(double x);
/* x truncated; negative values wrap; everything else that doesn't fit gives 2^63. */
uint64_t float_to_u64(double x);

#endif
