#include "agent/core/instant.h"

__extension__ typedef __int128 wide; /* holds any sum of three 64-bit numbers */

static int64_t saturate(wide value)
{
	if (value > INT64_MAX)
		return INT64_MAX;
	if (value < -INT64_MAX)
		return -INT64_MAX;
	return (int64_t)value;
}

struct optional_instant instant_some(int64_t instant_ns)
{
	return (struct optional_instant){ .present = true, .ns = instant_ns };
}

int64_t instant_difference(int64_t later_ns, int64_t earlier_ns)
{
	if (later_ns == earlier_ns)
		return 0;
	if (later_ns == RFC3339_ZERO)
		return -INT64_MAX;
	if (earlier_ns == RFC3339_ZERO)
		return INT64_MAX;
	return saturate((wide)later_ns - earlier_ns);
}

int64_t instant_remaining(int64_t start_ns, int64_t length_ns, int64_t now_ns)
{
	return saturate((wide)start_ns + length_ns - now_ns);
}
