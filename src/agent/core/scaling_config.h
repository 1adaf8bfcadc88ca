/*
 * The tunables of the goal formula: the agent's defaults and a VM's overrides of them (spec agent-core 1.3).
 *
 * Each field may be absent. The effective configuration is computed anew on every use, so an override acts at once
 * (T-11).
 */
#ifndef BALLAST_AGENT_CORE_SCALING_CONFIG_H
#define BALLAST_AGENT_CORE_SCALING_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct scaling_config {
	bool has_load_average_fraction_target;
	bool has_memory_usage_fraction_target;
	bool has_memory_total_fraction_target;
	bool has_enable_lfc_metrics;
	bool has_lfc_use_largest_window;
	bool has_lfc_to_memory_ratio;
	bool has_lfc_min_wait_before_downscale_minutes;
	bool has_lfc_window_size_minutes;
	bool has_cpu_stable_zone_ratio;
	bool has_cpu_mixed_zone_ratio;
	bool enable_lfc_metrics;
	bool lfc_use_largest_window;
	double load_average_fraction_target;
	double memory_usage_fraction_target;
	double memory_total_fraction_target;
	double lfc_to_memory_ratio;
	int64_t lfc_min_wait_before_downscale_minutes;
	int64_t lfc_window_size_minutes;
	double cpu_stable_zone_ratio;
	double cpu_mixed_zone_ratio;
};

/* The defaults with every present field of overrides in place of theirs. */
struct scaling_config scaling_config_merge(const struct scaling_config *defaults,
                                           const struct scaling_config *overrides);

enum { SCALING_CONFIG_PROBLEMS_MAX = 9 };

/* What is wrong with a configuration: constant texts such as ".cpuMixedZoneRatio is a required field", in order. */
struct scaling_config_problems {
	size_t count;
	const char *texts[SCALING_CONFIG_PROBLEMS_MAX];
};

/* Finds all problems (T-12). Required fields are asked for in the agent's defaults only, ranges always. */
struct scaling_config_problems scaling_config_find_problems(const struct scaling_config *config, bool is_default);

/* The same as one error, ERROR_SYNTAX, texts joined with ": ". */
bool scaling_config_validate(const struct scaling_config *config, bool is_default, struct error *err);

#endif
