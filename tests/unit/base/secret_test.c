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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_are_equal_byte_by_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
