#include "agent/core/working_set.h"

#include "agent/core/float_math.h"

bool working_set_estimate(const double *series, size_t count, double max_increase_factor, int64_t initial_offset,
                          int64_t window_size, double *ret_pages, struct error *err)
{
	if (window_size < 2)
		return error_set(err, ERROR_INVARIANT, "window size must be at least 2");
	if (initial_offset < window_size - 1)
		return error_set(err, ERROR_INVARIANT, "initial offset must be at least the window size less one");
	if (count == 0)
		return error_set(err, ERROR_INVARIANT, "the series is empty");

	int64_t step = window_size - 1;

	for (int64_t t = initial_offset; t < (int64_t)count - step; t++) {
		double before = float_max(0, series[t] - series[t - step]);
		double after = float_max(0, series[t + step] - series[t]);

		if (after > before * max_increase_factor) {
			*ret_pages = series[t];
			return true;
		}
	}
	*ret_pages = series[count - 1];
	return true;
}

bool working_set_project_next_highest(const double *series, size_t count, double project_length, double *ret_pages,
                                      struct error *err)
{
	if (count < 2)
		return error_set(err, ERROR_INVARIANT, "a projection needs at least two values");

	double highest = series[0];

	for (size_t i = 1; i < count; i++) {
		double previous = series[i - 1]; /* as it is, not the highest so far */
		double next = float_max(previous, series[i]);

		highest = float_max(highest, next + (next - previous) * project_length);
	}
	*ret_pages = highest;
	return true;
}
