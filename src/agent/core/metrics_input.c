/*
 * One pass over the page notes what there is of the wanted families; only then, when the whole page has parsed, is it
 * judged.
 */
#include "agent/core/metrics_input.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "codec/duration_text.h"
#include "codec/go_quote.h"

enum {
	SYSTEM_LOAD1,
	SYSTEM_LOAD5,
	SYSTEM_MEMORY_TOTAL,
	SYSTEM_MEMORY_AVAILABLE,
	SYSTEM_MEMORY_CACHED,
	SYSTEM_SERIES,
};

enum { LFC_HITS, LFC_MISSES, LFC_WRITES, LFC_SERIES };

static const uint32_t NO_FAMILY = UINT32_MAX;

#define WINDOWS_NAME "lfc_approximate_working_set_size_windows"
static const double KERNEL_BYTES = 104857600; /* memory that the kernel of the VM takes before anyone counts (M-2) */
static const int64_t MINUTE_NS = INT64_C(60) * NS_PER_S;

/* A family that must have exactly one sample (M-3). */
struct scalar {
	struct slice name; /* of a literal, so it ends in NUL */
	size_t count;
	enum metrics_text_type type;
	double value;
};

/* The family with one sample per window (M-4). */
struct window {
	int64_t duration_ns;
	double pages;
};

struct windows {
	size_t samples;
	enum metrics_text_type type;
	size_t count;
	struct error label_error; /* of the first sample whose label is no good; code ERROR_NONE without one */
	struct window items[LFC_WINDOWS_MAX];
};

/* Texts of all fields, joined in order (M-5). */
struct complaints {
	size_t length;
	char text[2 * sizeof(((struct error *)NULL)->text)];
};

static void complain(struct complaints *complaints, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void complain(struct complaints *complaints, const char *format, ...)
{
	size_t room = sizeof complaints->text - complaints->length;
	int separator = snprintf(complaints->text + complaints->length, room, "%s", complaints->length > 0 ? ": " : "");

	if (separator < 0 || (size_t)separator >= room)
		return;
	complaints->length += (size_t)separator;
	room -= (size_t)separator;

	va_list arguments;

	va_start(arguments, format);
	int length = vsnprintf(complaints->text + complaints->length, room, format, arguments);

	va_end(arguments);
	if (length > 0)
		complaints->length += (size_t)length < room ? (size_t)length : room - 1;
}

static bool check_complaints(const struct complaints *complaints, struct error *err)
{
	if (complaints->length == 0)
		return true;
	return error_set(err, ERROR_SYNTAX, "failed to extract metrics: %s", complaints->text);
}

/* ---- the pass over the page ---- */

enum integer_problem { INTEGER_OK, INTEGER_SYNTAX, INTEGER_RANGE };

/* As the reference reads it, digit by digit: whichever problem comes first in the text is the one it reports. */
static enum integer_problem read_integer(struct slice text, int64_t *ret_value)
{
	bool has_sign = text.length > 0 && (text.data[0] == '-' || text.data[0] == '+');
	bool negative = has_sign && text.data[0] == '-';
	uint64_t value = 0;

	if (text.length == (has_sign ? 1 : 0))
		return INTEGER_SYNTAX;
	for (size_t i = has_sign ? 1 : 0; i < text.length; i++) {
		char c = text.data[i];

		if (c < '0' || c > '9')
			return INTEGER_SYNTAX;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
			return INTEGER_RANGE;
	}

	uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);

	if (value > limit)
		return INTEGER_RANGE;
	*ret_value = (int64_t)(negative ? 0 - value : value);
	return INTEGER_OK;
}

static bool read_seconds(struct slice text, int64_t *ret_seconds, struct error *err)
{
	enum { QUOTE_BYTES_MAX = 4096, QUOTED_BYTES_MAX = 256 };
	enum integer_problem problem = read_integer(text, ret_seconds);
	struct buffer quoted;

	if (problem == INTEGER_OK)
		return true;
	if (text.length > QUOTED_BYTES_MAX)
		text.length = QUOTED_BYTES_MAX;
	buffer_init(&quoted, QUOTE_BYTES_MAX);
	go_quote_append(&quoted, text);
	error_set(err, ERROR_SYNTAX,
	          "couldn't parse metric's \"duration_seconds\" label as int: strconv.Atoi: parsing %.*s: %s",
	          SLICE_ARGS(buffer_slice(&quoted)),
	          problem == INTEGER_RANGE ? "value out of range" : "invalid syntax");
	buffer_destroy(&quoted);
	return false;
}

static bool read_duration(const struct metrics_text_sample *sample, int64_t *ret_ns, struct error *err)
{
	enum { LABEL_BYTES_MAX = 4096 };
	const struct metrics_text_label *label = metrics_text_find_label(sample, SLICE("duration_seconds"));
	struct buffer value;
	int64_t seconds = 0;

	if (label == NULL)
		return error_set(err, ERROR_SYNTAX, "metric missing label \"duration_seconds\"");
	if (!label->has_escapes) {
		if (!read_seconds(label->raw_value, &seconds, err))
			return false;
	} else {
		buffer_init(&value, LABEL_BYTES_MAX);
		metrics_text_append_value(label, &value);
		bool ok = read_seconds(buffer_slice(&value), &seconds, err);

		buffer_destroy(&value);
		if (!ok)
			return false;
	}
	/* Wraps, as the reference's product does; what wraps can't be one of the minutes that are expected. */
	*ret_ns = (int64_t)((uint64_t)seconds * NS_PER_S);
	return true;
}

static void note_window(struct windows *windows, const struct metrics_text_sample *sample)
{
	int64_t duration_ns;

	windows->samples++;
	windows->type = sample->type;
	if (sample->type != METRICS_TEXT_GAUGE || windows->label_error.code != ERROR_NONE)
		return;
	if (windows->count == LFC_WINDOWS_MAX) {
		error_set(&windows->label_error, ERROR_LIMIT, "more than %d samples of %s", LFC_WINDOWS_MAX,
		          WINDOWS_NAME);
		return;
	}
	if (read_duration(sample, &duration_ns, &windows->label_error))
		windows->items[windows->count++] =
			(struct window){ .duration_ns = duration_ns, .pages = sample->value };
}

static void note_scalar(struct scalar *scalar, const struct metrics_text_sample *sample)
{
	scalar->count++;
	scalar->type = sample->type;
	scalar->value = sample->value;
}

static struct scalar *find_scalar(struct scalar *scalars, size_t count, struct slice name)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equal(name, scalars[i].name))
			return &scalars[i];
	return NULL;
}

/* Fills the scalars, and the windows unless they are NULL. */
static bool read_page(struct metrics_text_parser *parser, struct slice page, struct scalar *scalars,
                      size_t scalar_count, struct windows *windows, struct error *err)
{
	struct metrics_text_sample sample;
	uint32_t family = NO_FAMILY;
	struct scalar *scalar = NULL;
	bool is_window = false;

	metrics_text_begin(parser, page);
	while (metrics_text_next(parser, &sample, err)) {
		if (sample.family_index != family) {
			family = sample.family_index;
			scalar = find_scalar(scalars, scalar_count, sample.family);
			is_window = windows != NULL && slice_equal(sample.family, SLICE(WINDOWS_NAME));
		}
		if (scalar != NULL)
			note_scalar(scalar, &sample);
		else if (is_window)
			note_window(windows, &sample);
	}
	if (!metrics_text_finished(parser))
		return error_wrap(err, "failed to parse content as prometheus text format");
	return true;
}

/* ---- judging what was noted ---- */

static bool is_usable(double value)
{
	return isfinite(value) && value >= 0;
}

static void check_scalar(const struct scalar *scalar, enum metrics_input_check check, struct complaints *complaints)
{
	if (scalar->count == 0)
		complain(complaints, "missing expected metric %s", scalar->name.data);
	else if (scalar->type != METRICS_TEXT_GAUGE)
		complain(complaints, "wrong metric type: expected GAUGE but got %s",
		         metrics_text_type_name(scalar->type));
	else if (scalar->count != 1)
		complain(complaints, "expected 1 metric, found %zu", scalar->count);
	else if (check == METRICS_INPUT_REJECT_UNUSABLE && !is_usable(scalar->value))
		complain(complaints, "%s has the unusable value %g", scalar->name.data, scalar->value);
}

static int compare_windows(const void *a, const void *b)
{
	const struct window *left = a;
	const struct window *right = b;

	return (left->duration_ns > right->duration_ns) - (left->duration_ns < right->duration_ns);
}

/* "… got 2m0s", or with another duration after it "… got unexpected value 2m0s instead of 3m0s". */
static void complain_duration(struct complaints *complaints, const char *what, int64_t found_ns,
                              const int64_t *expected_ns)
{
	enum { DURATIONS_BYTES_MAX = 256 };
	struct buffer text;

	buffer_init(&text, DURATIONS_BYTES_MAX);
	duration_print(found_ns, &text);
	if (expected_ns != NULL) {
		buffer_append_text(&text, " instead of ");
		duration_print(*expected_ns, &text);
	}
	complain(complaints, "%s %.*s", what, SLICE_ARGS(buffer_slice(&text)));
	buffer_destroy(&text);
}

/* One per minute, from the first on; then item i is the window of i + 1 minutes. */
static void check_durations(const struct windows *windows, struct complaints *complaints)
{
	if (windows->items[0].duration_ns != MINUTE_NS) {
		complain_duration(complaints, "expected smallest duration to be 1m0s, got",
		                  windows->items[0].duration_ns, NULL);
		return;
	}
	for (size_t i = 1; i < windows->count; i++) {
		int64_t expected_ns = (int64_t)(i + 1) * MINUTE_NS;

		if (windows->items[i].duration_ns != expected_ns) {
			complain_duration(complaints,
			                  "expected duration values to be exactly 1m apart, got unexpected value",
			                  windows->items[i].duration_ns, &expected_ns);
			return;
		}
	}
}

static void check_window_values(const struct windows *windows, struct complaints *complaints)
{
	for (size_t i = 0; i < windows->count; i++) {
		if (is_usable(windows->items[i].pages))
			continue;
		complain(complaints, "%s{duration_seconds=\"%" PRId64 "\"} has the unusable value %g", WINDOWS_NAME,
		         windows->items[i].duration_ns / NS_PER_S, windows->items[i].pages);
		return;
	}
}

/* Leaves the windows in order. */
static void check_windows(struct windows *windows, enum metrics_input_check check, struct complaints *complaints)
{
	if (windows->samples == 0) {
		complain(complaints, "missing expected metric %s", WINDOWS_NAME);
	} else if (windows->type != METRICS_TEXT_GAUGE) {
		complain(complaints, "wrong metric type: expected GAUGE, but got %s",
		         metrics_text_type_name(windows->type));
	} else if (windows->label_error.code != ERROR_NONE) {
		complain(complaints, "%s", windows->label_error.text);
	} else {
		qsort(windows->items, windows->count, sizeof windows->items[0], compare_windows);
		check_durations(windows, complaints);
		if (check == METRICS_INPUT_REJECT_UNUSABLE)
			check_window_values(windows, complaints);
	}
}

bool metrics_input_read_system(struct metrics_text_parser *parser, struct slice page, enum metrics_input_check check,
                               struct system_metrics *ret_metrics, struct error *err)
{
	struct scalar scalars[SYSTEM_SERIES] = {
		[SYSTEM_LOAD1] = { .name = SLICE("host_load1") },
		[SYSTEM_LOAD5] = { .name = SLICE("host_load5") },
		[SYSTEM_MEMORY_TOTAL] = { .name = SLICE("host_memory_total_bytes") },
		[SYSTEM_MEMORY_AVAILABLE] = { .name = SLICE("host_memory_available_bytes") },
		[SYSTEM_MEMORY_CACHED] = { .name = SLICE("host_memory_cached_bytes") },
	};
	struct complaints complaints = { .length = 0 };

	if (!read_page(parser, page, scalars, SYSTEM_SERIES, NULL, err))
		return false;
	for (size_t i = 0; i < SYSTEM_SERIES; i++)
		check_scalar(&scalars[i], check, &complaints);

	double usage = scalars[SYSTEM_MEMORY_TOTAL].value - scalars[SYSTEM_MEMORY_AVAILABLE].value + KERNEL_BYTES;

	if (check == METRICS_INPUT_REJECT_UNUSABLE && complaints.length == 0 && !is_usable(usage))
		complain(&complaints, "%s is more than %s", scalars[SYSTEM_MEMORY_AVAILABLE].name.data,
		         scalars[SYSTEM_MEMORY_TOTAL].name.data);
	if (!check_complaints(&complaints, err))
		return false;

	*ret_metrics = (struct system_metrics){
		.load_average_1_min = scalars[SYSTEM_LOAD1].value,
		.load_average_5_min = scalars[SYSTEM_LOAD5].value,
		.memory_usage_bytes = usage,
		.memory_cached_bytes = scalars[SYSTEM_MEMORY_CACHED].value,
	};
	return true;
}

bool metrics_input_read_lfc(struct metrics_text_parser *parser, struct slice page, enum metrics_input_check check,
                            struct lfc_metrics *ret_metrics, struct error *err)
{
	struct scalar scalars[LFC_SERIES] = {
		[LFC_HITS] = { .name = SLICE("lfc_hits") },
		[LFC_MISSES] = { .name = SLICE("lfc_misses") },
		[LFC_WRITES] = { .name = SLICE("lfc_writes") },
	};
	struct windows windows;
	struct complaints complaints = { .length = 0 };

	windows.samples = 0;
	windows.count = 0;
	windows.label_error.code = ERROR_NONE;
	if (!read_page(parser, page, scalars, LFC_SERIES, &windows, err))
		return false;
	check_windows(&windows, check, &complaints);
	for (size_t i = 0; i < LFC_SERIES; i++)
		check_scalar(&scalars[i], check, &complaints);
	if (!check_complaints(&complaints, err))
		return false;

	ret_metrics->cache_hits_total = scalars[LFC_HITS].value;
	ret_metrics->cache_misses_total = scalars[LFC_MISSES].value;
	ret_metrics->cache_writes_total = scalars[LFC_WRITES].value;
	ret_metrics->window_count = (uint32_t)windows.count;
	for (size_t i = 0; i < windows.count; i++)
		ret_metrics->window_pages[i] = windows.items[i].pages;
	return true;
}
