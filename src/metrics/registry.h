/*
 * Metrics of our own: families of counters, gauges and histograms, and their exposition in Prometheus' text format
 * 0.0.4.
 *
 * A family is declared once with its label names; a series exists from its first use (or metrics_touch) until it is
 * removed. When memory is short a change is lost rather than the program: a missing series is the worst that happens.
 */
#ifndef BALLAST_METRICS_REGISTRY_H
#define BALLAST_METRICS_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum { METRICS_LABELS_MAX = 8 };

/* For scrapers, Prometheus 3 included, which refuses a page without it. */
#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics_registry;
struct metrics_family;

enum metrics_kind { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };

struct metrics_family_options {
	enum metrics_kind kind;
	const char *name;
	const char *help;
	const char *labels[METRICS_LABELS_MAX]; /* NULL-terminated if fewer, in bytewise order, as they are printed */
	const double *bounds;                   /* histogram: upper bounds, rising, without +Inf */
	size_t bound_count;
};

struct metrics_registry *metrics_registry_create(struct error *err);
void metrics_registry_destroy(struct metrics_registry *registry); /* NULL is fine; families go with it */

/* Texts and bounds must outlive the registry. NULL with *err: out of memory, or the name is taken. */
struct metrics_family *metrics_registry_add(struct metrics_registry *registry,
                                            const struct metrics_family_options *options, struct error *err);

/*
 * values: one per label name, in the same order. Each makes the series if it isn't there.
 */
void metrics_touch(struct metrics_family *family, const struct slice *values); /* visible, at 0 if new */
void metrics_add(struct metrics_family *family, const struct slice *values, double amount);
void metrics_set(struct metrics_family *family, const struct slice *values, double value);
void metrics_observe(struct metrics_family *family, const struct slice *values, double value); /* histogram */

/* The value of a counter or gauge, or the count of a histogram; 0 if the series isn't there. */
double metrics_value(const struct metrics_family *family, const struct slice *values);
void metrics_remove(struct metrics_family *family, const struct slice *values);
/* Removes every series in which, for each i < count, the label at label_indexes[i] has values[i]. */
void metrics_remove_matching(struct metrics_family *family, const size_t *label_indexes, const struct slice *values,
                             size_t count);
size_t metrics_series_count(const struct metrics_family *family);

/* Appends the whole page: families by name, series by label values; families without series are left out. */
bool metrics_registry_print(const struct metrics_registry *registry, struct buffer *out, struct error *err);

#endif
