#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "net/http_client.h"
#include "net/http_message.h"

/* SLICE as a constant. */
#define TEXT(literal)                        \
	{                                    \
		literal, sizeof(literal) - 1 \
	}

static const struct http_field ITEMS[] = {
	{ TEXT("Connection"), TEXT("keep-alive, Upgrade") },
	{ TEXT("X"), TEXT("first") },
	{ TEXT("x"), TEXT("second") },
	{ TEXT("connection"), TEXT("TE") },
	{ TEXT("Empty"), { NULL, 0 } },
};
static const struct http_fields FIELDS = { ITEMS, sizeof ITEMS / sizeof ITEMS[0] };

static void the_first_field_of_a_name_is_found_in_any_letter_case(void **state)
{
	(void)state;
	assert_true(slice_equal(http_fields_find(FIELDS, "x"), SLICE("first")));
	assert_true(slice_equal(http_fields_find(FIELDS, "CONNECTION"), SLICE("keep-alive, Upgrade")));
	assert_null(http_fields_find(FIELDS, "Connection2").data);
	assert_non_null(http_fields_find(FIELDS, "empty").data);
}

static void tokens_are_found_in_any_line_and_letter_case_but_only_whole(void **state)
{
	(void)state;
	assert_true(http_fields_have_token(FIELDS, "Connection", "upgrade"));
	assert_true(http_fields_have_token(FIELDS, "Connection", "keep-alive"));
	assert_true(http_fields_have_token(FIELDS, "Connection", "te"));
	assert_false(http_fields_have_token(FIELDS, "Connection", "grade"));
	assert_false(http_fields_have_token(FIELDS, "Connection", "keep"));
	assert_false(http_fields_have_token(FIELDS, "Upgrade", "websocket"));
}

static void what_would_break_out_of_its_line_is_refused(void **state)
{
	(void)state;
	static const struct http_field BAD[] = {
		{ TEXT("X"), TEXT("a\r\nSet-Cookie: b") },
		{ TEXT("X"), TEXT("a\nb") },
		{ TEXT("X"), TEXT("a\rb") },
		{ TEXT("X"), TEXT("a\0b") },
		{ TEXT("X"), TEXT("a\x7f") },
		{ TEXT("X:"), TEXT("a") },
		{ TEXT("X Y"), TEXT("a") },
		{ TEXT("X\r\nY"), TEXT("a") },
		{ TEXT(""), TEXT("a") },
		{ TEXT("X\0"), TEXT("a") },
		{ TEXT("\xc3\xa9"), TEXT("a") },
		{ TEXT("X"), TEXT("a\x1b[31m") },
	};
	static const struct http_field GOOD = { TEXT("X-!#$%&'*+.^_`|~9"), TEXT("a\tb \xc3\xa9 \"c\"") };
	struct error err;

	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
		assert_false(http_fields_check((struct http_fields){ &BAD[i], 1 }, &err));
	assert_false(http_fields_check((struct http_fields){ &BAD[0], 1 }, &err));
	assert_string_equal(err.text, "header field X has a control character in its value");
	assert_true(http_fields_check((struct http_fields){ &GOOD, 1 }, &err));
	assert_true(http_fields_check(FIELDS, &err));
}

static void targets_are_paths_of_visible_ascii(void **state)
{
	(void)state;
	static const char *const GOOD[] = { "/", "/a/b?c=d&e=%20", "*", "/?", "//" };
	static const char *const BAD[] = { "",          "a",  "/a b",      "/a\r\nb", "/a#b",
		                           "/\xc3\xa9", "**", "http://a/", "/a\tb",   "/\x7f" };

	for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++)
		assert_true(http_is_target(slice_of(GOOD[i])));
	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
		assert_false(http_is_target(slice_of(BAD[i])));
	assert_false(http_is_target(SLICE("/a\0b")));
}

static void hosts_are_names_and_literal_addresses(void **state)
{
	(void)state;
	static const char *const GOOD[] = { "a", "pod-1.apps.svc", "127.0.0.1", "::1", "fe80::1%eth0", "_x" };
	static const char *const BAD[] = { "",      "a b",  "a/b",       "a?b",      "a#b",  "a@b",
		                           "[::1]", "a\\b", "a\r\nX: y", "\xc3\xa9", "\x7f", "\t" };

	for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++)
		assert_true(http_is_host(GOOD[i]));
	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
		assert_false(http_is_host(BAD[i]));
}

static void everything_but_unreserved_characters_is_escaped(void **state)
{
	(void)state;
	struct buffer text;

	buffer_init(&text, 1000);
	http_append_escaped(&text, SLICE("aZ09-._~ /?=&%+\xc3\xa9\0"));
	assert_true(slice_equal(buffer_slice(&text), SLICE("aZ09-._~%20%2F%3F%3D%26%25%2B%C3%A9%00")));
	buffer_destroy(&text);
}

static void escapes_are_undone_or_refused(void **state)
{
	(void)state;
	static const char *const BAD[] = { "%", "%1", "a%", "%g0", "%0g", "%-1", "%%20" };
	struct buffer text;

	buffer_init(&text, 1000);
	assert_true(http_unescape(SLICE("a%2Fb%2f+%C3%A9"), false, &text));
	assert_true(slice_equal(buffer_slice(&text), SLICE("a/b/+\xc3\xa9")));
	buffer_clear(&text);
	assert_true(http_unescape(SLICE("a+b%2B"), true, &text));
	assert_true(slice_equal(buffer_slice(&text), SLICE("a b+")));
	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
		assert_false(http_unescape(slice_of(BAD[i]), false, &text));
	buffer_destroy(&text);
}

static void keys_are_found_in_queries(void **state)
{
	(void)state;
	struct slice query = SLICE("watch=true&empty=&bare&a=b=c&watch=false");

	assert_true(slice_equal(http_query_find(query, "watch"), SLICE("true")));
	assert_true(slice_equal(http_query_find(query, "a"), SLICE("b=c")));
	assert_int_equal(http_query_find(query, "empty").length, 0);
	assert_non_null(http_query_find(query, "empty").data);
	assert_non_null(http_query_find(query, "bare").data);
	assert_null(http_query_find(query, "wat").data);
	assert_null(http_query_find(SLICE(""), "a").data);
}

static void statuses_have_their_texts(void **state)
{
	(void)state;
	assert_string_equal(http_status_text(404), "Not Found");
	assert_string_equal(http_status_text(101), "Switching Protocols");
	assert_string_equal(http_status_text(599), "Unknown");
}

static void check_url(const char *url, bool secure, const char *host, int port, const char *path)
{
	struct http_origin origin;
	struct slice rest;
	struct error err;

	if (!http_url_parse(slice_of(url), &origin, &rest, &err))
		fail_msg("%s: %s", url, err.text);
	assert_int_equal(origin.secure, secure);
	assert_string_equal(origin.host, host);
	assert_int_equal(origin.port, port);
	assert_true(slice_equal_text(rest, path));
}

static void urls_are_cut_into_origin_and_path(void **state)
{
	(void)state;
	check_url("http://a", false, "a", 80, "/");
	check_url("https://a", true, "a", 443, "/");
	check_url("HTTP://10.0.0.5:9100/metrics?x=1", false, "10.0.0.5", 9100, "/metrics?x=1");
	check_url("https://[::1]:6443/api", true, "::1", 6443, "/api");
	check_url("https://[fd00::1]", true, "fd00::1", 443, "/");
	check_url("http://kubernetes.default.svc/", false, "kubernetes.default.svc", 80, "/");
	check_url("http://a_b-c.d:65535/", false, "a_b-c.d", 65535, "/");
}

static void wrong_urls_are_refused_with_a_reason(void **state)
{
	(void)state;
	static const char *const BAD[][2] = {
		{ "", "begins neither" },
		{ "ftp://a/", "begins neither" },
		{ "a:80", "begins neither" },
		{ "http://", "neither a name nor an address" },
		{ "http:///x", "neither a name nor an address" },
		{ "http://:80", "neither a name nor an address" },
		{ "http://a b/", "neither a name nor an address" },
		{ "http://a\r\nb/", "neither a name nor an address" },
		{ "http://user:secret@a/", "user names" },
		{ "http://a:0/", "not within 1 and 65535" },
		{ "http://a:65536/", "not within 1 and 65535" },
		{ "http://a:/", "not within 1 and 65535" },
		{ "http://a:80x/", "not within 1 and 65535" },
		{ "http://a:80:80/", "not within 1 and 65535" },
		{ "http://[::1", "must end in \"]\"" },
		{ "http://[::1]x/", "must end in \"]\"" },
		{ "http://[1.2.3.4]/", "neither a name nor an address" },
		{ "http://[a]/", "neither a name nor an address" },
		{ "http://a?b", "must begin with" },
		{ "http://a/b#c", "must begin with" },
		{ "http://a/b c", "must begin with" },
	};
	struct http_origin origin = { .port = 7 };
	struct slice path = SLICE("unchanged");
	char long_url[400] = "http://";
	struct error err;

	for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
		if (http_url_parse(slice_of(BAD[i][0]), &origin, &path, &err))
			fail_msg("%s was taken", BAD[i][0]);
		if (strstr(err.text, BAD[i][1]) == NULL)
			fail_msg("%s: %s", BAD[i][0], err.text);
	}
	memset(long_url + 7, 'a', 254);
	assert_false(http_url_parse(slice_of(long_url), &origin, &path, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_int_equal(origin.port, 7);
	assert_true(slice_equal_text(path, "unchanged"));
	long_url[7 + 253] = '\0';
	assert_true(http_url_parse(slice_of(long_url), &origin, &path, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_field_of_a_name_is_found_in_any_letter_case),
		cmocka_unit_test(tokens_are_found_in_any_line_and_letter_case_but_only_whole),
		cmocka_unit_test(what_would_break_out_of_its_line_is_refused),
		cmocka_unit_test(targets_are_paths_of_visible_ascii),
		cmocka_unit_test(hosts_are_names_and_literal_addresses),
		cmocka_unit_test(everything_but_unreserved_characters_is_escaped),
		cmocka_unit_test(escapes_are_undone_or_refused),
		cmocka_unit_test(keys_are_found_in_queries),
		cmocka_unit_test(statuses_have_their_texts),
		cmocka_unit_test(urls_are_cut_into_origin_and_path),
		cmocka_unit_test(wrong_urls_are_refused_with_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
