/*
 * The extender's port with its caches and calls, between a scheduler and an API server, while each of its allocations and
 * socket calls fails once. A scheduler that asks again gets its nodes, and no answer ever has an error in it: the
 * scheduler would pass the extender by.
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
#include "base/token_bucket.h"
#include "extender/caches.h"
#include "extender/health.h"
#include "extender/metrics_page.h"
#include "extender/server.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "tests/support/torture.h"

enum { API_PORT = 8001, PORT = 8889, HEALTH_PORT = 9999, METRICS_PORT = 8787, TRIES = 8, ANSWER_BYTES = 4096 };

struct scene {
	char folder[64], token[128];
	/* The API server: the reservation, and what holds watches open. */
	bool created;
	/* The scheduler */
	unsigned done;
	int status;
	char answer[ANSWER_BYTES];
	/* The extender; zero where it couldn't be made. */
	struct extender_settings settings;
	struct extender_metrics *metrics;
	struct kube_client *kube;
	struct token_bucket limiter;
	struct caches *caches;
	struct event_lists *events;
	struct filter_environment environment;
	struct extender_server *server;
	struct health *health;
	struct metrics_page_server *page;
	unsigned synced;
	unsigned plays, plays_with_a_failure;
};

/* ---- the API server ---- */

#define LIST(items) "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[" items "]}"

static const char CLAIMS[] =
	LIST("{\"metadata\":{\"uid\":\"c\",\"namespace\":\"n\",\"name\":\"q\"},\"spec\":{\"storageClassName\":\"k\","
             "\"resources\":{\"requests\":{\"storage\":\"5\"}}},\"status\":{\"phase\":\"Pending\"}}");
static const char CLASSES[] = LIST("{\"metadata\":{\"uid\":\"k\",\"name\":\"k\"},\"provisioner\":\"csi-baremetal\","
                                   "\"parameters\":{\"storageType\":\"hdd\"}}");
static const char VOLUMES[] =
	LIST("{\"metadata\":{\"uid\":\"v\",\"namespace\":\"n\",\"name\":\"v\"},\"spec\":{\"NodeId\":\"A\"}}");
static const char RESERVED[] =
	"{\"metadata\":{\"name\":\"n-p\",\"resourceVersion\":\"9\"},\"spec\":{\"Namespace\":\"n\",\"Status\":\"RESERVED\","
	"\"NodeRequests\":{\"Requested\":[\"A\",\"B\"],\"Reserved\":[\"A\"]},\"ReservationRequests\":[{\"CapacityRequest\":"
	"{\"Name\":\"q\",\"StorageClass\":\"HDD\",\"Size\":5}}]}}";

static void answer_reservation(struct scene *scene, struct http_call *call)
{
	bool writes = !slice_equal_text(http_call_method(call), "GET");

	if (writes) {
		scene->created = true;
		http_call_respond(call, 201, "application/json", http_call_body(call));
	} else if (scene->created) {
		http_call_respond(call, 200, "application/json", slice_of(RESERVED));
	} else {
		http_call_respond(call, 404, "application/json",
		                  SLICE("{\"kind\":\"Status\",\"message\":\"not found\",\"code\":404}"));
	}
}

static void on_api_request(void *context, struct http_call *call)
{
	struct slice path = http_call_path(call);

	if (slice_contains(http_call_query(call), SLICE("watch=")))
		http_call_begin(call, 200, (struct http_fields){ 0 }); /* it stays open */
	else if (slice_contains(path, SLICE("availablecapacityreservations")))
		answer_reservation(context, call);
	else if (slice_contains(path, SLICE("persistentvolumeclaims")))
		http_call_respond(call, 200, "application/json", slice_of(CLAIMS));
	else if (slice_contains(path, SLICE("storageclasses")))
		http_call_respond(call, 200, "application/json", slice_of(CLASSES));
	else if (slice_contains(path, SLICE("volumes")))
		http_call_respond(call, 200, "application/json", slice_of(VOLUMES));
	else
		http_call_respond(call, 200, "application/json", SLICE(LIST("")));
}

static void on_api_abort(void *context, struct http_call *call)
{
	(void)context;
	(void)call;
}

/* ---- the scheduler ---- */

#define POD                                                                                                           \
	"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"},\"spec\":{\"volumes\":[{\"name\":" \
	"\"v\",\"persistentVolumeClaim\":{\"claimName\":\"q\"}}]}},\"Nodes\":{\"items\":[{\"metadata\":{\"name\":"    \
	"\"a\",\"uid\":\"A\"}},{\"metadata\":{\"name\":\"b\",\"uid\":\"B\"}}]}}"

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct scene *scene = context;

	scene->done++;
	scene->status = err == NULL ? response->status : 0;
	scene->answer[0] = '\0';
	if (err == NULL)
		(void)snprintf(scene->answer, sizeof scene->answer, "%.*s", SLICE_ARGS(response->body));
}

/* Returns the status; 0 without an answer. */
static int ask(struct torture *torture, struct scene *scene, struct http_client *client, uint16_t port,
               const char *target, const char *body)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	struct http_request request = { .origin = { .host = "10.0.0.1", .port = port },
		                        .method = body[0] != '\0' ? SLICE("POST") : SLICE("GET"),
		                        .target = slice_of(target),
		                        .body = slice_of(body),
		                        .total_timeout_ns = UINT64_C(10) * NS_PER_S,
		                        .max_body_bytes = 100000 };
	unsigned before = scene->done;
	struct error err;

	assert_non_null(http_client_send(client, &request, &HANDLER, scene, &err));
	torture_pass(torture, 15000);
	assert_int_equal(scene->done, before + 1);
	return scene->status;
}

/* Asks until the pod has a node, as a scheduler does. Returns after how many times; TRIES: never. */
static unsigned place(struct torture *torture, struct scene *scene, struct http_client *client)
{
	for (unsigned i = 0; i < TRIES; i++) {
		int status = ask(torture, scene, client, PORT, "/filter", POD);

		assert_true(status == 0 || status == 200 || status >= 500);
		if (status == 200 && strstr(scene->answer, "\"Error\":\"\"}") == NULL)
			fail_msg("play %u: %s", scene->plays, scene->answer);
		if (status == 200 && strstr(scene->answer, "\"name\":\"a\"") != NULL)
			return i;
	}
	return TRIES;
}

static bool use(struct torture *torture, struct scene *scene)
{
	struct error err;
	struct http_client *client = http_client_create(torture->server, &err);
	unsigned tries;
	bool well;

	assert_non_null(client);
	tries = place(torture, scene, client);
	assert_true(tries < TRIES);
	well = tries == 1;
	well = ask(torture, scene, client, PORT, "/prioritize", POD) == 200 &&
	       strstr(scene->answer, "\"Host\":\"a\"") != NULL && well;
	well = ask(torture, scene, client, PORT, "/bind",
	           "{\"PodName\":\"p\",\"PodNamespace\":\"n\",\"PodUID\":\"u\",\"Node\":\"a\"}") == 200 &&
	       well;
	well = ask(torture, scene, client, HEALTH_PORT, "/readyz", "") == 200 && well;
	well = ask(torture, scene, client, METRICS_PORT, "/metrics", "") == 200 && well;
	http_client_destroy(client);
	return well;
}

/* ---- the extender ---- */

static void on_synced(void *context)
{
	((struct scene *)context)->synced++;
}

static void on_missing(void *context, const struct error *err)
{
	(void)context;
	fail_msg("%s", err->text);
}

static const struct logger NOWHERE = { .name = "test", .context_json = "" };

static bool start_calls(struct torture *torture, struct scene *scene, struct error *err)
{
	static const struct caches_handler HANDLER = { .on_synced = on_synced, .on_missing = on_missing };
	const struct kube_client_options kube = { .host = "10.0.0.2",
		                                  .port = API_PORT,
		                                  .credentials_dir = scene->folder,
		                                  .user_agent = "test",
		                                  .logger = NOWHERE,
		                                  .plain = true };
	struct caches_options caches = { .loop = torture->client, .settings = &scene->settings };
	struct event_lists_options events = { .loop = torture->client, .logger = NOWHERE };

	scene->metrics = extender_metrics_create(err);
	if (scene->metrics == NULL ||
	    !token_bucket_init(&scene->limiter, 1000, 1000, loop_now_ns(torture->client), err))
		return false;
	scene->kube = kube_client_create(torture->client, &kube, err);
	if (scene->kube == NULL)
		return false;
	caches.client = events.client = scene->kube;
	caches.metrics = events.metrics = scene->metrics;
	scene->events = event_lists_create(&events, err);
	if (scene->events == NULL)
		return false;
	scene->caches = caches_start(&caches, &HANDLER, scene, err);
	return scene->caches != NULL;
}

static bool start_ports(struct torture *torture, struct scene *scene, struct error *err)
{
	const struct address any = { .bytes = { 10, 0, 0, 1 } };
	struct health_options health = {
		.loop = torture->client, .address = any, .node_name = "here", .logger = NOWHERE, .readiness_path = ""
	};
	struct extender_server_options server = { .address = any,
		                                  .metrics_path = "",
		                                  .environment = &scene->environment };
	struct metrics_page_options page = { .loop = torture->client,
		                             .address = any,
		                             .path = "/metrics",
		                             .metrics = scene->metrics,
		                             .logger = NOWHERE };

	scene->environment = (struct filter_environment){
		.loop = torture->client,
		.settings = &scene->settings,
		.caches = scene->caches,
		.reservations = { torture->client, scene->kube, &scene->limiter, scene->metrics },
		.events = scene->events,
		.metrics = scene->metrics,
		.budget_ns = UINT64_C(5) * NS_PER_S,
	};
	health.address.port = HEALTH_PORT;
	server.address.port = PORT;
	page.address.port = METRICS_PORT;
	scene->health = health_start(&health, err);
	scene->server = scene->health != NULL ? extender_server_start(&server, err) : NULL;
	scene->page = scene->server != NULL ? metrics_page_start(&page, err) : NULL;
	return scene->page != NULL;
}

static void stop(struct scene *scene)
{
	metrics_page_stop(scene->page);
	extender_server_destroy(scene->server);
	health_stop(scene->health);
	caches_stop(scene->caches);
	event_lists_destroy(scene->events);
	kube_client_destroy(scene->kube);
	extender_metrics_destroy(scene->metrics);
	scene->page = NULL;
	scene->server = NULL;
	scene->health = NULL;
	scene->caches = NULL;
	scene->events = NULL;
	scene->kube = NULL;
	scene->metrics = NULL;
}

static void play(struct torture *torture, void *context)
{
	static const struct http_server_handler API = { .on_request = on_api_request, .on_abort = on_api_abort };
	struct http_server_options options = { .address = torture_server_address(API_PORT), .max_body_bytes = 10000 };
	struct scene *scene = context;
	struct error err = { .code = ERROR_NONE };
	struct http_server *api = http_server_start(torture->server, &options, &API, scene, &err);
	bool started, well = false;

	assert_non_null(api);
	scene->created = false;
	scene->synced = 0;
	scene->plays++;
	scene->settings = (struct extender_settings){ .provisioner = SLICE("csi-baremetal") };
	torture_enter(torture, torture->client);
	started = start_calls(torture, scene, &err);
	torture_leave(torture, torture->client);
	if (started) {
		torture_pass(torture, 60000);
		assert_int_equal(scene->synced, 1);
		torture_enter(torture, torture->client);
		started = start_ports(torture, scene, &err);
		torture_leave(torture, torture->client);
	}
	if (started)
		well = use(torture, scene);
	else
		assert_true(err.code != ERROR_NONE && err.text[0] != '\0');
	scene->plays_with_a_failure += well ? 0 : 1;
	torture_enter(torture, torture->client);
	stop(scene);
	torture_leave(torture, torture->client);
	http_server_destroy(api);
}

static void torture(enum torture_kind kind)
{
	struct scene scene = { .folder = "/tmp/ballast-extender-torture-XXXXXX" };
	unsigned long points;
	FILE *token;

	assert_non_null(mkdtemp(scene.folder));
	(void)snprintf(scene.token, sizeof scene.token, "%s/token", scene.folder);
	token = fopen(scene.token, "w");
	assert_non_null(token);
	(void)fputs("the-token\n", token);
	(void)fclose(token);
	points = torture_each(kind, TORTURE_CLIENT, play, &scene);
	print_message("%lu points, %u plays with a failure\n", points, scene.plays_with_a_failure);
	assert_int_equal(scene.plays, points + 2);
	assert_in_range(scene.plays_with_a_failure, 2, points);
	(void)unlink(scene.token);
	(void)rmdir(scene.folder);
}

static void the_service_survives_each_failed_allocation(void **state)
{
	(void)state;
	torture(TORTURE_ALLOCATIONS);
}

static void the_service_survives_each_failed_call(void **state)
{
	(void)state;
	torture(TORTURE_CALLS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_service_survives_each_failed_allocation),
		cmocka_unit_test(the_service_survives_each_failed_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
