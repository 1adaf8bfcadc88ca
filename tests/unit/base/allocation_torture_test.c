/*
 * Containers and texts while each allocation fails once: what is in them stays whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/heap.h"
#include "base/json_text.h"
#include "base/table.h"
#include "tests/support/failing_calls.h"

enum { ENTRIES = 100, LIMIT_BYTES = 1024 * 1024 };

static struct slice key_of(char text[16], unsigned i)
{
	return slice_from(text, (size_t)snprintf(text, 16, "key-%u", i));
}

/* An entry that there is no memory for is missing; all others are there. */
static bool fill_table(void *context, struct error *err)
{
	static int values[ENTRIES];
	struct table table;
	unsigned missing = 0;
	char text[16];

	(void)context;
	table_init(&table);
	for (unsigned i = 0; i < ENTRIES; i++)
		missing += table_set(&table, key_of(text, i), &values[i]) ? 0 : 1;
	for (unsigned i = 0; i < ENTRIES; i++) {
		const int *found = table_find(&table, key_of(text, i));

		assert_true(found == NULL || found == &values[i]);
	}
	assert_int_equal(table.count, ENTRIES - missing);
	for (unsigned i = 0; i < ENTRIES; i += 2)
		(void)table_remove(&table, key_of(text, i));
	assert_in_range(table.count, ENTRIES / 2 - missing, ENTRIES / 2);
	table_destroy(&table);
	return missing == 0 || error_set(err, ERROR_NO_MEMORY, "no memory for an entry");
}

static bool fill_heap(void *context, struct error *err)
{
	struct heap_node nodes[ENTRIES] = { 0 };
	struct heap heap;
	unsigned in = 0, out = 0;
	uint64_t last = 0;

	(void)context;
	heap_init(&heap);
	for (unsigned i = 0; i < ENTRIES; i++)
		in += heap_insert(&heap, &nodes[i], i * 37 % ENTRIES) ? 1 : 0;
	for (struct heap_node *node = heap_first(&heap); node != NULL; node = heap_first(&heap)) {
		assert_true(node->key >= last);
		last = node->key;
		heap_remove(&heap, node);
		out++;
	}
	assert_int_equal(in, out);
	heap_destroy(&heap);
	return in == ENTRIES || error_set(err, ERROR_NO_MEMORY, "no memory for a node");
}

static bool fill_arena(void *context, struct error *err)
{
	struct arena arena;
	struct slice copy;
	bool ok = true;

	(void)context;
	arena_init(&arena, LIMIT_BYTES);
	for (unsigned round = 0; ok && round < 2; round++) {
		for (unsigned i = 0; ok && i < ENTRIES; i++)
			ok = arena_allocate(&arena, i * 100) != NULL && arena_allocate_array(&arena, 3, 8) != NULL &&
			     arena_copy(&arena, SLICE("text"), &copy) && slice_equal_text(copy, "text");
		arena_reset(&arena);
	}
	arena_destroy(&arena);
	return ok || error_set(err, ERROR_NO_MEMORY, "no memory in the arena");
}

static bool fill_buffer(void *context, struct error *err)
{
	struct buffer buffer;
	size_t length = 0;
	bool ok;

	(void)context;
	buffer_init(&buffer, LIMIT_BYTES);
	for (unsigned i = 0; i < ENTRIES; i++) {
		length = buffer.failed ? length : buffer.length;
		buffer_append_format(&buffer, "%080u", i);
		json_text_append_string(&buffer, SLICE("a \"text\"\n"), true);
		(void)json_text_append_number(&buffer, 1.5e-9 * i, false);
	}
	ok = buffer_check(&buffer, "the text", err);
	/* What was in it before stays. */
	assert_true(buffer.length >= length && (length == 0 || buffer.data[0] == '0'));
	buffer_clear(&buffer);
	buffer_append_text(&buffer, "again");
	assert_false(buffer.failed);
	buffer_destroy(&buffer);
	return ok;
}

static void each_failed_allocation_leaves_the_rest_whole(void **state)
{
	static const struct torture_case CASES[] = {
		{ "table", fill_table, ENTRIES },
		{ "heap", fill_heap, 2 },
		{ "arena", fill_arena, 3 * ENTRIES },
		{ "buffer", fill_buffer, 4 },
	};

	(void)state;
	torture_each_case(CASES, sizeof CASES / sizeof CASES[0], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_failed_allocation_leaves_the_rest_whole) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
