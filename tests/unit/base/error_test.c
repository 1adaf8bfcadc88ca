#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"

static void a_set_error_carries_code_and_text_and_is_its_own_root(void **state)
{
	(void)state;
	struct error err;

	assert_false(error_set(&err, ERROR_LIMIT, "%d is over %d", 70000, 65535));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "70000 is over 65535");
	assert_string_equal(error_root(&err), "70000 is over 65535");
}

static void context_goes_in_front_and_leaves_code_and_root(void **state)
{
	(void)state;
	struct error err;

	error_set(&err, ERROR_SYNTAX, "not a number");
	assert_false(error_wrap(&err, "line %d", 4));
	assert_false(error_wrap(&err, "reading config %s", "/etc/a.json"));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_string_equal(err.text, "reading config /etc/a.json: line 4: not a number");
	assert_string_equal(error_root(&err), "not a number");
}

static void a_new_error_in_the_same_place_forgets_the_old_root(void **state)
{
	(void)state;
	struct error err;

	error_set(&err, ERROR_SYNTAX, "inner");
	error_wrap(&err, "outer");
	error_set(&err, ERROR_CLOSED, "EOF");
	assert_string_equal(error_root(&err), "EOF");
}

static void a_text_may_be_made_of_the_error_itself(void **state)
{
	(void)state;
	struct error err;

	error_set(&err, ERROR_SYNTAX, "b");
	error_set(&err, ERROR_SYNTAX, "a %s c %s", err.text, err.text);
	assert_string_equal(err.text, "a b c b");
	error_wrap(&err, "%s", err.text);
	assert_string_equal(err.text, "a b c b: a b c b");
}

static void a_long_text_ends_in_an_ellipsis(void **state)
{
	(void)state;
	struct error err;
	char longer[2 * sizeof err.text];

	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	error_set(&err, ERROR_SYNTAX, "%s", longer);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_string_equal(err.text + sizeof err.text - 5, "x\xe2\x80\xa6");
}

static void a_cut_leaves_no_half_of_a_character(void **state)
{
	(void)state;
	struct error err;
	char longer[sizeof err.text + 8];

	/*
	 * Each é has two bytes; with one byte in front, one of them straddles the place of the cut, without it none
	 * does.
	 */
	for (size_t shift = 0; shift < 2; shift++) {
		memset(longer, 'x', shift);
		for (size_t i = shift; i + 1 < sizeof longer; i += 2)
			memcpy(longer + i, "\xc3\xa9", 2);
		longer[sizeof longer - 1] = '\0';
		error_set(&err, ERROR_SYNTAX, "%s", longer);

		size_t length = strlen(err.text);

		assert_in_range(length, sizeof err.text - 2, sizeof err.text - 1);
		assert_string_equal(err.text + length - 5, "\xc3\xa9\xe2\x80\xa6");
	}
}

static void long_context_leaves_room_for_the_root(void **state)
{
	(void)state;
	struct error err;
	char longer[2 * sizeof err.text];

	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	error_set(&err, ERROR_REFUSED, "no");
	error_wrap(&err, "%s", longer);
	assert_string_equal(error_root(&err), "no");
}

static void a_root_pushed_out_by_context_is_the_ellipsis(void **state)
{
	(void)state;
	struct error err;
	char longer[sizeof err.text];

	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	error_set(&err, ERROR_REFUSED, "no");
	for (int i = 0; i < 200; i++)
		error_wrap(&err, "%s", longer);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_string_equal(error_root(&err), "\xe2\x80\xa6");
}

static void system_errors_have_fixed_english_texts(void **state)
{
	(void)state;
	static const struct {
		int value;
		const char *text;
	} CASES[] = {
		{ ECONNREFUSED, "connection refused" },
		{ ECONNRESET, "connection reset by peer" },
		{ EHOSTUNREACH, "no route to host" },
		{ ENETUNREACH, "network is unreachable" },
		{ EPIPE, "broken pipe" },
		{ ENOENT, "no such file or directory" },
		{ EACCES, "permission denied" },
		{ EMFILE, "too many open files" },
		{ EADDRINUSE, "address already in use" },
		{ EADDRNOTAVAIL, "cannot assign requested address" },
		{ EISDIR, "is a directory" },
		{ ETIMEDOUT, "connection timed out" },
		{ EAGAIN, "resource temporarily unavailable" },
		{ ENOTCONN, "transport endpoint is not connected" },
		{ 0, "errno 0" },
		{ -3, "errno -3" },
		{ 9999, "errno 9999" },
	};

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct error err;

		assert_false(error_set_errno(&err, CASES[i].value, "dial tcp 127.0.0.1:80"));
		assert_string_equal(error_root(&err), CASES[i].text);
		assert_memory_equal(err.text, "dial tcp 127.0.0.1:80: ", 23);
		assert_ptr_equal(error_root(&err), err.text + 23);
	}
}

static void a_system_error_s_code_tells_a_peer_that_went_away(void **state)
{
	(void)state;
	static const struct {
		int value;
		enum error_code code;
	} CASES[] = {
		{ ECONNRESET, ERROR_CLOSED },   { EPIPE, ERROR_CLOSED },     { ECONNREFUSED, ERROR_SYSTEM },
		{ ECONNABORTED, ERROR_SYSTEM }, { ETIMEDOUT, ERROR_SYSTEM }, { EHOSTUNREACH, ERROR_SYSTEM },
		{ ENOENT, ERROR_SYSTEM },       { 0, ERROR_SYSTEM },         { 9999, ERROR_SYSTEM },
	};

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct error err;

		assert_false(error_set_errno(&err, CASES[i].value, "read"));
		if (err.code != CASES[i].code)
			fail_msg("\"%s\" has code %d", err.text, (int)err.code);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_error_carries_code_and_text_and_is_its_own_root),
		cmocka_unit_test(context_goes_in_front_and_leaves_code_and_root),
		cmocka_unit_test(a_new_error_in_the_same_place_forgets_the_old_root),
		cmocka_unit_test(a_text_may_be_made_of_the_error_itself),
		cmocka_unit_test(a_long_text_ends_in_an_ellipsis),
		cmocka_unit_test(a_cut_leaves_no_half_of_a_character),
		cmocka_unit_test(long_context_leaves_room_for_the_root),
		cmocka_unit_test(a_root_pushed_out_by_context_is_the_ellipsis),
		cmocka_unit_test(system_errors_have_fixed_english_texts),
		cmocka_unit_test(a_system_error_s_code_tells_a_peer_that_went_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
