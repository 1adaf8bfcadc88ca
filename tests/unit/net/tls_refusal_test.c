/*
 * TLS that must not come about: certificates that are wrong, and peers that don't play along.
 */
#include "base/clock.h"
#include "net/limits.h"
#include "tls_scene.h"

enum { DAY_S = 24 * 3600 };

/* Connects in vain. %s in the text stands for the peer. */
static void fail_to_talk(struct scene *scene, const char *name, const char *text, const char *root)
{
	char peer[128], expected[256];

	start(scene, name);
	TURN_UNTIL(scene->loop, scene->peer.opened + scene->peer.closed == 1);
	assert_int_equal(scene->peer.opened, 0);
	snprintf(peer, sizeof peer, "%s:%u", name != NULL ? name : "127.0.0.1", scene->host.address.port);
	snprintf(expected, sizeof expected, "certificate of %s %s: %s", peer, text, root);
	assert_string_equal(scene->peer.err.text, expected);
	assert_string_equal(error_root(&scene->peer.err), root);
	assert_int_equal(scene->peer.err.code, ERROR_REFUSED);
	assert_int_equal(scene->host.accepted, 0);
}

/*
 * How mbedTLS hears of an alert that mbedTLS sends in the middle of a 1.3 handshake: it is encrypted with the wrong
 * key.
 */
static const char BAD_MAC[] = "tls: bad record MAC";

/* ---- certificates ---- */

static const char NOT_IN_TIME[] = "x509: certificate has expired or is not yet valid";
static const char WRONG_NAME[] = "x509: certificate is not valid for the host name";
static const char UNKNOWN_AUTHORITY[] = "x509: certificate signed by unknown authority";

static void a_wrong_name_is_refused(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	for (int old = 0; old < 2; old++) {
		if (old != 0)
			tls_settings_limit_to_1_2(scene.client);
		fail_to_talk(&scene, "api.other", "isn't valid for that name", WRONG_NAME);
		/* a wildcard is one label */
		fail_to_talk(&scene, "a.b.example", "isn't valid for that name", WRONG_NAME);
		fail_to_talk(&scene, "127.0.0.2", "isn't valid for that address", WRONG_NAME);
	}
	scene_destroy(&scene);
}

static void a_certificate_without_addresses_is_good_for_none(void **state)
{
	struct tls_ca_request request = REQUEST;
	static const char *const NAMES[] = { "127.0.0.1" }; /* as a name, it counts for nothing */
	struct scene scene;

	(void)state;
	request.names = NAMES;
	request.name_count = 1;
	request.address_count = 0;
	scene_init_with(&scene, &request);
	fail_to_talk(&scene, NULL, "isn't valid for that address", WRONG_NAME);
	scene_destroy(&scene);
}

static void a_certificate_out_of_its_time_is_refused(void **state)
{
	struct tls_ca_request request = REQUEST;
	int64_t now_s = clock_wall_ns() / NS_PER_S;
	struct scene scene;

	(void)state;
	request.not_before_s = now_s - 2 * DAY_S;
	request.not_after_s = now_s - DAY_S;
	scene_init_with(&scene, &request);
	fail_to_talk(&scene, "localhost", "has expired", NOT_IN_TIME);
	scene_destroy(&scene);
	request.not_before_s = now_s + DAY_S;
	request.not_after_s = now_s + 2 * DAY_S;
	scene_init_with(&scene, &request);
	fail_to_talk(&scene, "localhost", "isn't valid yet", NOT_IN_TIME);
	scene_destroy(&scene);
}

static void an_unknown_authority_is_refused(void **state)
{
	struct scene scene;
	struct tls_ca *other;

	(void)state;
	scene_init(&scene);
	other = make_ca(scene.loop); /* of the same name, but with another key */
	tls_settings_release(scene.client);
	scene.client = make_client(scene.loop, other);
	fail_to_talk(&scene, "localhost", "is signed by an unknown authority", UNKNOWN_AUTHORITY);
	tls_ca_destroy(other);
	scene_destroy(&scene);
}

static void a_self_signed_certificate_is_refused(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	tls_settings_release(scene.server);
	scene.server = make_server(scene.loop, NULL, &REQUEST);
	scene.host.tls = scene.server;
	fail_to_talk(&scene, "localhost", "is self-signed and not trusted", UNKNOWN_AUTHORITY);
	TURN_UNTIL(scene.loop, scene.host.errors == 1);
	assert_string_equal(error_root(&scene.host.err), BAD_MAC);
	tls_settings_limit_to_1_2(scene.client);
	fail_to_talk(&scene, "localhost", "is self-signed and not trusted", UNKNOWN_AUTHORITY);
	TURN_UNTIL(scene.loop, scene.host.errors == 2);
	assert_string_equal(error_root(&scene.host.err), "remote error: tls: unknown certificate authority");
	assert_int_equal(scene.host.err.code, ERROR_REFUSED);
	scene_destroy(&scene);
}

static void a_server_certificate_can_not_vouch_for_others(void **state)
{
	struct scene scene;
	struct buffer certificate, key, leaf_certificate, leaf_key, chain;
	struct tls_ca_request request = REQUEST;
	struct error err;

	(void)state;
	scene_init(&scene);
	/*
	 * Signed by somebody who claims the server's name as his own, and shows the server's certificate as that of his
	 * authority.
	 */
	request.common_name = "test server";
	assert_true(tls_ca_issue(scene.ca, &request, &certificate, &key, &err));
	struct tls_ca *impostor = tls_ca_create(scene.loop, "test server", &err);
	assert_true(tls_ca_issue(impostor, &REQUEST, &leaf_certificate, &leaf_key, &err));
	buffer_init(&chain, 65536);
	buffer_append_slice(&chain, buffer_slice(&leaf_certificate));
	buffer_append_slice(&chain, buffer_slice(&certificate));
	tls_settings_release(scene.server);
	scene.server = server_of(scene.loop, buffer_slice(&chain), buffer_slice(&leaf_key), (struct slice){ 0 });
	scene.host.tls = scene.server;
	start(&scene, "localhost");
	TURN_UNTIL(scene.loop, scene.peer.closed == 1);
	assert_string_equal(error_root(&scene.peer.err), UNKNOWN_AUTHORITY);
	buffer_destroy(&chain);
	buffer_destroy(&leaf_certificate);
	buffer_destroy(&leaf_key);
	buffer_destroy(&certificate);
	buffer_destroy(&key);
	tls_ca_destroy(impostor);
	scene_destroy(&scene);
}

static void verification_is_skipped_only_when_told_so(void **state)
{
	struct scene scene;
	struct tls_client_options options = { .insecure_skip_verify = true };
	struct error err;

	(void)state;
	scene_init(&scene);
	tls_settings_release(scene.server);
	scene.server = make_server(scene.loop, NULL, &REQUEST);
	scene.host.tls = scene.server;
	tls_settings_release(scene.client);
	scene.client = tls_client_settings_create(scene.loop, &options, &err);
	talk(&scene, "whoever.else");
	scene_destroy(&scene);
}

static void a_listener_without_a_certificate_refuses(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	scene.host.tls = NULL;
	start(&scene, "localhost");
	TURN_UNTIL(scene.loop, scene.peer.closed == 1 && scene.host.errors == 1);
	assert_string_equal(error_root(&scene.host.err), "there is no certificate to show");
	assert_int_equal(scene.host.accepted, 0);
	scene_destroy(&scene);
}

/* ---- peers that don't play along ---- */

static void a_peer_that_speaks_something_else_is_told_apart(void **state)
{
	struct scene scene;
	struct host plain;

	(void)state;
	scene_init(&scene);
	/* a TLS client at a plain server that answers nonsense */
	host_init(&plain, scene.loop, NULL);
	plain.peer.on_data = NULL;
	uint16_t port = scene.host.address.port;
	scene.host.address.port = plain.address.port;
	start(&scene, "localhost");
	TURN_UNTIL(scene.loop, plain.peer.received.length > 0);
	peer_write(&plain.peer, SLICE("HTTP/1.1 400 Bad Request\r\n\r\n"));
	TURN_UNTIL(scene.loop, scene.peer.closed == 1);
	assert_string_equal(error_root(&scene.peer.err), "tls: first record does not look like a TLS handshake");
	scene.host.address.port = port;
	host_destroy(&plain);
	/* a plain client at a TLS server */
	peer_init(&scene.peer, scene.loop);
	peer_connect_to(&scene.peer, &scene.host);
	peer_write(&scene.peer, SLICE("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	TURN_UNTIL(scene.loop, scene.peer.closed == 1 && scene.host.errors == 1);
	assert_string_equal(error_root(&scene.host.err), "tls: first record does not look like a TLS handshake");
	assert_int_equal(scene.host.accepted, 0);
	scene_destroy(&scene);
}

static void a_silent_peer_costs_the_handshake_timeout(void **state)
{
	struct scene scene;
	struct host silent;
	struct stream_connect_options options = { .host = "127.0.0.1", .tls_timeout_ns = 30 * NS_PER_MS };
	struct stream_listener_options listener = host_options(NULL);
	char expected[128];

	(void)state;
	scene_init(&scene);
	host_init(&silent, scene.loop, NULL);
	options.port = silent.address.port;
	options.tls = scene.client;
	peer_connect(&scene.peer, &options);
	TURN_UNTIL(scene.loop, scene.peer.closed == 1);
	assert_int_equal(scene.peer.err.code, ERROR_TIMEOUT);
	snprintf(expected, sizeof expected, "TLS handshake with 127.0.0.1:%u: context deadline exceeded", options.port);
	assert_string_equal(scene.peer.err.text, expected);
	host_destroy(&silent);
	/* and the other way round */
	host_destroy(&scene.host);
	listener.tls = host_tls;
	listener.tls_timeout_ns = 30 * NS_PER_MS;
	host_init_with(&scene.host, scene.loop, &listener);
	scene.host.tls = scene.server;
	peer_init(&scene.peer, scene.loop);
	peer_connect_to(&scene.peer, &scene.host);
	TURN_UNTIL(scene.loop, scene.peer.closed == 1 && scene.host.errors == 1);
	assert_int_equal(scene.host.err.code, ERROR_TIMEOUT);
	scene_destroy(&scene);
}

static void a_peer_that_hangs_up_in_the_handshake_is_an_end(void **state)
{
	struct scene scene;
	struct host host;
	char expected[128];

	(void)state;
	scene_init(&scene);
	host_init(&host, scene.loop, NULL);
	scene.host.address.port = host.address.port;
	start(&scene, "localhost");
	TURN_UNTIL(scene.loop, host.peer.received.length > 0);
	stream_close(host.peer.stream);
	host.peer.stream = NULL;
	TURN_UNTIL(scene.loop, scene.peer.closed == 1);
	assert_int_equal(scene.peer.err.code, ERROR_CLOSED);
	snprintf(expected, sizeof expected, "TLS handshake with localhost:%u: EOF", host.address.port);
	assert_string_equal(scene.peer.err.text, expected);
	host_destroy(&host);
	scene_destroy(&scene);
}

static void closing_a_listener_ends_the_handshakes_it_has(void **state)
{
	struct scene scene;

	(void)state;
	scene_init(&scene);
	peer_connect_to(&scene.peer, &scene.host); /* plain, so the handshake doesn't go on */
	TURN_UNTIL(scene.loop, scene.peer.opened == 1);
	turn_for(scene.loop, 5);
	stream_listener_close(scene.host.listener);
	scene.host.listener = NULL;
	TURN_UNTIL(scene.loop, scene.peer.closed == 1);
	scene_destroy(&scene);
}

/* ---- sentences ---- */

static void each_fault_of_a_certificate_has_its_sentence(void **state)
{
	static const struct {
		uint32_t own, chain;
		const char *text;
	} CASES[] = {
		/* of several, the first that Go would tell */
		{ MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_CN_MISMATCH, MBEDTLS_X509_BADCERT_NOT_TRUSTED,
		  "certificate of p has expired: x509: certificate has expired or is not yet valid" },
		{ MBEDTLS_X509_BADCERT_CN_MISMATCH, MBEDTLS_X509_BADCERT_NOT_TRUSTED,
		  "certificate of p isn't valid for that name: x509: certificate is not valid for the host name" },
		{ 0, MBEDTLS_X509_BADCERT_EXPIRED,
		  "certificate of p has an issuer that has expired or isn't valid yet: "
		  "x509: certificate has expired or is not yet valid" },
		{ 0, MBEDTLS_X509_BADCERT_BAD_MD,
		  "certificate of p or of an issuer has too weak a key or signature: "
		  "x509: certificate uses weak cryptography" },
		{ MBEDTLS_X509_BADCERT_EXT_KEY_USAGE, MBEDTLS_X509_BADCERT_EXT_KEY_USAGE,
		  "certificate of p isn't meant for this use: x509: certificate specifies an incompatible key usage" },
		{ 0, MBEDTLS_X509_BADCERT_OTHER,
		  "certificate of p fails verification (0x100): x509: certificate is not acceptable" },
	};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
		struct tls_verdict verdict = { .own_flags = CASES[i].own,
			                       .chain_flags = CASES[i].own | CASES[i].chain };

		assert_false(tls_error_set_verdict(&err, "p", &verdict));
		assert_string_equal(err.text, CASES[i].text);
	}
	assert_false(tls_error_set_alert(&err, 48));
	assert_string_equal(err.text, "remote error: tls: unknown certificate authority");
	assert_false(tls_error_set_alert(&err, 200));
	assert_string_equal(err.text, "remote error: tls: alert 200");
	assert_false(tls_error_set_code(&err, MBEDTLS_ERR_X509_INVALID_FORMAT + MBEDTLS_ERR_ASN1_ALLOC_FAILED, "x"));
	assert_int_equal(err.code, ERROR_NO_MEMORY);
	assert_string_equal(err.text, "x: no memory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_name_is_refused),
		cmocka_unit_test(a_certificate_without_addresses_is_good_for_none),
		cmocka_unit_test(a_certificate_out_of_its_time_is_refused),
		cmocka_unit_test(an_unknown_authority_is_refused),
		cmocka_unit_test(a_self_signed_certificate_is_refused),
		cmocka_unit_test(a_server_certificate_can_not_vouch_for_others),
		cmocka_unit_test(verification_is_skipped_only_when_told_so),
		cmocka_unit_test(a_listener_without_a_certificate_refuses),
		cmocka_unit_test(a_peer_that_speaks_something_else_is_told_apart),
		cmocka_unit_test(a_silent_peer_costs_the_handshake_timeout),
		cmocka_unit_test(a_peer_that_hangs_up_in_the_handshake_is_an_end),
		cmocka_unit_test(each_fault_of_a_certificate_has_its_sentence),
		cmocka_unit_test(closing_a_listener_ends_the_handshakes_it_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
