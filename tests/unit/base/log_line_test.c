#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log_line.h"

static void a_line_may_have_its_time_in_rfc_3339(void **state)
{
	const struct log_line line = {
		.level = LOG_INFO,
		.wall_ns = INT64_C(1700000000123456789),
		.name = "extender",
		.context_json = "\"component\":\"Extender\"",
		.message = SLICE("Serving"),
		.rfc3339 = true,
		.value_limit_bytes = 1000,
	};
	struct buffer text;

	(void)state;
	buffer_init(&text, 1000);
	log_line_append_json(&text, &line);
	assert_true(
		slice_equal_text(buffer_slice(&text),
	                         "{\"level\":\"info\",\"time\":\"2023-11-14T22:13:20.123Z\",\"logger\":\"extender\","
	                         "\"msg\":\"Serving\",\"component\":\"Extender\"}\n"));
	buffer_destroy(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_may_have_its_time_in_rfc_3339),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
