#include "agent/core/scaling_config.h"

#include <string.h>

/* Copies one field from overrides when it is present there. */
#define OVERRIDE(field)                                  \
	do {                                             \
		if (overrides->has_##field) {            \
			merged.has_##field = true;       \
			merged.field = overrides->field; \
		}                                        \
	} while (0)

struct scaling_config scaling_config_merge(const struct scaling_config *defaults,
                                           const struct scaling_config *overrides)
{
	struct scaling_config merged = *defaults;

	OVERRIDE(load_average_fraction_target);
	OVERRIDE(memory_usage_fraction_target);
	OVERRIDE(memory_total_fraction_target);
	OVERRIDE(enable_lfc_metrics);
	OVERRIDE(lfc_use_largest_window);
	OVERRIDE(lfc_to_memory_ratio);
	OVERRIDE(lfc_min_wait_before_downscale_minutes);
	OVERRIDE(lfc_window_size_minutes);
	OVERRIDE(cpu_stable_zone_ratio);
	OVERRIDE(cpu_mixed_zone_ratio);
	return merged;
}

static void add_problem(struct scaling_config_problems *problems, bool applies, const char *text)
{
	if (applies)
		problems->texts[problems->count++] = text;
}

struct scaling_config_problems scaling_config_find_problems(const struct scaling_config *config, bool is_default)
{
	struct scaling_config_problems problems = { 0 };
	double load = config->load_average_fraction_target;
	double usage = config->memory_usage_fraction_target;
	double total = config->memory_total_fraction_target;
	bool has_load = config->has_load_average_fraction_target;
	bool has_usage = config->has_memory_usage_fraction_target;
	bool has_total = config->has_memory_total_fraction_target;

	/* The trailing blanks are the reference's. */
	add_problem(&problems, has_load && load < 0, ".loadAverageFractionTarget must be set to value >= 0");
	add_problem(&problems, has_load && load >= 2, ".loadAverageFractionTarget must be set to value < 2 ");
	add_problem(&problems, is_default && !has_load, ".loadAverageFractionTarget is a required field");
	add_problem(&problems, has_usage && usage < 0, ".memoryUsageFractionTarget must be set to value >= 0");
	add_problem(&problems, has_usage && usage >= 1, ".memoryUsageFractionTarget must be set to value < 1 ");
	add_problem(&problems, is_default && !has_usage, ".memoryUsageFractionTarget is a required field");
	add_problem(&problems, has_total && total < 0, ".memoryTotalFractionTarget must be set to value >= 0");
	add_problem(&problems, has_total && total >= 1, ".memoryTotalFractionTarget must be set to value < 1 ");
	add_problem(&problems, is_default && !has_total, ".memoryTotalFractionTarget is a required field");
	if (!is_default)
		return problems;

	add_problem(&problems, !config->has_enable_lfc_metrics, ".enableLFCMetrics is a required field");
	add_problem(&problems, !config->has_lfc_to_memory_ratio, ".lfcToMemoryRatio is a required field");
	add_problem(&problems, !config->has_lfc_window_size_minutes, ".lfcWindowSizeMinutes is a required field");
	add_problem(&problems, !config->has_lfc_min_wait_before_downscale_minutes,
	            ".lfcMinWaitBeforeDownscaleMinutes is a required field");
	add_problem(&problems, !config->has_cpu_stable_zone_ratio, ".cpuStableZoneRatio is a required field");
	add_problem(&problems, !config->has_cpu_mixed_zone_ratio, ".cpuMixedZoneRatio is a required field");
	return problems;
}

bool scaling_config_validate(const struct scaling_config *config, bool is_default, struct error *err)
{
	struct scaling_config_problems problems = scaling_config_find_problems(config, is_default);

	if (problems.count == 0)
		return true;
	error_set(err, ERROR_SYNTAX, "%s", problems.texts[problems.count - 1]);
	for (size_t i = problems.count - 1; i > 0; i--)
		error_wrap(err, "%s", problems.texts[i - 1]);
	return false;
}
