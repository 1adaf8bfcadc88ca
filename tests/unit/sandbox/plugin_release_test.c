/*
 * What the releases of the scheduler plugin read, refuse and write, without any network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox/plugin_release.h"
#include "tests/support/vector_file.h"

#define GIB_BYTES (UINT64_C(1) << 30)

enum { ARENA_BYTES = 65536, BODY_BYTES = 1024 };

/* With P as the vectors say. */
static void write_body(const char *text, char body[BODY_BYTES])
{
	const char *place = strstr(text, "P,");

	if (place == NULL)
		place = strstr(text, "P}");
	assert_non_null(place);
	(void)snprintf(body, BODY_BYTES, "%.*s\"pod\":{\"namespace\":\"apps\",\"name\":\"pine\"}%s",
	               (int)(place - text), text, place + 1);
}

static void check_refusal(const struct vector_row *row)
{
	const struct plugin_release *release = plugin_release_find(row->fields[0]);
	char text[PLUGIN_RELEASE_TEXT_BYTES] = "-";
	struct plugin_agent_request request;
	char body[BODY_BYTES];
	struct arena arena;

	assert_int_equal(row->count, 3);
	assert_non_null(release);
	write_body(row->fields[1], body);
	arena_init(&arena, ARENA_BYTES);
	if (!plugin_release_read(release, slice_of(body), &arena, &request))
		(void)snprintf(text, sizeof text, "bad JSON");
	else if (plugin_release_check(release, &request, text))
		assert_string_equal(text, "-");
	arena_destroy(&arena);
	if (strcmp(text, row->fields[2]) != 0)
		fail_msg("line %zu: %s", row->line, text);
}

static void requests_are_refused_as_the_vectors_say(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/generations/plugin_refusals.txt", check_refusal) >= 26);
}

static void a_unit_must_be_made_of_slots_and_cpus_of_v1_be_whole(void **state)
{
	(void)state;
	const struct plugin_release *release = plugin_release_find("v0.25");
	struct plugin_agent_request request = { .proto_version = 6,
		                                .has_compute_unit = true,
		                                .compute_unit = { .cpu_milli = 250, .mem_bytes = GIB_BYTES } };
	char text[PLUGIN_RELEASE_TEXT_BYTES];

	assert_true(plugin_release_check_pod(release, &request, GIB_BYTES / 2, text));
	assert_false(plugin_release_check_pod(release, &request, GIB_BYTES * 2, text));
	assert_string_equal(
		text, "computeUnit is not divisible by VM memory slot size: 1073741824 not divisible by 2147483648");
	/* Not any more. */
	assert_true(plugin_release_check_pod(plugin_release_newest(), &request, GIB_BYTES * 2, text));
	request = (struct plugin_agent_request){ .proto_version = 2, .resources = { .cpu_milli = 1250 } };
	assert_false(plugin_release_check_pod(release, &request, GIB_BYTES, text));
	assert_string_equal(text, "agent requested fractional CPU with protocol version that does not support it");
	request.resources.cpu_milli = 2000;
	assert_true(plugin_release_check_pod(release, &request, GIB_BYTES, text));
}

static void slots_become_bytes_and_some_take_the_last_permit_s_for_bytes(void **state)
{
	(void)state;
	struct plugin_agent_request request = { .proto_version = 4,
		                                .resources = { .mem_bytes = 4 },
		                                .last_permit = { .mem_bytes = 3 } };
	struct plugin_agent_request other = request;

	plugin_release_to_bytes(plugin_release_find("v0.21"), GIB_BYTES, &request);
	assert_int_equal(request.resources.mem_bytes, 4 * GIB_BYTES);
	assert_int_equal(request.last_permit.mem_bytes, 3 * GIB_BYTES);
	plugin_release_to_bytes(plugin_release_find("v0.25"), GIB_BYTES, &other);
	assert_int_equal(other.resources.mem_bytes, 4 * GIB_BYTES);
	assert_int_equal(other.last_permit.mem_bytes, 3);
	other.proto_version = 6;
	plugin_release_to_bytes(plugin_release_find("v0.25"), GIB_BYTES, &other);
	assert_int_equal(other.resources.mem_bytes, 4 * GIB_BYTES);
}

static void check_answer(uint32_t version, const char *expected)
{
	const struct resources permit = { .cpu_milli = 1250, .mem_bytes = 5 * GIB_BYTES };
	const struct resources unit = { .cpu_milli = 250, .mem_bytes = GIB_BYTES };
	struct buffer body;
	struct error err;

	buffer_init(&body, BODY_BYTES);
	assert_true(plugin_release_write(version, permit, unit, GIB_BYTES, &body, &err));
	assert_true(slice_equal_text(buffer_slice(&body), expected));
	buffer_destroy(&body);
}

static void answers_are_those_of_the_request_s_version(void **state)
{
	(void)state;
	check_answer(3, "{\"permit\":{\"vCPUs\":\"1250m\",\"mem\":5},\"resourceUnit\":{\"vCPUs\":\"250m\",\"mem\":1}}");
	check_answer(4, "{\"permit\":{\"vCPUs\":\"1250m\",\"mem\":5},\"resourceUnit\":{\"vCPUs\":\"250m\",\"mem\":1}}");
	check_answer(5, "{\"permit\":{\"vCPUs\":\"1250m\",\"mem\":5}}");
	check_answer(6, "{\"permit\":{\"vCPUs\":\"1250m\",\"mem\":\"5Gi\"}}");
	check_answer(7, "{\"permit\":{\"vCPUs\":\"1250m\",\"mem\":\"5Gi\"}}");
}

static void releases_are_found_by_name_and_by_number(void **state)
{
	(void)state;
	unsigned count = 0;

	while (plugin_release_at(count) != NULL) {
		assert_ptr_equal(plugin_release_find(plugin_release_at(count)->name), plugin_release_at(count));
		count++;
	}
	assert_int_equal(count, 7);
	assert_ptr_equal(plugin_release_newest(), plugin_release_at(count - 1));
	assert_null(plugin_release_find("v0.20"));
	assert_string_equal(plugin_release_version_name(3), "2.0");
	assert_string_equal(plugin_release_version_name(0), "");
	assert_string_equal(plugin_release_version_name(8), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_refused_as_the_vectors_say),
		cmocka_unit_test(a_unit_must_be_made_of_slots_and_cpus_of_v1_be_whole),
		cmocka_unit_test(slots_become_bytes_and_some_take_the_last_permit_s_for_bytes),
		cmocka_unit_test(answers_are_those_of_the_request_s_version),
		cmocka_unit_test(releases_are_found_by_name_and_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
