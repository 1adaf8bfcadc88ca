/*
 * Which version of its protocol a scheduler plugin is asked in: the specification's table, and what it says about several
 * pods and several runners.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/plugin_versions.h"
#include "tests/support/vector_file.h"

static struct plugin_versions negotiating(void)
{
	struct plugin_versions versions;

	plugin_versions_init(&versions, PLUGIN_PROTOCOL_AUTO, true);
	return versions;
}

/* Finds "5.0=400 body" among the answers. */
static int answer_of(const char *answers, enum plugin_protocol version, char body[256])
{
	const char *name = plugin_protocol_name(version);
	size_t length = strlen(name);

	for (const char *at = answers; at != NULL; at = strstr(at, "; ") != NULL ? strstr(at, "; ") + 2 : NULL) {
		const char *end = strstr(at, "; ");

		if (strncmp(at, name, length) != 0 || at[length] != '=')
			continue;
		at += length + 1;
		(void)snprintf(body, 256, "%.*s", end != NULL ? (int)(end - at - 4) : 255,
		               strlen(at) > 3 ? at + 4 : "");
		return atoi(at);
	}
	fail_msg("no answer to %s", name);
	return 0;
}

static void check_choice(const struct vector_row *row)
{
	char *const *field = row->fields;
	enum plugin_protocol setting, version;
	struct plugin_versions versions;
	char sent[64] = "";
	const char *end = "failed";
	char body[256];

	assert_int_equal(row->count, 7);
	assert_true(plugin_protocol_read(slice_of(field[1]), &setting));
	plugin_versions_init(&versions, setting, strcmp(field[2], "configured") == 0);
	version = plugin_versions_current(&versions, "uid");
	for (int sends = 1;; sends++) {
		int status = answer_of(field[3], version, body);

		(void)snprintf(sent + strlen(sent), sizeof sent - strlen(sent), "%s%s", sends > 1 ? " " : "",
		               plugin_protocol_name(version));
		if (status == 200) {
			(void)plugin_versions_accepted(&versions, "uid", version);
			end = "good";
			break;
		}
		if (status != 400 || sends == PLUGIN_VERSIONS_SENDS ||
		    !plugin_versions_refused(&versions, "uid", version, slice_of(body), &version))
			break;
	}
	if (strcmp(sent, field[4]) != 0 || strcmp(end, field[5]) != 0)
		fail_msg("%s: sent %s, %s", field[0], sent, end);
	assert_string_equal(plugin_protocol_name(plugin_versions_current(&versions, "uid")), field[6]);
	/* P6: another pod is another matter. */
	assert_int_equal(plugin_versions_current(&versions, "other"), versions.first);
}

static void p1_to_p8_versions_are_chosen_as_the_vectors_say(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/generations/version_choices.txt", check_choice) >= 19);
}

static void p9_a_version_that_worked_stays_when_a_body_is_called_bad(void **state)
{
	(void)state;
	struct plugin_versions versions = negotiating();
	enum plugin_protocol next;

	assert_true(plugin_versions_accepted(&versions, "x", PLUGIN_PROTOCOL_5_0));
	assert_false(plugin_versions_accepted(&versions, "x", PLUGIN_PROTOCOL_5_0));
	assert_false(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_5_0, SLICE("bad JSON"), &next));
	assert_int_equal(plugin_versions_current(&versions, "x"), PLUGIN_PROTOCOL_5_0);
	/* What the plugin names is another matter: it was replaced in its place. */
	assert_true(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_5_0,
	                                    SLICE("Protocol version mismatch: Need v1.0 to v4.0 but got v5.0"), &next));
	assert_int_equal(next, PLUGIN_PROTOCOL_4_0);
}

static void p6_another_pod_begins_anew_and_the_first_is_remembered(void **state)
{
	(void)state;
	struct plugin_versions versions = negotiating();
	enum plugin_protocol next;

	assert_true(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_5_0, SLICE("bad JSON"), &next));
	assert_int_equal(next, PLUGIN_PROTOCOL_3_0);
	assert_int_equal(plugin_versions_current(&versions, "y"), PLUGIN_PROTOCOL_5_0);
	assert_int_equal(plugin_versions_current(&versions, "x"), PLUGIN_PROTOCOL_3_0);
	/* Of many pods, the ones asked longest ago are forgotten. */
	for (int i = 0; i < PLUGIN_VERSIONS_PODS; i++) {
		char uid[8];

		(void)snprintf(uid, sizeof uid, "z%d", i);
		(void)plugin_versions_current(&versions, uid);
	}
	assert_int_equal(plugin_versions_current(&versions, "x"), PLUGIN_PROTOCOL_5_0);
}

static void a_runner_that_was_refused_later_follows_the_one_that_was_refused_first(void **state)
{
	(void)state;
	struct plugin_versions versions = negotiating();
	const struct slice range = SLICE("Protocol version mismatch: Need v1.0 to v2.0 but got <unknown = v2.0 + 2>");
	enum plugin_protocol next;

	assert_true(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_5_0, SLICE("bad JSON"), &next));
	assert_true(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_3_0, range, &next));
	/* The other one's 5.0 comes back only now. */
	assert_true(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_5_0, SLICE("bad JSON"), &next));
	assert_int_equal(next, PLUGIN_PROTOCOL_2_0);
	assert_true(plugin_versions_accepted(&versions, "x", PLUGIN_PROTOCOL_2_0));
	assert_true(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_3_0, range, &next));
	assert_int_equal(next, PLUGIN_PROTOCOL_2_0);
	assert_int_equal(plugin_versions_current(&versions, "x"), PLUGIN_PROTOCOL_2_0);
}

static void a_fixed_version_is_never_changed(void **state)
{
	(void)state;
	struct plugin_versions versions;
	enum plugin_protocol next;

	plugin_versions_init(&versions, PLUGIN_PROTOCOL_4_0, true);
	assert_false(plugin_versions_refused(&versions, "x", PLUGIN_PROTOCOL_4_0, SLICE("bad JSON"), &next));
	assert_false(plugin_versions_accepted(&versions, "x", PLUGIN_PROTOCOL_4_0));
	assert_int_equal(plugin_versions_current(&versions, "x"), PLUGIN_PROTOCOL_4_0);
}

static void what_a_plugin_wants_is_read_for_the_log(void **state)
{
	(void)state;
	char wants[PLUGIN_VERSION_TEXT_BYTES];

	assert_true(plugin_versions_read_refusal(SLICE("protocol version mismatch: need v5.0 but got v2.0"), wants));
	assert_string_equal(wants, "v5.0");
	assert_true(plugin_versions_read_refusal(SLICE(" Protocol version mismatch: Need v1.0 to v2.0 but got v2.1\n"),
	                                         wants));
	assert_string_equal(wants, "v1.0 to v2.0");
	assert_true(plugin_versions_read_refusal(SLICE("computeUnit fields must be non-zero: mem must be non-zero"),
	                                         wants));
	assert_string_equal(wants, "a compute unit");
	assert_false(plugin_versions_read_refusal(SLICE("pod not found"), wants));
	assert_false(plugin_versions_read_refusal(SLICE(""), wants));
}

static void another_compute_unit_is_complained_of_once_for_each_pod(void **state)
{
	(void)state;
	struct plugin_versions versions = negotiating();

	assert_true(plugin_versions_complain_of_unit(&versions, "x"));
	assert_false(plugin_versions_complain_of_unit(&versions, "x"));
	assert_true(plugin_versions_complain_of_unit(&versions, "y"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(p1_to_p8_versions_are_chosen_as_the_vectors_say),
		cmocka_unit_test(p9_a_version_that_worked_stays_when_a_body_is_called_bad),
		cmocka_unit_test(p6_another_pod_begins_anew_and_the_first_is_remembered),
		cmocka_unit_test(a_runner_that_was_refused_later_follows_the_one_that_was_refused_first),
		cmocka_unit_test(a_fixed_version_is_never_changed),
		cmocka_unit_test(what_a_plugin_wants_is_read_for_the_log),
		cmocka_unit_test(another_compute_unit_is_complained_of_once_for_each_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
