#include "base/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void secrets_are_equal_byte_by_byte(void **state)
{
	(void)state;
	assert_true(secret_equal(SLICE("abc"), SLICE("abc")));
	assert_true(secret_equal(SLICE(""), SLICE("")));
	assert_true(secret_equal(SLICE("a\0b"), SLICE("a\0b")));
	assert_false(secret_equal(SLICE("a\0b"), SLICE("a\0c")));
	assert_false(secret_equal(SLICE("abc"), SLICE("abd")));
	assert_false(secret_equal(SLICE("abc"), SLICE("bbc")));
	assert_false(secret_equal(SLICE("abc"), SLICE("ab")));
	assert_false(secret_equal(SLICE(""), SLICE("a")));
	assert_false(secret_equal(SLICE("\x01"), SLICE("\x81")));
}

static void a_destroyed_secret_is_as_a_destroyed_buffer(void **state)
{
	(void)state;
	struct buffer secret;

	buffer_init(&secret, 100);
	buffer_append_text(&secret, "hush");
	secret_destroy(&secret);
	assert_null(secret.data);
	assert_int_equal(secret.length, 0);
	secret_destroy(&secret);
	buffer_init(&secret, 100);
	secret_destroy(&secret);
	assert_null(secret.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_equal_byte_by_byte),
		cmocka_unit_test(a_destroyed_secret_is_as_a_destroyed_buffer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
