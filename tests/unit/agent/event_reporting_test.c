#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/event_reporting.h"
#include "base/memory.h"
#include "tests/unit/agent/agent_fixture.h"

static const uint64_t SECOND = NS_PER_S;

struct world {
	struct fixture fixture;
	struct event_reporting *reporting;
	uint64_t queue_events;
	const char *host_name;
	bool finished;
};

static bool failing(void *context)
{
	(void)context;
	return false;
}

static bool next(void *context, size_t *position, struct vm_watch_vm *ret_vm)
{
	(void)context;
	if ((*position)++ > 0)
		return false;
	*ret_vm = (struct vm_watch_vm){
		.uid = SLICE("u"),
		.phase = SLICE("Running"),
		.has_status_cpu = true,
		.status_cpu_milli = 1000,
		.has_billing_endpoint_id = true,
		.billing_endpoint_id = SLICE("ep"),
	};
	return true;
}

static const struct billing_source SOURCE = { .failing = failing, .next = next };

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	struct agent_config *config;

	fixture_begin(&world->fixture);
	config = &world->fixture.config;
	config->scaling_events_region_name = SLICE("here");
	config->billing.present = true;
	config->billing.cpu_metric_name = SLICE("cpu");
	config->billing.active_time_metric_name = SLICE("active");
	config->billing.collect_every_ns = SECOND;
	config->billing.accumulate_every_ns = 2 * SECOND;
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	(void)unsetenv("AWS_WEB_IDENTITY_TOKEN_FILE");
	event_reporting_destroy(world->reporting);
	fixture_turn(&world->fixture);
	fixture_end(&world->fixture);
	free(world);
	return 0;
}

static const struct agent_push_config PUSH = { .every_ns = 1000000000,
	                                       .request_timeout_ns = 1000000000,
	                                       .max_batch_size = 100 };

static void configure_s3(struct agent_s3_push_config *client)
{
	*client = (struct agent_s3_push_config){ .present = true,
		                                 .push = PUSH,
		                                 .bucket = SLICE("b"),
		                                 .region = SLICE("us-east-1"),
		                                 .endpoint = SLICE("http://127.0.0.1:1"),
		                                 .prefix_in_bucket = SLICE("p") };
}

static void configure_azure_blob(struct agent_azure_push_config *client)
{
	*client = (struct agent_azure_push_config){ .present = true,
		                                    .push = PUSH,
		                                    .container = SLICE("c"),
		                                    .endpoint = SLICE("https://127.0.0.1:1"),
		                                    .prefix_in_container = SLICE("p") };
}

static void configure_all(struct world *world)
{
	struct agent_config *config = &world->fixture.config;

	config->billing.http =
		(struct agent_http_push_config){ .present = true, .push = PUSH, .url = SLICE("http://127.0.0.1:1") };
	configure_azure_blob(&config->billing.azure_blob);
	configure_s3(&config->billing.s3);
	configure_azure_blob(&config->scaling_events_azure_blob);
	configure_s3(&config->scaling_events_s3);
}

static bool create(struct world *world, uint64_t grace_ns, struct error *err)
{
	const struct event_reporting_options options = {
		.loop = world->fixture.loop,
		.config = &world->fixture.config,
		.metrics = world->fixture.metrics,
		.log_sink = world->fixture.log_sink,
		.grace_ns = grace_ns,
		.queue_events = world->queue_events,
		.host_name = world->host_name,
	};

	world->reporting = event_reporting_create(&options, err);
	return world->reporting != NULL;
}

static void begin(struct world *world, uint64_t grace_ns)
{
	struct error err;

	if (!create(world, grace_ns, &err) || !event_reporting_start_billing(world->reporting, &SOURCE, &err))
		fail_msg("%s", err.text);
}

static void on_finished(void *context)
{
	((struct world *)context)->finished = true;
}

static void submit(struct world *world)
{
	const struct scaling_event event = { .kind = AGENT_SCALING_EVENT_ACTUAL,
		                             .wall_ns = 7,
		                             .current_milli_cu = 250 };
	struct error err;

	assert_true(event_reporting_submit_scaling_event(world->reporting, &event, &err));
}

static void clients_are_made_in_order_and_their_queues_are_shown(void **state)
{
	static const char *const CREATED[] = {
		"\"logger\":\"autoscaler-agent.scalingevents\",\"msg\":\"Created Azure Blob Storage client for scaling events\"",
		"\"logger\":\"autoscaler-agent.scalingevents\",\"msg\":\"Created S3 client for scaling events\"",
		"\"logger\":\"autoscaler-agent.billing\",\"msg\":\"Created HTTP client for billing events\"",
		"\"logger\":\"autoscaler-agent.billing\",\"msg\":\"Created Azure Blob Storage client for billing events\"",
		"\"logger\":\"autoscaler-agent.billing\",\"msg\":\"Created S3 client for billing events\",\"config\":"
		"{\"pushEverySeconds\":1,\"pushRequestTimeoutSeconds\":1,\"maxBatchSize\":100,\"bucket\":\"b\","
		"\"region\":\"us-east-1\",\"endpoint\":\"http://127.0.0.1:1\",\"prefixInBucket\":\"p\"}}",
	};
	struct world *world = *state;
	const char *at;

	configure_all(world);
	begin(world, 0);
	at = fixture_log(&world->fixture);
	for (size_t i = 0; i < sizeof CREATED / sizeof CREATED[0]; i++) {
		at = strstr(at, CREATED[i]);
		if (at == NULL)
			fail_msg("not logged, or not in order: %s\nin:\n%s", CREATED[i], fixture_log(&world->fixture));
	}
	assert_true(agent_metrics_recorder_has(world->fixture.metrics, "billing_queue_size{client=\"http\"}"));
	assert_true(agent_metrics_recorder_has(world->fixture.metrics, "billing_queue_size{client=\"azureblob\"}"));
	assert_true(agent_metrics_recorder_has(world->fixture.metrics, "billing_queue_size{client=\"s3\"}"));
	assert_true(agent_metrics_recorder_has(world->fixture.metrics, "scalingevents_queue_size{client=\"s3\"}"));
	submit(world);
	assert_metric(&world->fixture, "scalingevents_queue_size{client=\"azureblob\"}", 1);
	assert_metric(&world->fixture, "scalingevents_queue_size{client=\"s3\"}", 1);
	assert_metric(&world->fixture, "billing_queue_size{client=\"s3\"}", 0);
}

static void a_client_that_cant_be_made_is_named(void **state)
{
	struct world *world = *state;
	struct error err;

	(void)setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere", 1);
	configure_all(world);
	assert_false(create(world, 0, &err));
	assert_ptr_equal(strstr(err.text, "error creating scaling events reporter: error creating S3 client: "),
	                 err.text);
	world->fixture.config.scaling_events_s3.present = false;
	assert_true(create(world, 0, &err));
	assert_false(event_reporting_start_billing(world->reporting, &SOURCE, &err));
	assert_ptr_equal(strstr(err.text, "error creating billing metrics collector: error creating S3 client: "),
	                 err.text);
}

static void without_clients_events_are_made_and_forgotten(void **state)
{
	struct world *world = *state;

	begin(world, SECOND);
	submit(world);
	fixture_pass(&world->fixture, 2700);
	assert_int_equal(fixture_log_count(&world->fixture, "\"msg\":\"Adding event to batch\""), 2);
	event_reporting_finish(world->reporting, on_finished, world);
	assert_false(world->finished); /* never from inside */
	fixture_turn(&world->fixture);
	assert_true(world->finished);
	assert_int_equal(fixture_log_count(&world->fixture, "\"msg\":\"Adding event to batch\""), 4);
}

static void keys_have_the_host_name_that_was_given(void **state)
{
	struct world *world = *state;

	world->host_name = "agent-x";
	begin(world, 0);
	fixture_pass(&world->fixture, 2700);
	assert_int_equal(fixture_log_count(&world->fixture, "Z-agent-x-1/2\""), 1);
	assert_int_equal(fixture_log_count(&world->fixture, "Z-agent-x-2/2\""), 1);
}

static void progress_is_told_of_each_client(void **state)
{
	struct world *world = *state;
	struct report_progress progress;
	struct error err;

	configure_all(world);
	assert_true(create(world, 0, &err));
	assert_false(event_reporting_progress(world->reporting, AGENT_SENDER_BILLING, "http", &progress));
	submit(world);
	assert_true(event_reporting_progress(world->reporting, AGENT_SENDER_SCALING_EVENTS, "s3", &progress));
	assert_int_equal(progress.submitted, 1);
	assert_int_equal(progress.waiting, 1);
	assert_false(event_reporting_progress(world->reporting, AGENT_SENDER_SCALING_EVENTS, "http", &progress));
	assert_true(event_reporting_start_billing(world->reporting, &SOURCE, &err));
	assert_true(event_reporting_progress(world->reporting, AGENT_SENDER_BILLING, "http", &progress));
	assert_int_equal(progress.submitted, 0);
}

static void what_cant_be_delivered_is_given_up_after_the_grace_period(void **state)
{
	struct world *world = *state;

	world->fixture.config.billing.http =
		(struct agent_http_push_config){ .present = true, .push = PUSH, .url = SLICE("http://127.0.0.1:1") };
	begin(world, 3 * SECOND);
	fixture_pass(&world->fixture, 2700);
	event_reporting_finish(world->reporting, on_finished, world);
	event_reporting_finish(world->reporting, NULL, NULL);
	assert_metric(&world->fixture, "billing_queue_size{client=\"http\"}", 4);
	fixture_pass(&world->fixture, 2500);
	assert_false(world->finished);
	fixture_pass(&world->fixture, 1000);
	fixture_settle(&world->fixture);
	assert_true(world->finished);
	assert_true(fixture_metric(&world->fixture,
	                           "billing_send_errors_total{cause=\"connection refused\",client=\"http\"}") > 1);
}

static void what_a_full_queue_has_no_room_for_is_counted(void **state)
{
	struct world *world = *state;
	struct buffer page;
	struct error err;

	configure_s3(&world->fixture.config.scaling_events_s3);
	world->queue_events = 3;
	begin(world, 0);
	for (int i = 0; i < 5; i++)
		submit(world);
	assert_metric(&world->fixture, "scalingevents_queue_size{client=\"s3\"}", 3);
	assert_int_equal(
		fixture_log_count(&world->fixture, "\"msg\":\"The queue of events takes no more: some are lost\""), 1);
	buffer_init(&page, 1 << 20);
	assert_true(agent_metrics_print(world->fixture.metrics, &page, &err));
	assert_true(
		slice_contains(buffer_slice(&page),
	                       SLICE("ballast_events_dropped_total{client=\"s3\",subsystem=\"scalingevents\"} 2\n")));
	buffer_destroy(&page);
}

/* Generations 4.10: what waits is sent at ticks alone, and nobody names the one client. */
static void late_2023_sends_at_ticks_and_names_no_client(void **state)
{
	static const char FAILED[] = "billing_send_errors_total{cause=\"connection refused\"}";
	struct world *world = *state;
	struct fixture *fixture = &world->fixture;
	struct error err;

	agent_metrics_destroy(fixture->metrics);
	fixture->metrics = agent_metrics_create_late_2023(true, &err);
	assert_non_null(fixture->metrics);
	fixture->config.generation = AGENT_GENERATION_A;
	fixture->config.billing.http =
		(struct agent_http_push_config){ .present = true, .push = PUSH, .url = SLICE("http://127.0.0.1:1") };
	fixture->config.billing.http.push.max_batch_size = 1;
	fixture->config.billing.http.push.every_ns = 4 * SECOND;
	begin(world, 2 * SECOND);
	assert_metric(fixture, "billing_queue_size", 0);
	fixture_pass(fixture, 3500);
	/* Two events, so two full batches: the newest agent would have sent them long ago. */
	assert_metric(fixture, "billing_queue_size", 2);
	assert_false(agent_metrics_recorder_has(fixture->metrics, FAILED));
	assert_not_logged(fixture, "Pushing all available event batches");
	fixture_pass(fixture, 700);
	fixture_settle(fixture);
	/* One failed, and the other isn't tried. */
	assert_metric(fixture, FAILED, 1);
	assert_int_equal(fixture_log_count(fixture, "\"msg\":\"Pushing events batch\""), 1);
	assert_true(fixture_metric(fixture, "billing_queue_size") >= 2);
	assert_false(agent_metrics_recorder_has(fixture->metrics, "billing_queue_size{client=\"http\"}"));
	assert_false(
		agent_metrics_recorder_has(fixture->metrics, "billing_last_send_duration_seconds{client=\"http\"}"));
	event_reporting_finish(world->reporting, on_finished, world);
	fixture_pass(fixture, 2500);
	fixture_settle(fixture);
	assert_true(world->finished);
	assert_true(fixture_metric(fixture, FAILED) > 1);
}

static void late_2023_without_billing_collects_nothing(void **state)
{
	struct world *world = *state;

	world->fixture.config.generation = AGENT_GENERATION_A;
	world->fixture.config.billing = (struct agent_billing_config){ .present = false };
	begin(world, SECOND);
	fixture_pass(&world->fixture, 2700);
	assert_not_logged(&world->fixture, "autoscaler-agent.billing");
	event_reporting_finish(world->reporting, on_finished, world);
	fixture_turn(&world->fixture);
	assert_true(world->finished);
}

static void an_event_that_cant_be_said_is_an_error(void **state)
{
	struct world *world = *state;
	const struct scaling_event event = { .kind = AGENT_SCALING_EVENT_HYPOTHETICAL,
		                             .parts = { .has_cpu = true, .cpu = __builtin_inf() } };
	struct error err;

	configure_s3(&world->fixture.config.scaling_events_s3);
	begin(world, 0);
	assert_false(event_reporting_submit_scaling_event(world->reporting, &event, &err));
	assert_metric(&world->fixture, "scalingevents_queue_size{client=\"s3\"}", 0);
}

static void each_allocation_may_fail(void **state)
{
	struct world *world = *state;
	struct error err;
	bool done = false;

	configure_all(world);
	for (unsigned long i = 1; !done; i++) {
		assert_true(i < 1000);
		memory_fail_at(i);
		done = create(world, 0, &err) && event_reporting_start_billing(world->reporting, &SOURCE, &err);
		memory_fail_at(0);
		if (!done)
			assert_int_equal(err.code, ERROR_NO_MEMORY);
		event_reporting_destroy(world->reporting);
		world->reporting = NULL;
		fixture_turn(&world->fixture);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(clients_are_made_in_order_and_their_queues_are_shown),
		TEST(a_client_that_cant_be_made_is_named),
		TEST(without_clients_events_are_made_and_forgotten),
		TEST(keys_have_the_host_name_that_was_given),
		TEST(progress_is_told_of_each_client),
		TEST(what_cant_be_delivered_is_given_up_after_the_grace_period),
		TEST(what_a_full_queue_has_no_room_for_is_counted),
		TEST(late_2023_sends_at_ticks_and_names_no_client),
		TEST(late_2023_without_billing_collects_nothing),
		TEST(an_event_that_cant_be_said_is_an_error),
		TEST(each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
