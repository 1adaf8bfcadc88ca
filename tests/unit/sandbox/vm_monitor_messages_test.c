#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sandbox/vm_monitor_messages.h"
#include "tests/support/vector_file.h"

static void check_range(const struct vector_row *row)
{
	struct vm_monitor_range range;
	struct buffer out;

	assert_int_equal(row->count, 2);
	if (!vm_monitor_read_range(slice_of(row->fields[0]), &range)) {
		assert_string_equal(row->fields[1], "drop");
		return;
	}
	buffer_init(&out, VM_MONITOR_ANSWER_BYTES);

	bool overlap = vm_monitor_answer_range(&range, &out);

	assert_int_equal(overlap, strcmp(row->fields[1], "{\"version\":1}") == 0);
	if (!slice_equal_text(buffer_slice(&out), row->fields[1]))
		fail_msg("line %zu: %.*s", row->line, SLICE_ARGS(buffer_slice(&out)));
	buffer_destroy(&out);
}

static void the_first_message_is_answered_or_ends_the_connection(void **unused)
{
	(void)unused;
	assert_int_equal(vector_table_walk("vectors/sandbox/monitor_ranges.txt", check_range), 15);
}

static void check_request(const struct vector_row *row)
{
	static const char *const KINDS[] = { "health", "downscale", "upscale", "complaint" };
	struct vm_monitor_request request;
	char text[128] = "drop";

	assert_int_equal(row->count, 2);
	if (vm_monitor_read_request(slice_of(row->fields[0]), &request))
		snprintf(text, sizeof text, "%s %llu %llu", KINDS[request.kind], (unsigned long long)request.id,
		         (unsigned long long)request.memory_bytes);
	if (strcmp(text, row->fields[1]) != 0)
		fail_msg("line %zu: %s", row->line, text);
}

static void requests_are_read_strictly(void **unused)
{
	(void)unused;
	assert_int_equal(vector_table_walk("vectors/sandbox/monitor_requests.txt", check_request), 30);
}

static void answers_are_flat_with_the_originals_capitals(void **unused)
{
	struct buffer out;

	(void)unused;
	buffer_init(&out, VM_MONITOR_ANSWER_BYTES);
	vm_monitor_write_message(&out, SLICE("UpscaleConfirmation"), 8);
	vm_monitor_write_downscale_result(&out, false, SLICE("a < b"), 6);
	vm_monitor_write_internal_error(&out, SLICE("failed to downscale"), 10);
	buffer_append_char(&out, '\0');
	assert_string_equal(out.data, "{\"type\":\"UpscaleConfirmation\",\"id\":8}"
	                              "{\"type\":\"DownscaleResult\",\"Ok\":false,\"Status\":\"a < b\",\"id\":6}"
	                              "{\"type\":\"InternalError\",\"error\":\"failed to downscale\",\"id\":10}");
	buffer_destroy(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_message_is_answered_or_ends_the_connection),
		cmocka_unit_test(requests_are_read_strictly),
		cmocka_unit_test(answers_are_flat_with_the_originals_capitals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
