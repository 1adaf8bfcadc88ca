#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "extender/health.h"
#include "net/http_client.h"
#include "net/loop_epoll.h"
#include "tests/unit/net/peer.h"

enum { BODY_BYTES = 4096 };

struct scene {
	struct loop *loop;
	struct http_client *client;
	struct health *health;
	struct address address;
	char folder[32];
	char path[64];
	bool done;
	int status;
	char body[BODY_BYTES];
};

static struct scene *begin(bool patching_enabled)
{
	struct scene *scene = calloc(1, sizeof *scene);
	struct health_options options = { .address = { .bytes = { 127, 0, 0, 1 } },
		                          .patching_enabled = patching_enabled,
		                          .node_name = "cp-1" };
	struct error err;

	assert_non_null(scene);
	strcpy(scene->folder, "/tmp/ballast-health-XXXXXX");
	assert_non_null(mkdtemp(scene->folder));
	snprintf(scene->path, sizeof scene->path, "%s/nodes.yaml", scene->folder);
	scene->loop = options.loop = loop_epoll_create(&err);
	assert_non_null(scene->loop);
	scene->client = http_client_create(scene->loop, &err);
	assert_non_null(scene->client);
	options.readiness_path = scene->path;
	scene->health = health_start(&options, &err);
	assert_non_null(scene->health);
	assert_true(health_address(scene->health, &scene->address));
	return scene;
}

static void end(struct scene *scene)
{
	http_client_destroy(scene->client);
	health_stop(scene->health);
	loop_destroy(scene->loop);
	unlink(scene->path);
	rmdir(scene->folder);
	free(scene);
}

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct scene *scene = context;

	if (err != NULL)
		fail_msg("%s", err->text);
	scene->status = response->status;
	snprintf(scene->body, sizeof scene->body, "%.*s", SLICE_ARGS(response->body));
	scene->done = true;
}

static void expect(struct scene *scene, const char *path, int status, const char *body)
{
	static const struct http_handler HANDLER = { .on_done = on_done };
	const struct http_request request = {
		.origin = { .host = "127.0.0.1", .port = scene->address.port },
		.method = SLICE("GET"),
		.target = slice_of(path),
		.max_body_bytes = BODY_BYTES,
	};
	struct error err;

	scene->done = false;
	assert_non_null(http_client_send(scene->client, &request, &HANDLER, scene, &err));
	TURN_UNTIL(scene->loop, scene->done);
	assert_int_equal(scene->status, status);
	assert_string_equal(scene->body, body);
}

static void write_file(const struct scene *scene, const char *text)
{
	FILE *file = fopen(scene->path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void without_patching_no_file_is_looked_at(void **state)
{
	struct scene *scene = begin(false);

	(void)state;
	expect(scene, "/readyz", 200, "ok");
	write_file(scene, "nodes: 5\n");
	expect(scene, "/readyz", 200, "ok");
	expect(scene, "/healthz", 200, "ok");
	end(scene);
}

static void the_file_is_read_on_every_call(void **state)
{
	struct scene *scene = begin(true);
	char missing[128];

	(void)state;
	snprintf(missing, sizeof missing, "open %s: no such file or directory", scene->path);
	expect(scene, "/readyz", 503, missing);
	write_file(scene, "nodes:\n    - node_name: cp-1\n      kube_scheduler: ks-1\n      restarted: false\n");
	expect(scene, "/readyz", 503, "kube-scheduler ks-1 is not restarted after patching");
	write_file(scene, "nodes:\n    - node_name: cp-1\n      kube_scheduler: ks-1\n      restarted: true\n");
	expect(scene, "/readyz", 200, "ok");
	write_file(scene, "nodes: []\n");
	expect(scene, "/readyz", 503, "node cp-1 is not found in extenders status list");
	expect(scene, "/healthz", 200, "ok");
	end(scene);
}

static void a_process_that_ends_is_not_ready(void **state)
{
	struct scene *scene = begin(false);

	(void)state;
	health_set_stopping(scene->health);
	expect(scene, "/readyz", 503, "stopping");
	expect(scene, "/healthz", 200, "ok");
	end(scene);
}

static void other_paths_are_not_found(void **state)
{
	static const char *const PATHS[] = { "/", "/readyz/", "/metrics", "/filter" };
	struct scene *scene = begin(false);

	(void)state;
	for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++)
		expect(scene, PATHS[i], 404, "404 page not found\n");
	end(scene);
}

static void a_port_that_is_taken_is_an_error(void **state)
{
	struct scene *scene = begin(false);
	struct health_options options = { .loop = scene->loop, .address = scene->address, .node_name = "cp-1" };
	struct error err;

	(void)state;
	assert_null(health_start(&options, &err));
	assert_non_null(strstr(err.text, "address already in use"));
	expect(scene, "/readyz", 200, "ok");
	end(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_patching_no_file_is_looked_at),
		cmocka_unit_test(the_file_is_read_on_every_call),
		cmocka_unit_test(a_process_that_ends_is_not_ready),
		cmocka_unit_test(other_paths_are_not_found),
		cmocka_unit_test(a_port_that_is_taken_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
