/* What batches look like (TV12, TV13), and what a queue does at its bounds and when memory is short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/memory.h"
#include "base/rng.h"
#include "report/report_queue.h"
#include "tests/support/vector_file.h"

enum { TEXT_BYTES = 16 * 1024 * 1024 };

static struct report_queue_settings settings_of(enum report_batch_format format)
{
	return (struct report_queue_settings){
		.format = format, .max_batch_events = 1000, .limit_events = 1000, .limit_bytes = TEXT_BYTES
	};
}

static void *take_memory(void *context, unsigned items, unsigned size)
{
	(void)context;
	return memory_allocate((size_t)items * size);
}

static void give_memory(void *context, void *block)
{
	(void)context;
	memory_release(block);
}

/* Unpacks exactly one gzip member with nothing behind it. */
static void unpack(struct slice packed, struct buffer *out)
{
	z_stream stream = { .zalloc = take_memory,
		            .zfree = give_memory,
		            .next_in = (z_const Bytef *)packed.data,
		            .avail_in = (uInt)packed.length };
	int result;

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	do {
		char *to = buffer_reserve(out, 65536);

		assert_non_null(to);
		stream.next_out = (Bytef *)to;
		stream.avail_out = 65536;
		result = inflate(&stream, Z_NO_FLUSH);
		buffer_advance(out, 65536 - stream.avail_out);
	} while (result == Z_OK);
	assert_int_equal(result, Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	inflateEnd(&stream);
}

static void add_lines(struct report_queue *queue, struct slice lines)
{
	struct error err;
	bool completed;

	while (lines.length > 0)
		assert_true(report_queue_add(queue, slice_take_until(&lines, '\n'), &completed, &err));
}

static void check_array(const struct vector_block *block)
{
	struct report_queue_settings settings = settings_of(REPORT_JSON_ARRAY);
	const struct report_batch *batch;
	struct report_queue queue;
	struct error err;

	for (int late = 0; late < 2; late++) {
		settings.cut_late = late != 0;
		report_queue_init(&queue, &settings);
		add_lines(&queue, block->input);
		assert_int_equal(report_queue_complete(&queue), late == 0);
		batch = report_queue_take(&queue, &err);
		assert_non_null(batch);
		assert_int_equal(batch->body.length, strlen(block->expected));
		assert_memory_equal(batch->body.data, block->expected, batch->body.length);
		report_queue_remove_taken(&queue);
		assert_int_equal(queue.event_count, 0);
		assert_int_equal(queue.bytes, 0);
		report_queue_destroy(&queue);
	}
}

static void an_http_batch_is_a_json_array(void **state)
{
	(void)state;
	assert_int_equal(vector_blocks_walk("vectors/reporting/batches.txt", check_array), 2);
}

static void check_lines(const struct vector_block *block)
{
	const struct report_queue_settings settings = settings_of(REPORT_GZIP_LINES);
	struct report_queue queue;
	struct buffer text;
	struct error err;

	report_queue_init(&queue, &settings);
	add_lines(&queue, block->input);
	assert_true(report_queue_complete(&queue));
	buffer_init(&text, TEXT_BYTES);
	unpack(buffer_slice(&report_queue_take(&queue, &err)->body), &text);
	assert_true(slice_equal(buffer_slice(&text), block->input));
	buffer_destroy(&text);
	report_queue_destroy(&queue);
}

static void an_object_is_one_event_per_line_packed(void **state)
{
	(void)state;
	assert_int_equal(vector_blocks_walk("vectors/reporting/batches.txt", check_lines), 2);
}

static void an_empty_batch_is_never_completed(void **state)
{
	const struct report_queue_settings settings = settings_of(REPORT_GZIP_LINES);
	struct report_queue queue;

	(void)state;
	report_queue_init(&queue, &settings);
	assert_false(report_queue_complete(&queue));
	assert_false(report_queue_has_batch(&queue));
	report_queue_destroy(&queue);
}

/* Bytes that don't compress, and bytes that compress extremely. */
static void whatever_is_packed_comes_out_again(void **state)
{
	struct report_queue_settings settings = settings_of(REPORT_GZIP_LINES);
	static char event[REPORT_EVENT_BYTES];
	struct buffer expected, text;
	struct report_queue queue;
	struct error err;
	struct rng rng;
	bool completed;

	(void)state;
	rng_seed(&rng, 7);
	settings.max_batch_events = 100000;
	settings.limit_events = 100000;
	report_queue_init(&queue, &settings);
	buffer_init(&expected, TEXT_BYTES);
	buffer_init(&text, TEXT_BYTES);
	for (int i = 0; i < 300; i++) {
		size_t length = rng_between(&rng, 0, i % 10 == 0 ? sizeof event + 1 : 2000);

		if (i % 3 == 0)
			memset(event, 'x', length);
		else
			rng_fill(&rng, event, length);
		assert_true(report_queue_add(&queue, slice_from(event, length), &completed, &err));
		buffer_append(&expected, event, length);
		buffer_append_char(&expected, '\n');
	}
	(void)report_queue_complete(&queue);
	assert_int_equal(queue.batch_count, 1);
	unpack(buffer_slice(&report_queue_take(&queue, &err)->body), &text);
	assert_int_equal(text.length, expected.length);
	assert_memory_equal(text.data, expected.data, expected.length);
	report_queue_remove_taken(&queue);
	assert_int_equal(queue.bytes, 0);
	buffer_destroy(&expected);
	buffer_destroy(&text);
	report_queue_destroy(&queue);
}

static void a_full_queue_takes_no_more_and_keeps_what_it_has(void **state)
{
	static char event[1000];
	struct report_queue_settings settings = settings_of(REPORT_JSON_ARRAY);
	struct report_queue queue;
	struct error err;
	bool completed;

	(void)state;
	memset(event, 'x', sizeof event);
	settings.limit_events = 3;
	report_queue_init(&queue, &settings);
	for (int i = 0; i < 3; i++)
		assert_true(report_queue_add(&queue, SLICE("{}"), &completed, &err));
	assert_false(report_queue_add(&queue, SLICE("{}"), &completed, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "3 events wait already");
	assert_int_equal(queue.event_count, 3);
	report_queue_destroy(&queue);

	settings.limit_events = 100;
	settings.limit_bytes = 2500;
	report_queue_init(&queue, &settings);
	assert_true(report_queue_add(&queue, slice_from(event, sizeof event), &completed, &err));
	assert_true(report_queue_add(&queue, slice_from(event, sizeof event), &completed, &err));
	assert_false(report_queue_add(&queue, slice_from(event, sizeof event), &completed, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(queue.event_count, 2);
	report_queue_destroy(&queue);
}

static void an_event_that_is_too_long_is_refused(void **state)
{
	static char event[REPORT_EVENT_BYTES + 1];
	const struct report_queue_settings settings = settings_of(REPORT_GZIP_LINES);
	struct report_queue queue;
	struct error err;
	bool completed;

	(void)state;
	report_queue_init(&queue, &settings);
	assert_false(report_queue_add(&queue, slice_from(event, sizeof event), &completed, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(queue.event_count, 0);
	assert_true(report_queue_add(&queue, slice_from(event, sizeof event - 1), &completed, &err));
	report_queue_destroy(&queue);
}

static void a_batch_of_many_bytes_is_complete(void **state)
{
	static char event[REPORT_EVENT_BYTES];
	struct report_queue_settings settings = settings_of(REPORT_JSON_ARRAY);
	struct report_queue queue;
	struct error err;
	bool completed = false;
	unsigned count = 0;

	(void)state;
	memset(event, 'x', sizeof event);
	report_queue_init(&queue, &settings);
	while (!completed) {
		assert_true(report_queue_add(&queue, slice_from(event, sizeof event), &completed, &err));
		count++;
	}
	assert_int_equal(count, REPORT_BATCH_BYTES / REPORT_EVENT_BYTES);
	report_queue_destroy(&queue);
}

/* Whichever allocation fails, an event is in the queue as a whole or not at all, and the batch stays sound. */
static void check_short_memory(enum report_batch_format format, bool cut_late)
{
	struct report_queue_settings settings = settings_of(format);
	unsigned refused = 0;

	settings.cut_late = cut_late;
	settings.max_batch_events = 4;
	for (unsigned long fail_at = 1; fail_at < 60; fail_at++) {
		struct report_queue queue;
		struct error err;
		bool completed;
		uint64_t added = 0;

		report_queue_init(&queue, &settings);
		memory_fail_at(fail_at);
		for (int i = 0; i < 10; i++) {
			if (report_queue_add(&queue, SLICE("{\"a\":1}"), &completed, &err)) {
				added++;
			} else {
				assert_int_equal(err.code, ERROR_NO_MEMORY);
				refused++;
			}
		}
		memory_fail_at(0);
		(void)report_queue_complete(&queue);
		assert_int_equal(queue.event_count, added);
		assert_in_range(added, 9, 10);
		while (report_queue_has_batch(&queue)) {
			const struct report_batch *batch = report_queue_take(&queue, &err);
			struct buffer text;

			assert_non_null(batch);
			buffer_init(&text, TEXT_BYTES);
			if (format == REPORT_GZIP_LINES) {
				unpack(buffer_slice(&batch->body), &text);
				assert_int_equal(text.length, 8 * batch->event_count);
			} else {
				assert_int_equal(batch->body.length, 12 + 8 * batch->event_count);
			}
			buffer_destroy(&text);
			report_queue_remove_taken(&queue);
		}
		assert_int_equal(queue.bytes, 0);
		report_queue_destroy(&queue);
	}
	assert_true(refused >= 3);
}

static void short_memory_costs_single_events_only(void **state)
{
	(void)state;
	check_short_memory(REPORT_GZIP_LINES, false);
	check_short_memory(REPORT_JSON_ARRAY, false);
	check_short_memory(REPORT_JSON_ARRAY, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_http_batch_is_a_json_array),
		cmocka_unit_test(an_object_is_one_event_per_line_packed),
		cmocka_unit_test(an_empty_batch_is_never_completed),
		cmocka_unit_test(whatever_is_packed_comes_out_again),
		cmocka_unit_test(a_full_queue_takes_no_more_and_keeps_what_it_has),
		cmocka_unit_test(an_event_that_is_too_long_is_refused),
		cmocka_unit_test(a_batch_of_many_bytes_is_complete),
		cmocka_unit_test(short_memory_costs_single_events_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
