#include "agent/core/single_precision.h"

#include <float.h>

/* Intermediate results of more precision would give other numbers. */
_Static_assert(FLT_EVAL_METHOD == 0, "floats must be computed as floats");

static const float RESERVED_BYTES = 104857600.0F;

struct system_metrics system_metrics_from_single(float load_average_1_min, float load_average_5_min,
                                                 float memory_total_bytes, float memory_available_bytes)
{
	float used = memory_total_bytes - memory_available_bytes;
	float usage = used + RESERVED_BYTES;

	return (struct system_metrics){
		.load_average_1_min = (double)load_average_1_min,
		.load_average_5_min = (double)load_average_5_min,
		.memory_usage_bytes = (double)usage,
	};
}
