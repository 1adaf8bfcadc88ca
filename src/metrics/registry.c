/*
 * A family keeps its series in a table whose key is the label values, each followed by a NUL byte: what a label can't
 * hold and what sorts before everything else, so that sorting keys sorts by label values. A registry is small and
 * printed far less often than it is written to, so order is made when printing.
 */
#include "metrics/registry.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/plain_text.h"
#include "base/table.h"

enum { KEY_BYTES_MAX = 4096 }; /* of all label values of a series; beyond, the series isn't kept */

struct series {
	double value; /* histogram: the sum */
	uint64_t count;
	uint64_t buckets[]; /* histogram: not cumulative */
};

struct metrics_family {
	struct metrics_family_options options;
	size_t label_count;
	struct table series;
	struct metrics_family *next; /* by name */
};

struct metrics_registry {
	struct metrics_family *first;
};

struct metrics_registry *metrics_registry_create(struct error *err)
{
	struct metrics_registry *registry = memory_allocate(sizeof *registry);

	if (registry == NULL)
		error_set(err, ERROR_NO_MEMORY, "out of memory for a metrics registry");
	return registry;
}

static void drop_series(struct metrics_family *family, const struct table_entry *entry)
{
	memory_release(table_remove(&family->series, slice_from(entry->key, entry->key_length)));
}

void metrics_registry_destroy(struct metrics_registry *registry)
{
	if (registry == NULL)
		return;
	for (struct metrics_family *family = registry->first, *next; family != NULL; family = next) {
		next = family->next;
		for (struct table_entry *entry = table_next(&family->series, NULL); entry != NULL;
		     entry = table_next(&family->series, entry))
			memory_release(entry->value);
		table_destroy(&family->series);
		memory_release(family);
	}
	memory_release(registry);
}

struct metrics_family *metrics_registry_add(struct metrics_registry *registry,
                                            const struct metrics_family_options *options, struct error *err)
{
	struct metrics_family **place = &registry->first;

	while (*place != NULL && strcmp((*place)->options.name, options->name) < 0)
		place = &(*place)->next;
	if (*place != NULL && strcmp((*place)->options.name, options->name) == 0) {
		error_set(err, ERROR_INVARIANT, "metrics family %s exists already", options->name);
		return NULL;
	}

	struct metrics_family *family = memory_allocate(sizeof *family);

	if (family == NULL) {
		error_set(err, ERROR_NO_MEMORY, "out of memory for metrics family %s", options->name);
		return NULL;
	}
	family->options = *options;
	while (family->label_count < METRICS_LABELS_MAX && options->labels[family->label_count] != NULL)
		family->label_count++;
	table_init(&family->series);
	family->next = *place;
	*place = family;
	return family;
}

/* False if the values are too long together to be a series. */
static bool make_key(const struct metrics_family *family, const struct slice *values, char key[KEY_BYTES_MAX],
                     struct slice *ret_key)
{
	size_t length = 0;

	for (size_t i = 0; i < family->label_count; i++) {
		if (values[i].length >= KEY_BYTES_MAX - length)
			return false;
		if (values[i].length > 0)
			memcpy(key + length, values[i].data, values[i].length);
		length += values[i].length;
		key[length++] = '\0';
	}
	*ret_key = slice_from(key, length);
	return true;
}

static struct series *find_series(const struct metrics_family *family, const struct slice *values)
{
	char bytes[KEY_BYTES_MAX];
	struct slice key;

	return make_key(family, values, bytes, &key) ? table_find(&family->series, key) : NULL;
}

/* NULL when memory is short or the labels are too long. */
static struct series *have_series(struct metrics_family *family, const struct slice *values)
{
	char bytes[KEY_BYTES_MAX];
	struct slice key;

	if (!make_key(family, values, bytes, &key))
		return NULL;

	struct series *series = table_find(&family->series, key);

	if (series != NULL)
		return series;
	series = memory_allocate(sizeof *series + (family->options.bound_count + 1) * sizeof series->buckets[0]);
	if (series != NULL && !table_set(&family->series, key, series)) {
		memory_release(series);
		return NULL;
	}
	return series;
}

void metrics_touch(struct metrics_family *family, const struct slice *values)
{
	(void)have_series(family, values);
}

void metrics_add(struct metrics_family *family, const struct slice *values, double amount)
{
	struct series *series = have_series(family, values);

	if (series != NULL)
		series->value += amount;
}

void metrics_set(struct metrics_family *family, const struct slice *values, double value)
{
	struct series *series = have_series(family, values);

	if (series != NULL)
		series->value = value;
}

void metrics_observe(struct metrics_family *family, const struct slice *values, double value)
{
	struct series *series = have_series(family, values);
	size_t bucket = 0;

	if (series == NULL)
		return;
	while (bucket < family->options.bound_count && !(value <= family->options.bounds[bucket]))
		bucket++;
	series->buckets[bucket]++;
	series->count++;
	series->value += value;
}

double metrics_value(const struct metrics_family *family, const struct slice *values)
{
	const struct series *series = find_series(family, values);

	if (series == NULL)
		return 0;
	return family->options.kind == METRICS_HISTOGRAM ? (double)series->count : series->value;
}

void metrics_remove(struct metrics_family *family, const struct slice *values)
{
	char bytes[KEY_BYTES_MAX];
	struct slice key;

	if (make_key(family, values, bytes, &key))
		memory_release(table_remove(&family->series, key));
}

/* The value of one label, out of a series' key. */
static struct slice label_value(struct slice key, size_t index)
{
	struct slice value = slice_take_until(&key, '\0');

	while (index-- > 0)
		value = slice_take_until(&key, '\0');
	return value;
}

void metrics_remove_matching(struct metrics_family *family, const size_t *label_indexes, const struct slice *values,
                             size_t count)
{
	for (struct table_entry *entry = table_next(&family->series, NULL); entry != NULL;
	     entry = table_next(&family->series, entry)) {
		struct slice key = slice_from(entry->key, entry->key_length);
		bool matches = true;

		for (size_t i = 0; i < count && matches; i++)
			matches = slice_equal(label_value(key, label_indexes[i]), values[i]);
		if (matches)
			drop_series(family, entry);
	}
}

size_t metrics_series_count(const struct metrics_family *family)
{
	return family->series.count;
}

/* ---- exposition ---- */

static void print_value(struct buffer *out, double value)
{
	if (isnan(value))
		buffer_append_text(out, "NaN");
	else if (isinf(value))
		buffer_append_text(out, value > 0 ? "+Inf" : "-Inf");
	else
		json_text_append_number(out, value, false);
}

static void print_label(struct buffer *out, const char *name, struct slice value, bool first)
{
	buffer_append_char(out, first ? '{' : ',');
	buffer_append_text(out, name);
	buffer_append_text(out, "=\"");
	while (value.length > 0) {
		size_t plain = (size_t)(plain_text_skip(value.data, value.data + value.length) - value.data);

		buffer_append(out, value.data, plain);
		value = slice_from_offset(value, plain);
		if (value.length == 0)
			break;
		if (value.data[0] == '\\' || value.data[0] == '"' || value.data[0] == '\n')
			buffer_append_char(out, '\\');
		buffer_append_char(out, value.data[0] == '\n' ? 'n' : value.data[0]);
		value = slice_from_offset(value, 1);
	}
	buffer_append_char(out, '"');
}

/* name + suffix, labels, and for a bucket `le` last. */
static void print_head(struct buffer *out, const struct metrics_family *family, const char *suffix, struct slice key,
                       const double *bound)
{
	struct buffer text;

	buffer_append_text(out, family->options.name);
	buffer_append_text(out, suffix);
	for (size_t i = 0; i < family->label_count; i++)
		print_label(out, family->options.labels[i], slice_take_until(&key, '\0'), i == 0);
	if (bound != NULL) {
		buffer_init(&text, KEY_BYTES_MAX);
		print_value(&text, *bound);
		print_label(out, "le", buffer_slice(&text), family->label_count == 0);
		buffer_destroy(&text);
	}
	if (family->label_count > 0 || bound != NULL)
		buffer_append_char(out, '}');
	buffer_append_char(out, ' ');
}

static void print_histogram(struct buffer *out, const struct metrics_family *family, struct slice key,
                            const struct series *series)
{
	uint64_t cumulative = 0;

	for (size_t i = 0; i <= family->options.bound_count; i++) {
		double bound = i < family->options.bound_count ? family->options.bounds[i] : (double)INFINITY;

		cumulative += series->buckets[i];
		print_head(out, family, "_bucket", key, &bound);
		buffer_append_format(out, "%llu\n", (unsigned long long)cumulative);
	}
	print_head(out, family, "_sum", key, NULL);
	print_value(out, series->value);
	buffer_append_char(out, '\n');
	print_head(out, family, "_count", key, NULL);
	buffer_append_format(out, "%llu\n", (unsigned long long)series->count);
}

static int compare_entries(const void *left, const void *right)
{
	const struct table_entry *a = *(const struct table_entry *const *)left;
	const struct table_entry *b = *(const struct table_entry *const *)right;

	return slice_compare(slice_from(a->key, a->key_length), slice_from(b->key, b->key_length));
}

static bool print_family(const struct metrics_family *family, struct buffer *out)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram" };
	const struct table_entry **sorted = memory_allocate(family->series.count * sizeof(const struct table_entry *));
	size_t count = 0;

	if (sorted == NULL)
		return false;
	for (struct table_entry *entry = table_next(&family->series, NULL); entry != NULL;
	     entry = table_next(&family->series, entry))
		sorted[count++] = entry;
	qsort(sorted, count, sizeof(const struct table_entry *), compare_entries);

	buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", family->options.name, family->options.help,
	                     family->options.name, kinds[family->options.kind]);
	for (size_t i = 0; i < count; i++) {
		struct slice key = slice_from(sorted[i]->key, sorted[i]->key_length);
		const struct series *series = sorted[i]->value;

		if (family->options.kind == METRICS_HISTOGRAM) {
			print_histogram(out, family, key, series);
			continue;
		}
		print_head(out, family, "", key, NULL);
		print_value(out, series->value);
		buffer_append_char(out, '\n');
	}
	memory_release(sorted);
	return true;
}

bool metrics_registry_print(const struct metrics_registry *registry, struct buffer *out, struct error *err)
{
	for (const struct metrics_family *family = registry->first; family != NULL; family = family->next)
		if (family->series.count > 0 && !print_family(family, out))
			return error_set(err, ERROR_NO_MEMORY, "out of memory printing metrics");
	return buffer_check(out, "metrics page", err);
}
