#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "net/loop_epoll.h"
#include "report/limits.h"
#include "report/object_key.h"
#include "tests/support/vector_file.h"

static void read_uuid(const char *text, uint8_t ret_uuid[REPORT_UUID_BYTES])
{
	size_t digits = 0;

	memset(ret_uuid, 0, REPORT_UUID_BYTES);
	for (; *text != '\0'; text++) {
		const char digit[] = { *text, '\0' };

		if (*text == '-')
			continue;
		assert_true(digits < 32);
		ret_uuid[digits / 2] = (uint8_t)(ret_uuid[digits / 2] * 16 + strtoul(digit, NULL, 16));
		digits++;
	}
	assert_int_equal(digits, 32);
}

static void check_id(const struct vector_row *row)
{
	uint8_t uuid[REPORT_UUID_BYTES];
	char id[REPORT_ID_BYTES];

	read_uuid(row->fields[0], uuid);
	report_id_from_uuid(uuid, id);
	assert_string_equal(id, row->fields[1]);
}

static void ids_are_uuids_in_base_57_lowest_digit_first(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/reporting/object_ids.txt", check_id), 6);
}

static void check_key(const struct vector_row *row)
{
	const bool billing = strcmp(row->fields[1], "billing") == 0;
	const char *prefix = strcmp(row->fields[2], "\"\"") == 0 ? "" : row->fields[2];
	struct report_key_layout layout = { billing ? REPORT_KEY_BILLING : REPORT_KEY_SCALING_EVENTS,
		                            slice_of(prefix) };
	struct buffer key;

	assert_int_equal(row->count, 7);
	setenv("TZ", row->fields[3], 1);
	tzset();
	buffer_init(&key, REPORT_KEY_BYTES);
	report_key_append(&key, &layout, strtoll(row->fields[4], NULL, 10), row->fields[5]);
	buffer_append_char(&key, '\0');
	assert_string_equal(key.data, row->fields[6]);
	buffer_destroy(&key);
}

static void keys_follow_their_layout(void **state)
{
	(void)state;
	assert_int_equal(vector_table_walk("vectors/reporting/object_keys.txt", check_key), 9);
}

static void new_ids_are_version_4_and_differ(void **state)
{
	struct error err;
	struct loop *loop = loop_epoll_create(&err);
	uint8_t uuid[REPORT_UUID_BYTES];
	char first[REPORT_ID_BYTES], second[REPORT_ID_BYTES];

	(void)state;
	assert_non_null(loop);
	assert_true(report_uuid_make(loop, uuid, &err));
	assert_int_equal(uuid[6] & 0xf0, 0x40);
	assert_int_equal(uuid[8] & 0xc0, 0x80);
	assert_true(report_id_make(loop, first, &err));
	assert_true(report_id_make(loop, second, &err));
	assert_string_not_equal(first, second);
	assert_in_range(strlen(first), 13, 22);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_uuids_in_base_57_lowest_digit_first),
		cmocka_unit_test(keys_follow_their_layout),
		cmocka_unit_test(new_ids_are_version_4_and_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
