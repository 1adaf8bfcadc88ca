/*
 * Filter calls with memory short at every point. The scheduler passes by an extender that answers with an error, so such
 * a call must say "nothing yet" instead.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/memory.h"
#include "extender/filter.h"

static const struct extender_settings SETTINGS = { .provisioner = SLICE_INIT("csi-baremetal") };

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

static bool our_claim(void *context, struct slice namespace, struct slice name, struct claim_view *ret_claim)
{
	(void)context;
	(void)namespace;
	(void)name;
	*ret_claim = (struct claim_view){ .has_class_name = true, .class_name = SLICE("c"), .size_bytes = 5 };
	return true;
}

static bool our_class(void *context, struct slice name, struct class_view *ret_class)
{
	(void)context;
	(void)name;
	*ret_class = (struct class_view){ SLICE("csi-baremetal"), SLICE("hdd") };
	return true;
}

static bool our_node(void *context, struct slice name, struct node_id *ret_id)
{
	(void)context;
	*ret_id = (struct node_id){ NODE_ID_FOUND, name };
	return true;
}

#define POD                                                                                   \
	"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"spec\":{\"volumes\":[" \
	"{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"q\"}}]}},"
#define ASKED "\"ReservationRequests\":[{\"CapacityRequest\":{\"Name\":\"q\",\"StorageClass\":\"HDD\",\"Size\":5}}]"

static const char FULL_BODY[] = POD "\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"a\",\"uid\":\"A\"}},"
				    "{\"metadata\":{\"name\":\"b\",\"uid\":\"B\"}},{\"metadata\":{\"name\":\"c\"}}]}}";
static const char NAMES_BODY[] = POD "\"NodeNames\":[\"A\",\"B\",\"x\"]}";
static const char RESERVED[] =
	"{\"spec\":{\"Namespace\":\"n\",\"Status\":\"RESERVED\",\"NodeRequests\":{\"Reserved\":[\"A\"]}," ASKED "}}";
static const char REJECTED[] = "{\"spec\":{\"Namespace\":\"n\",\"Status\":\"REJECTED\"," ASKED "}}";

/* Of an answer without nodes. */
static void assert_nothing_yet(struct answer *answer)
{
	struct slice piece;

	assert_true(answer_next(answer, &piece));
	assert_int_equal(answer_length(answer), piece.length);
	assert_true(slice_contains(piece, SLICE("\"Error\":\"\"}\n")));
	assert_false(answer_next(answer, &piece));
}

/* A whole call; returns whether it came to its proper end, else its answer says "nothing yet". */
static bool run_call(struct slice body, const struct csi_available_capacity_reservation *reservation)
{
	const struct storage_view view = { NULL, our_claim, our_class, our_node };
	struct request request;
	struct filter filter;
	enum filter_step step;
	bool ok;

	request_init(&request, REQUEST_ARGS, &SETTINGS);
	if (feed(&request, body, 16) != REQUEST_FED) {
		request_destroy(&request);
		return false;
	}
	step = filter_start(&filter, &SETTINGS, &view, &request);
	if (step == FILTER_READ)
		step = reservation != NULL ? filter_found(&filter, reservation) : filter_not_found(&filter);
	ok = filter.placed || step == FILTER_CREATE || step == FILTER_REPLACE;
	if (!ok) {
		assert_int_equal(step, FILTER_ANSWER);
		assert_int_equal(filter.failure.code, ERROR_NO_MEMORY);
		assert_int_equal(filter.error.length, 0);
		assert_nothing_yet(&filter.answer);
	}
	filter_destroy(&filter);
	request_destroy(&request);
	return ok;
}

static void check_without_memory(const char *body, const char *reservation_json)
{
	struct csi_available_capacity_reservation reservation = { 0 };
	struct arena arena;
	struct error err;
	unsigned long blocks, failures = 0;

	arena_init(&arena, 1 << 20);
	if (reservation_json != NULL)
		assert_true(csi_available_capacity_reservation_from_json(slice_of(reservation_json), &arena,
		                                                         &reservation, &err));
	blocks = memory_block_count();
	for (unsigned long at = 1; at < 1000; at++) {
		bool ok;

		memory_split_arenas(true);
		memory_fail_at(at);
		ok = run_call(slice_of(body), reservation_json != NULL ? &reservation : NULL);
		memory_fail_at(0);
		memory_split_arenas(false);
		assert_int_equal(memory_block_count(), blocks);
		if (ok)
			break;
		failures++;
	}
	assert_in_range(failures, 5, 200);
	arena_destroy(&arena);
}

static void memory_that_is_short_never_makes_an_error_answer(void **state)
{
	(void)state;
	check_without_memory(FULL_BODY, RESERVED);
	check_without_memory(FULL_BODY, REJECTED);
	check_without_memory(FULL_BODY, NULL);
	check_without_memory(NAMES_BODY, RESERVED);
}

static void nothing_yet_is_what_the_encoder_makes_of_an_empty_result(void **state)
{
	struct extender_filter_result result = { .nodes_presence = JSON_NULL,
		                                 .node_names_presence = JSON_NULL,
		                                 .failed_nodes_presence = JSON_NULL,
		                                 .failed_and_unresolvable_nodes_presence = JSON_NULL };
	struct buffer text;
	struct error err;

	(void)state;
	buffer_init(&text, 1000);
	assert_true(extender_filter_result_to_json(&result, &text, &err));
	buffer_append_char(&text, '\n');
	assert_true(slice_equal(buffer_slice(&text), answer_retry_text()));
	buffer_destroy(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_yet_is_what_the_encoder_makes_of_an_empty_result),
		cmocka_unit_test(memory_that_is_short_never_makes_an_error_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
