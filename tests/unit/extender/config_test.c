#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "extender/config.h"
#include "extender/go_flags.h"

enum { WORDS = 8 };

struct outcome {
	struct extender_flags flags;
	enum go_flags_result result;
	int ignored, count;
	struct error err;
};

/* words: NULL-terminated, behind the program's name. */
static struct outcome read_flags(const char *const *words)
{
	struct outcome outcome = { .flags = extender_flags_default(), .ignored = -1 };
	char program[] = "extender";
	char *argv[WORDS + 2] = { program };
	char copies[WORDS][128];

	for (outcome.count = 1; words[outcome.count - 1] != NULL; outcome.count++) {
		(void)snprintf(copies[outcome.count - 1], sizeof copies[0], "%s", words[outcome.count - 1]);
		argv[outcome.count] = copies[outcome.count - 1];
	}
	outcome.result = extender_flags_read(&outcome.flags, outcome.count, argv, &outcome.ignored, &outcome.err);
	/* They point into argv, which goes. */
	outcome.flags.provisioner = strcmp(outcome.flags.provisioner, "csi-baremetal") == 0 ? "csi-baremetal" : "";
	return outcome;
}

#define READ(...) read_flags((const char *const[]){ __VA_ARGS__, NULL })

static void defaults_are_the_references(void **state)
{
	struct outcome outcome = read_flags((const char *const[]){ NULL });

	(void)state;
	assert_int_equal(outcome.result, GO_FLAGS_READ);
	assert_int_equal(outcome.ignored, outcome.count);
	assert_int_equal(outcome.flags.port, 8889);
	assert_int_equal(outcome.flags.health_port, 9999);
	assert_string_equal(outcome.flags.metrics_path, "/metrics");
	assert_string_equal(outcome.flags.metrics_address, "");
	assert_false(outcome.flags.use_node_annotation);
	assert_int_equal(outcome.flags.wait_for_reservation_ns, 0);
}

static void one_dash_is_as_good_as_two(void **state)
{
	(void)state;
	assert_int_equal(READ("-port=9000").flags.port, 9000);
	assert_int_equal(READ("--port", "9001").flags.port, 9001);
	assert_int_equal(READ("--port=1", "-port", "2").flags.port, 2);
	assert_string_equal(READ("--provisioner=csi-baremetal").flags.provisioner, "csi-baremetal");
}

static void a_bool_takes_its_value_behind_an_equals_sign_only(void **state)
{
	struct outcome outcome = READ("--usenodeannotation", "true", "--port", "1");

	(void)state;
	assert_int_equal(outcome.result, GO_FLAGS_READ);
	assert_true(outcome.flags.use_node_annotation);
	assert_int_equal(outcome.flags.port, 8889);
	assert_int_equal(outcome.ignored, 2);
	assert_true(READ("-usenodeannotation=T").flags.use_node_annotation);
	assert_true(READ("-usenodeannotation=1").flags.use_node_annotation);
	assert_false(READ("-usenodeannotation", "-usenodeannotation=FALSE").flags.use_node_annotation);
}

static void reading_ends_at_two_dashes_or_a_word(void **state)
{
	struct outcome outcome = READ("--port=1", "--", "--port=2");

	(void)state;
	assert_int_equal(outcome.flags.port, 1);
	assert_int_equal(outcome.ignored, 3);
	assert_int_equal(READ("-", "--port=2").ignored, 1);
}

static void wrong_flags_are_named(void **state)
{
	static const struct {
		const char *words[3];
		const char *text;
	} CASES[] = {
		{ { "--bogus" }, "flag provided but not defined: -bogus" },
		{ { "--Port=1" }, "flag provided but not defined: -Port" },
		{ { "---port=1" }, "bad flag syntax: ---port=1" },
		{ { "-=1" }, "bad flag syntax: -=1" },
		{ { "--port" }, "flag needs an argument: -port" },
		{ { "--port=" }, "invalid value \"\" for flag -port: parse error" },
		{ { "--port", "x" }, "invalid value \"x\" for flag -port: parse error" },
		{ { "--port=65536" }, "invalid value \"65536\" for flag -port: not from 0 to 65535" },
		{ { "--usenodeannotation=yes" }, "invalid boolean value \"yes\" for -usenodeannotation: parse error" },
		{ { "--wait-for-reservation=4001ms" },
		  "invalid value \"4001ms\" for flag -wait-for-reservation: out of range" },
		{ { "--wait-for-reservation=-1s" },
		  "invalid value \"-1s\" for flag -wait-for-reservation: out of range" },
		{ { "--wait-for-reservation=4" }, "invalid value \"4\" for flag -wait-for-reservation: parse error" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct outcome outcome = read_flags(CASES[i].words);

		assert_int_equal(outcome.result, GO_FLAGS_WRONG);
		assert_string_equal(outcome.err.text, CASES[i].text);
	}
}

static void help_and_version_are_no_flags_of_the_table(void **state)
{
	(void)state;
	assert_int_equal(READ("-h").result, GO_FLAGS_HELP);
	assert_int_equal(READ("--port=1", "--help", "--bogus").result, GO_FLAGS_HELP);
	assert_int_equal(READ("-version").result, GO_FLAGS_VERSION);
	assert_int_equal(READ("--wait-for-reservation=1.5s").flags.wait_for_reservation_ns, 1500 * (int64_t)NS_PER_MS);
}

static void usage_lists_every_flag_with_its_default(void **state)
{
	char text[16384] = "";
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	extender_flags_print_usage(file);
	rewind(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	(void)fclose(file);
	assert_non_null(
		strstr(text, "\n  -port port\n    \textender's port: /filter, /prioritize, /bind (default 8889)\n"));
	assert_non_null(strstr(text, "\n  -usenodeannotation\n"));
	assert_non_null(strstr(text, "\n  -provisioner string\n"));
	assert_non_null(strstr(
		text, "\n  -metrics-path path\n    \tpath of the metrics page; empty: none (default \"/metrics\")\n"));
}

static void levels_and_formats(void **state)
{
	(void)state;
	assert_int_equal(extender_log_level("DEBUG"), LOG_DEBUG);
	assert_int_equal(extender_log_level("Trace"), LOG_DEBUG);
	assert_int_equal(extender_log_level("info"), LOG_INFO);
	assert_int_equal(extender_log_level("loud"), LOG_INFO);
	assert_int_equal(extender_log_format("text"), LOG_FORMAT_TEXT);
	assert_int_equal(extender_log_format("TEXT"), LOG_FORMAT_JSON_TIME);
	assert_int_equal(extender_log_format(NULL), LOG_FORMAT_JSON_TIME);
}

static void addresses_have_a_host_and_a_port(void **state)
{
	static const struct {
		const char *text;
		const char *printed; /* NULL: refused */
	} CASES[] = {
		{ ":8787", "[::]:8787" },
		{ "127.0.0.1:1", "127.0.0.1:1" },
		{ "[::1]:9", "[::1]:9" },
		{ "localhost:9", "127.0.0.1:9" },
		{ "8787", NULL },
		{ "host:1", NULL },
		{ "127.0.0.1:65536", NULL },
		{ "127.0.0.1:", NULL },
		{ "", NULL },
		{ "127.0.0.1:80:80", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct address address;
		struct error err;
		char printed[ADDRESS_TEXT_BYTES];

		if (!extender_address_parse(slice_of(CASES[i].text), &address, &err)) {
			if (CASES[i].printed != NULL)
				fail_msg("%s: %s", CASES[i].text, err.text);
			continue;
		}
		assert_non_null(CASES[i].printed);
		address_print(&address, printed);
		assert_string_equal(printed, CASES[i].printed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_the_references),
		cmocka_unit_test(one_dash_is_as_good_as_two),
		cmocka_unit_test(a_bool_takes_its_value_behind_an_equals_sign_only),
		cmocka_unit_test(reading_ends_at_two_dashes_or_a_word),
		cmocka_unit_test(wrong_flags_are_named),
		cmocka_unit_test(help_and_version_are_no_flags_of_the_table),
		cmocka_unit_test(usage_lists_every_flag_with_its_default),
		cmocka_unit_test(levels_and_formats),
		cmocka_unit_test(addresses_have_a_host_and_a_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
