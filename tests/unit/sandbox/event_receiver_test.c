#include "tests/unit/sandbox/scene.h"

#include <stdlib.h>

#include "report/gzip_packer.h"
#include "sandbox/event_receiver.h"
#include "sandbox/gunzip.h"

enum { TEXT_BYTES = 64 * 1024, ROOM_BYTES = 4 * 1024 * 1024 };

#define KEY "2025-03-07T09:05:04.845237Z-agent-x7k2p-"
#define WINDOW "\"start_time\":\"2025-03-07T09:04:40.8440075Z\",\"stop_time\":\"2025-03-07T09:05:04.845237402Z\","
#define EVENT(number, value)                 \
	"{\"idempotency_key\":\"" KEY number \
	"\",\"metric\":\"m\",\"type\":\"incremental\",\"endpoint_id\":\"ep-a\"," WINDOW "\"value\":" value "}"
#define JSON_TYPE "Content-Type: application/json\r\n"
#define TRACE "X-Trace-Id: R22M4aUVvVgVaY2onyknAM\r\n"
#define SCALING                                                                                                          \
	"{\"timestamp\":\"2025-03-07T09:05:04.845237402Z\",\"region\":\"r\",\"endpoint_id\":\"ep\",\"kind\":\"actual\"," \
	"\"current_cu\":1000,\"target_cu\":2250}\n"

struct scene {
	struct loop *loop;
	struct event_receiver *receiver;
	uint16_t port;
	struct buffer notes;
};

static void on_billing_event(void *context, const struct events_billing_event *event, int64_t start_wall_ns,
                             int64_t stop_wall_ns)
{
	struct scene *scene = context;

	assert_true(start_wall_ns == INT64_C(1741338280844007500));
	assert_true(stop_wall_ns == INT64_C(1741338304845237402));
	buffer_append_format(&scene->notes, "%.*s %.*s %llu\n", SLICE_ARGS(event->endpoint_id),
	                     SLICE_ARGS(event->metric), (unsigned long long)event->value);
}

static void on_duplicate(void *context, struct slice key)
{
	struct scene *scene = context;

	buffer_append_format(&scene->notes, "again %.*s\n", SLICE_ARGS(key));
}

static void on_scaling_event(void *context, const struct events_scaling_event *event)
{
	struct scene *scene = context;

	buffer_append_format(&scene->notes, "%.*s %u %u\n", SLICE_ARGS(event->kind), event->current_cu,
	                     event->target_cu);
}

static void on_problem(void *context, const struct error *err)
{
	struct scene *scene = context;

	buffer_append_format(&scene->notes, "! %s\n", err->text);
}

static int set_up(void **state)
{
	static const struct event_receiver_handler HANDLER = { .on_billing_event = on_billing_event,
		                                               .on_duplicate = on_duplicate,
		                                               .on_scaling_event = on_scaling_event,
		                                               .on_problem = on_problem };
	struct scene *scene = memory_allocate(sizeof *scene);
	struct address address;
	struct error err;

	assert_non_null(scene);
	scene->loop = loop_epoll_create(&err);
	assert_non_null(scene->loop);
	buffer_init(&scene->notes, TEXT_BYTES);
	assert_true(address_parse(SLICE("127.0.0.1"), 0, &address));
	scene->receiver = event_receiver_start(scene->loop, &address, &HANDLER, scene, &err);
	if (scene->receiver == NULL)
		fail_msg("%s", err.text);
	assert_true(event_receiver_address(scene->receiver, &address));
	scene->port = address.port;
	*state = scene;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *scene = *state;

	event_receiver_destroy(scene->receiver);
	scene_settle(scene->loop);
	loop_destroy(scene->loop);
	buffer_destroy(&scene->notes);
	memory_release(scene);
	return 0;
}

/* The answer's status. */
static int ask(struct scene *scene, const char *line, const char *fields, struct slice body)
{
	struct raw_client client;
	struct buffer request;
	int status;

	buffer_init(&request, ROOM_BYTES);
	buffer_append_format(&request, "%s HTTP/1.1\r\nHost: r\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n",
	                     line, fields, body.length);
	buffer_append_slice(&request, body);
	raw_client_ask(&client, scene->loop, "127.0.0.1", scene->port, buffer_slice(&request));
	status = raw_client_status(&client);
	raw_client_end(&client);
	buffer_destroy(&request);
	return status;
}

static int post(struct scene *scene, const char *body)
{
	return ask(scene, "POST /v1/usage_events", JSON_TYPE TRACE, slice_of(body));
}

static void expect_notes(struct scene *scene, const char *expected)
{
	buffer_append_char(&scene->notes, '\0');
	assert_string_equal(scene->notes.data, expected);
	buffer_clear(&scene->notes);
}

static void expect_problem(struct scene *scene, int status, const char *part)
{
	assert_int_equal(status, 400);
	buffer_append_char(&scene->notes, '\0');
	if (strstr(scene->notes.data, part) == NULL)
		fail_msg("no \"%s\" in: %s", part, scene->notes.data);
	assert_int_equal(scene->notes.data[0], '!');
	buffer_clear(&scene->notes);
}

static void events_are_taken_once(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(post(scene, "{\"events\":[" EVENT("1/2", "6") "," EVENT("2/2", "24") "]}"), 200);
	expect_notes(scene, "ep-a m 6\nep-a m 24\n");
	assert_int_equal(post(scene, "{\"events\":[" EVENT("2/2", "24") "]}"), 200);
	expect_notes(scene, "again " KEY "2/2\n");
	expect_problem(scene, post(scene, "{\"events\":[" EVENT("2/2", "25") "]}"),
	               "another event had the key " KEY "2/2");
	assert_int_equal(event_receiver_counters(scene->receiver).billing_events, 2);
	assert_int_equal(event_receiver_counters(scene->receiver).billing_pushes, 2);
	assert_int_equal(event_receiver_counters(scene->receiver).duplicates, 1);
	assert_int_equal(event_receiver_counters(scene->receiver).refused, 1);
	assert_int_equal(event_receiver_missing(scene->receiver), 0);
	assert_int_equal(post(scene, "{\"events\":[" EVENT("3/4", "1") "]}"), 200);
	assert_int_equal(event_receiver_missing(scene->receiver), 3);
}

static void what_isnt_an_event_is_a_problem(void **state)
{
	struct scene *scene = *state;

	expect_problem(scene, post(scene, ""), "billing push: ");
	expect_problem(scene, post(scene, "{\"events\":[]}"), "a batch without events");
	expect_problem(scene, post(scene, "{}"), "events");
	expect_problem(scene, post(scene, "{\"events\":[" EVENT("1/2", "6") "]}x"), "billing push: line 1");
	expect_problem(scene, post(scene, "{\"events\":[" EVENT("1/2", "6.0") "]}"), "value");
	expect_problem(scene, post(scene, "{\"events\":[" EVENT("1/2", "-1") "]}"), "value");
	expect_problem(scene, post(scene, "{\"events\":[" EVENT("1/2", "6,\"extra\":1") "]}"), "extra");
	expect_problem(scene, post(scene, "{\"events\":[" EVENT("0/2", "6") "]}"), "is no idempotency key");
	expect_problem(scene,
	               post(scene,
	                    "{\"events\":[{\"idempotency_key\":\"t-h-1/2\",\"metric\":\"m\",\"type\":\"absolute\","
	                    "\"endpoint_id\":\"e\"," WINDOW "\"value\":1}]}"),
	               "type is \"absolute\"");
	expect_problem(scene,
	               post(scene,
	                    "{\"events\":[{\"idempotency_key\":\"t-h-1/2\",\"metric\":\"m\",\"type\":\"incremental\","
	                    "\"endpoint_id\":\"e\",\"start_time\":\"2025-03-07T09:05:04Z\","
	                    "\"stop_time\":\"2025-03-07T09:05:04Z\",\"value\":1}]}"),
	               "a window from");
	assert_int_equal(event_receiver_counters(scene->receiver).billing_events, 0);
}

static void heads_must_be_the_references(void **state)
{
	static const char BODY[] = "{\"events\":[" EVENT("1/2", "6") "]}";
	struct scene *scene = *state;

	expect_problem(scene, ask(scene, "POST /v1/usage_events", JSON_TYPE, slice_of(BODY)), "X-Trace-Id");
	expect_problem(scene, ask(scene, "POST /v1/usage_events", JSON_TYPE "X-Trace-Id: 0OIl\r\n", slice_of(BODY)),
	               "is no id");
	expect_problem(scene, ask(scene, "POST /v1/usage_events", TRACE, slice_of(BODY)), "Content-Type");
	expect_problem(scene, ask(scene, "POST /v1/usage_events?x", JSON_TYPE TRACE, slice_of(BODY)), "a query");
	expect_problem(scene, ask(scene, "POST /v1//usage_events", JSON_TYPE TRACE, slice_of(BODY)),
	               "means nothing here");
	expect_problem(scene, ask(scene, "GET /v1/usage_events", JSON_TYPE TRACE, SLICE("")), "means nothing here");
}

/* ---- objects ---- */

#define SIGNED "Authorization: AWS4-HMAC-SHA256 Credential=a\r\n"
#define BINARY "Content-Type: application/octet-stream\r\n"
#define OBJECT "PUT /events/scaling/2025/03/07/09/events_x.ndjson.gz?x-id=PutObject"

static struct buffer packed(const char *text)
{
	struct gzip_packer *packer;
	struct buffer out;
	struct error err;

	buffer_init(&out, ROOM_BYTES);
	packer = gzip_packer_create(&err);
	assert_non_null(packer);
	assert_true(gzip_packer_add(packer, slice_of(text), SLICE(""), &out, &err));
	assert_true(gzip_packer_finish(packer, &out, &err));
	gzip_packer_destroy(packer);
	return out;
}

static int put(struct scene *scene, const char *fields, const char *text)
{
	struct buffer body = packed(text);
	int status = ask(scene, OBJECT, fields, buffer_slice(&body));

	buffer_destroy(&body);
	return status;
}

static void objects_are_unpacked(void **state)
{
	struct scene *scene = *state;

	assert_int_equal(put(scene, SIGNED BINARY, SCALING SCALING), 200);
	expect_notes(scene, "actual 1000 2250\nactual 1000 2250\n");
	assert_int_equal(event_receiver_counters(scene->receiver).scaling_events, 2);
	assert_int_equal(event_receiver_counters(scene->receiver).scaling_pushes, 1);
}

static void what_isnt_an_object_of_events_is_a_problem(void **state)
{
	struct scene *scene = *state;

	expect_problem(scene, put(scene, BINARY, SCALING), "no signature");
	expect_problem(scene, put(scene, SIGNED, SCALING), "Content-Type");
	expect_problem(scene, put(scene, SIGNED BINARY "Content-Encoding: gzip\r\n", SCALING), "Content-Encoding");
	expect_problem(scene, put(scene, SIGNED BINARY, ""), "doesn't end with a line");
	expect_problem(scene, put(scene, SIGNED BINARY, "{}"), "doesn't end with a line");
	expect_problem(scene, put(scene, SIGNED BINARY, "{}\n"), "scaling events: ");
	expect_problem(scene,
	               put(scene, SIGNED BINARY,
	                   "{\"timestamp\":\"2025-03-07T09:05:04Z\",\"region\":\"r\",\"endpoint_id\":\"\",\"kind\":"
	                   "\"actual\",\"current_cu\":1,\"target_cu\":2,\"goalComponents\":{}}\n"),
	               "kind is \"actual\", goalComponents are there");
	expect_problem(scene, ask(scene, OBJECT, SIGNED BINARY, SLICE(SCALING)), "not gzip data");
	expect_problem(scene, ask(scene, "PUT /other/x", SIGNED BINARY, SLICE("")), "the path is /other/x");
	assert_int_equal(event_receiver_counters(scene->receiver).scaling_events, 0);
}

static void gzip_data_must_be_whole_and_alone(void **state)
{
	struct buffer data = packed(SCALING), out;
	struct error err;

	(void)state;
	buffer_init(&out, ROOM_BYTES);
	assert_true(gunzip(buffer_slice(&data), &out, &err));
	assert_true(slice_equal_text(buffer_slice(&out), SCALING));
	buffer_clear(&out);
	for (size_t length = 0; length < data.length; length++) {
		assert_false(gunzip(slice_from(data.data, length), &out, &err));
		assert_int_equal(err.code, ERROR_SYNTAX);
	}
	data.data[data.length - 5] ^= 1; /* the check sum */
	assert_false(gunzip(buffer_slice(&data), &out, &err));
	data.data[data.length - 5] ^= 1;
	buffer_append_char(&data, 'x');
	assert_false(gunzip(buffer_slice(&data), &out, &err));
	assert_non_null(strstr(err.text, "1 bytes behind"));
	buffer_destroy(&out);
	buffer_init(&out, 10);
	data.length--;
	assert_false(gunzip(buffer_slice(&data), &out, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	buffer_destroy(&out);
	buffer_destroy(&data);
}

/* ---- outages ---- */

static void an_outage_refuses_and_ends(void **state)
{
	struct scene *scene = *state;
	struct raw_client client;
	struct error err;

	raw_client_begin(&client, scene->loop, "127.0.0.1", scene->port);
	assert_int_equal(client.opened, 1);
	assert_true(event_receiver_set_available(scene->receiver, false, &err));
	assert_true(event_receiver_set_available(scene->receiver, false, &err));
	scene_until(scene->loop, client.closed, 1);
	raw_client_end(&client);
	raw_client_begin(&client, scene->loop, "127.0.0.1", scene->port);
	assert_int_equal(client.opened, 0);
	raw_client_end(&client);
	assert_true(event_receiver_set_available(scene->receiver, true, &err));
	assert_int_equal(post(scene, "{\"events\":[" EVENT("1/2", "6") "]}"), 200);
	assert_int_equal(event_receiver_counters(scene->receiver).billing_events, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(events_are_taken_once),
		TEST(what_isnt_an_event_is_a_problem),
		TEST(heads_must_be_the_references),
		TEST(objects_are_unpacked),
		TEST(what_isnt_an_object_of_events_is_a_problem),
		cmocka_unit_test(gzip_data_must_be_whole_and_alone),
		TEST(an_outage_refuses_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
