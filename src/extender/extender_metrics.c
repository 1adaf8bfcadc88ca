#include "extender/extender_metrics.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/table.h"
#include "extender/process_limits.h"
#include "metrics/process_metrics.h"
#include "metrics/registry.h"

enum family {
	SCHEDULE_COUNTER,
	SCHEDULE_SINCE_LAST,
	SCHEDULE_TOTAL,
	KUBE_SECONDS,
	WATCH_FAILING,
	LOG_DROPPED,
	FAMILIES
};

static const double KUBE_BOUNDS[] = { .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10 };

static const struct metrics_family_options OPTIONS[FAMILIES] = {
	[SCHEDULE_COUNTER] = { .kind = METRICS_COUNTER,
	                       .name = "schedule_counter",
	                       .help = "schedule counter for pod",
	                       .labels = { "pod_name", "source" } },
	[SCHEDULE_SINCE_LAST] = { .kind = METRICS_GAUGE,
	                          .name = "schedule_since_last_time",
	                          .help = "schedule interval since last time",
	                          .labels = { "pod_name", "source" } },
	[SCHEDULE_TOTAL] = { .kind = METRICS_GAUGE,
	                     .name = "schedule_total_time",
	                     .help = "total schedule time cose for pod",
	                     .labels = { "pod_name", "source" } },
	[KUBE_SECONDS] = { .kind = METRICS_HISTOGRAM,
	                   .name = "kubeclient_execution_duration_seconds",
	                   .help = "duration of kubeclient method",
	                   .labels = { "method" },
	                   .bounds = KUBE_BOUNDS,
	                   .bound_count = sizeof KUBE_BOUNDS / sizeof KUBE_BOUNDS[0] },
	[WATCH_FAILING] = { .kind = METRICS_GAUGE,
	                    .name = "ballast_extender_watch_failing",
	                    .help = "1 while the objects of a kind can't be listed or watched, and the last known ones are used",
	                    .labels = { "resource" } },
	[LOG_DROPPED] = { .kind = METRICS_COUNTER,
	                  .name = "ballast_log_lines_dropped_total",
	                  .help = "Log lines dropped because the reader of the log was too slow." },
};

/* A pod with series. */
struct scheduled_pod {
	uint64_t seen_ns;
	uint64_t remove_ns;
	bool placed; /* that it will be removed is decided (M6) */
};

struct extender_metrics {
	struct metrics_registry *registry;
	struct metrics_family *families[FAMILIES];
	struct process_metrics process;
	struct table pods; /* name → struct scheduled_pod */
	const struct log_sink *log_sink;
};

/* ---- life ---- */

struct extender_metrics *extender_metrics_create(struct error *err)
{
	struct extender_metrics *metrics = memory_allocate(sizeof *metrics);

	if (metrics == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for metrics");
		return NULL;
	}
	table_init(&metrics->pods);
	metrics->registry = metrics_registry_create(err);
	if (metrics->registry == NULL)
		goto fail;
	for (int i = 0; i < FAMILIES; i++) {
		metrics->families[i] = metrics_registry_add(metrics->registry, &OPTIONS[i], err);
		if (metrics->families[i] == NULL)
			goto fail;
	}
	if (!process_metrics_init(&metrics->process, metrics->registry, err))
		goto fail;
	return metrics;
fail:
	extender_metrics_destroy(metrics);
	return NULL;
}

void extender_metrics_destroy(struct extender_metrics *metrics)
{
	if (metrics == NULL)
		return;
	for (struct table_entry *entry = table_next(&metrics->pods, NULL); entry != NULL;
	     entry = table_next(&metrics->pods, entry))
		memory_release(entry->value);
	table_destroy(&metrics->pods);
	metrics_registry_destroy(metrics->registry);
	memory_release(metrics);
}

void extender_metrics_follow_log(struct extender_metrics *metrics, const struct log_sink *log_sink)
{
	metrics->log_sink = log_sink;
}

bool extender_metrics_print(struct extender_metrics *metrics, struct buffer *page, struct error *err)
{
	if (metrics->log_sink != NULL)
		metrics_set(metrics->families[LOG_DROPPED], NULL, (double)log_dropped_lines(metrics->log_sink));
	process_metrics_update(&metrics->process);
	return metrics_registry_print(metrics->registry, page, err);
}

/* ---- pods ---- */

static const struct slice COUNTER_SOURCE = SLICE_INIT("CounterWithCustomLabels");
static const struct slice GAUGE_SOURCE = SLICE_INIT("MetricsWithCustomLabels");

static void forget_pod(struct extender_metrics *metrics, struct slice pod_name)
{
	struct slice counter[] = { pod_name, COUNTER_SOURCE };
	struct slice gauge[] = { pod_name, GAUGE_SOURCE };

	metrics_remove(metrics->families[SCHEDULE_COUNTER], counter);
	metrics_remove(metrics->families[SCHEDULE_SINCE_LAST], gauge);
	metrics_remove(metrics->families[SCHEDULE_TOTAL], gauge);
	memory_release(table_remove(&metrics->pods, pod_name));
}

static struct slice entry_name(const struct table_entry *entry)
{
	return slice_from(entry->key, entry->key_length);
}

static void forget_oldest(struct extender_metrics *metrics)
{
	struct table_entry *oldest = NULL;

	for (struct table_entry *entry = table_next(&metrics->pods, NULL); entry != NULL;
	     entry = table_next(&metrics->pods, entry)) {
		const struct scheduled_pod *pod = entry->value;

		if (oldest == NULL || pod->seen_ns < ((const struct scheduled_pod *)oldest->value)->seen_ns)
			oldest = entry;
	}
	if (oldest != NULL)
		forget_pod(metrics, entry_name(oldest));
}

void extender_metrics_count_schedule(struct extender_metrics *metrics, struct slice pod_name, uint64_t now_ns)
{
	struct slice values[] = { pod_name, COUNTER_SOURCE };
	struct scheduled_pod *pod = table_find(&metrics->pods, pod_name);
	uint64_t unseen_ns = now_ns + (uint64_t)EXTENDER_METRICS_UNSEEN_S * NS_PER_S;

	if (pod == NULL) {
		if (metrics->pods.count >= EXTENDER_METRICS_PODS)
			forget_oldest(metrics);
		pod = memory_allocate(sizeof *pod);
		if (pod == NULL || !table_set(&metrics->pods, pod_name, pod)) {
			memory_release(pod);
			return;
		}
	}
	if (!pod->placed)
		pod->remove_ns = unseen_ns;
	pod->seen_ns = now_ns;
	metrics_add(metrics->families[SCHEDULE_COUNTER], values, 1);
}

void extender_metrics_set_schedule_times(struct extender_metrics *metrics, struct slice pod_name,
                                         double since_last_seconds, double total_seconds)
{
	struct slice values[] = { pod_name, GAUGE_SOURCE };

	if (table_find(&metrics->pods, pod_name) == NULL)
		return;
	metrics_set(metrics->families[SCHEDULE_SINCE_LAST], values, since_last_seconds);
	metrics_set(metrics->families[SCHEDULE_TOTAL], values, total_seconds);
}

void extender_metrics_note_placed(struct extender_metrics *metrics, struct slice pod_name, uint64_t now_ns)
{
	struct scheduled_pod *pod = table_find(&metrics->pods, pod_name);

	if (pod == NULL || pod->placed)
		return;
	pod->placed = true;
	pod->remove_ns = now_ns + (uint64_t)EXTENDER_METRICS_PLACED_S * NS_PER_S;
}

void extender_metrics_sweep(struct extender_metrics *metrics, uint64_t now_ns)
{
	struct table_entry *next;

	for (struct table_entry *entry = table_next(&metrics->pods, NULL); entry != NULL; entry = next) {
		next = table_next(&metrics->pods, entry);
		if (((const struct scheduled_pod *)entry->value)->remove_ns <= now_ns)
			forget_pod(metrics, entry_name(entry));
	}
}

/* ---- the others ---- */

void extender_metrics_observe_kube(struct extender_metrics *metrics, enum extender_kube_method method, double seconds)
{
	static const struct slice METHODS[] = {
		[EXTENDER_KUBE_READ] = SLICE_INIT("ReadCR"),
		[EXTENDER_KUBE_CREATE] = SLICE_INIT("CreateCR"),
		[EXTENDER_KUBE_UPDATE] = SLICE_INIT("UpdateCR"),
	};

	metrics_observe(metrics->families[KUBE_SECONDS], &METHODS[method], seconds);
}

void extender_metrics_set_watch_failing(struct extender_metrics *metrics, const char *resource, bool failing)
{
	struct slice value = slice_of(resource);

	metrics_set(metrics->families[WATCH_FAILING], &value, failing ? 1 : 0);
}
