#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "agent/monitor_messages.h"
#include "tests/support/vector_file.h"

static const char *const READINGS[] = {
	[MONITOR_READ] = "read",
	[MONITOR_NOT_JSON] = "no JSON",
	[MONITOR_BAD_FORM] = "bad form",
	[MONITOR_TYPE_UNKNOWN] = "unknown type",
	[MONITOR_BAD_FIELDS] = "bad fields",
};

/* A message in the notation of the vectors. */
static void describe(const struct monitor_message *message, char *text, size_t size)
{
	int length = snprintf(text, size, "%.*s %llu", SLICE_ARGS(message->type_text), (unsigned long long)message->id);
	size_t used = (size_t)length;

	if (message->type == MONITOR_DOWNSCALE_RESULT)
		(void)snprintf(text + used, size - used, " %s \"%.*s\"", message->ok ? "ok" : "denied",
		               SLICE_ARGS(message->status));
	else if (message->type == MONITOR_INTERNAL_ERROR || message->type == MONITOR_INVALID_MESSAGE)
		(void)snprintf(text + used, size - used, " \"%.*s\"", SLICE_ARGS(message->error));
}

static void check(const struct vector_row *row)
{
	const char *expected = row->count > 2 ? row->fields[2] : "";
	struct monitor_message message = { 0 };
	enum monitor_reading reading;
	struct arena arena;
	struct error err;
	char text[512];

	arena_init(&arena, MONITOR_ARENA_BYTES);
	reading = monitor_read_message(slice_of(row->fields[0]), &arena, &message, &err);
	if (strcmp(READINGS[reading], row->fields[1]) != 0)
		fail_msg("line %zu: %s is %s", row->line, row->fields[0], READINGS[reading]);
	describe(&message, text, sizeof text);
	if ((reading == MONITOR_READ || reading == MONITOR_TYPE_UNKNOWN) &&
	    strcmp(slice_trim(slice_of(text)).data, expected) != 0)
		fail_msg("line %zu: %s reads as %s", row->line, row->fields[0], text);
	if (reading == MONITOR_BAD_FORM && strcmp(error_root(&err), expected) != 0)
		fail_msg("line %zu: the error is %s", row->line, error_root(&err));
	if (reading == MONITOR_BAD_FIELDS && strcmp(err.text, expected) != 0)
		fail_msg("line %zu: the error is %s", row->line, err.text);
	arena_destroy(&arena);
}

static void messages_are_read_as_the_vectors_say(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/agent/monitor_messages.txt", check) > 35);
}

static void check_written(struct buffer *out, const char *expected)
{
	assert_false(out->failed);
	assert_true(slice_equal_text(buffer_slice(out), expected));
	buffer_clear(out);
}

static void messages_are_written_with_a_newline(void **state)
{
	(void)state;
	struct buffer out;

	buffer_init(&out, 4096);
	monitor_write_protocol_range(&out);
	check_written(&out, "{\"min\":1,\"max\":1}\n");
	monitor_write_health_check(&out, 2);
	check_written(&out, "{\"content\":{},\"type\":\"HealthCheck\",\"id\":2}\n");
	monitor_write_downscale_request(&out, 4, (struct resources){ .cpu_milli = 1001, .mem_bytes = 1 });
	check_written(
		&out,
		"{\"content\":{\"target\":{\"cpu\":1.0010000000000001,\"mem\":1}},\"type\":\"DownscaleRequest\",\"id\":4}\n");
	monitor_write_upscale_notification(&out, 6, (struct resources){ .cpu_milli = 250, .mem_bytes = 1073741824 });
	check_written(
		&out,
		"{\"content\":{\"granted\":{\"cpu\":0.25,\"mem\":1073741824}},\"type\":\"UpscaleNotification\",\"id\":6}\n");
	monitor_write_invalid_message(&out, 8, SLICE("a <b> & \"c\""));
	check_written(
		&out,
		"{\"content\":{\"error\":\"a \\u003cb\\u003e \\u0026 \\\"c\\\"\"},\"type\":\"InvalidMessage\",\"id\":8}\n");
	buffer_destroy(&out);
}

static void answers_to_the_version_range(void **state)
{
	(void)state;
	struct arena arena;
	struct error err;

	arena_init(&arena, MONITOR_ARENA_BYTES);
	assert_true(monitor_read_protocol_response(SLICE("{\"version\":1}"), &arena, &err));
	assert_true(monitor_read_protocol_response(SLICE("{\"version\":9}"), &arena, &err));
	assert_true(monitor_read_protocol_response(SLICE("{}"), &arena, &err));
	assert_true(monitor_read_protocol_response(SLICE("{\"error\":null}"), &arena, &err));
	assert_false(monitor_read_protocol_response(SLICE("{\"error\":\"\"}"), &arena, &err));
	assert_int_equal(err.code, ERROR_REFUSED);
	assert_string_equal(err.text, "monitor returned error during protocol handshake: \"\"");
	assert_false(monitor_read_protocol_response(SLICE("{\"version\":\"1\"}"), &arena, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_non_null(strstr(err.text, "json: cannot unmarshal string into Go struct field version of type "));
	assert_false(monitor_read_protocol_response(SLICE("hello"), &arena, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_string_equal(err.text, "invalid character 'h' looking for beginning of value");
	arena_destroy(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_read_as_the_vectors_say),
		cmocka_unit_test(messages_are_written_with_a_newline),
		cmocka_unit_test(answers_to_the_version_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
