/*
 * Three independent measures of need, each in compute units: CPU by load average, memory by what is allocated (and,
 * when the file cache's working set is known, by that plus what is allocated), and the file cache alone. The highest
 * wins.
 *
 * The order of operations is the specification's, one rounding each: don't simplify, and compile with
 * -ffp-contract=off.
 */
#include "agent/core/goal.h"

#include <math.h>

#include "agent/core/float_math.h"
#include "agent/core/working_set.h"

static const char WARN_INCOMPLETE[] = "Making scaling decision without all required metrics available";
static const char WARN_WINDOWS[] = "not enough working set size values to make scaling determination";

static const double PAGE_BYTES = 8192;              /* G-7 */
static const double ESTIMATE_INCREASE_FACTOR = 3.0; /* G-7 */
static const double PROJECT_LENGTH = 0.5;           /* G-7 */

enum { MOST_UNITS = UINT16_MAX }; /* generations, 3 */

/* What the file cache's windows say. */
struct lfc_need {
	double required_cu;
	bool has_working_set;
	uint64_t working_set_bytes;
	struct goal_lfc_report report;
};

static void warn(const struct goal_input *input, const char *text)
{
	if (input->warn != NULL)
		input->warn(input->warn_context, text);
}

static bool require(bool present, const char *name, struct error *err)
{
	if (!present)
		return error_set(err, ERROR_INVARIANT, "scaling configuration has no %s", name);
	return true;
}

#define REQUIRE(config, field, err) require((config)->has_##field, #field, err)

static bool has_all_metrics(const struct goal_input *input, bool *ret_all, struct error *err)
{
	if (input->system == NULL) {
		*ret_all = false;
		return true;
	}
	if (!REQUIRE(input->config, enable_lfc_metrics, err))
		return false;
	*ret_all = !input->config->enable_lfc_metrics || input->lfc != NULL;
	return true;
}

static bool estimate_working_set(const struct goal_input *input, int64_t offset, double *ret_pages, struct error *err)
{
	const struct scaling_config *config = input->config;
	const struct lfc_metrics *lfc = input->lfc;

	if (!REQUIRE(config, lfc_use_largest_window, err))
		return false;
	if (!config->lfc_use_largest_window)
		return working_set_estimate(lfc->window_pages, lfc->window_count, ESTIMATE_INCREASE_FACTOR, offset,
		                            config->lfc_window_size_minutes, ret_pages, err);
	if (lfc->window_count == 0)
		return error_set(err, ERROR_INVARIANT, "there is no largest window");
	*ret_pages = lfc->window_pages[lfc->window_count - 1];
	return true;
}

/* G-7 from step 2 on: there are enough windows. */
static bool lfc_need_from_windows(const struct goal_input *input, int64_t offset, struct lfc_need *ret_need,
                                  struct error *err)
{
	const struct lfc_metrics *lfc = input->lfc;
	double estimate;
	double next;

	if (!estimate_working_set(input, offset, &estimate, err))
		return false;
	if (offset < 0 || offset > lfc->window_count)
		return error_set(err, ERROR_INVARIANT, "window offset is not within the windows");

	size_t end = (size_t)offset;

	while (end < lfc->window_count && lfc->window_pages[end] <= estimate)
		end++;
	if (!working_set_project_next_highest(lfc->window_pages, end, PROJECT_LENGTH, &next, err))
		return false;
	if (!REQUIRE(input->config, lfc_to_memory_ratio, err))
		return false;

	double bytes = next * PAGE_BYTES;
	double required_cu = (bytes / input->config->lfc_to_memory_ratio) / (double)input->compute_unit.mem_bytes;

	*ret_need = (struct lfc_need){
		.required_cu = required_cu,
		.has_working_set = true,
		.working_set_bytes = float_to_u64(bytes),
		.report = {
			.estimate_wss_pages = estimate,
			.predicted_next_wss_pages = next,
			.required_cu = required_cu,
		},
	};
	return true;
}

static bool lfc_need(const struct goal_input *input, struct lfc_need *ret_need, struct error *err)
{
	const struct scaling_config *config = input->config;

	if (!REQUIRE(config, lfc_min_wait_before_downscale_minutes, err) ||
	    !REQUIRE(config, lfc_window_size_minutes, err))
		return false;

	/* Both are minutes from a configuration: a sum that overflows means more windows than any page has. */
	int64_t offset;
	int64_t needed;

	if (__builtin_sub_overflow(config->lfc_min_wait_before_downscale_minutes, 1, &offset))
		return error_set(err, ERROR_INVARIANT, "window offset is not within the windows");
	if (__builtin_add_overflow(offset, config->lfc_window_size_minutes, &needed))
		needed = offset < 0 ? INT64_MIN : INT64_MAX;

	if (input->lfc->window_count < needed) {
		warn(input, WARN_WINDOWS);
		*ret_need = (struct lfc_need){ 0 };
		return true;
	}
	return lfc_need_from_windows(input, offset, ret_need, err);
}

/* G-4: near each other, the five-minute average counts; far apart, the one-minute average; in between, a blend. */
static bool cpu_need(const struct goal_input *input, double *ret_cu, struct error *err)
{
	const struct scaling_config *config = input->config;

	if (!REQUIRE(config, cpu_stable_zone_ratio, err) || !REQUIRE(config, cpu_mixed_zone_ratio, err) ||
	    !REQUIRE(config, load_average_fraction_target, err))
		return false;

	double load1 = input->system->load_average_1_min;
	double load5 = input->system->load_average_5_min;
	double stable = config->cpu_stable_zone_ratio * load5;
	double mixed = stable + config->cpu_mixed_zone_ratio * load5;
	double difference = fabs(load1 - load5);
	double weight;

	if (difference <= stable)
		weight = 0;
	else if (difference >= mixed)
		weight = 1;
	else
		weight = (difference - stable) / (mixed - stable + 1e-6);

	double blend = weight * load1 + (1 - weight) * load5;
	double unit_cpus = input->compute_unit.cpu_milli / 1000.0;

	*ret_cu = (blend / config->load_average_fraction_target) / unit_cpus;
	return true;
}

/* G-5, G-6. */
static bool memory_need(const struct goal_input *input, const struct lfc_need *lfc, double *ret_cu, struct error *err)
{
	const struct scaling_config *config = input->config;
	double used = input->system->memory_usage_bytes;
	double unit_bytes = (double)input->compute_unit.mem_bytes;

	if (!REQUIRE(config, memory_usage_fraction_target, err))
		return false;

	double need = round(used / config->memory_usage_fraction_target) / unit_bytes;

	if (lfc->has_working_set) {
		if (!REQUIRE(config, memory_total_fraction_target, err))
			return false;

		double cached = float_min((double)lfc->working_set_bytes, input->system->memory_cached_bytes);

		need = float_max(need, (cached + used) / config->memory_total_fraction_target / unit_bytes);
	}
	*ret_cu = need;
	return true;
}

/* G-3. Only CPU is rounded first; so memory and file cache are effectively rounded up. Absent parts are 0. */
static uint32_t highest_need(const struct goal_parts *parts)
{
	return float_to_u32(ceil(float_max(float_max(round(parts->cpu), parts->mem), parts->lfc)));
}

/* A number of units, from a need that may be infinite or not a number (generations, 3). */
static uint32_t whole_units(double need)
{
	if (!isfinite(need) || need < 0)
		return 0;
	return need < MOST_UNITS ? (uint32_t)need : MOST_UNITS;
}

/*
 * Of each part on its own, so that one which can't be worked out doesn't spoil the other: CPU rounded to the nearest,
 * memory down.
 */
static void make_parts_whole(struct goal_parts *parts)
{
	parts->cpu = whole_units(round(parts->cpu));
	parts->mem = whole_units(parts->mem);
}

bool goal_calculate(const struct goal_input *input, struct goal *ret_goal, struct error *err)
{
	struct goal goal = { 0 };
	struct lfc_need lfc = { 0 };

	if (!has_all_metrics(input, &goal.has_all_metrics, err))
		return false;
	if (!goal.has_all_metrics)
		warn(input, WARN_INCOMPLETE);

	if (input->lfc != NULL) {
		if (!lfc_need(input, &lfc, err))
			return false;
		goal.parts.has_lfc = true;
		goal.parts.lfc = lfc.required_cu;
		goal.has_lfc_report = lfc.has_working_set;
		goal.lfc_report = lfc.report;
	}
	if (input->system != NULL) {
		if (!cpu_need(input, &goal.parts.cpu, err) || !memory_need(input, &lfc, &goal.parts.mem, err))
			return false;
		goal.parts.has_cpu = true;
		goal.parts.has_mem = true;
		if (input->whole_unit_parts)
			make_parts_whole(&goal.parts);
	}
	goal.compute_units = highest_need(&goal.parts);
	*ret_goal = goal;
	return true;
}
