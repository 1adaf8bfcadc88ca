#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/event_json.h"
#include "tests/support/vector_file.h"

enum { TEXT_BYTES = 4096, WORDS_MAX = 16 };

/* The words "name=value" of a vector's input. */
struct words {
	struct slice items[WORDS_MAX];
	size_t count;
};

static void split(struct slice text, struct words *words)
{
	words->count = 0;
	while (text.length > 0) {
		assert_true(words->count < WORDS_MAX);
		words->items[words->count++] = slice_take_until(&text, ' ');
	}
}

/* data NULL: it isn't there. */
static struct slice value_of(const struct words *words, const char *name)
{
	for (size_t i = 1; i < words->count; i++) {
		struct slice value = words->items[i];

		if (slice_equal_text(slice_take_until(&value, '='), name))
			return value;
	}
	return slice_from(NULL, 0);
}

static int64_t integer(const struct words *words, const char *name)
{
	int64_t value;

	if (!slice_to_i64(value_of(words, name), &value))
		fail_msg("%s is no number", name);
	return value;
}

static double number(const struct words *words, const char *name)
{
	struct slice value = value_of(words, name);
	char text[64] = "";

	assert_true(value.length < sizeof text);
	memcpy(text, value.data, value.length);
	return vector_number(text);
}

static void set_zone(struct slice zone)
{
	char text[64] = "UTC";

	if (zone.length > 0)
		snprintf(text, sizeof text, "%.*s", SLICE_ARGS(zone));
	setenv("TZ", text, 1);
	tzset();
}

static bool print_billing(const struct words *words, struct buffer *out, struct error *err)
{
	const struct billing_event event = {
		.start_wall_ns = integer(words, "start"),
		.stop_wall_ns = integer(words, "stop"),
		.host_name = value_of(words, "host"),
		.number = (size_t)integer(words, "n"),
		.count = (size_t)integer(words, "N"),
		.metric = value_of(words, "metric"),
		.endpoint_id = value_of(words, "endpoint"),
		.value = (uint64_t)integer(words, "value"),
	};

	return billing_event_print_json(&event, out, err);
}

static bool print_scaling(const struct words *words, struct buffer *out, struct error *err)
{
	double multiplier = number(words, "multiplier");
	struct scaling_event event = {
		.kind = slice_equal_text(words->items[0], "actual") ? AGENT_SCALING_EVENT_ACTUAL
		                                                    : AGENT_SCALING_EVENT_HYPOTHETICAL,
		.wall_ns = integer(words, "at"),
		.endpoint_id = value_of(words, "endpoint"),
		.current_milli_cu = scaling_events_milli_cu((uint32_t)integer(words, "current"), multiplier),
		.target_milli_cu = scaling_events_milli_cu((uint32_t)integer(words, "goal"), multiplier),
	};

	if (value_of(words, "target").data != NULL)
		event.target_milli_cu = (uint32_t)integer(words, "target");
	event.parts.has_cpu = value_of(words, "cpu").data != NULL;
	event.parts.has_mem = value_of(words, "mem").data != NULL;
	event.parts.has_lfc = value_of(words, "lfc").data != NULL;
	if (event.parts.has_cpu)
		event.parts.cpu = number(words, "cpu") * multiplier;
	if (event.parts.has_mem)
		event.parts.mem = number(words, "mem") * multiplier;
	if (event.parts.has_lfc)
		event.parts.lfc = number(words, "lfc") * multiplier;
	return scaling_event_print_json(&event, value_of(words, "region"), out, err);
}

static void check(const struct vector_block *block)
{
	struct buffer out;
	struct words words;
	struct error err;
	bool ok;

	split(block->input, &words);
	set_zone(value_of(&words, "zone"));
	buffer_init(&out, TEXT_BYTES);
	ok = slice_equal_text(words.items[0], "billing") ? print_billing(&words, &out, &err)
	                                                 : print_scaling(&words, &out, &err);
	if (!ok && strcmp(block->expected, "!") != 0)
		fail_msg("%s: %s", block->name, err.text);
	if (ok && !slice_equal_text(buffer_slice(&out), block->expected))
		fail_msg("%s:\n  expected %s\n  found    %.*s", block->name, block->expected,
		         SLICE_ARGS(buffer_slice(&out)));
	buffer_destroy(&out);
}

static void vectors(void **state)
{
	(void)state;
	assert_int_equal(vector_blocks_walk("vectors/billing/events.txt", check), 21);
}

static void check_milli_cu(const struct vector_row *row)
{
	assert_int_equal(row->count, 3);
	assert_int_equal(
		scaling_events_milli_cu((uint32_t)strtoul(row->fields[0], NULL, 10), vector_number(row->fields[1])),
		strtoul(row->fields[2], NULL, 10));
}

static void tv25_thousandths(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/billing/milli_cu.txt", check_milli_cu), 7);
}

static void an_event_without_room_is_an_error(void **state)
{
	const struct billing_event event = { .host_name = SLICE("h"), .number = 1, .count = 2, .metric = SLICE("m") };
	struct buffer out;
	struct error err;

	(void)state;
	set_zone(SLICE(""));
	buffer_init(&out, 40);
	assert_false(billing_event_print_json(&event, &out, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buffer_destroy(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vectors),
		cmocka_unit_test(tv25_thousandths),
		cmocka_unit_test(an_event_without_room_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
