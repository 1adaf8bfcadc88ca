/*
 * The measurements the scaling core decides by (spec agent-core 1.4). Copyable by value.
 */
#ifndef BALLAST_AGENT_CORE_VM_METRICS_H
#define BALLAST_AGENT_CORE_VM_METRICS_H

#include <stdint.h>

struct system_metrics {
	double load_average_1_min;
	double load_average_5_min;
	double memory_usage_bytes;
	double memory_cached_bytes;
};

/* Pages have about 60 windows of a minute; more than this many are an error of the page. */
enum { LFC_WINDOWS_MAX = 512 };

/*
 * The local file cache of Postgres. window_pages[i]: estimated working set of the last i + 1 minutes, in 8 KiB pages.
 */
struct lfc_metrics {
	double cache_hits_total; /* this and the next two are carried, not decided by */
	double cache_misses_total;
	double cache_writes_total;
	uint32_t window_count;
	double window_pages[LFC_WINDOWS_MAX];
};

#endif
