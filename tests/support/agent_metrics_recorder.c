/*
 * Asks the agent's own page: the series is put into the form it has there (labels by name, values escaped) and looked
 * up line by line.
 */
#include "tests/support/agent_metrics_recorder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"

enum { LABELS_MAX = 8, LINE_BYTES = 4096, PAGE_BYTES = 1 << 20 };

struct label {
	struct slice name;
	struct slice value;
};

struct agent_metrics *agent_metrics_recorder_create(void)
{
	struct error err;
	struct agent_metrics *metrics = agent_metrics_create(&err);

	assert_non_null(metrics);
	return metrics;
}

void agent_metrics_recorder_destroy(struct agent_metrics *metrics)
{
	agent_metrics_destroy(metrics);
}

static int by_name(const void *a, const void *b)
{
	return slice_compare(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/*
 * Takes `name="value"` and what separates it from the next; a quote within a value isn't followed by `,name="` or `}`.
 */
static struct label take_label(struct slice *rest)
{
	struct label label = { .name = slice_take_until(rest, '=') };

	*rest = slice_from_offset(*rest, 1);
	label.value = *rest;
	for (size_t i = 0; i < rest->length; i++) {
		struct slice behind = slice_from_offset(*rest, i + 1);

		if (rest->data[i] == '"' && behind.length > 0 && (behind.data[0] == ',' || behind.data[0] == '}')) {
			label.value.length = i;
			*rest = slice_from_offset(behind, 1);
			return label;
		}
	}
	fail_msg("a label without an end: %.*s", SLICE_ARGS(*rest));
	return label;
}

static void append_escaped(struct buffer *out, struct slice value)
{
	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] == '"' || value.data[i] == '\\')
			buffer_append_char(out, '\\');
		buffer_append_char(out, value.data[i]);
	}
}

/* The series as the page has it, with the blank behind. */
static void append_series(struct buffer *out, const char *series)
{
	struct slice rest = slice_of(series);
	struct slice name = slice_take_until(&rest, '{');
	struct label labels[LABELS_MAX];
	size_t count = 0;

	while (rest.length > 0) {
		assert_true(count < LABELS_MAX);
		labels[count++] = take_label(&rest);
	}
	qsort(labels, count, sizeof labels[0], by_name);
	buffer_append_format(out, "autoscaling_agent_%.*s", SLICE_ARGS(name));
	for (size_t i = 0; i < count; i++) {
		buffer_append_format(out, "%c%.*s=\"", i == 0 ? '{' : ',', SLICE_ARGS(labels[i].name));
		append_escaped(out, labels[i].value);
		buffer_append_char(out, '"');
	}
	buffer_append_text(out, count > 0 ? "} " : " ");
	assert_false(out->failed);
}

static bool find_value(struct agent_metrics *metrics, const char *series, double *ret_value)
{
	struct buffer page;
	struct buffer wanted;
	struct error err;
	struct slice rest;
	bool found = false;

	buffer_init(&page, PAGE_BYTES);
	buffer_init(&wanted, LINE_BYTES);
	append_series(&wanted, series);
	assert_true(agent_metrics_print(metrics, &page, &err));
	buffer_append_char(&page, '\0');
	rest = buffer_slice(&page);
	while (rest.length > 0 && !found) {
		struct slice line = slice_take_until(&rest, '\n');

		found = slice_starts_with(line, buffer_slice(&wanted));
		if (found)
			*ret_value = strtod(line.data + wanted.length, NULL);
	}
	buffer_destroy(&page);
	buffer_destroy(&wanted);
	return found;
}

double agent_metrics_recorder_value(struct agent_metrics *metrics, const char *series)
{
	double value = 0;

	(void)find_value(metrics, series, &value);
	return value;
}

bool agent_metrics_recorder_has(struct agent_metrics *metrics, const char *series)
{
	double value;

	return find_value(metrics, series, &value);
}
