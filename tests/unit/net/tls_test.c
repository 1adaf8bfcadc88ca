#include "net/limits.h"
#include "tls_scene.h"

static const char *version_of(const struct scene *scene)
{
	return tls_connection_version(scene->peer.stream->tls);
}

/* ---- what works ---- */

static void a_server_is_verified_by_name_or_address(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	talk(&scene, "localhost");
	assert_string_equal(version_of(&scene), "TLSv1.3");
	talk(&scene, NULL); /* 127.0.0.1 */
	talk(&scene, "any.example");
	scene_destroy(&scene);
}

static void version_1_2_is_spoken_with_those_who_know_no_better(void **state)
{
	struct scene scene;

	(void)state;
	for (int old_server = 0; old_server < 2; old_server++) {
		scene_init(&scene);
		tls_settings_limit_to_1_2(old_server != 0 ? scene.server : scene.client);
		talk(&scene, "localhost");
		assert_string_equal(version_of(&scene), "TLSv1.2");
		scene_destroy(&scene);
	}
}

static void a_second_connection_resumes_the_session(void **state)
{
	struct scene scene;

	(void)state;
	for (int old = 0; old < 2; old++) {
		scene_init(&scene);
		if (old != 0)
			tls_settings_limit_to_1_2(scene.server);
		talk(&scene, "localhost");
		assert_false(tls_connection_resumed(scene.peer.stream->tls));
		for (int i = 0; i < 3; i++) {
			talk(&scene, "localhost");
			assert_true(tls_connection_resumed(scene.peer.stream->tls));
		}
		talk(&scene, "other.example"); /* another name, so another session */
		assert_false(tls_connection_resumed(scene.peer.stream->tls));
		talk(&scene, NULL);
		assert_false(tls_connection_resumed(scene.peer.stream->tls));
		talk(&scene, NULL);
		assert_true(tls_connection_resumed(scene.peer.stream->tls));
		scene_destroy(&scene);
	}
}

static void no_more_than_so_many_sessions_are_remembered(void **state)
{
	struct scene scene;
	char name[32];

	(void)state;
	scene_init(&scene);
	for (int i = 0; i <= NET_TLS_SESSIONS; i++) {
		snprintf(name, sizeof name, "n%d.example", i);
		talk(&scene, name);
	}
	assert_int_equal(scene.client->sessions.count, NET_TLS_SESSIONS);
	talk(&scene, "n1.example");
	assert_true(tls_connection_resumed(scene.peer.stream->tls));
	talk(&scene, "n0.example"); /* the oldest went */
	assert_false(tls_connection_resumed(scene.peer.stream->tls));
	scene_destroy(&scene);
}

static void a_session_that_the_server_forgot_costs_a_full_handshake_only(void **state)
{
	struct scene scene;

	(void)state;
	for (int old = 0; old < 2; old++) {
		scene_init(&scene);
		if (old != 0)
			tls_settings_limit_to_1_2(scene.client);
		talk(&scene, "localhost");
		tls_settings_release(scene.server); /* new ticket keys */
		scene.server = make_server(scene.loop, scene.ca, &REQUEST);
		scene.host.tls = scene.server;
		talk(&scene, "localhost");
		assert_false(tls_connection_resumed(scene.peer.stream->tls));
		scene_destroy(&scene);
	}
}

static void a_certificate_can_be_replaced_while_old_connections_live(void **state)
{
	struct scene scene;
	struct tls_ca_request renewed = REQUEST;
	struct peer first;

	(void)state;
	renewed.common_name = "renewed";
	scene_init(&scene);
	talk(&scene, "localhost");
	first = scene.peer;
	stream_set_handler(first.stream, &PEER_HANDLER, &first);
	struct peer first_server = scene.host.peer;
	stream_set_handler(first_server.stream, &PEER_HANDLER, &first_server);
	scene.host.peer.stream = NULL;
	peer_init(&scene.peer, scene.loop);
	peer_init(&scene.host.peer, scene.loop);
	tls_settings_release(scene.server);
	scene.server = make_server(scene.loop, scene.ca, &renewed);
	scene.host.tls = scene.server;
	talk(&scene, "other.example");
	peer_write(&first, SLICE("!"));
	TURN_UNTIL(scene.loop, first.received.length == 6);
	peer_destroy(&first);
	peer_destroy(&first_server);
	scene_destroy(&scene);
}

static void much_arrives_whole(void **state)
{
	enum { LENGTH = 5 * 1024 * 1024 };
	struct scene scene;
	char *data = pattern(LENGTH);

	(void)state;
	scene_init(&scene);
	talk(&scene, "localhost");
	buffer_clear(&scene.peer.received);
	peer_write(&scene.peer, slice_from(data, LENGTH));
	stream_pause(scene.peer.stream);
	turn_for(scene.loop, 30);
	assert_int_equal(scene.peer.received.length, 0);
	stream_resume(scene.peer.stream);
	TURN_UNTIL(scene.loop, scene.peer.received.length == LENGTH);
	assert_memory_equal(scene.peer.received.data, data, LENGTH);
	memory_release(data);
	scene_destroy(&scene);
}

/* All that a record holds must come although the socket has nothing more to tell. */
static void pause_at_once(struct peer *peer, struct slice bytes)
{
	(void)bytes;
	stream_pause(peer->stream);
}

static void what_is_decrypted_already_comes_after_resuming(void **state)
{
	enum { LENGTH = 100000 };
	struct scene scene;
	char *data = pattern(LENGTH);

	(void)state;
	scene_init(&scene);
	talk(&scene, "localhost");
	buffer_clear(&scene.peer.received);
	scene.peer.on_data = pause_at_once;
	peer_write(&scene.host.peer, slice_from(data, LENGTH));
	while (scene.peer.received.length < LENGTH) {
		size_t before = scene.peer.received.length;

		TURN_UNTIL(scene.loop, scene.peer.received.length > before);
		turn_for(scene.loop, 1);
		stream_resume(scene.peer.stream);
	}
	assert_memory_equal(scene.peer.received.data, data, LENGTH);
	memory_release(data);
	scene_destroy(&scene);
}

static void a_closed_connection_ends_properly(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	talk(&scene, "localhost");
	peer_write(&scene.peer, SLICE("bye"));
	stream_finish(scene.peer.stream, NS_PER_S);
	scene.peer.stream = NULL;
	TURN_UNTIL(scene.loop, scene.host.peer.closed == 1);
	assert_int_equal(scene.host.peer.received.length, 8);
	assert_int_equal(scene.host.peer.err.code, ERROR_ENDED);
	assert_string_equal(scene.host.peer.err.text, "EOF");
	scene_destroy(&scene);
}

static void a_connection_cut_without_goodbye_is_told_apart(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	talk(&scene, "localhost");
	stream_close(scene.peer.stream);
	scene.peer.stream = NULL;
	TURN_UNTIL(scene.loop, scene.host.peer.closed == 1);
	assert_int_equal(scene.host.peer.err.code, ERROR_CLOSED);
	assert_string_equal(scene.host.peer.err.text, "unexpected EOF");
	scene_destroy(&scene);
}

static void a_reset_is_told_as_without_tls(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	talk(&scene, "localhost");
	stream_abort(scene.peer.stream);
	scene.peer.stream = NULL;
	TURN_UNTIL(scene.loop, scene.host.peer.closed == 1);
	assert_string_equal(scene.host.peer.err.text, "read: connection reset by peer");
	assert_string_equal(error_root(&scene.host.peer.err), "connection reset by peer");
	scene_destroy(&scene);
}

static void more_connections_than_the_librarys_fixed_slots(void **state)
{
	enum { MANY = 60 };
	static struct peer clients[MANY];
	struct stream *servers[MANY] = { 0 };
	struct scene scene;

	(void)state;
	scene_init(&scene);
	for (int i = 0; i < MANY; i++) {
		talk(&scene, "localhost");
		servers[i] = scene.host.peer.stream;
		scene.host.peer.stream = NULL;
		buffer_clear(&scene.host.peer.received);
		clients[i] = scene.peer;
		stream_set_handler(clients[i].stream, &PEER_HANDLER, &clients[i]);
		peer_init(&scene.peer, scene.loop);
	}
	for (int i = 0; i < MANY; i++) {
		peer_destroy(&clients[i]);
		stream_close(servers[i]);
	}
	scene_destroy(&scene);
}

/* ---- client certificates ---- */

/*
 * How mbedTLS hears of an alert that mbedTLS sends in the middle of a 1.3 handshake: it is encrypted with the wrong
 * key.
 */
static const char BAD_MAC[] = "tls: bad record MAC";

static void clients_must_show_a_certificate_where_that_is_asked(void **state)
{
	struct scene scene;
	struct buffer certificate, key;
	struct tls_ca_request request = { .common_name = "some client" };
	struct error err;

	(void)state;
	for (int old = 0; old < 2; old++) {
		scene_init(&scene);
		tls_settings_release(scene.server);
		assert_true(tls_ca_issue(scene.ca, &REQUEST, &certificate, &key, &err));
		scene.server = server_of(scene.loop, buffer_slice(&certificate), buffer_slice(&key),
		                         tls_ca_certificate_pem(scene.ca));
		scene.host.tls = scene.server;
		buffer_destroy(&certificate);
		buffer_destroy(&key);
		if (old != 0)
			tls_settings_limit_to_1_2(scene.server);

		start(&scene, "localhost");
		TURN_UNTIL(scene.loop, scene.peer.closed == 1);
		assert_string_equal(error_root(&scene.peer.err),
		                    old != 0 ? "remote error: tls: handshake failure" : BAD_MAC);
		TURN_UNTIL(scene.loop, scene.host.errors == 1);
		assert_string_equal(error_root(&scene.host.err), "tls: client didn't provide a certificate");
		assert_int_equal(scene.host.accepted, 0);

		assert_true(tls_ca_issue(scene.ca, &request, &certificate, &key, &err));
		struct tls_client_options options = {
			.ca_pem = tls_ca_certificate_pem(scene.ca),
			.certificate_pem = buffer_slice(&certificate),
			.key_pem = buffer_slice(&key),
		};
		tls_settings_release(scene.client);
		scene.client = tls_client_settings_create(scene.loop, &options, &err);
		assert_non_null(scene.client);
		buffer_destroy(&certificate);
		buffer_destroy(&key);
		talk(&scene, "localhost");
		talk(&scene, "localhost");
		assert_true(tls_connection_resumed(scene.peer.stream->tls));
		scene_destroy(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_is_verified_by_name_or_address),
		cmocka_unit_test(version_1_2_is_spoken_with_those_who_know_no_better),
		cmocka_unit_test(a_second_connection_resumes_the_session),
		cmocka_unit_test(no_more_than_so_many_sessions_are_remembered),
		cmocka_unit_test(a_session_that_the_server_forgot_costs_a_full_handshake_only),
		cmocka_unit_test(a_certificate_can_be_replaced_while_old_connections_live),
		cmocka_unit_test(much_arrives_whole),
		cmocka_unit_test(what_is_decrypted_already_comes_after_resuming),
		cmocka_unit_test(a_closed_connection_ends_properly),
		cmocka_unit_test(a_connection_cut_without_goodbye_is_told_apart),
		cmocka_unit_test(a_reset_is_told_as_without_tls),
		cmocka_unit_test(more_connections_than_the_librarys_fixed_slots),
		cmocka_unit_test(clients_must_show_a_certificate_where_that_is_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
