/*
 * A sink that delivers events through each kind of client, with credentials from each source that needs no TLS, while
 * each allocation and each socket call of the sender fails once. Every event is delivered in the end, or was counted as
 * dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/http_server.h"
#include "report/azure_blob_put.h"
#include "report/http_push.h"
#include "report/report_sink.h"
#include "report/s3_put.h"
#include "tests/support/torture.h"

#define RECEIVER "http://10.0.0.2:8000"

enum { PORT = 8000, VARIABLES_MAX = 8, EVENTS = 3, GRACE_S = 300 };

enum client_kind { CLIENT_HTTP, CLIENT_S3, CLIENT_AZURE };

struct variable {
	const char *name, *value;
};

struct scenario {
	enum client_kind client;
	struct variable variables[VARIABLES_MAX];
};

static char token_path[] = "/tmp/ballast-report-torture-XXXXXX";

static const struct scenario SCENARIOS[] = {
	{ CLIENT_HTTP, { { NULL, NULL } } },
	{ CLIENT_S3, { { "AWS_ACCESS_KEY_ID", "AKID" }, { "AWS_SECRET_ACCESS_KEY", "SECRET" } } },
	{ CLIENT_S3,
	  { { "AWS_WEB_IDENTITY_TOKEN_FILE", token_path },
	    { "AWS_ROLE_ARN", "arn:aws:iam::1:role/a" },
	    { "AWS_ENDPOINT_URL_STS", RECEIVER } } },
	{ CLIENT_S3,
	  { { "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost:8000/container" },
	    { "AWS_CONTAINER_AUTHORIZATION_TOKEN", "t" } } },
	{ CLIENT_S3, { { "AWS_EC2_METADATA_SERVICE_ENDPOINT", RECEIVER } } },
	{ CLIENT_AZURE,
	  { { "BALLAST_AZURE_SHARED_KEY_ACCOUNT", "account" }, { "BALLAST_AZURE_SHARED_KEY", "a2V5a2V5a2V5" } } },
};

struct scene {
	const struct scenario *scenario;
	unsigned batches; /* that arrived */
	uint64_t dropped;
	unsigned finished;
	unsigned plays, plays_with_a_failure;
};

/* ---- the receiver, which is all services in one ---- */

#define KEYS "\"AccessKeyId\":\"AKID\",\"SecretAccessKey\":\"SECRET\",\"Token\":\"TOKEN\""

static const char STS_REPLY[] =
	"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><SessionToken>T</SessionToken>"
	"<SecretAccessKey>S</SecretAccessKey><Expiration>2999-01-01T00:00:00Z</Expiration><AccessKeyId>A</AccessKeyId>"
	"</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";

static void on_request(void *context, struct http_call *call)
{
	struct scene *scene = context;
	struct slice path = http_call_path(call), method = http_call_method(call);

	if (slice_equal_text(path, "/latest/api/token"))
		http_call_respond_with(call, 200,
		                       (struct http_fields){ (const struct http_field[]){ {
								     SLICE("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"),
								     SLICE("21600"),
							     } },
		                                             1 },
		                       SLICE("t"));
	else if (slice_equal_text(path, "/latest/meta-data/iam/security-credentials/"))
		http_call_respond(call, 200, "text/plain", SLICE("role"));
	else if (slice_starts_with(path, SLICE("/latest/meta-data/iam/")))
		http_call_respond(call, 200, "application/json",
		                  SLICE("{\"Code\":\"Success\",\"Expiration\":\"2999-01-01T00:00:00Z\"," KEYS "}"));
	else if (slice_equal_text(path, "/container"))
		http_call_respond(call, 200, "application/json", SLICE("{" KEYS "}"));
	else if (slice_equal_text(path, "/") && slice_equal_text(method, "POST"))
		http_call_respond(call, 200, "text/xml", slice_of(STS_REPLY));
	else {
		scene->batches++;
		assert_true(http_call_body(call).length > 0);
		http_call_respond(call, scene->scenario->client == CLIENT_AZURE ? 201 : 200, NULL, SLICE(""));
	}
}

/* ---- the sender ---- */

static const char *variable(void *context, const char *name)
{
	const struct scene *scene = context;

	for (size_t i = 0; i < VARIABLES_MAX && scene->scenario->variables[i].name != NULL; i++)
		if (strcmp(scene->scenario->variables[i].name, name) == 0)
			return scene->scenario->variables[i].value;
	return NULL;
}

static void note_queue_size(void *context, const char *client, uint64_t events)
{
	(void)context;
	assert_true(client[0] != '\0' && events <= EVENTS);
}

static void note_duration(void *context, const char *client, double seconds)
{
	(void)context;
	(void)client;
	assert_true(seconds >= 0);
}

static void note_error(void *context, const char *client, const char *cause)
{
	(void)context;
	(void)client;
	assert_true(cause[0] != '\0');
}

static void note_dropped(void *context, const char *client, uint64_t events)
{
	(void)client;
	((struct scene *)context)->dropped += events;
}

static void note_finished(void *context)
{
	((struct scene *)context)->finished++;
}

static struct report_client *make_client(const struct scene *scene, struct report_transport *transport,
                                         struct error *err)
{
	const struct http_push_options http = { .url = SLICE(RECEIVER) };
	const struct s3_put_options s3 = {
		.bucket = SLICE("b"), .region = SLICE("r"), .endpoint = SLICE(RECEIVER), .layout.prefix = SLICE("p")
	};
	const struct azure_blob_put_options azure = { .endpoint = SLICE(RECEIVER "/account"),
		                                      .container = SLICE("c"),
		                                      .layout.prefix = SLICE("p") };

	switch (scene->scenario->client) {
	case CLIENT_HTTP:
		return http_push_create(transport, &http, err);
	case CLIENT_S3:
		return s3_put_create(transport, &s3, err);
	default:
		return azure_blob_put_create(transport, &azure, err);
	}
}

static struct report_sink *make_sink(struct torture *torture, struct scene *scene, struct report_transport *transport,
                                     struct error *err)
{
	const struct report_sink_options options = {
		.metrics = { scene, note_queue_size, note_duration, note_error, note_dropped },
		.logger = { .name = "test", .context_json = "" },
	};
	const struct report_sink_client client = { .client = make_client(scene, transport, err),
		                                   .push_every_ns = NS_PER_S,
		                                   .push_timeout_ns = UINT64_C(5) * NS_PER_S,
		                                   .max_batch_events = EVENTS };

	return client.client != NULL ? report_sink_create(torture->client, &options, &client, 1, err) : NULL;
}

static void deliver(struct torture *torture, struct scene *scene, struct report_sink *sink)
{
	torture_enter(torture, torture->client);
	for (unsigned i = 0; i < EVENTS; i++)
		report_sink_submit(sink, SLICE("{\"event\":\"one of a few\"}"));
	torture_leave(torture, torture->client);
	torture_pass(torture, 20000);
	torture_enter(torture, torture->client);
	report_sink_finish(sink, (uint64_t)GRACE_S * NS_PER_S, note_finished, scene);
	torture_leave(torture, torture->client);
	torture_pass(torture, (GRACE_S + 10) * 1000);
	assert_int_equal(scene->finished, 1);
	/* One batch with all that wasn't dropped; one whose answer was lost is sent again. */
	assert_true(scene->dropped <= 1);
	assert_in_range(scene->batches, 1, 3);
}

static void play(struct torture *torture, void *context)
{
	static const struct http_server_handler HANDLER = { .on_request = on_request };
	struct http_server_options options = { .address = torture_server_address(PORT), .max_body_bytes = 10000 };
	struct scene *scene = context;
	struct report_environment environment = { variable, scene };
	struct report_transport *transport;
	struct report_sink *sink = NULL;
	struct address receiver = torture_server_address(0);
	struct error err = { .code = ERROR_NONE };
	struct http_server *server = http_server_start(torture->server, &options, &HANDLER, scene, &err);

	assert_true(server != NULL && sim_world_add_name(torture->world, "localhost", &receiver));
	scene->batches = scene->finished = 0;
	scene->dropped = 0;
	scene->plays++;
	torture_enter(torture, torture->client);
	transport = report_transport_create(torture->client, &environment, &err);
	if (transport != NULL)
		sink = make_sink(torture, scene, transport, &err);
	torture_leave(torture, torture->client);
	assert_true(sink != NULL || (err.code == ERROR_NO_MEMORY && err.text[0] != '\0'));
	if (sink != NULL)
		deliver(torture, scene, sink);
	scene->plays_with_a_failure += sink == NULL || scene->dropped > 0 || scene->batches != 1 ? 1 : 0;
	torture_enter(torture, torture->client);
	report_sink_destroy(sink);
	report_transport_destroy(transport);
	torture_leave(torture, torture->client);
	http_server_destroy(server);
}

static void torture(enum torture_kind kind)
{
	unsigned long all = 0;

	for (size_t i = 0; i < sizeof SCENARIOS / sizeof SCENARIOS[0]; i++) {
		struct scene scene = { .scenario = &SCENARIOS[i] };
		unsigned long points = torture_each(kind, TORTURE_CLIENT, play, &scene);

		print_message("%zu: %lu points, %u plays with a failure\n", i, points, scene.plays_with_a_failure);
		assert_int_equal(scene.plays, points + 2);
		assert_true(points >= 4);
		assert_true(kind == TORTURE_CALLS || scene.plays_with_a_failure >= 4);
		all += points;
	}
	print_message("%lu failures\n", all);
}

static void events_survive_each_failed_allocation(void **state)
{
	(void)state;
	torture(TORTURE_ALLOCATIONS);
}

static void events_survive_each_failed_call(void **state)
{
	(void)state;
	torture(TORTURE_CALLS);
}

static int make_token(void **state)
{
	int descriptor = mkstemp(token_path);

	(void)state;
	return descriptor >= 0 && write(descriptor, "eyJ.e30.c2ln\n", 13) == 13 ? close(descriptor) : -1;
}

static int remove_token(void **state)
{
	(void)state;
	return unlink(token_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_survive_each_failed_allocation),
		cmocka_unit_test(events_survive_each_failed_call),
	};

	return cmocka_run_group_tests(tests, make_token, remove_token);
}
