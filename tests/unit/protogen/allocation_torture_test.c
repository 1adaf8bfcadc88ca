/*
 * Generating code from the sample schema, while each allocation fails once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "protogen/protogen.h"
#include "tests/support/failing_calls.h"

static const char GOLDEN[] = TESTS_DIR "/unit/protogen/golden";

enum { OUT_BYTES = 4 * 1024 * 1024 };

static bool generate(void *context, struct error *err)
{
	static size_t usual_length;
	const char *const folders[] = { GOLDEN, NULL };
	struct buffer header, source;
	bool ok;

	(void)context;
	buffer_init(&header, OUT_BYTES);
	buffer_init(&source, OUT_BYTES);
	ok = protogen_generate(TESTS_DIR "/unit/protogen/golden/sample.proto", folders, &header, &source, err);
	if (ok && usual_length == 0)
		usual_length = source.length;
	if (ok)
		assert_int_equal(source.length, usual_length);
	buffer_destroy(&header);
	buffer_destroy(&source);
	return ok;
}

static void each_failed_allocation_is_an_error(void **state)
{
	static const struct torture_case CASE = { "protogen", generate, 300 };

	(void)state;
	torture_each_case(&CASE, 1, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(each_failed_allocation_is_an_error) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
