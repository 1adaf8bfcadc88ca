/*
 * HTTP and websockets over TLS: what stream_test and tls_test can't see, since pools, reloads and lingering ends belong
 * to the layer above.
 */
#include "http_site.h"
#include "tls_scene.h"
#include "websocket_end.h"

struct record {
	unsigned done;
	bool failed;
	struct error err;
	int status;
	struct buffer body;
};

static void on_done(void *context, const struct http_response *response, const struct error *err)
{
	struct record *record = context;

	record->done++;
	record->failed = err != NULL;
	if (err != NULL) {
		record->err = *err;
		return;
	}
	record->status = response->status;
	buffer_append_slice(&record->body, response->body);
}

static const struct http_handler HANDLER = { .on_done = on_done };

static struct tls_settings *server_tls;

static struct tls_settings *current_server_tls(void *context)
{
	(void)context;
	return server_tls;
}

static void ask(struct http_client *client, struct site *site, const char *target, struct record *record)
{
	struct error err;
	struct http_request request = {
		.origin = { .secure = true, .host = "127.0.0.1", .port = site->address.port },
		.method = SLICE("GET"),
		.target = slice_of(target),
		.max_body_bytes = 1000000,
	};

	*record = (struct record){ 0 };
	buffer_init(&record->body, 1000000);
	assert_non_null(http_client_send(client, &request, &HANDLER, record, &err));
	TURN_UNTIL(site->loop, record->done == 1);
}

static void site_init_tls(struct site *site, struct scene *scene)
{
	static const struct http_server_handler SITE = { .on_request = site_on_request, .on_abort = site_on_abort };
	struct http_server_options options = site_options();

	server_tls = scene->server;
	options.tls = current_server_tls;
	site_init_with(site, scene->loop, &options, &SITE);
}

static void check(struct record *record, const char *body)
{
	if (record->failed)
		fail_msg("%s", record->err.text);
	assert_int_equal(record->status, 200);
	assert_true(slice_equal_text(buffer_slice(&record->body), body));
	buffer_destroy(&record->body);
}

static void requests_go_over_tls_and_reuse_the_connection(void **state)
{
	(void)state;
	struct scene scene;
	struct site site;
	struct record record;
	struct error err;

	scene_init(&scene);
	site_init_tls(&site, &scene);

	struct http_client *client = http_client_create(scene.loop, &err);

	http_client_set_tls(client, scene.client);
	for (int i = 0; i < 3; i++) {
		ask(client, &site, "/a", &record);
		check(&record, "GET /a \"\"");
		assert_int_equal(http_server_connection_count(site.server), 1);
	}

	/* New settings: the idle connection goes, and the next request makes another. */
	struct tls_settings *replacement = make_client(scene.loop, scene.ca);

	http_client_set_tls(client, replacement);
	tls_settings_release(replacement);
	TURN_UNTIL(scene.loop, http_server_connection_count(site.server) == 0);
	ask(client, &site, "/a", &record);
	check(&record, "GET /a \"\"");
	http_client_destroy(client);
	site_destroy(&site);
	scene_destroy(&scene);
}

static void a_connection_under_old_settings_isnt_used_again(void **state)
{
	(void)state;
	struct scene scene;
	struct site site;
	struct record record = { 0 };
	struct error err;

	scene_init(&scene);
	site_init_tls(&site, &scene);

	struct http_client *client = http_client_create(scene.loop, &err);
	struct http_request request = {
		.origin = { .secure = true, .host = "127.0.0.1", .port = site.address.port },
		.method = SLICE("GET"),
		.target = SLICE("/hold"),
		.max_body_bytes = 1000000,
	};

	http_client_set_tls(client, scene.client);
	buffer_init(&record.body, 1000000);
	assert_non_null(http_client_send(client, &request, &HANDLER, &record, &err));
	TURN_UNTIL(scene.loop, site.call != NULL);

	struct tls_settings *replacement = make_client(scene.loop, scene.ca);

	http_client_set_tls(client, replacement);
	tls_settings_release(replacement);
	http_call_respond(site.call, 200, NULL, SLICE("held"));
	TURN_UNTIL(scene.loop, record.done == 1 && http_server_connection_count(site.server) == 0);
	check(&record, "held");
	http_client_destroy(client);
	site_destroy(&site);
	scene_destroy(&scene);
}

static void a_server_nobody_vouches_for_gets_no_request(void **state)
{
	(void)state;
	struct scene scene;
	struct site site;
	struct record record;
	struct error err;

	scene_init(&scene);

	struct tls_settings *trusted = scene.server;

	scene.server = make_server(scene.loop, NULL, &REQUEST);
	site_init_tls(&site, &scene);

	struct http_client *client = http_client_create(scene.loop, &err);

	http_client_set_tls(client, scene.client);
	ask(client, &site, "/a", &record);
	assert_true(record.failed);
	assert_int_equal(site.requests, 0);
	buffer_destroy(&record.body);

	/* The server's certificate may be exchanged while it runs. */
	server_tls = trusted;
	ask(client, &site, "/a", &record);
	check(&record, "GET /a \"\"");
	http_client_destroy(client);
	site_destroy(&site);
	tls_settings_release(trusted);
	scene_destroy(&scene);
}

static struct websocket_end server;

static void accept_websocket(struct site *site, struct http_call *call)
{
	struct error err;

	server.websocket = websocket_accept(site->loop, call, 32768, &END_HANDLER, &server, &err);
	assert_non_null(server.websocket);
}

static void websockets_go_over_tls(void **state)
{
	(void)state;
	struct scene scene;
	struct site site;
	struct websocket_end client;
	struct websocket_connect_options options;
	struct error err;

	scene_init(&scene);
	site_init_tls(&site, &scene);
	site.on_request = accept_websocket;
	end_init(&client);
	end_init(&server);
	server.echoes = true;
	options = end_options(site.address.port);
	options.stream.tls = scene.client;
	client.websocket = websocket_connect(scene.loop, &options, &END_HANDLER, &client, &err);
	assert_non_null(client.websocket);
	TURN_UNTIL(scene.loop, client.opened == 1);
	end_send(&client, "hello");
	TURN_UNTIL(scene.loop, client.messages == 1);
	assert_true(end_has(&client, "hello\n"));
	websocket_close(client.websocket, 1000, SLICE("normal exit"));
	TURN_UNTIL(scene.loop, client.closed == 1 && server.closed == 1);
	assert_int_equal(client.code, 1000);
	assert_true(client.clean && server.clean);
	assert_string_equal(server.reason, "normal exit");
	end_destroy(&client);
	end_destroy(&server);
	site_destroy(&site);
	scene_destroy(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_go_over_tls_and_reuse_the_connection),
		cmocka_unit_test(a_connection_under_old_settings_isnt_used_again),
		cmocka_unit_test(a_server_nobody_vouches_for_gets_no_request),
		cmocka_unit_test(websockets_go_over_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
