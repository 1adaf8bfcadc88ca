/* Spec reporting 8, with TV17, and what a receiver may do to a request. */
#include "receiver.h"

#include "base/memory.h"
#include "report/http_push.h"

static const struct slice BODY = SLICE_INIT("{\"events\":[{\"n\":1}]}");

struct push_scene {
	struct receiver receiver;
	struct report_client *client;
};

static struct report_client *make_push(struct receiver *receiver, const char *url)
{
	struct error err;
	struct report_client *client =
		http_push_create(receiver->transport, &(struct http_push_options){ .url = slice_of(url) }, &err);

	assert_non_null(client);
	return client;
}

static void scene_begin(struct push_scene *scene)
{
	receiver_init(&scene->receiver, false);
	scene->client = make_push(&scene->receiver, scene->receiver.url);
}

static void scene_end(struct push_scene *scene)
{
	report_client_destroy(scene->client);
	receiver_destroy(&scene->receiver);
}

static void a_batch_is_posted_as_json(void **state)
{
	struct push_scene scene;
	const struct asked *asked = &scene.receiver.asked[0];
	struct log_field fields[REPORT_LOG_FIELDS];

	(void)state;
	scene_begin(&scene);
	receiver_play(&scene.receiver, SAY(200, "nope"));
	assert_true(receiver_push(&scene.receiver, scene.client, BODY, 5000)); /* TV17, second half */
	assert_int_equal(scene.receiver.count, 1);
	assert_string_equal(asked->line, "POST /usage_events");
	assert_string_equal(asked->body, BODY.data);
	assert_true(had_field(asked, "content-type: application/json"));
	assert_true(had_field(asked, "x-trace-id: ID"));
	assert_true(had_field(asked, "content-length: 20"));
	assert_false(had_field_named(asked, "content-encoding"));
	assert_false(had_field_named(asked, "authorization"));
	assert_int_equal(scene.client->operations->describe(scene.client, fields), 3);
	assert_string_equal(fields[0].key, "url");
	assert_string_equal(fields[1].key, "method");
	assert_string_equal(fields[2].key, "traceID");
	scene_end(&scene);
}

static void the_path_is_put_behind_the_url_as_it_is(void **state)
{
	struct push_scene scene;
	char url[128];

	(void)state;
	scene_begin(&scene);
	report_client_destroy(scene.client);
	snprintf(url, sizeof url, "%s/v1/", scene.receiver.url);
	scene.client = make_push(&scene.receiver, url);
	receiver_play(&scene.receiver, SAY(200, NULL));
	assert_true(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	assert_string_equal(scene.receiver.asked[0].line, "POST /v1//usage_events");
	scene_end(&scene);
}

static void only_status_200_is_success(void **state) /* TV17 */
{
	static const int STATUSES[] = { 201, 202, 204, 301, 307, 400, 429, 500, 503 };
	struct push_scene scene;

	(void)state;
	scene_begin(&scene);
	for (size_t i = 0; i < sizeof STATUSES / sizeof STATUSES[0]; i++) {
		const struct reply reply = SAY_WITH(STATUSES[i], NULL, { SLICE("Location"), SLICE("/elsewhere") });
		char cause[32], text[64];

		scene.receiver.script = &reply;
		scene.receiver.script_length = 1;
		scene.receiver.count = 0;
		assert_false(receiver_push(&scene.receiver, scene.client, BODY, 5000));
		snprintf(cause, sizeof cause, "HTTP code %d", STATUSES[i]);
		snprintf(text, sizeof text, "Unexpected HTTP status code %d", STATUSES[i]);
		assert_string_equal(scene.receiver.cause, cause);
		assert_string_equal(scene.receiver.err.text, text);
		assert_int_equal(scene.receiver.count, 1);
	}
	scene_end(&scene);
}

static void a_receiver_that_hangs_costs_the_deadline(void **state)
{
	struct push_scene scene;

	(void)state;
	scene_begin(&scene);
	receiver_play(&scene.receiver, SAY(-2, NULL));
	assert_false(receiver_push(&scene.receiver, scene.client, BODY, 50));
	assert_string_equal(scene.receiver.cause, "context deadline exceeded");
	assert_string_equal(scene.receiver.err.text, "Error making request: context deadline exceeded");
	receiver_play(&scene.receiver, SAY(200, NULL));
	assert_true(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	scene_end(&scene);
}

static void a_connection_cut_after_the_request_is_a_failure_told_by_its_cause(void **state)
{
	struct push_scene scene;

	(void)state;
	scene_begin(&scene);
	receiver_play(&scene.receiver, SAY(0, NULL), SAY(-1, NULL), SAY(200, NULL));
	assert_false(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	assert_string_equal(scene.receiver.cause, "EOF");
	assert_int_equal(scene.receiver.count, 1);
	assert_false(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	assert_string_equal(scene.receiver.cause, "connection reset by peer");
	assert_int_equal(scene.receiver.count, 2);
	assert_true(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	scene_end(&scene);
}

/* A kept connection that the receiver cuts after a POST: nothing is sent again by itself. */
static void a_post_on_a_kept_connection_isnt_repeated(void **state)
{
	struct push_scene scene;

	(void)state;
	scene_begin(&scene);
	receiver_play(&scene.receiver, SAY(200, NULL), SAY(0, NULL));
	assert_true(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	assert_false(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	assert_int_equal(scene.receiver.count, 2);
	assert_string_equal(scene.receiver.cause, "EOF");
	scene_end(&scene);
}

static void nobody_there_is_connection_refused(void **state)
{
	struct push_scene scene;

	(void)state;
	scene_begin(&scene);
	http_server_destroy(scene.receiver.server);
	scene.receiver.server = NULL;
	assert_false(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	assert_string_equal(scene.receiver.cause, "connection refused");
	scene_end(&scene);
}

static void an_unknown_authority_is_told_as_such(void **state)
{
	struct receiver receiver, other;
	struct report_client *client;

	(void)state;
	receiver_init(&receiver, true);
	receiver_init(&other, true);
	client = make_push(&receiver, other.url);
	receiver_begin_push(&receiver, client, BODY, 5000);
	TURN_UNTIL(receiver.loop, (turn_for(other.loop, 1), receiver.over > 0));
	assert_string_equal(receiver.cause, "x509: certificate signed by unknown authority");
	report_client_destroy(client);
	client = make_push(&receiver, receiver.url);
	receiver_play(&receiver, SAY(200, NULL));
	assert_true(receiver_push(&receiver, client, BODY, 5000));
	report_client_destroy(client);
	receiver_destroy(&other);
	receiver_destroy(&receiver);
}

static void a_url_that_cant_be_used_fails_each_push(void **state)
{
	struct push_scene scene;

	(void)state;
	scene_begin(&scene);
	report_client_destroy(scene.client);
	scene.client = make_push(&scene.receiver, "ftp://somewhere");
	assert_false(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	assert_string_equal(scene.receiver.cause, "other");
	assert_false(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	scene_end(&scene);
}

static void a_cancelled_push_is_never_told_of(void **state)
{
	struct push_scene scene;

	(void)state;
	scene_begin(&scene);
	receiver_play(&scene.receiver, SAY(200, NULL));
	receiver_begin_push(&scene.receiver, scene.client, BODY, 5000);
	TURN_UNTIL(scene.receiver.loop, scene.receiver.count > 0);
	scene.client->operations->cancel(scene.client);
	turn_for(scene.receiver.loop, 20);
	assert_int_equal(scene.receiver.over, 0);
	assert_true(receiver_push(&scene.receiver, scene.client, BODY, 5000));
	scene_end(&scene);
}

/* Whichever allocation fails, the push ends, and the next one works. */
static void short_memory_fails_a_push_and_no_more(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (unsigned long i = 1; i < 12; i++) {
		struct push_scene scene;

		scene_begin(&scene);
		receiver_play(&scene.receiver, SAY(200, NULL));
		memory_fail_at(i);
		failed += !receiver_push(&scene.receiver, scene.client, BODY, 1000);
		memory_fail_at(0);
		scene.receiver.count = 0;
		assert_true(receiver_push(&scene.receiver, scene.client, BODY, 5000));
		scene_end(&scene);
	}
	assert_true(failed > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_is_posted_as_json),
		cmocka_unit_test(the_path_is_put_behind_the_url_as_it_is),
		cmocka_unit_test(only_status_200_is_success),
		cmocka_unit_test(a_receiver_that_hangs_costs_the_deadline),
		cmocka_unit_test(a_connection_cut_after_the_request_is_a_failure_told_by_its_cause),
		cmocka_unit_test(a_post_on_a_kept_connection_isnt_repeated),
		cmocka_unit_test(nobody_there_is_connection_refused),
		cmocka_unit_test(an_unknown_authority_is_told_as_such),
		cmocka_unit_test(a_url_that_cant_be_used_fails_each_push),
		cmocka_unit_test(a_cancelled_push_is_never_told_of),
		cmocka_unit_test(short_memory_fails_a_push_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
