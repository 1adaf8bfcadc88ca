#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "codec/go_quote.h"

static void texts_are_quoted_as_the_reference_does(void **state)
{
	(void)state;
	const struct {
		struct slice text;
		const char *quoted;
	} CASES[] = {
		{ SLICE(""), "\"\"" },
		{ SLICE("plain"), "\"plain\"" },
		{ SLICE("a\"b\\c"), "\"a\\\"b\\\\c\"" },
		{ SLICE("\a\b\f\n\r\t\v"), "\"\\a\\b\\f\\n\\r\\t\\v\"" },
		{ SLICE("\0\x01\x1f\x7f"), "\"\\x00\\x01\\x1f\\x7f\"" },
		{ SLICE("'<>&/"), "\"'<>&/\"" },
		{ SLICE("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ SLICE("\xef\xbf\xbd"), "\"\xef\xbf\xbd\"" }, /* U+FFFD is a character like any other */
		{ SLICE("\xc2\x80\xc2\xa0\xc2\xad"),
		  "\"\\u0080\\u00a0\\u00ad\"" },                             /* control, no-break space, soft hyphen */
		{ SLICE("\xe2\x80\xa8\xef\xbb\xbf"), "\"\\u2028\\ufeff\"" }, /* line separator, byte order mark */
		{ SLICE("\xee\x80\x80"), "\"\\ue000\"" },                    /* private use */
		{ SLICE("\xf4\x8f\xbf\xbf"), "\"\\U0010ffff\"" },            /* noncharacter */
		{ SLICE("\xff\xc3(\xed\xa0\x80"), "\"\\xff\\xc3(\\xed\\xa0\\x80\"" }, /* no UTF-8 */
		{ SLICE("cut \xe2\x82"), "\"cut \\xe2\\x82\"" },
	};

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct buffer buffer;

		buffer_init(&buffer, 1000);
		go_quote_append(&buffer, CASES[i].text);
		if (!slice_equal_text(buffer_slice(&buffer), CASES[i].quoted))
			fail_msg("%s: got %.*s", CASES[i].quoted, SLICE_ARGS(buffer_slice(&buffer)));
		buffer_destroy(&buffer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_quoted_as_the_reference_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
