#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/rng.h"
#include "base/table.h"

enum { MANY = 3000 };

static char values[MANY];

static struct slice key_of(size_t number, char *text, size_t size)
{
	return slice_from(text, (size_t)snprintf(text, size, "key-%zu", number));
}

static void what_was_set_is_found(void **state)
{
	(void)state;
	struct table table;
	char text[32];

	table_init(&table);
	assert_null(table_find(&table, SLICE("a")));
	assert_null(table_remove(&table, SLICE("a")));
	for (size_t i = 0; i < MANY; i++)
		assert_true(table_set(&table, key_of(i, text, sizeof text), &values[i]));
	assert_int_equal(table.count, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_ptr_equal(table_find(&table, key_of(i, text, sizeof text)), &values[i]);
	assert_null(table_find(&table, SLICE("key-")));
	assert_null(table_find(&table, SLICE("")));
	table_destroy(&table);
	table_destroy(&table);
}

static void keys_are_copied_and_may_hold_any_byte(void **state)
{
	(void)state;
	struct table table;
	char key[] = "a\0b";

	table_init(&table);
	assert_true(table_set(&table, slice_from(key, 3), &values[0]));
	assert_true(table_set(&table, SLICE(""), &values[1]));
	key[2] = 'c';
	assert_null(table_find(&table, slice_from(key, 3)));
	assert_ptr_equal(table_find(&table, SLICE("a\0b")), &values[0]);
	assert_ptr_equal(table_find(&table, slice_of(NULL)), &values[1]);
	assert_int_equal(table_next(&table, NULL)->key[3], '\0');
	table_destroy(&table);
}

static void setting_again_replaces_in_place(void **state)
{
	(void)state;
	struct table table;

	table_init(&table);
	assert_true(table_set(&table, SLICE("a"), &values[0]));
	assert_true(table_set(&table, SLICE("b"), &values[1]));
	assert_true(table_set(&table, SLICE("a"), &values[2]));
	assert_int_equal(table.count, 2);
	assert_ptr_equal(table_find(&table, SLICE("a")), &values[2]);
	assert_string_equal(table_next(&table, NULL)->key, "a");
	table_destroy(&table);
}

static void a_walk_goes_in_order_of_insertion(void **state)
{
	(void)state;
	struct table table;
	char text[32];
	size_t expected = 1;

	table_init(&table);
	assert_null(table_next(&table, NULL));
	for (size_t i = 0; i < 100; i++)
		assert_true(table_set(&table, key_of(i, text, sizeof text), &values[i]));
	for (size_t i = 0; i < 100; i += 2)
		assert_ptr_equal(table_remove(&table, key_of(i, text, sizeof text)), &values[i]);
	assert_true(table_set(&table, SLICE("key-0"), &values[0])); /* is now the last */
	for (struct table_entry *e = table_next(&table, NULL); e != NULL; e = table_next(&table, e)) {
		assert_ptr_equal(e->value, &values[expected < 100 ? expected : 0]);
		expected += 2;
	}
	assert_int_equal(expected, 103);
	table_destroy(&table);
}

static void the_entry_at_hand_may_be_removed_while_walking(void **state)
{
	(void)state;
	struct table table;
	char text[32];
	size_t seen = 0;

	table_init(&table);
	for (size_t i = 0; i < 100; i++)
		assert_true(table_set(&table, key_of(i, text, sizeof text), &values[i]));
	for (struct table_entry *e = table_next(&table, NULL); e != NULL; e = table_next(&table, e)) {
		if (seen % 3 != 1)
			assert_ptr_equal(table_remove(&table, slice_from(e->key, e->key_length)), &values[seen]);
		seen++;
	}
	assert_int_equal(seen, 100);
	assert_int_equal(table.count, 33);
	table_destroy(&table);
}

/* A queue and a random mix: much comes and goes, little stays. The model is a plain array. */
static void it_does_what_a_plain_array_does(void **state)
{
	(void)state;
	enum { KEYS = 200, STEPS = 30000 };
	void *model[KEYS] = { NULL };
	size_t count = 0;
	struct table table;
	struct rng rng;
	char text[32];

	table_init(&table);
	rng_seed(&rng, 5);
	for (size_t step = 0; step < STEPS; step++) {
		size_t number = step % 2 == 0 ? rng_between(&rng, 0, KEYS) : step / 2 % KEYS;
		struct slice key = key_of(number, text, sizeof text);

		assert_ptr_equal(table_find(&table, key), model[number]);
		if (rng_next(&rng) % 3 == 0) {
			count += model[number] == NULL;
			model[number] = &values[step % MANY];
			assert_true(table_set(&table, key, model[number]));
		} else {
			count -= model[number] != NULL;
			assert_ptr_equal(table_remove(&table, key), model[number]);
			model[number] = NULL;
		}
		assert_int_equal(table.count, count);
	}
	assert_true(table.capacity <= 512);
	table_destroy(&table);
}

static void room_is_given_back_when_few_entries_are_left(void **state)
{
	(void)state;
	struct table table;
	char text[32];

	table_init(&table);
	for (size_t i = 0; i < MANY; i++)
		assert_true(table_set(&table, key_of(i, text, sizeof text), &values[i]));
	for (size_t i = 1; i < MANY; i++)
		assert_non_null(table_remove(&table, key_of(i, text, sizeof text)));
	for (size_t i = 0; i < 2 * MANY; i++) {
		assert_true(table_set(&table, SLICE("new"), &values[1]));
		assert_ptr_equal(table_remove(&table, SLICE("new")), &values[1]);
	}
	assert_true(table.capacity <= 16);
	assert_ptr_equal(table_find(&table, SLICE("key-0")), &values[0]);
	table_destroy(&table);
}

static void short_memory_at_any_allocation_changes_nothing(void **state)
{
	(void)state;
	unsigned long failing = 1;
	bool failed = true;
	char text[32];

	for (; failed; failing++) {
		struct table table;

		failed = false;
		table_init(&table);
		memory_fail_at(failing);
		for (size_t i = 0; i < 60; i++) {
			struct slice key = key_of(i, text, sizeof text);

			if (table_set(&table, key, &values[i]))
				continue;
			failed = true;
			assert_int_equal(table.count, i);
			assert_null(table_find(&table, key));
			assert_true(table_set(&table, key, &values[i])); /* it fails once only */
		}
		memory_fail_at(0);
		for (size_t i = 0; i < 60; i++)
			assert_ptr_equal(table_find(&table, key_of(i, text, sizeof text)), &values[i]);
		table_destroy(&table);
	}
	assert_true(failing > 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_set_is_found),
		cmocka_unit_test(keys_are_copied_and_may_hold_any_byte),
		cmocka_unit_test(setting_again_replaces_in_place),
		cmocka_unit_test(a_walk_goes_in_order_of_insertion),
		cmocka_unit_test(the_entry_at_hand_may_be_removed_while_walking),
		cmocka_unit_test(it_does_what_a_plain_array_does),
		cmocka_unit_test(room_is_given_back_when_few_entries_are_left),
		cmocka_unit_test(short_memory_at_any_allocation_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
