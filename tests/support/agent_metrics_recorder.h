/*
 * The agent's metrics, to be asked for single series by the name and labels they have in an exposition, without the
 * prefix autoscaling_agent_ and with labels in any order: `scheduler_plugin_requests_total{code="200"}`.
 */
#ifndef BALLAST_TESTS_AGENT_METRICS_RECORDER_H
#define BALLAST_TESTS_AGENT_METRICS_RECORDER_H

#include <stdbool.h>

#include "agent/agent_metrics.h"

struct agent_metrics *agent_metrics_recorder_create(void);
void agent_metrics_recorder_destroy(struct agent_metrics *metrics);
/* 0 if there is no such series. Histograms: the sum is the series NAME_sum, the count NAME_count. */
double agent_metrics_recorder_value(struct agent_metrics *metrics, const char *series);
bool agent_metrics_recorder_has(struct agent_metrics *metrics, const char *series);

#endif
