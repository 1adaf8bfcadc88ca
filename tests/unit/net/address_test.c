#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/address.h"
#include "net/socket_address.h"

static struct address parse(const char *text)
{
	struct address address;

	if (!address_parse(slice_of(text), 80, &address))
		fail_msg("\"%s\" isn't read", text);
	return address;
}

static void literals_are_read_and_printed_in_their_canonical_form(void **state)
{
	/* IPv6: RFC 5952 section 4 */
	static const struct {
		const char *text, *host, *whole;
	} CASES[] = {
		{ "10.0.0.5", "10.0.0.5", "10.0.0.5:80" },
		{ "255.255.255.255", "255.255.255.255", "255.255.255.255:80" },
		{ "::1", "::1", "[::1]:80" },
		{ "::", "::", "[::]:80" },
		{ "2001:DB8::0001", "2001:db8::1", "[2001:db8::1]:80" },
		{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1", "[2001:db8::1:0:0:1]:80" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1", "[2001:db8:0:1:1:1:1:1]:80" },
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1", "[2001:0:0:1::1]:80" },
		{ "1:0:0:0:0:0:0:0", "1::", "[1::]:80" },
		{ "::ffff:1.2.3.4", "::ffff:102:304", "[::ffff:102:304]:80" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:80" },
	};
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct address address = parse(CASES[i].text);

		address_print_host(&address, false, text);
		assert_string_equal(text, CASES[i].host);
		address_print(&address, text);
		assert_string_equal(text, CASES[i].whole);
	}
}

static void brackets_are_put_round_ipv6_alone(void **state)
{
	struct address four = parse("1.2.3.4"), six = parse("fe80::1");
	char text[ADDRESS_TEXT_BYTES];

	(void)state;
	address_print_host(&four, true, text);
	assert_string_equal(text, "1.2.3.4");
	address_print_host(&six, true, text);
	assert_string_equal(text, "[fe80::1]");
}

static void what_is_no_literal_is_refused_and_changes_nothing(void **state)
{
	static const char *const TEXTS[] = { "",          "localhost",
		                             "1.2.3",     "1.2.3.4.5",
		                             "256.1.1.1", "1.2.3.4 ",
		                             "[::1]",     "fe80::1%lo",
		                             ":::",       "1::2::3",
		                             "12345::",   "1.2.3.4:80",
		                             "0x7f.1",    "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.2555" };
	struct address before = parse("9.9.9.9");

	(void)state;
	for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
		struct address address = before;

		if (address_parse(slice_of(TEXTS[i]), 1, &address))
			fail_msg("\"%s\" is read", TEXTS[i]);
		assert_memory_equal(&address, &before, sizeof before);
	}
	assert_false(address_parse(slice_from("1.2.3.4\0", 8), 1, &before));
}

static void equality_looks_at_kind_address_and_port(void **state)
{
	struct address a = parse("1.2.3.4"), b = a, six = parse("102:304::");

	(void)state;
	b.bytes[9] = 7; /* no part of an IPv4 address */
	assert_true(address_equal(&a, &b));
	b.port = 81;
	assert_false(address_equal(&a, &b));
	assert_false(address_equal(&a, &six));
}

static void the_systems_form_keeps_everything(void **state)
{
	static const char *const TEXTS[] = { "127.0.0.9", "2001:db8::7" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct address address = parse(TEXTS[i]), back;
		struct sockaddr_storage system;

		assert_true(socket_address_to_system(&address, &system) > 0);
		assert_true(socket_address_from_system((const struct sockaddr *)&system, &back));
		assert_true(address_equal(&address, &back));
		assert_int_equal(back.port, 80);
	}
}

static void ipv4_within_ipv6_becomes_ipv4(void **state)
{
	struct address mapped = parse("::ffff:1.2.3.4"), back, four = parse("1.2.3.4");
	struct sockaddr_storage system;

	(void)state;
	socket_address_to_system(&mapped, &system);
	assert_true(socket_address_from_system((const struct sockaddr *)&system, &back));
	assert_true(address_equal(&back, &four));
	system.ss_family = AF_UNIX;
	assert_false(socket_address_from_system((const struct sockaddr *)&system, &back));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literals_are_read_and_printed_in_their_canonical_form),
		cmocka_unit_test(brackets_are_put_round_ipv6_alone),
		cmocka_unit_test(what_is_no_literal_is_refused_and_changes_nothing),
		cmocka_unit_test(equality_looks_at_kind_address_and_port),
		cmocka_unit_test(the_systems_form_keeps_everything),
		cmocka_unit_test(ipv4_within_ipv6_becomes_ipv4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
