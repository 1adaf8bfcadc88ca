#include "agent/core/float_math.h"

static const double TWO_TO_63 = 9223372036854775808.0;
static const double TWO_TO_64 = 18446744073709551616.0;

uint32_t float_to_u32(double x)
{
	if (!(x >= -TWO_TO_63 && x < TWO_TO_63))
		return 0;
	return (uint32_t)(uint64_t)(int64_t)x;
}

uint64_t float_to_u64(double x)
{
	if (x >= 0 && x < TWO_TO_64)
		return (uint64_t)x;
	if (x < 0 && x > -TWO_TO_63)
		return (uint64_t)(int64_t)x;
	return UINT64_C(1) << 63;
}
