/* Retries, limits and tokens that change. */
#include "client_fixture.h"

#include "base/token_bucket.h"
#include "kube/client.h"
#include "kube/limits.h"

/* ---- retries ---- */

/* P57. */
static void a_503_with_retry_after_is_tried_again(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome = send_request(fixture, &request);
	struct scripted_request *first = scripted_api_wait(fixture->api, 1);
	struct scripted_request *second;

	scripted_reply(first, 503, "Retry-After: 1\r\n", "");
	expect_no_more(fixture, 1);
	second = scripted_api_wait(fixture->api, 2);
	assert_true(second->at_ns - first->at_ns >= SECOND);
	expect_slice(second->body, "[]");
	scripted_reply(second, 200, "", "{}");
	expect_success(fixture, outcome, "{}");
	expect_no_more(fixture, 2);
}

static void after_ten_retries_the_refusal_is_reported(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	for (size_t i = 1; i <= 11; i++) {
		scripted_reply(scripted_api_wait(fixture->api, i), 429, "Retry-After: 7\r\n", "");
		test_loop_spin(fixture->loop, 10);
		assert_int_equal(outcome->done, i == 11);
		test_clock_skip(7 * SECOND);
	}
	assert_int_equal(outcome->retry_after_ns, 7 * SECOND);
	expect_failure(
		fixture, outcome, 429,
		"the server has received too many requests and has asked us to try again later (patch virtualmachines.vm.neon.tech vm-a)");
	expect_no_more(fixture, 11);
}

static void only_busy_answers_with_whole_seconds_are_retried(void **state)
{
	struct kube_fixture *fixture = *state;
	static const struct {
		int status;
		const char *fields;
	} answers[] = {
		{ 503, "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n" },
		{ 503, "Retry-After: 1.5\r\n" },
		{ 503, "Retry-After: -1\r\n" },
		{ 404, "Retry-After: 1\r\n" },
		{ 409, "Retry-After: 1\r\n" },
	};

	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct kube_request request = get_pods();
		struct fixture_outcome *outcome = send_request(fixture, &request);

		scripted_reply(scripted_api_wait(fixture->api, i + 1), answers[i].status, answers[i].fields, "");
		test_loop_until(fixture->loop, &outcome->done);
		assert_int_equal(outcome->status, answers[i].status);
		free(outcome);
	}
}

static void each_retry_takes_a_token(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome;
	struct token_bucket bucket;
	struct error err;
	uint64_t first_ns;

	assert_true(token_bucket_init(&bucket, 5, 1, loop_now_ns(fixture->loop), &err));
	request.limiter = &bucket;
	outcome = send_request(fixture, &request);
	first_ns = scripted_api_wait(fixture->api, 1)->at_ns;
	scripted_reply(scripted_api_request(fixture->api, 0), 429, "Retry-After: 0\r\n", "");
	assert_true(scripted_api_wait(fixture->api, 2)->at_ns - first_ns >= 150 * NS_PER_MS);
	scripted_reply(scripted_api_request(fixture->api, 1), 200, "", "");
	expect_success(fixture, outcome, "");
}

static void a_get_is_tried_again_1_s_after_its_connection_broke(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = send_request(fixture, &request);
	struct scripted_request *first = scripted_api_wait(fixture->api, 1);

	scripted_reset(first);
	expect_no_more(fixture, 1);
	assert_true(scripted_api_wait(fixture->api, 2)->at_ns - first->at_ns >= SECOND);
	scripted_close(scripted_api_request(fixture->api, 1));
	expect_no_more(fixture, 2);
	test_clock_skip(SECOND);
	scripted_reply(scripted_api_wait(fixture->api, 3), 200, "", "at last");
	expect_success(fixture, outcome, "at last");
}

static void a_get_that_breaks_eleven_times_fails(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	for (size_t i = 1; i <= 11; i++) {
		scripted_close(scripted_api_wait(fixture->api, i));
		test_loop_spin(fixture->loop, 20);
		test_clock_skip(SECOND);
	}
	expect_failure(fixture, outcome, 0, "EOF");
}

static void a_patch_whose_connection_broke_is_reported_at_once(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	scripted_reset(scripted_api_wait(fixture->api, 1));
	expect_failure(fixture, outcome, 0, "connection reset by peer");
	outcome = send_request(fixture, &request);
	scripted_close(scripted_api_wait(fixture->api, 2));
	expect_failure(fixture, outcome, 0, "EOF");
	test_clock_skip(2 * SECOND);
	expect_no_more(fixture, 2);
}

static void a_refused_connection_is_reported_at_once(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();

	scripted_api_stop_listening(fixture->api);
	expect_failure(fixture, send_request(fixture, &request), 0, "connection refused");
	scripted_api_listen_again(fixture->api);
}

static void a_body_that_breaks_off_is_an_error_and_not_retried(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = send_request(fixture, &request);
	struct scripted_request *came = scripted_api_wait(fixture->api, 1);

	scripted_begin(came, 200, "");
	scripted_chunk_text(came, "half");
	test_loop_until(fixture->loop, &outcome->opened);
	scripted_close(came);
	test_loop_until(fixture->loop, &outcome->done);
	assert_true(outcome->failed);
	assert_int_equal(outcome->status, 200);
	free(outcome);
	test_clock_skip(2 * SECOND);
	expect_no_more(fixture, 1);
}

static void silence_before_the_head_is_retried_for_watches_only(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome;

	request.answer_timeout_ns = 30 * SECOND;
	outcome = send_request(fixture, &request);
	scripted_api_wait(fixture->api, 1);
	test_clock_skip(30 * SECOND);
	expect_failure(fixture, outcome, 0, "context deadline exceeded");

	request.watch = true;
	outcome = send_request(fixture, &request);
	scripted_api_wait(fixture->api, 2);
	test_clock_skip(30 * SECOND);
	expect_no_more(fixture, 2);
	test_clock_skip(SECOND);
	scripted_reply(scripted_api_wait(fixture->api, 3), 200, "", "now");
	expect_success(fixture, outcome, "now");
}

/* ---- limits ---- */

/* P58. */
static void of_15_patches_10_go_at_once_and_then_one_per_200_ms(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcomes[15];
	struct token_bucket bucket;
	struct error err;

	assert_true(token_bucket_init(&bucket, 5, 10, loop_now_ns(fixture->loop), &err));
	request.limiter = &bucket;
	for (size_t i = 0; i < 15; i++)
		outcomes[i] = send_request(fixture, &request);
	scripted_api_wait(fixture->api, 10);
	assert_true(scripted_api_request(fixture->api, 9)->at_ns - scripted_api_request(fixture->api, 0)->at_ns <
	            200 * NS_PER_MS);
	for (size_t i = 11; i <= 15; i++) {
		expect_no_more(fixture, i - 1);
		test_clock_skip(170 * NS_PER_MS);
		scripted_api_wait(fixture->api, i);
	}
	for (size_t i = 0; i < 15; i++) {
		scripted_reply(scripted_api_request(fixture->api, i), 200, "", "");
		expect_success(fixture, outcomes[i], "");
	}
}

static void a_wait_beyond_the_deadline_fails_at_once(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *first;
	struct fixture_outcome *second;
	struct token_bucket bucket;
	struct error err;

	assert_true(token_bucket_init(&bucket, 1, 1, loop_now_ns(fixture->loop), &err));
	request.limiter = &bucket;
	request.timeout_ns = SECOND / 2;
	first = send_request(fixture, &request);
	second = send_request(fixture, &request);
	expect_failure(fixture, second, 0, "rate: Wait(n=1) would exceed context deadline");
	scripted_reply(scripted_api_wait(fixture->api, 1), 200, "", "");
	expect_success(fixture, first, "");
	/* It took no token: the next one is due when the first was a second ago. */
	assert_true(token_bucket_wait(&bucket, loop_now_ns(fixture->loop)) <= SECOND);
}

static void the_deadline_covers_silence_retries_and_all(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *outcome;

	request.timeout_ns = 5 * SECOND;
	outcome = send_request(fixture, &request);
	scripted_api_wait(fixture->api, 1);
	test_clock_skip(5 * SECOND);
	expect_failure(fixture, outcome, 0, "context deadline exceeded");
	test_loop_spin(fixture->loop, 20);
	assert_true(scripted_api_request(fixture->api, 0)->gone);

	outcome = send_request(fixture, &request);
	scripted_reply(scripted_api_wait(fixture->api, 2), 429, "Retry-After: 60\r\n", "");
	expect_no_more(fixture, 2);
	assert_false(outcome->done);
	test_clock_skip(5 * SECOND);
	expect_failure(fixture, outcome, 0, "context deadline exceeded");
}

static void only_so_many_connections_are_used_at_once(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcomes[KUBE_REQUESTS_IN_FLIGHT + 3];
	struct fixture_outcome *watch;
	size_t count = sizeof outcomes / sizeof *outcomes;

	for (size_t i = 0; i < count; i++)
		outcomes[i] = send_request(fixture, &request);
	scripted_api_wait(fixture->api, KUBE_REQUESTS_IN_FLIGHT);
	expect_no_more(fixture, KUBE_REQUESTS_IN_FLIGHT);

	/* A watch doesn't wait behind them. */
	request.watch = true;
	request.query = SLICE("watch=true");
	watch = send_request(fixture, &request);
	expect_slice(scripted_api_wait(fixture->api, KUBE_REQUESTS_IN_FLIGHT + 1)->target, "/api/v1/pods?watch=true");

	/* Who is cancelled gives its turn to the next, as who is answered does. */
	kube_call_cancel(outcomes[0]->call);
	scripted_api_wait(fixture->api, KUBE_REQUESTS_IN_FLIGHT + 2);
	scripted_reply(scripted_api_request(fixture->api, 1), 200, "", "");
	scripted_api_wait(fixture->api, KUBE_REQUESTS_IN_FLIGHT + 3);
	kube_call_cancel(outcomes[count - 1]->call); /* while it waits */
	kube_call_cancel(watch->call);
	for (size_t i = 2; i < KUBE_REQUESTS_IN_FLIGHT + 3; i++)
		if (i != KUBE_REQUESTS_IN_FLIGHT)
			scripted_reply(scripted_api_request(fixture->api, i), 200, "", "");
	for (size_t i = 1; i < count - 1; i++)
		expect_success(fixture, outcomes[i], "");
	assert_false(outcomes[0]->done);
	assert_false(outcomes[count - 1]->done);
	free(outcomes[0]);
	free(outcomes[count - 1]);
	free(watch);
}

/* ---- credentials ---- */

/* P59. */
static void a_new_token_is_noticed_after_50_s(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	static const struct {
		unsigned skip_s;
		const char *authorization;
	} steps[] = { { 20, "Bearer first-token" }, { 25, "Bearer first-token" }, { 6, "Bearer second-token" } };

	fixture_write(fixture, "token", SLICE("second-token"));
	for (size_t i = 0; i < 3; i++) {
		struct fixture_outcome *outcome;

		test_clock_skip(steps[i].skip_s * SECOND);
		test_loop_spin(fixture->loop, 1);
		outcome = send_request(fixture, &request);
		expect_slice(scripted_field(scripted_api_wait(fixture->api, i + 1), "Authorization"),
		             steps[i].authorization);
		scripted_reply(scripted_api_request(fixture->api, i), 200, "", "");
		expect_success(fixture, outcome, "");
	}
}

static void a_401_is_tried_once_more_if_the_token_has_changed(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = patch_vm();
	struct fixture_outcome *first = send_request(fixture, &request);
	struct fixture_outcome *second = send_request(fixture, &request);

	scripted_api_wait(fixture->api, 2);
	fixture_write(fixture, "token", SLICE("second-token"));
	/* Both were sent with the old one; the file is read when the first answer is there. */
	scripted_reply(scripted_api_request(fixture->api, 0), 401, "", "");
	expect_slice(scripted_field(scripted_api_wait(fixture->api, 3), "Authorization"), "Bearer second-token");
	scripted_reply(scripted_api_request(fixture->api, 1), 401, "", "");
	expect_slice(scripted_field(scripted_api_wait(fixture->api, 4), "Authorization"), "Bearer second-token");
	scripted_reply(scripted_api_request(fixture->api, 2), 200, "", "");
	expect_success(fixture, first, "");

	fixture_write(fixture, "token", SLICE("third-token"));
	scripted_reply(
		scripted_api_request(fixture->api, 3), 401, "",
		"{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}");
	expect_failure(fixture, second, 401, "Unauthorized");
	expect_no_more(fixture, 4);
}

static void a_401_with_an_unchanged_token_is_reported(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_request request = get_pods();
	struct fixture_outcome *outcome = send_request(fixture, &request);

	scripted_reply(scripted_api_wait(fixture->api, 1), 401, "", "");
	expect_failure(fixture, outcome, 401, "the server has asked for the client to provide credentials (get pods)");
	expect_no_more(fixture, 1);
}

static void without_host_port_or_token_there_is_no_client(void **state)
{
	struct kube_fixture *fixture = *state;
	struct kube_client_options options = {
		.host = "127.0.0.1",
		.port = 1,
		.credentials_dir = fixture->folder,
		.user_agent = "x",
		.logger = fixture_logger(fixture),
		.plain = true,
	};
	char text[128];
	struct error err;

	options.port = 0;
	assert_null(kube_client_create(fixture->loop, &options, &err));
	assert_string_equal(
		err.text,
		"unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined");
	options.port = 1;
	options.host = "";
	assert_null(kube_client_create(fixture->loop, &options, &err));
	assert_string_equal(
		err.text,
		"unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined");
	options.host = "127.0.0.1";
	fixture_remove(fixture, "token");
	assert_null(kube_client_create(fixture->loop, &options, &err));
	(void)snprintf(text, sizeof text, "open %s/token: no such file or directory", fixture->folder);
	assert_string_equal(err.text, text);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, client_set_up, client_tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_503_with_retry_after_is_tried_again),
		WITH_FIXTURE(after_ten_retries_the_refusal_is_reported),
		WITH_FIXTURE(only_busy_answers_with_whole_seconds_are_retried),
		WITH_FIXTURE(each_retry_takes_a_token),
		WITH_FIXTURE(a_get_is_tried_again_1_s_after_its_connection_broke),
		WITH_FIXTURE(a_get_that_breaks_eleven_times_fails),
		WITH_FIXTURE(a_patch_whose_connection_broke_is_reported_at_once),
		WITH_FIXTURE(a_refused_connection_is_reported_at_once),
		WITH_FIXTURE(a_body_that_breaks_off_is_an_error_and_not_retried),
		WITH_FIXTURE(silence_before_the_head_is_retried_for_watches_only),
		WITH_FIXTURE(of_15_patches_10_go_at_once_and_then_one_per_200_ms),
		WITH_FIXTURE(a_wait_beyond_the_deadline_fails_at_once),
		WITH_FIXTURE(the_deadline_covers_silence_retries_and_all),
		WITH_FIXTURE(only_so_many_connections_are_used_at_once),
		WITH_FIXTURE(a_new_token_is_noticed_after_50_s),
		WITH_FIXTURE(a_401_is_tried_once_more_if_the_token_has_changed),
		WITH_FIXTURE(a_401_with_an_unchanged_token_is_reported),
		WITH_FIXTURE(without_host_port_or_token_there_is_no_client),
	};

	return cmocka_run_group_tests_name("client_retry", tests, NULL, NULL);
}
