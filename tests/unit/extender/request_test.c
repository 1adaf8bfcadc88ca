/* Requests as they arrive: recorded ones, large ones, too large ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "extender/filter.h"
#include "extender/limits.h"
#include "tests/support/vector_file.h"

static const struct extender_settings SETTINGS = { .provisioner = SLICE_INIT("csi-baremetal") };
static const struct extender_settings BY_ANNOTATION = {
	.provisioner = SLICE_INIT("csi-baremetal"),
	.use_node_annotation = true,
};

static enum request_feed_result feed(struct request *request, struct slice body, size_t piece)
{
	for (size_t at = 0; at < body.length; at += piece) {
		struct slice bytes = slice_from_offset(body, at);
		enum request_feed_result result;

		if (bytes.length > piece)
			bytes.length = piece;
		result = request_feed(request, bytes);
		if (result != REQUEST_FED)
			return result;
	}
	return REQUEST_FED;
}

static bool no_claim(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim)
{
	(void)context;
	(void)namespace;
	(void)name;
	(void)ret_claim;
	return false;
}

static bool no_class(void *context, struct slice name, struct class_view *ret_class)
{
	(void)context;
	(void)name;
	(void)ret_class;
	return false;
}

static bool bound_claim(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim)
{
	(void)context;
	(void)namespace;
	(void)name;
	*ret_claim = (struct claim_view){ .has_class_name = true, .class_name = SLICE("c"), .phase = SLICE("Bound") };
	return true;
}

/* Nothing is left to reserve. */
static const struct storage_view BOUND_VIEW = { NULL, bound_claim, no_class, NULL };
static const struct storage_view EMPTY_VIEW = { NULL, no_claim, no_class, NULL };

static void read_recorded(const char *name, struct slice *ret_body)
{
	char path[128];
	size_t length;

	snprintf(path, sizeof path, "vectors/extender/recorded/%s.json", name);
	ret_body->data = vector_read_file(path, &length);
	ret_body->length = length;
}

static void release(struct slice body)
{
	memory_release((void *)(uintptr_t)body.data);
}

/* --- recorded bodies --- */

/* The array under "items" as it was sent, which is what comes back for a pod that needs no reservation. */
static struct slice sent_items(struct slice body)
{
	static const char START[] = "\"Nodes\":{\"metadata\":{},\"items\":";
	const char *start = strstr(body.data, START);
	const char *end = strstr(body.data, "},\"NodeNames\":null}");

	assert_non_null(start);
	assert_non_null(end);
	start += sizeof START - 1;
	return slice_from(start, (size_t)(end - start));
}

static void check_echo(const char *name, size_t piece)
{
	struct request request;
	struct filter filter;
	struct buffer answer;
	struct buffer wanted;
	struct slice body;
	struct slice bytes;

	read_recorded(name, &body);
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(feed(&request, body, piece), REQUEST_FED);
	assert_int_equal(filter_start(&filter, &SETTINGS, &BOUND_VIEW, &request), FILTER_ANSWER);
	assert_true(request.node_count >= 1);
	buffer_init(&answer, EXTENDER_BODY_BYTES);
	while (answer_next(&filter.answer, &bytes))
		buffer_append_slice(&answer, bytes);
	buffer_init(&wanted, EXTENDER_BODY_BYTES);
	buffer_append_text(&wanted, "{\"Nodes\":{\"metadata\":{},\"items\":");
	buffer_append_slice(&wanted, sent_items(body));
	buffer_append_text(&wanted, "},\"NodeNames\":null,\"FailedNodes\":null,\"FailedAndUnresolvableNodes\":null,"
	                            "\"Error\":\"\"}\n");
	assert_int_equal(answer.length, wanted.length);
	assert_memory_equal(answer.data, wanted.data, wanted.length);
	buffer_destroy(&answer);
	buffer_destroy(&wanted);
	filter_destroy(&filter);
	request_destroy(&request);
	release(body);
}

static void nodes_of_a_real_scheduler_come_back_unchanged(void **state)
{
	static const char *const NAMES[] = { "ext-01-filter", "ext-03-filter", "ext2-01-filter", "ext2-02-prioritize",
		                             "ext2-05-filter" };
	static const size_t PIECES[] = { SIZE_MAX, 1, 7, 4096 };

	(void)state;
	for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
		for (size_t j = 0; j < sizeof PIECES / sizeof PIECES[0]; j++)
			check_echo(NAMES[i], PIECES[j]);
	}
}

static void ids_and_names_of_real_nodes_are_read(void **state)
{
	static const char *const IDS[] = { "8855ebbb-1ae1-4601-934d-0d7925b009a0" };
	struct request request;
	struct slice body;
	struct error err;

	(void)state;
	read_recorded("ext-01-filter", &body);
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(feed(&request, body, 1), REQUEST_FED);
	assert_true(request_finish(&request, &err));
	assert_int_equal(request.node_count, 3);
	assert_true(slice_equal_text(request.nodes[0].name, "node-a"));
	assert_true(slice_equal_text(request.nodes[2].name, "node-c"));
	assert_true(slice_equal_text(request.nodes[0].id.id, IDS[0]));
	assert_true(slice_equal_text(request.args.pod.metadata.name, "plain"));
	assert_true(slice_starts_with(request_node_text(&request, &request.nodes[1]),
	                              SLICE("{\"metadata\":{\"name\":\"node-b\"")));
	request_destroy(&request);

	request_init(&request, REQUEST_ARGS, &BY_ANNOTATION);
	assert_int_equal(feed(&request, body, SIZE_MAX), REQUEST_FED);
	assert_true(request_finish(&request, &err));
	assert_true(slice_equal_text(request.nodes[0].id.id, "aaaaaaaa-0000-4000-8000-000000000001"));
	request_destroy(&request);
	release(body);
}

static void recorded_names_are_read(void **state)
{
	struct request request;
	struct slice body;
	struct error err;

	(void)state;
	read_recorded("names-01-filter", &body);
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(feed(&request, body, 1), REQUEST_FED);
	assert_true(request_finish(&request, &err));
	assert_int_equal(request_nodes_form(&request), REQUEST_NODES_BY_NAME);
	assert_int_equal(request.args.node_names_count, 3);
	assert_true(slice_equal_text(request.args.node_names[1], "node-b"));
	request_destroy(&request);
	release(body);
}

static void recorded_bindings_are_read(void **state)
{
	struct request request;
	struct slice body;
	struct error err;

	(void)state;
	read_recorded("names-03-bind", &body);
	request_init(&request, REQUEST_BINDING, &SETTINGS);
	assert_int_equal(feed(&request, body, 1), REQUEST_FED);
	assert_true(request_finish(&request, &err));
	assert_true(slice_equal_text(request.binding.pod_name, "plain-names"));
	assert_true(slice_equal_text(request.binding.node, "node-b"));
	request_destroy(&request);
	release(body);
}

/* --- size --- */

/* A node of exactly so many bytes. */
static void append_node(struct buffer *out, int number, size_t bytes)
{
	size_t start = out->length;

	buffer_append_format(out, "{\"status\":{\"x\":[{}]},\"metadata\":{\"name\":\"n%d\",\"uid\":\"u%d\"},\"pad\":\"",
	                     number, number);
	while (out->length - start < bytes - 2)
		buffer_append_char(out, 'x');
	buffer_append_text(out, "\"}");
}

/* T13 */
static void t13_three_hundred_nodes_of_40_kb_come_back_from_one_copy(void **state)
{
	static const char PIECE_OF_ALL[] = "{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"Nodes\":{\"items\":[";
	struct request request;
	struct filter filter;
	struct buffer body;
	struct buffer answer;
	struct slice bytes;

	(void)state;
	buffer_init(&body, EXTENDER_BODY_BYTES);
	buffer_append_text(&body, PIECE_OF_ALL);
	for (int i = 0; i < 300; i++) {
		if (i > 0)
			buffer_append_char(&body, ',');
		append_node(&body, i, 40000);
	}
	buffer_append_text(&body, "]}}");
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(request_expect(&request, body.length), REQUEST_FED);
	assert_int_equal(feed(&request, buffer_slice(&body), 65536), REQUEST_FED);
	assert_int_equal(filter_start(&filter, &SETTINGS, &EMPTY_VIEW, &request), FILTER_ANSWER);
	assert_int_equal(request.node_count, 300);
	assert_true(request_held_bytes(&request) < body.length + body.length / 20);
	buffer_init(&answer, EXTENDER_BODY_BYTES);
	while (answer_next(&filter.answer, &bytes))
		buffer_append_slice(&answer, bytes);
	assert_int_equal(answer.length, answer_length(&filter.answer));

	struct slice sent = slice_from_offset(buffer_slice(&body), sizeof PIECE_OF_ALL - 2);

	sent.length -= 2;
	assert_memory_equal(answer.data + strlen("{\"Nodes\":{\"metadata\":{},\"items\":"), sent.data, sent.length);
	buffer_destroy(&answer);
	buffer_destroy(&body);
	filter_destroy(&filter);
	request_destroy(&request);
}

static void more_than_the_limit_is_too_large(void **state)
{
	struct request request;
	struct error err;
	char blanks[4096];

	(void)state;
	memset(blanks, ' ', sizeof blanks);
	request_init(&request, REQUEST_BINDING, &SETTINGS);
	assert_int_equal(request_expect(&request, EXTENDER_BINDING_BYTES + 1), REQUEST_TOO_LARGE);
	for (int i = 0; i < EXTENDER_BINDING_BYTES / (int)sizeof blanks; i++)
		assert_int_equal(request_feed(&request, slice_from(blanks, sizeof blanks)), REQUEST_FED);
	assert_int_equal(request_feed(&request, SLICE(" ")), REQUEST_TOO_LARGE);
	assert_int_equal(request_held_bytes(&request), 0);
	request_destroy(&request);

	/* Also what follows the value counts, though nothing keeps it. */
	request_init(&request, REQUEST_BINDING, &SETTINGS);
	assert_int_equal(request_feed(&request, SLICE("{}")), REQUEST_FED);
	assert_int_equal(request_feed(&request, slice_from(blanks, sizeof blanks)), REQUEST_FED);
	assert_true(request_held_bytes(&request) < sizeof blanks);
	for (int i = 2; i < EXTENDER_BINDING_BYTES / (int)sizeof blanks; i++)
		assert_int_equal(request_feed(&request, slice_from(blanks, sizeof blanks)), REQUEST_FED);
	assert_int_equal(request_feed(&request, slice_from(blanks, sizeof blanks)), REQUEST_TOO_LARGE);
	request_destroy(&request);

	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(request_expect(&request, EXTENDER_BODY_BYTES + 1), REQUEST_TOO_LARGE);
	assert_false(request_finish(&request, &err));
	assert_string_equal(err.text, "EOF");
	request_destroy(&request);
}

static void a_body_that_is_no_json_keeps_no_memory(void **state)
{
	struct request request;
	struct error err;

	(void)state;
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(
		request_feed(&request, SLICE("{\"Pod\":{},\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"x\"}},!")),
		REQUEST_FED);
	assert_true(request_held_bytes(&request) < 8192);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(request_feed(&request, SLICE("more and more of it")), REQUEST_FED);
	assert_true(request_held_bytes(&request) < 8192);
	assert_false(request_finish(&request, &err));
	assert_string_equal(err.text, "invalid character '!' looking for beginning of value");
	request_destroy(&request);
}

static void what_was_read_of_an_undecodable_request_is_gone(void **state)
{
	struct request request;
	struct error err;

	(void)state;
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(
		request_feed(&request, SLICE("{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"Nodes\":{\"items\":5}}")),
		REQUEST_FED);
	for (int i = 0; i < 2; i++) {
		assert_false(request_finish(&request, &err));
		assert_string_equal(err.text, "Nodes.items is no array");
		assert_false(request.args.has_pod);
		assert_null(request.args.pod.metadata.name.data);
	}
	request_destroy(&request);
}

static void a_request_is_decoded_once(void **state)
{
	struct request request;
	struct error err;
	size_t held;

	(void)state;
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(
		request_feed(&request, SLICE("{\"Pod\":{\"metadata\":{\"name\":\"p\"}},\"NodeNames\":[\"a\",\"b\"]}")),
		REQUEST_FED);
	assert_true(request_finish(&request, &err));
	held = request_held_bytes(&request);
	for (int i = 0; i < 200; i++)
		assert_true(request_finish(&request, &err));
	assert_int_equal(request_held_bytes(&request), held);
	assert_int_equal(request.args.node_names_count, 2);
	request_destroy(&request);
}

static void check_refused(struct slice body, const char *part)
{
	struct request request;
	struct error err;

	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(feed(&request, body, 65536), REQUEST_FED);
	assert_false(request_finish(&request, &err));
	if (strstr(err.text, part) == NULL)
		fail_msg("\"%s\" has no \"%s\"", err.text, part);
	request_destroy(&request);
}

static void nodes_metadata_and_the_rest_have_limits(void **state)
{
	struct buffer body;

	(void)state;
	buffer_init(&body, EXTENDER_BODY_BYTES);
	buffer_append_text(&body, "{\"Pod\":{},\"Nodes\":{\"items\":[{}");
	for (int i = 0; i < EXTENDER_NODES; i++)
		buffer_append_text(&body, ",{}");
	check_refused(buffer_slice(&body), "more than 65536 nodes");

	buffer_clear(&body);
	buffer_append_text(&body, "{\"Pod\":{},\"Nodes\":{\"items\":[{\"metadata\":{\"x\":\"");
	for (int i = 0; i < EXTENDER_NODE_META_BYTES; i++)
		buffer_append_char(&body, 'x');
	buffer_append_text(&body, "\"}}");
	check_refused(buffer_slice(&body), "Nodes.items[0].metadata has more than");

	buffer_clear(&body);
	buffer_append_text(&body, "{\"Pod\":{},\"x\":\"");
	for (int i = 0; i < EXTENDER_ENVELOPE_BYTES; i++)
		buffer_append_char(&body, 'x');
	buffer_append_text(&body, "\"}");
	check_refused(buffer_slice(&body), "the request without its nodes has more than 2097152 bytes");
	buffer_destroy(&body);

	check_refused(SLICE("{\"Pod\":{},\"Nodes\":{\"items\":[{},{\"metadata\":{\"uid\":1}}]}}"),
	              "Nodes.items[1].metadata");
}

/* What a decoder has to do within one turn grows with the number of values rather than their bytes. */
static void values_within_metadata_and_the_rest_have_limits(void **state)
{
	struct request request;
	struct buffer body;
	struct error err;

	(void)state;
	buffer_init(&body, EXTENDER_BODY_BYTES);
	buffer_append_text(&body, "{\"Pod\":{},\"NodeNames\":[\"\"");
	for (int i = 0; i < EXTENDER_ENVELOPE_VALUES; i++)
		buffer_append_text(&body, ",\"\"");
	buffer_append_text(&body, "]}");
	check_refused(buffer_slice(&body), "the request without its nodes has more than 50000 keys and values");

	buffer_clear(&body);
	buffer_append_text(&body, "{\"Pod\":{},\"Nodes\":{\"items\":[{\"metadata\":{\"x\":[0");
	for (int i = 0; i < EXTENDER_NODE_META_VALUES; i++)
		buffer_append_text(&body, ",0");
	buffer_append_text(&body, "]}}]}}");
	check_refused(buffer_slice(&body), "Nodes.items[0].metadata has more than 32768 keys and values");

	/* But all nodes together may have any number. */
	buffer_clear(&body);
	buffer_append_text(&body, "{\"Pod\":{},\"Nodes\":{\"items\":[{}");
	for (int i = 0; i < 2; i++) {
		buffer_append_text(&body, ",{\"metadata\":{\"name\":\"n\"},\"x\":[0");
		for (int j = 0; j < EXTENDER_ENVELOPE_VALUES; j++)
			buffer_append_text(&body, ",0");
		buffer_append_text(&body, "]}");
	}
	buffer_append_text(&body, "]}}");
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(feed(&request, buffer_slice(&body), 65536), REQUEST_FED);
	assert_true(request_finish(&request, &err));
	assert_int_equal(request.node_count, 3);
	request_destroy(&request);
	buffer_destroy(&body);
}

static void a_pod_has_a_limit_of_volumes(void **state)
{
	struct request request;
	struct filter filter;
	struct buffer body;

	(void)state;
	buffer_init(&body, EXTENDER_BODY_BYTES);
	buffer_append_text(&body, "{\"Pod\":{\"spec\":{\"volumes\":[{}");
	for (int i = 0; i < EXTENDER_POD_VOLUMES; i++)
		buffer_append_text(&body, ",{}");
	buffer_append_text(&body, "]}},\"Nodes\":{}}");
	request_init(&request, REQUEST_ARGS, &SETTINGS);
	assert_int_equal(feed(&request, buffer_slice(&body), 65536), REQUEST_FED);
	assert_int_equal(filter_start(&filter, &SETTINGS, &EMPTY_VIEW, &request), FILTER_ANSWER);
	assert_true(slice_starts_with(filter.error, SLICE("the pod has 1025 volumes")));
	filter_destroy(&filter);
	request_destroy(&request);
	buffer_destroy(&body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_of_a_real_scheduler_come_back_unchanged),
		cmocka_unit_test(ids_and_names_of_real_nodes_are_read),
		cmocka_unit_test(recorded_names_are_read),
		cmocka_unit_test(recorded_bindings_are_read),
		cmocka_unit_test(t13_three_hundred_nodes_of_40_kb_come_back_from_one_copy),
		cmocka_unit_test(more_than_the_limit_is_too_large),
		cmocka_unit_test(a_body_that_is_no_json_keeps_no_memory),
		cmocka_unit_test(what_was_read_of_an_undecodable_request_is_gone),
		cmocka_unit_test(a_request_is_decoded_once),
		cmocka_unit_test(nodes_metadata_and_the_rest_have_limits),
		cmocka_unit_test(values_within_metadata_and_the_rest_have_limits),
		cmocka_unit_test(a_pod_has_a_limit_of_volumes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
