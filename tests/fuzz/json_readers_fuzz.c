/*
 * Any bytes for each of our four ways through JSON: reader, tree, splitter, stepper. They agree on what a value is:
 * what the reader takes, the tree takes and writes, and its text reads back as the same tree; the splitter gives it as
 * one value, wherever it is cut; the stepper comes to the same verdict, whole or byte by byte.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "codec/json_splitter.h"
#include "codec/json_stepper.h"
#include "codec/json_tree.h"

enum { MAX_BYTES = 16 * 1024, ARENA_BYTES = 64 * 1024 * 1024, EVENT_DEPTH = 3, EVENTS_BYTES = 1024 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* *ret_value: its text, without blanks around. */
static bool read_value(struct slice text, struct arena *arena, struct slice *ret_value)
{
	struct json_reader reader;
	struct error err = { .code = ERROR_NONE };
	bool fine = json_reader_open(&reader, text, arena, &err) && json_reader_raw(&reader, ret_value, &err) &&
	            json_reader_finish(&reader, &err);

	require(fine || err.text[0] != '\0');
	return fine;
}

/* ---- tree ---- */

static void check_tree(struct slice text, bool fine, struct arena *arena)
{
	struct json_node *root, *again;
	struct buffer first, second;
	struct error err;
	bool parses = json_tree_parse(text, arena, &root, &err);

	require(!fine || parses);
	require(!parses || fine || !slice_is_utf8(text) || slice_contains(text, SLICE("\\u"))); /* which it replaces */
	if (!parses)
		return;
	buffer_init(&first, (size_t)16 * MAX_BYTES);
	buffer_init(&second, (size_t)16 * MAX_BYTES);
	require(json_tree_depth(root) <= JSON_MAX_DEPTH);
	require(json_tree_print(root, &first, &err) && slice_is_utf8(buffer_slice(&first)));
	require(json_tree_parse(buffer_slice(&first), arena, &again, &err) && json_tree_equal(root, again));
	require(json_tree_print(again, &second, &err));
	require(slice_equal(buffer_slice(&first), buffer_slice(&second)));
	buffer_destroy(&first);
	buffer_destroy(&second);
}

/* ---- splitter ---- */

static bool gather(void *context, struct slice value, struct error *err)
{
	(void)err;
	buffer_append_slice(context, value);
	buffer_append_char(context, '\n');
	return true;
}

static bool split(struct slice text, size_t step, struct buffer *values)
{
	struct json_splitter splitter;
	struct slice envelope;
	struct error err;
	bool ok = true;

	buffer_init(values, (size_t)4 * MAX_BYTES);
	json_splitter_init(&splitter, JSON_SPLITTER_VALUES, SLICE("items"), MAX_BYTES, MAX_BYTES, gather, values);
	while (ok && text.length > 0) {
		size_t length = text.length < step ? text.length : step;

		ok = json_splitter_feed(&splitter, slice_from(text.data, length), &err);
		text = slice_from_offset(text, length);
	}
	ok = ok && json_splitter_finish(&splitter, &envelope, &err);
	json_splitter_destroy(&splitter);
	return ok;
}

static void check_splitter(struct slice text, struct slice value, bool fine)
{
	static const size_t STEPS[] = { SIZE_MAX, 1, 5 };
	struct buffer values[3];
	bool ok[3];

	for (size_t i = 0; i < 3; i++) {
		ok[i] = split(text, STEPS[i], &values[i]);
		require(ok[i] == ok[0] && slice_equal(buffer_slice(&values[i]), buffer_slice(&values[0])));
	}
	if (fine && slice_is_utf8(text)) { /* one value, and what the reader says it is */
		require(ok[0] && values[0].length == value.length + 1);
		require(memcmp(values[0].data, value.data, value.length) == 0);
	}
	for (size_t i = 0; i < 3; i++)
		buffer_destroy(&values[i]);
}

/* ---- stepper ---- */

struct steps {
	struct buffer events;
	size_t end; /* of the value */
};

static bool log_event(void *context, struct slice text, enum json_event event, int depth, size_t offset,
                      struct error *err)
{
	struct steps *steps = context;

	(void)err;
	require(depth >= 0 && depth <= EVENT_DEPTH && offset <= text.length);
	buffer_append_format(&steps->events, "%d %d %zu\n", (int)event, depth, offset);
	if (event == JSON_EVENT_END && depth == 0)
		steps->end = offset;
	return true;
}

/* Whether the text begins with a value. */
static bool step(struct slice text, size_t step_bytes, struct steps *steps)
{
	struct json_stepper stepper;
	struct slice so_far = slice_from(text.data, 0);
	struct error err = { .code = ERROR_NONE };
	bool ok = true;

	buffer_init(&steps->events, EVENTS_BYTES);
	steps->end = 0;
	json_stepper_init(&stepper, EVENT_DEPTH, log_event, steps);
	while (ok && so_far.length < text.length) {
		so_far.length += text.length - so_far.length < step_bytes ? text.length - so_far.length : step_bytes;
		ok = json_stepper_step(&stepper, so_far, &err);
	}
	ok = ok && json_stepper_finish(&stepper, text, &err);
	require(ok || err.code != ERROR_NONE);
	require(!steps->events.failed);
	return ok;
}

static void check_stepper(struct slice text, bool fine)
{
	struct steps whole, single;
	bool done = step(text, SIZE_MAX, &whole);

	require(step(text, 1, &single) == done);
	if (done)
		require(whole.end == single.end &&
		        slice_equal(buffer_slice(&whole.events), buffer_slice(&single.events)));
	require(!fine || done);
	/* What the stepper takes and the reader doesn't has something behind it, or bad text in it. */
	if (done && !fine)
		require(slice_trim(slice_from_offset(text, whole.end)).length > 0 || !slice_is_utf8(text) ||
		        slice_contains(text, SLICE("\\u")));
	buffer_destroy(&whole.events);
	buffer_destroy(&single.events);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct slice value = SLICE("");
	struct arena arena;
	bool fine;

	if (size > MAX_BYTES)
		return 0;
	arena_init(&arena, ARENA_BYTES);
	fine = read_value(text, &arena, &value);
	check_tree(text, fine, &arena);
	check_splitter(text, value, fine);
	check_stepper(text, fine);
	arena_destroy(&arena);
	return 0;
}
