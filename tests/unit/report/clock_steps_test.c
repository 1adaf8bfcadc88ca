/* The wall clock jumps, and nothing but stamps takes notice. */
#include "receiver.h"

#include <time.h>

#include "report/aws_credentials.h"
#include "report/report_sink.h"
#include "report/s3_put.h"

static int64_t wall_step_ns;
static uint64_t skipped_ns;

uint64_t clock_monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec + skipped_ns;
}

int64_t clock_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec + wall_step_ns;
}

static void ignore_count(void *context, const char *client, uint64_t events)
{
	(void)context;
	(void)client;
	(void)events;
}

static void ignore_duration(void *context, const char *client, double seconds)
{
	(void)context;
	(void)client;
	(void)seconds;
}

static void count_error(void *context, const char *client, const char *cause)
{
	(void)client;
	(void)cause;
	++*(unsigned *)context;
}

static void beat(struct receiver *receiver, struct report_sink *sink, unsigned expected)
{
	report_sink_submit(sink, SLICE("{}"));
	turn_for(receiver->loop, 10);
	assert_int_equal(receiver->count, expected - 1);
	skipped_ns += 10 * (uint64_t)NS_PER_S;
	TURN_UNTIL(receiver->loop, receiver->count >= expected);
	assert_int_equal(receiver->count, expected);
}

/* Credentials that are good for an hour, and pushes each ten seconds, while the wall clock goes a day ahead and two back. */
static void steps_of_the_wall_clock_change_stamps_only(void **state)
{
	static const int64_t DAY_NS = 86400 * (int64_t)NS_PER_S;
	struct receiver receiver;
	unsigned errors = 0;
	struct report_sink_options options = {
		.metrics = { &errors, ignore_count, ignore_duration, count_error, ignore_count },
		.logger = { .name = "test", .context_json = "" },
	};
	struct report_sink_client client = { .push_every_ns = 10 * (uint64_t)NS_PER_S,
		                             .push_timeout_ns = 5 * (uint64_t)NS_PER_S,
		                             .max_batch_events = 100 };
	struct s3_put_options bucket = { .bucket = SLICE("b"), .region = SLICE("r") };
	char body[256], until[32], date[3][32];
	struct reply reply = { .status = 200, .body = body };
	time_t when = (time_t)(clock_wall_ns() / NS_PER_S) + 3600;
	struct tm parts;
	struct report_sink *sink;
	struct error err;

	(void)state;
	receiver_init(&receiver, false);
	receiver_set(&receiver, "AWS_CONTAINER_CREDENTIALS_FULL_URI", receiver.url);
	strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &parts));
	snprintf(body, sizeof body, "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"b\",\"Expiration\":\"%s\"}", until);
	receiver.script = &reply;
	receiver.script_length = 1;
	bucket.endpoint = slice_of(receiver.url);
	client.client = s3_put_create(receiver.transport, &bucket, &err);
	assert_non_null(client.client);
	sink = report_sink_create(receiver.loop, &options, &client, 1, &err);
	assert_non_null(sink);

	report_sink_submit(sink, SLICE("{}"));
	skipped_ns += 10 * (uint64_t)NS_PER_S;
	TURN_UNTIL(receiver.loop, receiver.count >= 2); /* credentials and an object */
	wall_step_ns = DAY_NS;
	beat(&receiver, sink, 3);
	wall_step_ns = -DAY_NS;
	beat(&receiver, sink, 4);
	for (unsigned i = 0; i < 3; i++) {
		const char *at = strstr(receiver.asked[i + 1].fields, "x-amz-date: ");

		assert_non_null(at);
		snprintf(date[i], sizeof date[i], "%.8s", at + strlen("x-amz-date: "));
	}
	assert_true(strcmp(date[2], date[0]) < 0 && strcmp(date[0], date[1]) < 0);
	turn_for(receiver.loop, 10);
	assert_int_equal(errors, 0);
	report_sink_destroy(sink);
	receiver_destroy(&receiver);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_of_the_wall_clock_change_stamps_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
