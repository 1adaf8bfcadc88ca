/*
 * The plugin's protocol in all versions, by the specification's vectors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/core/core.h"
#include "agent/plugin_messages.h"
#include "tests/support/vector_file.h"

#define MIB_BYTES (UINT64_C(1) << 20)

static const struct resources UNIT = { .cpu_milli = 250, .mem_bytes = 1024 * MIB_BYTES };

static enum plugin_protocol version_of(const char *text)
{
	enum plugin_protocol version;

	assert_true(plugin_protocol_read(slice_of(text), &version));
	return version;
}

/* "1250 5120" */
static struct resources amount_of(const char *text)
{
	double numbers[2];

	assert_int_equal(vector_numbers(text, numbers, 2), 2);
	return (struct resources){ .cpu_milli = (uint32_t)numbers[0], .mem_bytes = (uint64_t)numbers[1] * MIB_BYTES };
}

static void check_request(const struct vector_row *row)
{
	struct plugin_message_context context = {
		.version = version_of(row->fields[1]),
		.namespace = "default",
		.pod_name = "compute-calm-sea-lx4rk",
		.slot_bytes = strtoull(row->fields[2], NULL, 10) * MIB_BYTES,
		.compute_unit = UNIT,
	};
	struct core_plugin_request request = { .target = amount_of(row->fields[3]) };
	struct buffer body;
	struct error err;
	char found[1100];

	assert_int_equal(row->count, 7);
	if (strcmp(row->fields[4], "-") != 0)
		request.last_permit = resources_some(amount_of(row->fields[4]));
	if (strcmp(row->fields[5], "-") != 0) {
		request.has_metrics = true;
		assert_int_equal(sscanf(row->fields[5], "%f %f %f", &request.load_average_1_min,
		                        &request.load_average_5_min, &request.memory_usage_bytes),
		                 3);
	}
	buffer_init(&body, 4096);
	if (plugin_request_write(&context, &request, &body, &err))
		(void)snprintf(found, sizeof found, "%.*s", SLICE_ARGS(buffer_slice(&body)));
	else
		(void)snprintf(found, sizeof found, "error: %s", err.text);
	buffer_destroy(&body);
	if (strcmp(found, row->fields[6]) != 0)
		fail_msg("%s:\n  expected %s\n  found    %s", row->fields[0], row->fields[6], found);
	/* Plugins read 1 KiB (2.2). */
	assert_true(strlen(found) < 700);
}

static void w1_to_w5_requests_are_written_as_the_vectors_say(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/generations/plugin_requests.txt", check_request) >= 15);
}

/* A core that uses 1000m/4Gi, has a permit for it and a compute unit, and has asked for `wanted`. */
static void prepare_core(struct core *ret_core, bool unit_from_plugin, struct resources wanted)
{
	const struct core_config config = {
		.compute_unit = unit_from_plugin ? (struct resources){ .cpu_milli = 0 } : UNIT,
		.compute_unit_from_plugin = unit_from_plugin,
		.plugin_gate = true,
		.capital_texts = unit_from_plugin,
	};
	const struct vm_info vm = {
		.cpu = { .min_milli = 250, .max_milli = 4000, .use_milli = 1000 },
		.mem = { .min_slots = 1, .max_slots = 16, .use_slots = 4, .slot_bytes = 1024 * MIB_BYTES },
	};
	const struct core_callbacks none = { .context = NULL };
	const struct resources using = { .cpu_milli = 1000, .mem_bytes = 4096 * MIB_BYTES };
	struct error err;

	core_init(ret_core, &config, &vm, &none);
	core_plugin_scheduler_changed(ret_core, true);
	core_plugin_starting_request(ret_core, 1, using);
	assert_true(core_plugin_request_answered(ret_core, 2, (struct revision_with_time){ 0 }, using, UNIT, &err));
	core_plugin_starting_request(ret_core, 3, wanted);
}

static void check_amount(const char *name, const char *what, struct resources found, const char *expected)
{
	struct resources wanted = amount_of(expected);

	if (!resources_equal(found, wanted))
		fail_msg("%s: %s is %u %llu, not %s", name, what, found.cpu_milli,
		         (unsigned long long)(found.mem_bytes / MIB_BYTES), expected);
}

static void check_reply(const struct vector_row *row)
{
	const char *name = row->fields[0];
	const char *expected_error = row->fields[6];
	struct plugin_message_context context = {
		.version = version_of(row->fields[1]),
		.slot_bytes = strtoull(row->fields[2], NULL, 10) * MIB_BYTES,
	};
	struct plugin_reply reply;
	struct buffer form;
	struct core core;
	struct error err;
	bool good, read;

	assert_int_equal(row->count, 9);
	prepare_core(&core, strcmp(row->fields[3], "plugin") == 0, amount_of(row->fields[4]));
	buffer_init(&form, 4096);
	read = plugin_reply_read(&context, slice_of(row->fields[5]), &reply, &form, &err);
	buffer_destroy(&form);
	good = read && core_plugin_request_answered(&core, 4, (struct revision_with_time){ 0 }, reply.permit,
	                                            reply.compute_unit, &err);
	if (!read)
		core_plugin_request_failed(&core, 4);
	if (good != (strcmp(expected_error, "-") == 0))
		fail_msg("%s: %s", name, good ? "accepted" : err.text);
	/* Without the first letter, where either generation's will do. */
	if (!good && strncmp(err.text, expected_error, strlen(expected_error)) != 0 &&
	    strncmp(err.text + 1, expected_error, strlen(expected_error)) != 0)
		fail_msg("%s: %s", name, err.text);
	check_amount(name, "the permit", core.plugin.permit.value, row->fields[7]);
	check_amount(name, "the compute unit", core.compute_unit, row->fields[8]);
	assert_true(core.plugin.last_failure_at.present == !good);
	assert_false(core.plugin.ongoing_request);
}

static void w6_to_w12_replies_are_taken_as_the_vectors_say(void **state)
{
	(void)state;
	assert_true(vector_table_walk("vectors/generations/plugin_replies.txt", check_reply) >= 19);
}

static void a_vm_without_slots_can_not_be_spoken_of_in_slots(void **state)
{
	(void)state;
	const struct plugin_message_context context = { .version = PLUGIN_PROTOCOL_2_0,
		                                        .namespace = "a",
		                                        .pod_name = "b" };
	const struct core_plugin_request request = { .target = UNIT };
	struct buffer body;
	struct error err;

	buffer_init(&body, 4096);
	assert_false(plugin_request_write(&context, &request, &body, &err));
	assert_string_equal(err.text, "the memory slot size is 0");
	buffer_destroy(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(w1_to_w5_requests_are_written_as_the_vectors_say),
		cmocka_unit_test(w6_to_w12_replies_are_taken_as_the_vectors_say),
		cmocka_unit_test(a_vm_without_slots_can_not_be_spoken_of_in_slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
