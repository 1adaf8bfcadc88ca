/* Requests, refusals, and calls that are ended. */
#include "client_fixture.h"

#include "base/memory.h"
#include "kube/client.h"
#include "kube/limits.h"

/* ---- requests ---- */

static void a_patch_has_the_reference_s_line_and_fields(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome = send_request(fixture, &request);
	struct scripted_request *came = scripted_api_wait(fixture->api, 1);

	expect_slice(came->method, "PATCH");
	expect_slice(came->target, "/apis/vm.neon.tech/v1/namespaces/apps/virtualmachines/vm-a");
	expect_slice(came->body, "[]");
	expect_slice(scripted_field(came, "Content-Type"), "application/json-patch+json");
	expect_slice(scripted_field(came, "Accept"), "application/json, */*");
	expect_slice(scripted_field(came, "User-Agent"), "ballast-test");
	expect_slice(scripted_field(came, "Authorization"), "Bearer first-token");
	scripted_reply(came, 200, "", "{\"done\":true}");
	test_loop_until(fixture->loop, &outcome->done);
	assert_true(outcome->opened);
	assert_int_equal(outcome->status, 200);
	expect_success(fixture, outcome, "{\"done\":true}");
}

static void a_query_goes_behind_the_path_and_a_get_has_no_content_type(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome;
	struct scripted_request *came;

	request.query = SLICE("labelSelector=name%3Dx");
	outcome = send_request(fixture, &request);
	came = scripted_api_wait(fixture->api, 1);
	expect_slice(came->target, "/api/v1/pods?labelSelector=name%3Dx");
	expect_slice(scripted_field(came, "Content-Type"), "");
	scripted_reply(came, 206, "", "x");
	expect_success(fixture, outcome, "x");
}

static void the_request_is_copied(void **state)
{
	struct kube_fixture *fixture = *state;
	char path[] = "/api/v1/pods";
	char name[] = "vm-a";
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome;

	request.path = slice_of(path);
	request.name = slice_of(name);
	outcome = send_request(fixture, &request);
	memset(path, '#', sizeof path - 1);
	memset(name, '#', sizeof name - 1);
	expect_slice(scripted_api_wait(fixture->api, 1)->target, "/api/v1/pods");
	scripted_reply(scripted_api_request(fixture->api, 0), 404, "", "");
	expect_failure(fixture, outcome, 404, "the server could not find the requested resource (get pods vm-a)");
}

static void connections_are_kept_and_used_again(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();

	for (size_t i = 1; i <= 3; i++) {
		struct fixture_outcome *outcome = send_request(fixture, &request);

		scripted_reply(scripted_api_wait(fixture->api, i), 200, "", "x");
		expect_success(fixture, outcome, "x");
	}
	assert_int_equal(scripted_api_connection_count(fixture->api), 1);
}

static void a_streamed_body_comes_piece_by_piece(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = outcome_create();
	struct scripted_request *came;

	send_with(fixture, &request, &FIXTURE_STREAM, outcome);
	came = scripted_api_wait(fixture->api, 1);
	scripted_begin(came, 200, "");
	test_loop_until(fixture->loop, &outcome->opened);
	assert_int_equal(outcome->body_length, 0);
	scripted_chunk_text(came, "ab");
	test_loop_spin(fixture->loop, 20);
	assert_int_equal(outcome->body_length, 2);
	scripted_chunk_text(came, "cd");
	scripted_end(came);
	expect_success(fixture, outcome, "abcd");
}

static void a_body_over_its_limit_is_an_error(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome;

	request.max_body_bytes = 3;
	outcome = send_request(fixture, &request);
	scripted_reply(scripted_api_wait(fixture->api, 1), 200, "", "1234");
	test_loop_until(fixture->loop, &outcome->done);
	assert_true(outcome->failed);
	assert_int_equal(outcome->err.code, ERROR_LIMIT);
	free(outcome);
}

/* ---- refusals ---- */

/* P55; the label made of it is vm_patch's business. */
static void a_404_s_status_message_is_the_root(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	scripted_reply(
		scripted_api_wait(fixture->api, 1), 404, "",
		"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
		"\"virtualmachines.vm.neon.tech \\\"vm-a\\\" not found\",\"reason\":\"NotFound\",\"code\":404}\n");
	expect_failure(fixture, outcome, 404, "virtualmachines.vm.neon.tech \"vm-a\" not found");
}

/* P56. */
static void a_503_without_retry_after_is_reported_at_once(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	scripted_reply(scripted_api_wait(fixture->api, 1), 503, "", "");
	expect_failure(
		fixture, outcome, 503,
		"the server is currently unable to handle the request (patch virtualmachines.vm.neon.tech vm-a)");
	test_clock_skip(5 * SECOND);
	expect_no_more(fixture, 1);
}

static void a_plain_429_is_told_by_its_code(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	scripted_raw(scripted_api_wait(fixture->api, 1),
	             SLICE("HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/plain; charset=utf-8\r\n"
	                   "Content-Length: 43\r\n\r\nToo many requests, please try again later.\n"));
	expect_failure(fixture, outcome, 429,
	               "the server has received too many requests and has asked us to try again later (get pods)");
}

static void a_redirect_is_not_followed(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	scripted_reply(scripted_api_wait(fixture->api, 1), 302, "Location: http://127.0.0.2/\r\n", "");
	expect_failure(fixture, outcome, 302,
	               "the server responded with the status code 302 but did not return more information (get pods)");
	expect_no_more(fixture, 1);
}

static void the_codes_from_200_to_206_alone_are_success(void **state)
{
	struct kube_fixture *fixture = *state;
	static const int codes[] = { 200, 201, 202, 206, 207, 299 };

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		struct kube_request request = get_pods();
		struct fixture_outcome *outcome = send_request(fixture, &request);

		scripted_reply(scripted_api_wait(fixture->api, i + 1), codes[i], "", "");
		test_loop_until(fixture->loop, &outcome->done);
		assert_int_equal(outcome->failed, codes[i] > 206);
		free(outcome);
	}
}

static void a_long_error_page_is_cut_and_the_call_still_told_by_its_code(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = send_request(fixture, &request);
	char *page = calloc(1, KUBE_ERROR_BODY_BYTES + 2);

	memset(page, 'x', KUBE_ERROR_BODY_BYTES + 1);
	scripted_reply(scripted_api_wait(fixture->api, 1), 404, "", page);
	free(page);
	expect_failure(fixture, outcome, 404, "the server could not find the requested resource (get pods)");
}

/* ---- ending inside callbacks ---- */

struct ender {
	struct kube_fixture *fixture;
	struct kube_call *call;
	bool destroy; /* the client, not just the call */
	bool called;
};

static void end_now(struct ender *ender)
{
	ender->called = true;
	if (ender->destroy) {
		kube_client_destroy(ender->fixture->client);
		ender->fixture->client = NULL;
	} else if (ender->call != NULL) {
		kube_call_cancel(ender->call);
	}
}

static void end_on_open(void *context)
{
	end_now(context);
}

static void end_on_body(void *context, struct slice bytes)
{
	(void)bytes;
	end_now(context);
}

static void end_on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct ender *ender = context;

	(void)status;
	(void)body;
	(void)err;
	assert_false(ender->called);
	ender->call = NULL;
	end_now(ender);
}

static void calls_and_client_may_be_ended_inside_any_callback(void **state)
{
	static const struct kube_handler handlers[] = {
		{ .on_open = end_on_open, .on_done = end_on_done },
		{ .on_body = end_on_body, .on_done = end_on_done },
		{ .on_done = end_on_done },
	};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct kube_fixture *fixture = fixture_create();
		struct kube_request request = get_pods();
		struct ender ender = { .fixture = fixture, .destroy = i >= 3 };
		struct fixture_outcome *other = send_request(fixture, &request);
		struct error err;

		ender.call = kube_client_send(fixture->client, &request, &handlers[i % 3], &ender, &err);
		assert_non_null(ender.call);
		scripted_reply(scripted_api_wait(fixture->api, 2), 200, "", "body");
		test_loop_until(fixture->loop, &ender.called);
		test_loop_spin(fixture->loop, 10);
		assert_false(other->done);
		fixture_destroy(fixture);
		free(other);
	}
}

static void a_cancelled_call_says_nothing_at_any_stage(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct token_bucket bucket;
	struct fixture_outcome *outcome;
	struct error err;

	assert_true(token_bucket_init(&bucket, 1, 1, loop_now_ns(fixture->loop), &err));
	request.limiter = &bucket;
	request.timeout_ns = 5 * SECOND;
	for (int stage = 0; stage < 4; stage++) {
		outcome = send_request(fixture, &request);
		if (stage == 1)
			scripted_api_wait(fixture->api, 1);
		if (stage == 2) /* waits for its token: stage 1 took what there was */
			test_loop_spin(fixture->loop, 20);
		if (stage == 3) {
			test_clock_skip(3 * SECOND);
			scripted_reply(scripted_api_wait(fixture->api, 2), 429, "Retry-After: 1\r\n", "");
			test_loop_spin(fixture->loop, 20);
		}
		assert_false(outcome->done);
		kube_call_cancel(outcome->call);
		test_clock_skip(10 * SECOND * (stage >= 2));
		test_loop_spin(fixture->loop, 20);
		assert_false(outcome->done);
		free(outcome);
	}
}

static void every_failing_allocation_ends_in_an_error(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	unsigned failures = 0;
	bool whole = false;

	for (unsigned long at = 1; !whole; at++) {
		struct fixture_outcome *outcome = outcome_create();
		size_t before = scripted_api_request_count(fixture->api);
		struct error err;

		assert_true(at < 300);
		request.timeout_ns = SECOND;
		memory_fail_at(at);
		outcome->call = kube_client_send(fixture->client, &request, &FIXTURE_COLLECT, outcome, &err);
		for (int i = 0; outcome->call != NULL && !outcome->done && i < 40; i++) {
			test_loop_spin(fixture->loop, 1);
			if (scripted_api_request_count(fixture->api) > before &&
			    scripted_api_request(fixture->api, before)->on != NULL) {
				scripted_reply(scripted_api_request(fixture->api, before), 404, "Connection: close\r\n",
				               "{\"kind\":\"Status\",\"message\":\"gone\"}");
				if (scripted_api_request(fixture->api, before)->on != NULL)
					scripted_close(scripted_api_request(fixture->api, before));
			}
		}
		whole = memory_allocation_count() < at;
		memory_fail_at(0);
		if (outcome->call == NULL)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		else if (!outcome->done)
			kube_call_cancel(outcome->call); /* it was the server's side that failed */
		else
			assert_true(outcome->failed);
		failures += !whole;
		free(outcome);
	}
	assert_true(failures > 5);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, client_set_up, client_tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_patch_has_the_reference_s_line_and_fields),
		WITH_FIXTURE(a_query_goes_behind_the_path_and_a_get_has_no_content_type),
		WITH_FIXTURE(the_request_is_copied),
		WITH_FIXTURE(connections_are_kept_and_used_again),
		WITH_FIXTURE(a_streamed_body_comes_piece_by_piece),
		WITH_FIXTURE(a_body_over_its_limit_is_an_error),
		WITH_FIXTURE(a_404_s_status_message_is_the_root),
		WITH_FIXTURE(a_503_without_retry_after_is_reported_at_once),
		WITH_FIXTURE(a_plain_429_is_told_by_its_code),
		WITH_FIXTURE(a_redirect_is_not_followed),
		WITH_FIXTURE(the_codes_from_200_to_206_alone_are_success),
		WITH_FIXTURE(a_long_error_page_is_cut_and_the_call_still_told_by_its_code),
		cmocka_unit_test(calls_and_client_may_be_ended_inside_any_callback),
		WITH_FIXTURE(a_cancelled_call_says_nothing_at_any_stage),
		WITH_FIXTURE(every_failing_allocation_ends_in_an_error),
	};

	return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
