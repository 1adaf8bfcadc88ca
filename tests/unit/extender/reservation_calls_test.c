#include "api_scene.h"

#include "extender/reservation_calls.h"

#define STATUS(code, reason) \
	"{\"kind\":\"Status\",\"message\":\"says the server\",\"reason\":\"" reason "\",\"code\":" #code "}"
#define JSON_FIELD "Content-Type: application/json\r\n"

struct scene {
	struct api_scene base;
	struct reservation_calls calls;
	bool done;
	int status;
	bool failed;
	char body[256];
	struct error err;
};

static int set_up(void **state)
{
	struct scene *scene = calloc(1, sizeof *scene);

	api_scene_begin(&scene->base);
	scene->calls = (struct reservation_calls){
		.loop = scene->base.loop,
		.client = scene->base.fixture->client,
		.limiter = &scene->base.limiter,
		.metrics = scene->base.metrics,
	};
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	api_scene_end(&scene->base);
	free(scene);
	return 0;
}

static void on_done(void *context, int status, struct slice body, const struct error *err)
{
	struct scene *scene = context;

	assert_false(scene->done);
	scene->done = true;
	scene->status = status;
	scene->failed = err != NULL;
	if (err != NULL)
		scene->err = *err;
	(void)snprintf(scene->body, sizeof scene->body, "%.*s", SLICE_ARGS(body));
}

static struct reservation_call *begin_read(struct scene *scene, uint64_t budget_ns)
{
	struct error err;
	struct reservation_call *call = reservation_read(
		&scene->calls, SLICE("shop-a b"), loop_now_ns(scene->base.loop) + budget_ns, on_done, scene, &err);

	assert_non_null(call);
	assert_false(scene->done);
	return call;
}

static void expect_failure(struct scene *scene, int status, const char *root)
{
	test_loop_until(scene->base.loop, &scene->done);
	assert_true(scene->failed);
	assert_int_equal(scene->status, status);
	assert_string_equal(error_root(&scene->err), root);
}

static void a_read_gives_the_object(void **state)
{
	struct scene *scene = *state;
	struct scripted_request *request;

	begin_read(scene, NS_PER_S);
	request = scripted_api_wait(scene->base.api, 1);
	assert_true(slice_equal_text(request->method, "GET"));
	assert_true(slice_equal_text(request->target,
	                             "/apis/csi-baremetal.dell.com/v1/availablecapacityreservations/shop-a%20b"));
	scripted_reply(request, 200, JSON_FIELD, "{\"kind\":\"x\"}");
	test_loop_until(scene->base.loop, &scene->done);
	assert_false(scene->failed);
	assert_string_equal(scene->body, "{\"kind\":\"x\"}");
	assert_int_equal(api_scene_count(&scene->base, "_count{method=\"ReadCR\"} 1\n"), 1);
}

static void writes_have_their_path_and_body(void **state)
{
	struct scene *scene = *state;
	struct scripted_request *request;
	struct error err;

	for (int i = 0; i < 2; i++) {
		uint64_t deadline_ns = loop_now_ns(scene->base.loop) + NS_PER_S;

		scene->done = false;
		assert_non_null(i == 0 ? reservation_create(&scene->calls, SLICE("n"), SLICE("{\"a\":1}"), deadline_ns,
		                                            on_done, scene, &err)
		                       : reservation_replace(&scene->calls, SLICE("n"), SLICE("{\"a\":1}"), deadline_ns,
		                                             on_done, scene, &err));
		request = scripted_api_wait(scene->base.api, (size_t)i + 1);
		assert_true(slice_equal_text(request->method, i == 0 ? "POST" : "PUT"));
		assert_true(slice_equal_text(
			request->target, i == 0 ? "/apis/csi-baremetal.dell.com/v1/availablecapacityreservations"
						: "/apis/csi-baremetal.dell.com/v1/availablecapacityreservations/n"));
		assert_true(slice_equal_text(request->body, "{\"a\":1}"));
		assert_true(slice_equal_text(scripted_field(request, "Content-Type"), "application/json"));
		scripted_reply(request, i == 0 ? 201 : 200, JSON_FIELD, "{}");
		test_loop_until(scene->base.loop, &scene->done);
		assert_false(scene->failed);
	}
	assert_int_equal(api_scene_count(&scene->base, "_count{method=\"CreateCR\"} 1\n"), 1);
	assert_int_equal(api_scene_count(&scene->base, "_count{method=\"UpdateCR\"} 1\n"), 1);
}

static void refusals_are_passed_on(void **state)
{
	struct scene *scene = *state;
	static const int STATUSES[] = { 403, 404, 409, 422, 500, 503 };

	for (size_t i = 0; i < sizeof STATUSES / sizeof STATUSES[0]; i++) {
		scene->done = false;
		begin_read(scene, NS_PER_S);
		scripted_reply(scripted_api_wait(scene->base.api, i + 1), STATUSES[i], JSON_FIELD, STATUS(1, "Some"));
		expect_failure(scene, STATUSES[i], "says the server");
	}
}

/* F26: four tries, about 10, 50 and 250 ms apart; one logical call in the metrics. */
static void what_is_busy_is_tried_four_times(void **state)
{
	struct scene *scene = *state;
	static const struct {
		int status;
		const char *body;
	} CASES[] = { { 429, STATUS(429, "TooManyRequests") },
		      { 504, STATUS(504, "Timeout") },
		      { 504, "<html>" },
		      { 500, STATUS(500, "ServerTimeout") } };
	static const uint64_t WAITS_MS[] = { 10, 50, 250 };
	size_t requests = 0;

	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		uint64_t last_ns = 0;

		scene->done = false;
		begin_read(scene, 4 * (uint64_t)NS_PER_S);
		for (int try = 0; try < 4; try++) {
			struct scripted_request *request = scripted_api_wait(scene->base.api, ++requests);

			if (try > 0)
				assert_true(request->at_ns - last_ns >= WAITS_MS[try - 1] * NS_PER_MS);
			assert_false(scene->done);
			last_ns = request->at_ns;
			scripted_reply(request, CASES[i].status, JSON_FIELD, CASES[i].body);
		}
		test_loop_until(scene->base.loop, &scene->done);
		assert_int_equal(scene->status, CASES[i].status);
		assert_int_equal(scripted_api_request_count(scene->base.api), requests);
	}
	assert_int_equal(api_scene_count(&scene->base, "_count{method=\"ReadCR\"} 4\n"), 1);
}

static void a_try_may_succeed(void **state)
{
	struct scene *scene = *state;

	begin_read(scene, NS_PER_S);
	scripted_reply(scripted_api_wait(scene->base.api, 1), 429, "", "slow down");
	scripted_reply(scripted_api_wait(scene->base.api, 2), 200, JSON_FIELD, "{}");
	test_loop_until(scene->base.loop, &scene->done);
	assert_false(scene->failed);
}

static void the_deadline_ends_it(void **state)
{
	struct scene *scene = *state;

	begin_read(scene, 50 * (uint64_t)NS_PER_MS);
	scripted_api_wait(scene->base.api, 1);
	expect_failure(scene, 0, "context deadline exceeded");
	/* Nor is there a try that would come too late. */
	scene->done = false;
	begin_read(scene, 30 * (uint64_t)NS_PER_MS);
	for (size_t i = 2; i <= 3; i++)
		scripted_reply(scripted_api_wait(scene->base.api, i), 429, "", "slow down");
	test_loop_until(scene->base.loop, &scene->done);
	assert_int_equal(scene->status, 429);
}

static void a_call_may_be_cancelled_at_any_time(void **state)
{
	struct scene *scene = *state;
	struct scripted_request *request;
	struct reservation_call *call;

	reservation_call_cancel(begin_read(scene, NS_PER_S));
	call = begin_read(scene, NS_PER_S);
	request = scripted_api_wait(scene->base.api, 1);
	reservation_call_cancel(call);
	test_loop_until(scene->base.loop, &request->gone);
	call = begin_read(scene, NS_PER_S);
	scripted_reply(scripted_api_wait(scene->base.api, 2), 504, "", "");
	test_loop_spin(scene->base.loop, 5); /* it waits for its second try */
	reservation_call_cancel(call);
	test_loop_spin(scene->base.loop, 50);
	assert_int_equal(scripted_api_request_count(scene->base.api), 2);
	assert_false(scene->done);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	struct scene *scene = *state;
	char name[8192];
	struct error err;

	memset(name, 'a', sizeof name);
	assert_null(reservation_read(&scene->calls, slice_from(name, sizeof name), UINT64_MAX, on_done, scene, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_read_gives_the_object, set_up, tear_down),
		cmocka_unit_test_setup_teardown(writes_have_their_path_and_body, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refusals_are_passed_on, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_busy_is_tried_four_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_try_may_succeed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_deadline_ends_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_call_may_be_cancelled_at_any_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_name_that_is_too_long_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
