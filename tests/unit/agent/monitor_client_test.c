#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/monitor_client.h"
#include "base/memory.h"
#include "tests/unit/agent/agent_fixture.h"
#include "tests/unit/agent/fake_monitor.h"

struct world {
	bool capital_texts;
	struct fixture fixture;
	struct fake_monitor monitor;
	struct monitor_client client;
	int connects, disconnects, upscale_requests, contacts;
	int downscale_ends, upscale_ends;
	int waiting_at_disconnect;
	int upscale_requests_at_disconnect;
	bool allowed;
	bool failed;
	char failure[1024];
	char response[256];
};

static void on_connected(void *context)
{
	struct world *world = context;

	world->connects++;
	/* Messages sent with the version answer are handled after this. */
	assert_int_equal(world->upscale_requests, 0);
}

static void on_disconnected(void *context)
{
	struct world *world = context;

	world->disconnects++;
	world->upscale_requests_at_disconnect = world->upscale_requests;
	world->waiting_at_disconnect = (int)monitor_client_waiting_calls(&world->client);
}

static void on_upscale_requested(void *context)
{
	((struct world *)context)->upscale_requests++;
}

static void on_contact(void *context)
{
	((struct world *)context)->contacts++;
}

static void keep_end(struct world *world, const struct error *err)
{
	world->failed = err != NULL;
	(void)snprintf(world->failure, sizeof world->failure, "%s", err != NULL ? err->text : "");
}

static void on_downscale_done(void *context, bool allowed, struct slice response, const struct error *err)
{
	struct world *world = context;

	world->downscale_ends++;
	world->allowed = allowed;
	(void)snprintf(world->response, sizeof world->response, "%.*s", SLICE_ARGS(response));
	keep_end(world, err);
}

static void on_upscale_done(void *context, const struct error *err)
{
	struct world *world = context;

	world->upscale_ends++;
	keep_end(world, err);
}

static void start_client(struct world *world)
{
	const struct monitor_client settings = {
		.loop = world->fixture.loop,
		.config = &world->fixture.config.monitor,
		.metrics = world->fixture.metrics,
		.handler = { .context = world,
		             .on_connected = on_connected,
		             .on_disconnected = on_disconnected,
		             .on_upscale_requested = on_upscale_requested,
		             .on_contact = on_contact,
		             .on_downscale_done = on_downscale_done,
		             .on_upscale_done = on_upscale_done },
		.host = "127.0.0.1",
		.capital_texts = world->capital_texts,
		.log_sink = world->fixture.log_sink,
		.log_context = "",
	};

	monitor_client_start(&world->client, &settings);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);

	fixture_begin(&world->fixture);
	fake_monitor_begin(&world->monitor, world->fixture.loop);
	world->fixture.config.monitor.server_port = fake_monitor_port(&world->monitor);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	if (world->client.loop != NULL)
		monitor_client_stop(&world->client);
	fake_monitor_end(&world->monitor);
	test_loop_spin(world->fixture.loop, 10);
	fixture_end(&world->fixture);
	free(world);
	return 0;
}

static void settle(struct world *world)
{
	test_loop_spin(world->fixture.loop, 20);
}

static void connect_client(struct world *world)
{
	start_client(world);
	for (int i = 0; i < 2000 && world->connects == 0; i++)
		test_loop_spin(world->fixture.loop, 1);
	assert_int_equal(world->connects, 1);
	fake_monitor_forget(&world->monitor);
}

static const char *outbound(const char *endpoint, const char *code)
{
	static char series[256];

	(void)snprintf(series, sizeof series, "monitor_outbound_requests_total{endpoint=\"%s\",code=\"%s\"}", endpoint,
	               code);
	return series;
}

static const struct resources CURRENT = { .cpu_milli = 1000, .mem_bytes = UINT64_C(4) << 30 };
static const struct resources TARGET = { .cpu_milli = 700, .mem_bytes = UINT64_C(2) << 30 };

/* ---- handshake ---- */

static void t33_the_first_frame_is_the_protocol_range(void **state)
{
	struct world *world = *state;

	start_client(world);
	assert_string_equal(fake_monitor_wait(&world->fixture, &world->monitor, 1), "{\"min\":1,\"max\":1}\n");
	settle(world);
	assert_int_equal(world->connects, 1);
	assert_logged(&world->fixture, "\"msg\":\"Connecting to vm-monitor\"");
	assert_logged(&world->fixture, "\"msg\":\"Connected to vm-monitor\"");
	assert_logged(&world->fixture, "\"logger\":\"autoscaler-agent.runner.vm-monitor\"");
	assert_logged(&world->fixture,
	              "\"msg\":\"background worker started\",\"taskName\":\"vm-monitor health checks\"");
}

static void t34_an_error_answer_ends_the_handshake_with_1002(void **state)
{
	struct world *world = *state;

	world->monitor.version_answer = "{\"error\":\"no\"}";
	start_client(world);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1002);
	assert_string_equal(world->monitor.close_reason, "monitor returned error during protocol handshake: \"no\"");
	assert_int_equal(world->connects, 0);
	assert_logged(&world->fixture, "\"msg\":\"Failed to connect to vm-monitor\"");
	assert_logged(&world->fixture, "\"error\":\"monitor returned error during protocol handshake: \\\"no\\\"\"");
}

static void t35_any_version_is_accepted(void **state)
{
	struct world *world = *state;

	world->monitor.version_answer = "{\"version\":9}";
	connect_client(world);
}

static void an_answer_without_version_or_error_is_accepted(void **state)
{
	struct world *world = *state;

	world->monitor.version_answer = "{\"error\":null}";
	connect_client(world);
}

static void an_answer_that_is_no_json_ends_the_handshake_with_1007(void **state)
{
	struct world *world = *state;

	world->monitor.version_answer = "hello";
	start_client(world);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1007);
	assert_string_equal(world->monitor.close_reason, "failed to unmarshal JSON");
	assert_logged(&world->fixture, "error reading vm-monitor response during protocol handshake: ");
}

static void silence_ends_the_handshake_without_a_close_frame(void **state)
{
	struct world *world = *state;

	world->monitor.version_answer = NULL;
	start_client(world);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fixture_pass(&world->fixture, 3800);
	assert_int_equal(world->disconnects, 0);
	fixture_pass(&world->fixture, 400);
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1006);
	assert_int_equal(world->disconnects, 1);
	assert_logged(&world->fixture,
	              "error reading vm-monitor response during protocol handshake: context deadline exceeded");
}

static void a_monitor_that_is_not_there_is_asked_again(void **state)
{
	struct world *world = *state;
	uint16_t port = fake_monitor_port(&world->monitor);

	http_server_destroy(world->monitor.server);
	world->monitor.server = NULL;
	start_client(world);
	settle(world);
	assert_int_equal(world->disconnects, 1);
	assert_logged(&world->fixture, "\"msg\":\"Failed to connect to vm-monitor\"");
	assert_logged(&world->fixture, "error establishing websocket connection to ws://127.0.0.1:");
	assert_logged(&world->fixture, "connection refused");
	assert_logged(&world->fixture, "\"msg\":\"Reset previous vm-monitor connection\"");
	assert_logged(&world->fixture,
	              "\"msg\":\"Connection to vm-monitor was not live for long, retrying after delay\"");
	fake_monitor_listen(&world->monitor, port);
	fixture_pass(&world->fixture, 4500);
	assert_int_equal(world->monitor.connections, 0);
	fixture_pass(&world->fixture, 700);
	settle(world);
	assert_int_equal(world->connects, 1);
	assert_logged(&world->fixture, "\"msg\":\"Retrying connection to vm-monitor\"");
}

/* ---- health checks ---- */

static void t36_the_first_health_check_comes_after_5_s_with_id_2(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fixture_pass(&world->fixture, 4800);
	assert_int_equal(world->monitor.message_count, 0);
	fixture_pass(&world->fixture, 300);
	assert_string_equal(fake_monitor_wait(&world->fixture, &world->monitor, 1),
	                    "{\"content\":{},\"type\":\"HealthCheck\",\"id\":2}\n");
}

static void t37_only_the_first_answer_to_an_id_counts(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fixture_pass(&world->fixture, 5100);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_send(&world->monitor, "{\"type\":\"HealthCheck\",\"id\":2}");
	fake_monitor_send(&world->monitor, "{\"type\":\"HealthCheck\",\"id\":2}");
	assert_string_equal(
		fake_monitor_wait(&world->fixture, &world->monitor, 2),
		"{\"content\":{\"error\":\"Received HealthCheck with id 2 but id is unknown or already timed "
		"out waiting for a reply\"},\"type\":\"InvalidMessage\",\"id\":2}\n");
	assert_int_equal(world->contacts, 1);
	assert_metric(&world->fixture, outbound("HealthCheck", "ok"), 1);
	assert_int_equal(world->disconnects, 0);
}

static void a_slow_health_check_delays_the_next_and_drops_a_tick(void **state)
{
	struct world *world = *state;

	world->fixture.config.monitor.response_timeout_ns = UINT64_C(30) * NS_PER_S;
	connect_client(world);
	fixture_pass(&world->fixture, 5100);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fixture_pass(&world->fixture, 12000); /* ticks at 10 and 15 s pass */
	assert_int_equal(world->monitor.message_count, 1);
	fake_monitor_send(&world->monitor, "{\"type\":\"HealthCheck\",\"id\":2}");
	/* One of the two ticks was kept. */
	assert_non_null(strstr(fake_monitor_wait(&world->fixture, &world->monitor, 2), "\"id\":4"));
	fake_monitor_send(&world->monitor, "{\"type\":\"HealthCheck\",\"id\":4}");
	settle(world);
	assert_int_equal(world->monitor.message_count, 2);
	fixture_pass(&world->fixture, 3000); /* 20 s */
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 3);
}

static void every_tenth_success_is_logged(void **state)
{
	struct world *world = *state;

	connect_client(world);
	world->monitor.answer_health = true;
	for (int i = 0; i < 10; i++) {
		assert_not_logged(&world->fixture, "vm-monitor health check successful");
		fixture_pass(&world->fixture, 5000);
		settle(world);
	}
	fixture_pass(&world->fixture, 200);
	settle(world);
	assert_int_equal(fixture_log_count(&world->fixture, "vm-monitor health check successful"), 1);
	assert_int_equal(world->contacts, 10);
}

static void failing_health_checks_close_the_connection(void **state)
{
	struct world *world = *state;

	connect_client(world);
	/*
	 * The streak begins at 10 s, after 5 s of silence. At 40 s it is 30 s old, give or take; at 45 s certainly
	 * older.
	 */
	fixture_pass(&world->fixture, 39000);
	assert_int_equal(world->disconnects, 0);
	fixture_pass(&world->fixture, 7000);
	settle(world);
	assert_int_equal(world->monitor.close_code, 1011);
	assert_string_equal(world->monitor.close_reason, "vm-monitor has been failing health checks for at least 30s");
	assert_int_equal(world->disconnects, 1);
	assert_logged(&world->fixture, "\"msg\":\"vm-monitor health check failed\"");
	assert_logged(&world->fixture, "\"failSequence\":1,\"error\":\"timed out waiting 5s for monitor response\"");
	assert_logged(&world->fixture, "\"msg\":\"Dispatcher for vm-monitor connection exited due to error\"");
	assert_in_range(
		fixture_metric(&world->fixture, outbound("HealthCheck", "[error: timed out waiting for response]")), 7,
		8);
	/* It had been live for long enough: the next attempt comes at once. */
	assert_logged(&world->fixture, "\"msg\":\"Immediately retrying connection to vm-monitor\"");
	settle(world);
	assert_int_equal(world->connects, 2);
}

/*
 * Two health checks in a row have failed, the first at 10 s, and the third is under way: another failure is one too
 * many.
 */
static void wait_for_the_last_health_check(struct world *world)
{
	world->fixture.config.monitor.max_health_check_failures_ns = UINT64_C(7) * NS_PER_S;
	world->fixture.config.monitor.connection_retry_min_wait_ns = UINT64_C(25) * NS_PER_S;
	connect_client(world);
	fixture_pass(&world->fixture, 17500);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 3);
	assert_int_equal(world->disconnects, 0);
	assert_int_equal(monitor_client_waiting_calls(&world->client), 1);
}

/* The connection has ended once, because of its health, and is made anew once. */
static void check_ended_once_as_unhealthy(struct world *world)
{
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1011);
	assert_string_equal(world->monitor.close_reason, "vm-monitor has been failing health checks for at least 7s");
	settle(world);
	assert_int_equal(world->disconnects, 1);
	assert_int_equal(fixture_log_count(&world->fixture, "\"msg\":\"Reset previous vm-monitor connection\""), 1);
	assert_int_equal(fixture_log_count(&world->fixture,
	                                   "\"msg\":\"Dispatcher for vm-monitor connection exited due to error\""),
	                 1);
	assert_not_logged(&world->fixture, "\"msg\":\"Failed to connect to vm-monitor\"");
	fixture_pass(&world->fixture, 20000);
	settle(world);
	assert_int_equal(world->connects, 2);
	assert_int_equal(world->monitor.connections, 2);
	assert_int_equal(world->disconnects, 1);
}

static void a_malformed_reply_to_one_health_check_too_many_ends_the_connection_once(void **state)
{
	struct world *world = *state;

	wait_for_the_last_health_check(world);
	world->monitor.answer_health = true; /* of the next connection */
	fake_monitor_send(&world->monitor, "{\"type\":\"DownscaleResult\",\"ok\":1,\"id\":6}");
	check_ended_once_as_unhealthy(world);
	assert_metric(&world->fixture, outbound("HealthCheck", "[error: failed unmarshaling JSON]"), 1);
	assert_non_null(
		strstr(world->monitor.messages[3], "{\"content\":{\"error\":\"error unmarshaling DownscaleResult: "));
}

static void an_unknown_reply_to_one_health_check_too_many_ends_the_connection_once(void **state)
{
	struct world *world = *state;

	wait_for_the_last_health_check(world);
	world->monitor.answer_health = true;
	fake_monitor_send(&world->monitor, "{\"type\":\"Foo\",\"id\":6}");
	check_ended_once_as_unhealthy(world);
	assert_metric(&world->fixture, outbound("HealthCheck", "[error: received unknown message type]"), 1);
}

static void an_upscale_request_in_place_of_a_last_health_check_is_heard_before_the_end(void **state)
{
	struct world *world = *state;

	wait_for_the_last_health_check(world);
	world->monitor.answer_health = true;
	world->upscale_requests_at_disconnect = -1;
	fake_monitor_send(&world->monitor, "{\"type\":\"UpscaleRequest\",\"id\":6}");
	/* What it asks for would otherwise outlive the reset of what is known of the monitor. */
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	settle(world);
	assert_int_equal(world->upscale_requests, 1);
	assert_int_equal(world->upscale_requests_at_disconnect, 1);
	world->upscale_requests = 0;
	check_ended_once_as_unhealthy(world);
}

static void a_fatal_message_while_the_last_health_check_waits_ends_the_connection_once(void **state)
{
	struct world *world = *state;

	wait_for_the_last_health_check(world);
	world->monitor.answer_health = true;
	fake_monitor_send(&world->monitor, "[1]");
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_string_equal(world->monitor.close_reason, "error deserializing message: \"[1]\"");
	fixture_pass(&world->fixture, 20000);
	settle(world);
	assert_int_equal(world->disconnects, 1);
	assert_int_equal(world->connects, 2);
	assert_metric(&world->fixture, outbound("HealthCheck", "[error: timed out waiting for response]"), 3);
}

/* ---- what the monitor says ---- */

static void t38_an_unknown_type_is_answered_and_the_connection_stays(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fake_monitor_send(&world->monitor, "{\"type\":\"Foo\",\"id\":3}");
	assert_string_equal(fake_monitor_wait(&world->fixture, &world->monitor, 1),
	                    "{\"content\":{\"error\":\"Received message of unknown type: \\\"Foo\\\"\"},"
	                    "\"type\":\"InvalidMessage\",\"id\":3}\n");
	settle(world);
	assert_int_equal(world->disconnects, 0);
	/* The label is not the guest's word: that could be anything. */
	assert_true(agent_metrics_recorder_has(
		world->fixture.metrics, "monitor_inbound_requests_total{endpoint=\"other\",code=\"[error: received "
					"unknown message type]\"}"));
	assert_metric(
		&world->fixture,
		"monitor_inbound_requests_total{endpoint=\"other\",code=\"[error: received unknown message type]\"}",
		0);
}

static void t39_an_upscale_request_is_passed_on_without_a_reply(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fake_monitor_send(&world->monitor, "{\"type\":\"UpscaleRequest\",\"id\":1}");
	settle(world);
	assert_int_equal(world->upscale_requests, 1);
	assert_int_equal(world->monitor.message_count, 0);
	assert_metric(&world->fixture, "monitor_inbound_requests_total{endpoint=\"UpscaleRequest\",code=\"ok\"}", 1);
}

static void an_upscale_request_right_behind_the_version_waits_for_the_connection_to_be_known(void **state)
{
	struct world *world = *state;

	world->monitor.version_answer = NULL;
	start_client(world);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_send(&world->monitor, "{\"version\":1}");
	fake_monitor_send(&world->monitor, "{\"type\":\"UpscaleRequest\",\"id\":1}");
	settle(world);
	assert_int_equal(world->connects, 1);
	assert_int_equal(world->upscale_requests, 1);
}

/* Sends a message that ends the connection, and checks with what. */
static void check_fatal(struct world *world, const char *message, int code, const char *reason)
{
	fake_monitor_send(&world->monitor, message);
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, code);
	assert_string_equal(world->monitor.close_reason, reason);
	settle(world);
	assert_int_equal(world->disconnects, 1);
	assert_logged(&world->fixture, "\"logger\":\"autoscaler-agent.runner.vm-monitor.message-handler\"");
	assert_logged(&world->fixture, "\"msg\":\"Error handling message, shutting down connection\"");
	assert_logged(&world->fixture, "\"msg\":\"Dispatcher for vm-monitor connection exited due to error\"");
}

static void t40_a_message_that_is_no_object_ends_the_connection(void **state)
{
	struct world *world = *state;

	connect_client(world);
	check_fatal(world, "[1]", 1011, "error deserializing message: \"[1]\"");
}

static void t40_a_message_without_type_ends_the_connection(void **state)
{
	struct world *world = *state;

	connect_client(world);
	check_fatal(world, "{\"id\":3}", 1011, "data had no key \"type\"");
}

static void null_has_no_type(void **state)
{
	struct world *world = *state;

	connect_client(world);
	check_fatal(world, "null", 1011, "data had no key \"type\"");
}

static void a_type_that_is_no_string_ends_the_connection(void **state)
{
	struct world *world = *state;

	connect_client(world);
	check_fatal(world, "{\"type\":7,\"id\":3}", 1011, "data[\"type\"] was not of type string");
}

static void a_message_without_id_ends_the_connection(void **state)
{
	struct world *world = *state;

	connect_client(world);
	check_fatal(world, "{\"type\":\"HealthCheck\"}", 1011, "data had no key \"id\"");
}

static void an_id_that_is_no_number_ends_the_connection(void **state)
{
	struct world *world = *state;

	connect_client(world);
	check_fatal(world, "{\"type\":\"HealthCheck\",\"id\":\"3\"}", 1011, "data[\"id\"] was not of type float64");
}

static void bad_json_ends_the_connection_with_1007(void **state)
{
	struct world *world = *state;

	connect_client(world);
	check_fatal(world, "{\"type\"", 1007, "failed to unmarshal JSON");
}

static void a_message_over_the_limit_ends_the_connection_with_1009(void **state)
{
	struct world *world = *state;
	char *text = malloc(33000);

	connect_client(world);
	memset(text, ' ', 32999);
	text[32999] = '\0';
	check_fatal(world, text, 1009, "read limited at 32769 bytes");
	free(text);
}

static void a_message_at_the_limit_is_read(void **state)
{
	struct world *world = *state;
	char *text = malloc(32769);

	connect_client(world);
	memset(text, ' ', 32768);
	text[32768] = '\0';
	memcpy(text, "{\"type\":\"UpscaleRequest\",\"id\":1}", 32);
	fake_monitor_send(&world->monitor, text);
	settle(world);
	assert_int_equal(world->upscale_requests, 1);
	free(text);
}

static void fields_of_the_wrong_type_are_answered_then_end_the_connection(void **state)
{
	struct world *world = *state;
	const char *message;

	connect_client(world);
	fake_monitor_send(&world->monitor, "{\"type\":\"DownscaleResult\",\"id\":3,\"ok\":\"yes\"}");
	message = fake_monitor_wait(&world->fixture, &world->monitor, 1);
	assert_non_null(strstr(message, "{\"content\":{\"error\":\"error unmarshaling DownscaleResult: "));
	assert_non_null(strstr(message, "\"type\":\"InvalidMessage\",\"id\":3}"));
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1011);
	settle(world);
	assert_int_equal(world->disconnects, 1);
	assert_true(agent_metrics_recorder_has(
		world->fixture.metrics,
		"monitor_inbound_requests_total{endpoint=\"DownscaleResult\",code=\"[error: failed unmarshaling JSON]\"}"));
}

static void t41_an_internal_error_for_an_unknown_id_is_answered(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fake_monitor_send(&world->monitor, "{\"type\":\"InternalError\",\"id\":8,\"error\":\"x\"}");
	assert_string_equal(
		fake_monitor_wait(&world->fixture, &world->monitor, 1),
		"{\"content\":{\"error\":\"Received MonitorError with id 8 but id is unknown or already timed "
		"out waiting for a reply\"},\"type\":\"InvalidMessage\",\"id\":8}\n");
	settle(world);
	assert_int_equal(world->disconnects, 0);
}

/* ---- the words of late 2023 (generations 4.5) ---- */

static void in_late_2023_an_unknown_id_has_no_record(void **state)
{
	struct world *world = *state;

	world->capital_texts = true;
	connect_client(world);
	fake_monitor_send(&world->monitor, "{\"type\":\"InternalError\",\"id\":8,\"error\":\"x\"}");
	assert_string_equal(
		fake_monitor_wait(&world->fixture, &world->monitor, 1),
		"{\"content\":{\"error\":\"Received MonitorError with id 8 but no record of previous message with "
		"that id\"},\"type\":\"InvalidMessage\",\"id\":8}\n");
}

static void in_late_2023_errors_begin_with_capitals(void **state)
{
	struct world *world = *state;

	world->capital_texts = true;
	connect_client(world);
	fake_monitor_send(&world->monitor, "{\"type\":\"DownscaleResult\",\"id\":3,\"ok\":\"yes\"}");
	assert_non_null(strstr(fake_monitor_wait(&world->fixture, &world->monitor, 1),
	                       "{\"content\":{\"error\":\"Error unmarshaling DownscaleResult: "));
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
}

static void in_late_2023_a_message_that_is_no_object_closes_with_a_capital(void **state)
{
	struct world *world = *state;

	world->capital_texts = true;
	connect_client(world);
	fake_monitor_send(&world->monitor, "[1]");
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_string_equal(world->monitor.close_reason, "Error deserializing message: \"[1]\"");
}

static void in_late_2023_a_handshake_is_refused_with_a_capital(void **state)
{
	struct world *world = *state;

	world->capital_texts = true;
	world->monitor.version_answer = "{\"error\":\"no\"}";
	start_client(world);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_string_equal(world->monitor.close_reason, "Monitor returned error during protocol handshake: \"no\"");
}

static void in_late_2023_a_handshake_that_can_not_be_read_is_told_with_a_capital(void **state)
{
	struct world *world = *state;

	world->capital_texts = true;
	world->monitor.version_answer = "hello";
	start_client(world);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_logged(&world->fixture, "\"error\":\"Error reading vm-monitor response during protocol handshake: ");
}

static void a_flood_of_messages_ends_the_connection_with_1008(void **state)
{
	struct world *world = *state;

	connect_client(world);
	for (int i = 0; i <= AGENT_MONITOR_MESSAGES_BURST; i++)
		fake_monitor_send(&world->monitor, "{\"type\":\"UpscaleRequest\",\"id\":1}");
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1008);
	assert_string_equal(world->monitor.close_reason, "more than 50 messages per second");
	settle(world);
	assert_int_equal(world->upscale_requests, AGENT_MONITOR_MESSAGES_BURST);
	assert_int_equal(world->disconnects, 1);
}

static void an_invalid_message_note_is_only_logged(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fake_monitor_send(&world->monitor, "{\"type\":\"InvalidMessage\",\"id\":8,\"error\":\"what?\"}");
	settle(world);
	assert_int_equal(world->monitor.message_count, 0);
	assert_int_equal(world->disconnects, 0);
	assert_logged(&world->fixture, "\"msg\":\"Received notification we sent an invalid message\"");
}

static void a_close_frame_of_the_monitor_ends_the_connection(void **state)
{
	struct world *world = *state;

	connect_client(world);
	websocket_close(world->monitor.websocket, 1001, SLICE("bye"));
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1001);
	settle(world);
	assert_int_equal(world->disconnects, 1);
	assert_logged(&world->fixture, "received close frame: status = 1001 and reason = \\\"bye\\\"");
}

/* ---- calls ---- */

static void t42_a_downscale_request_on_the_wire(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fixture_pass(&world->fixture, 5100);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1); /* the health check has id 2 */
	monitor_client_downscale(&world->client, CURRENT, TARGET);
	assert_string_equal(fake_monitor_wait(&world->fixture, &world->monitor, 2),
	                    "{\"content\":{\"target\":{\"cpu\":0.7000000000000001,\"mem\":2147483648}},"
	                    "\"type\":\"DownscaleRequest\",\"id\":4}\n");
	assert_metric(&world->fixture, "monitor_requested_mem_change_total{direction=\"dec\"}", 2048);
	assert_metric(&world->fixture, "monitor_approved_mem_change_total{direction=\"dec\"}", 0);
	fake_monitor_send(&world->monitor,
	                  "{\"type\":\"DownscaleResult\",\"Ok\":true,\"Status\":\"reduced cache\",\"id\":4}");
	settle(world);
	assert_int_equal(world->downscale_ends, 1);
	assert_true(world->allowed);
	assert_false(world->failed);
	assert_string_equal(world->response, "{\"Ok\":true,\"Status\":\"reduced cache\"}");
	assert_metric(&world->fixture, "monitor_approved_mem_change_total{direction=\"dec\"}", 2048);
	assert_metric(&world->fixture, outbound("DownscaleRequest", "ok"), 1);
}

static void a_denied_downscale_is_no_failure_and_counts_nowhere(void **state)
{
	struct world *world = *state;

	connect_client(world);
	monitor_client_downscale(&world->client, CURRENT, TARGET);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_send(&world->monitor, "{\"type\":\"DownscaleResult\",\"ok\":false,\"status\":\"no\",\"id\":2}");
	settle(world);
	assert_int_equal(world->downscale_ends, 1);
	assert_false(world->allowed);
	assert_false(world->failed);
	assert_metric(&world->fixture, "monitor_approved_mem_change_total{direction=\"dec\"}", 0);
	assert_metric(&world->fixture, "scaling_full_denials_total{direction=\"dec\"}", 0);
}

static void an_upscale_notification_on_the_wire(void **state)
{
	struct world *world = *state;
	const struct resources granted = { .cpu_milli = 1250, .mem_bytes = UINT64_C(5) << 30 };

	connect_client(world);
	monitor_client_upscale(&world->client, CURRENT, granted);
	assert_string_equal(
		fake_monitor_wait(&world->fixture, &world->monitor, 1),
		"{\"content\":{\"granted\":{\"cpu\":1.25,\"mem\":5368709120}},\"type\":\"UpscaleNotification\","
		"\"id\":2}\n");
	/* An id is any number, its fraction cut off. */
	fake_monitor_send(&world->monitor, "{\"type\":\"UpscaleConfirmation\",\"id\":2.9}");
	settle(world);
	assert_int_equal(world->upscale_ends, 1);
	assert_false(world->failed);
	assert_metric(&world->fixture, "monitor_approved_cpu_change_total{direction=\"inc\"}", 0.25);
}

static void a_downscale_answered_by_something_else_is_a_failed_request(void **state)
{
	struct world *world = *state;

	connect_client(world);
	monitor_client_downscale(&world->client, CURRENT, TARGET);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_send(&world->monitor, "{\"type\":\"UpscaleConfirmation\",\"id\":2}");
	settle(world);
	assert_true(world->failed);
	assert_string_equal(world->failure, "expected DownscaleResult from vm-monitor but got UpscaleConfirmation");
	assert_metric(&world->fixture, outbound("DownscaleRequest", "ok"), 1);
	assert_metric(&world->fixture, "scaling_full_denials_total{direction=\"dec\"}", 1);
	assert_int_equal(world->disconnects, 0);
}

/* What ends a waiting downscale, how it is counted, and what its owner hears. */
static void check_failed_call(struct world *world, const char *reply, const char *code, const char *failure)
{
	connect_client(world);
	monitor_client_downscale(&world->client, CURRENT, TARGET);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fake_monitor_send(&world->monitor, reply);
	settle(world);
	assert_int_equal(world->downscale_ends, 1);
	assert_string_equal(world->failure, failure);
	assert_metric(&world->fixture, outbound("DownscaleRequest", code), 1);
	assert_metric(&world->fixture, "scaling_full_denials_total{direction=\"dec\"}", 1);
}

static void a_call_answered_by_an_internal_error(void **state)
{
	check_failed_call(*state, "{\"type\":\"InternalError\",\"error\":\"failed to downscale\",\"id\":2}",
	                  "[error: vm-monitor internal error]", "monitor experienced an internal error");
	assert_int_equal(((struct world *)*state)->disconnects, 0);
}

static void a_call_answered_by_an_unknown_type(void **state)
{
	check_failed_call(*state, "{\"type\":\"Foo\",\"id\":2}", "[error: received unknown message type]",
	                  "monitor experienced an internal error");
	assert_int_equal(((struct world *)*state)->disconnects, 0);
}

static void a_call_answered_by_bad_fields(void **state)
{
	check_failed_call(*state, "{\"type\":\"DownscaleResult\",\"ok\":1,\"id\":2}",
	                  "[error: failed unmarshaling JSON]", "monitor experienced an internal error");
	assert_int_equal(((struct world *)*state)->disconnects, 1);
}

static void a_call_answered_by_an_invalid_message_note(void **state)
{
	check_failed_call(*state, "{\"type\":\"InvalidMessage\",\"error\":\"?\",\"id\":2}", "[error: unknown]",
	                  "monitor experienced an internal error");
}

static void a_call_answered_by_an_upscale_request(void **state)
{
	check_failed_call(*state, "{\"type\":\"UpscaleRequest\",\"id\":2}", "[error: unknown]",
	                  "monitor experienced an internal error");
	assert_int_equal(((struct world *)*state)->upscale_requests, 1);
}

static void a_call_times_out(void **state)
{
	struct world *world = *state;

	connect_client(world);
	monitor_client_downscale(&world->client, CURRENT, TARGET);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	fixture_pass(&world->fixture, 4700);
	assert_int_equal(world->downscale_ends, 0);
	fixture_pass(&world->fixture, 400);
	assert_int_equal(world->downscale_ends, 1);
	assert_string_equal(world->failure, "timed out waiting 5s for monitor response");
	assert_metric(&world->fixture, outbound("DownscaleRequest", "[error: timed out waiting for response]"), 1);
	/* A reply after that is nobody's. */
	fake_monitor_send(&world->monitor, "{\"type\":\"DownscaleResult\",\"ok\":true,\"id\":2}");
	settle(world);
	assert_int_equal(world->downscale_ends, 1);
	assert_non_null(strstr(world->monitor.messages[world->monitor.message_count - 1], "already timed out"));
}

static void waiting_calls_fail_when_the_connection_ends_after_the_reset(void **state)
{
	struct world *world = *state;

	connect_client(world);
	monitor_client_downscale(&world->client, CURRENT, TARGET);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	assert_int_equal(monitor_client_waiting_calls(&world->client), 1);
	fake_monitor_drop(&world->monitor);
	settle(world);
	assert_int_equal(world->disconnects, 1);
	assert_int_equal(world->waiting_at_disconnect, 1); /* the reset came first */
	assert_int_equal(world->downscale_ends, 1);
	assert_true(world->failed);
	assert_int_equal(monitor_client_waiting_calls(&world->client), 0);
	assert_metric(&world->fixture, outbound("DownscaleRequest", "[error: timed out waiting for response]"), 1);
}

static void a_call_without_a_connection_fails_to_send(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fake_monitor_drop(&world->monitor);
	settle(world);
	monitor_client_upscale(&world->client, CURRENT, CURRENT);
	assert_int_equal(world->upscale_ends, 1);
	assert_true(world->failed);
	assert_metric(&world->fixture, outbound("UpscaleNotification", "[error: failed to send]"), 1);
}

/* ---- ends ---- */

static void t43_a_connection_that_was_short_is_retried_after_the_rest_of_the_wait(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fixture_pass(&world->fixture, 3000);
	fake_monitor_drop(&world->monitor);
	settle(world);
	assert_int_equal(world->disconnects, 1);
	fixture_pass(&world->fixture, 1600);
	assert_int_equal(world->connects, 1);
	fixture_pass(&world->fixture, 600);
	settle(world);
	assert_int_equal(world->connects, 2);
}

static void t43_a_connection_that_was_long_is_retried_at_once(void **state)
{
	struct world *world = *state;

	connect_client(world);
	fixture_pass(&world->fixture, 6000);
	fake_monitor_drop(&world->monitor);
	settle(world);
	assert_int_equal(world->connects, 2);
	assert_logged(&world->fixture, "\"msg\":\"Immediately retrying connection to vm-monitor\"");
}

static void a_stop_closes_with_1000(void **state)
{
	struct world *world = *state;

	connect_client(world);
	monitor_client_downscale(&world->client, CURRENT, TARGET);
	(void)fake_monitor_wait(&world->fixture, &world->monitor, 1);
	monitor_client_stop(&world->client);
	assert_int_equal(world->downscale_ends, 1);
	fake_monitor_wait_closed(&world->fixture, &world->monitor);
	assert_int_equal(world->monitor.close_code, 1000);
	assert_string_equal(world->monitor.close_reason, "normal exit");
	fixture_pass(&world->fixture, 30000);
	assert_int_equal(world->monitor.connections, 1);
	assert_logged(&world->fixture,
	              "\"msg\":\"background worker ended normally\",\"taskName\":\"vm-monitor message handler\"");
	assert_logged(&world->fixture,
	              "\"msg\":\"background worker ended normally\",\"taskName\":\"vm-monitor health checks\"");
	assert_not_logged(&world->fixture, "exited due to error");
}

/* Open descriptors of this process. */
static int descriptor_count(void)
{
	int count = 0;

	for (int i = 0; i < 1024; i++)
		count += fcntl(i, F_GETFD) != -1;
	return count;
}

/* Drops the connection, and waits for the next, so many times. */
static void reconnect(struct world *world, int reconnects)
{
	for (int i = 0; i < reconnects; i++) {
		int connects = world->connects;

		fake_monitor_drop(&world->monitor);
		test_clock_skip(UINT64_C(6) * NS_PER_S);
		for (int turn = 0; turn < 4000 && world->connects == connects; turn++)
			fixture_turn(&world->fixture);
		if (world->connects == connects)
			fail_msg("reconnect %d didn't happen", i);
		fake_monitor_forget(&world->monitor);
	}
}

static void no_socket_stays_when_the_set_up_fails(void **state)
{
	static const char *const ANSWERS[] = { "{\"error\":\"no\"}", "hello", NULL };
	struct world *world = *state;
	int descriptors = 0;

	world->monitor.version_answer = ANSWERS[0];
	start_client(world);
	for (int i = 0; i < 300; i++) {
		int disconnects = world->disconnects;

		world->monitor.version_answer = ANSWERS[i % 3];
		for (int turn = 0; turn < 1000 && world->disconnects == disconnects; turn++) {
			test_clock_skip(100 * NS_PER_MS);
			fixture_turn(&world->fixture);
		}
		assert_int_equal(world->disconnects, disconnects + 1);
		if (i == 30)
			descriptors = descriptor_count();
		fake_monitor_forget(&world->monitor);
	}
	assert_int_equal(world->connects, 0);
	assert_true(descriptor_count() <= descriptors + 4);
}

static void memory_and_descriptors_stay_flat_over_reconnects(void **state)
{
	struct world *world = *state;
	enum { WARM_UP = 50, RECONNECTS = 10000 };
	long before_pages, after_pages, unused;
	int descriptors;
	FILE *statm;

	connect_client(world);
	reconnect(world, WARM_UP);
	descriptors = descriptor_count();
	statm = fopen("/proc/self/statm", "r");
	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%ld %ld", &unused, &before_pages), 2);
	(void)fclose(statm);
	for (int i = 0; i < RECONNECTS / 100; i++) {
		reconnect(world, 100);
		(void)log_flush(world->fixture.log_sink);
		assert_int_equal(ftruncate(fileno(world->fixture.log_file), 0), 0);
	}
	assert_int_equal(world->monitor.connections, 1 + WARM_UP + RECONNECTS);
	assert_true(descriptor_count() <= descriptors + 4);
	assert_int_equal(monitor_client_waiting_calls(&world->client), 0);
	statm = fopen("/proc/self/statm", "r");
	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%ld %ld", &unused, &after_pages), 2);
	(void)fclose(statm);
#ifndef __SANITIZE_ADDRESS__
	/* 100 bytes lost per connection would be 250 pages. */
	assert_true(after_pages - before_pages < 64);
#endif
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(t33_the_first_frame_is_the_protocol_range),
		TEST(t34_an_error_answer_ends_the_handshake_with_1002),
		TEST(t35_any_version_is_accepted),
		TEST(an_answer_without_version_or_error_is_accepted),
		TEST(an_answer_that_is_no_json_ends_the_handshake_with_1007),
		TEST(silence_ends_the_handshake_without_a_close_frame),
		TEST(a_monitor_that_is_not_there_is_asked_again),
		TEST(t36_the_first_health_check_comes_after_5_s_with_id_2),
		TEST(t37_only_the_first_answer_to_an_id_counts),
		TEST(a_slow_health_check_delays_the_next_and_drops_a_tick),
		TEST(every_tenth_success_is_logged),
		TEST(failing_health_checks_close_the_connection),
		TEST(a_malformed_reply_to_one_health_check_too_many_ends_the_connection_once),
		TEST(an_unknown_reply_to_one_health_check_too_many_ends_the_connection_once),
		TEST(an_upscale_request_in_place_of_a_last_health_check_is_heard_before_the_end),
		TEST(a_fatal_message_while_the_last_health_check_waits_ends_the_connection_once),
		TEST(t38_an_unknown_type_is_answered_and_the_connection_stays),
		TEST(t39_an_upscale_request_is_passed_on_without_a_reply),
		TEST(an_upscale_request_right_behind_the_version_waits_for_the_connection_to_be_known),
		TEST(t40_a_message_that_is_no_object_ends_the_connection),
		TEST(t40_a_message_without_type_ends_the_connection),
		TEST(null_has_no_type),
		TEST(a_type_that_is_no_string_ends_the_connection),
		TEST(a_message_without_id_ends_the_connection),
		TEST(an_id_that_is_no_number_ends_the_connection),
		TEST(bad_json_ends_the_connection_with_1007),
		TEST(a_message_over_the_limit_ends_the_connection_with_1009),
		TEST(a_message_at_the_limit_is_read),
		TEST(fields_of_the_wrong_type_are_answered_then_end_the_connection),
		TEST(t41_an_internal_error_for_an_unknown_id_is_answered),
		TEST(in_late_2023_an_unknown_id_has_no_record),
		TEST(in_late_2023_errors_begin_with_capitals),
		TEST(in_late_2023_a_message_that_is_no_object_closes_with_a_capital),
		TEST(in_late_2023_a_handshake_is_refused_with_a_capital),
		TEST(in_late_2023_a_handshake_that_can_not_be_read_is_told_with_a_capital),
		TEST(a_flood_of_messages_ends_the_connection_with_1008),
		TEST(an_invalid_message_note_is_only_logged),
		TEST(a_close_frame_of_the_monitor_ends_the_connection),
		TEST(t42_a_downscale_request_on_the_wire),
		TEST(a_denied_downscale_is_no_failure_and_counts_nowhere),
		TEST(an_upscale_notification_on_the_wire),
		TEST(a_downscale_answered_by_something_else_is_a_failed_request),
		TEST(a_call_answered_by_an_internal_error),
		TEST(a_call_answered_by_an_unknown_type),
		TEST(a_call_answered_by_bad_fields),
		TEST(a_call_answered_by_an_invalid_message_note),
		TEST(a_call_answered_by_an_upscale_request),
		TEST(a_call_times_out),
		TEST(waiting_calls_fail_when_the_connection_ends_after_the_reset),
		TEST(a_call_without_a_connection_fails_to_send),
		TEST(t43_a_connection_that_was_short_is_retried_after_the_rest_of_the_wait),
		TEST(t43_a_connection_that_was_long_is_retried_at_once),
		TEST(a_stop_closes_with_1000),
		TEST(no_socket_stays_when_the_set_up_fails),
		TEST(memory_and_descriptors_stay_flat_over_reconnects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
