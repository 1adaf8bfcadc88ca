/*
 * TLS over a system that answers in single bytes, without memory, and with inputs that are wrong.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/rng.h"
#include "net/tls_ca.h"
#include "net/tls_internal.h"
#include "peer.h"

static struct {
	struct rng rng;
	bool stingy;
} faults;

static bool passes(void)
{
	uint64_t dice = rng_between(&faults.rng, 0, 8);

	if (dice > 1)
		return true;
	errno = dice == 0 ? EINTR : EAGAIN;
	return false;
}

static ssize_t byte_recv(int descriptor, void *data, size_t size, int flags)
{
	if (!faults.stingy)
		return recv(descriptor, data, size, flags);
	return passes() ? recv(descriptor, data, 1, flags) : -1;
}

static ssize_t byte_send(int descriptor, const void *data, size_t size, int flags)
{
	if (!faults.stingy)
		return send(descriptor, data, size, flags);
	return passes() ? send(descriptor, data, 1, flags) : -1;
}

static const struct loop_epoll_calls CALLS = {
	.recv = byte_recv,
	.send = byte_send,
	.connect = connect,
	.accept4 = accept4,
	.epoll_ctl = epoll_ctl,
	.getaddrinfo = getaddrinfo,
};

static const char *const NAMES[] = { "localhost" };
static const struct tls_ca_request REQUEST = { .common_name = "server", .names = NAMES, .name_count = 1 };

/* Certificates are made once: making them is what takes time. */
struct certificates {
	struct loop *loop;
	struct tls_ca *ca;
	struct buffer certificate, key, other_certificate, other_key;
};

static int make_certificates(void **state)
{
	static struct certificates made;
	struct error err;

	memset(&faults, 0, sizeof faults);
	rng_seed(&faults.rng, 5);
	made.loop = loop_epoll_create_with_calls(&CALLS, &err);
	made.ca = tls_ca_create(made.loop, "authority", &err);
	*state = &made;
	return made.ca != NULL && tls_ca_issue(made.ca, &REQUEST, &made.certificate, &made.key, &err) &&
	                       tls_ca_issue(made.ca, &REQUEST, &made.other_certificate, &made.other_key, &err)
	               ? 0
	               : -1;
}

static int destroy_certificates(void **state)
{
	struct certificates *made = *state;

	buffer_destroy(&made->certificate);
	buffer_destroy(&made->key);
	buffer_destroy(&made->other_certificate);
	buffer_destroy(&made->other_key);
	tls_ca_destroy(made->ca);
	loop_destroy(made->loop);
	return 0;
}

static struct tls_settings *server_settings(struct certificates *made, struct error *err)
{
	struct tls_server_options options = {
		.certificate_pem = buffer_slice(&made->certificate),
		.key_pem = buffer_slice(&made->key),
	};

	return tls_server_settings_create(made->loop, &options, err);
}

static struct tls_settings *client_settings(struct certificates *made, struct error *err)
{
	struct tls_client_options options = { .ca_pem = tls_ca_certificate_pem(made->ca) };

	return tls_client_settings_create(made->loop, &options, err);
}

/* ---- bytes ---- */

static void handshake_and_data_pass_byte_by_byte(void **state)
{
	enum { LENGTH = 6000 };
	struct certificates *made = *state;
	char *data = pattern(LENGTH);
	struct error err;

	for (int old = 0; old < 2; old++) {
		struct tls_settings *server = server_settings(made, &err), *client = client_settings(made, &err);
		struct host host;
		struct peer peer;

		if (old != 0)
			tls_settings_limit_to_1_2(client);
		host_init(&host, made->loop, server);
		host.peer.echoes = true;
		peer_init(&peer, made->loop);
		faults.stingy = true;
		for (int round = 0; round < 2; round++) { /* full, then resumed */
			struct stream_connect_options options = {
				.host = "127.0.0.1",
				.server_name = "localhost",
				.port = host.address.port,
				.tls = client,
			};

			peer_connect(&peer, &options);
			peer_write(&peer, slice_from(data, LENGTH));
			TURN_UNTIL(made->loop, peer.received.length == LENGTH || peer.closed != 0);
			assert_int_equal(peer.closed, 0);
			assert_memory_equal(peer.received.data, data, LENGTH);
			buffer_clear(&peer.received);
			host.peer.closed = 0;
			stream_finish(peer.stream, NS_PER_S);
			peer.stream = NULL;
			TURN_UNTIL(made->loop, host.peer.closed == 1);
			assert_string_equal(host.peer.err.text, "EOF");
		}
		faults.stingy = false;
		peer_destroy(&peer);
		host_destroy(&host);
		turn_for(made->loop, 5);
		tls_settings_release(server);
		tls_settings_release(client);
	}
	memory_release(data);
}

/* ---- memory ---- */

static void give_up(void *context)
{
	*(bool *)context = true;
}

/* A whole exchange with everything it needs, while one allocation fails. */
static bool exchange(struct certificates *made)
{
	struct error err = { 0 };
	struct tls_settings *server = server_settings(made, &err);
	struct tls_settings *client = server != NULL ? client_settings(made, &err) : NULL;
	struct stream_listener_options options = host_options(server);
	struct host host = { .loop = made->loop, .tls = server };
	struct peer peer;
	struct loop_timer timer = { 0 };
	bool late = false, done;

	if (client == NULL)
		assert_int_not_equal(err.code, ERROR_NONE); /* the library doesn't always pass on that it was memory */
	peer_init(&peer, made->loop);
	peer_init(&host.peer, made->loop);
	host.peer.echoes = true;
	loop_timer_start(made->loop, &timer, 10ULL * NS_PER_S, give_up, &late);
	if (client != NULL)
		host.listener = stream_listen(made->loop, &options, host_accept, &host, &err);
	if (host.listener != NULL) {
		assert_true(stream_listener_address(host.listener, &host.address));
		struct stream_connect_options to = {
			.host = "127.0.0.1",
			.server_name = "localhost",
			.port = host.address.port,
			.tls = client,
		};

		peer.stream = stream_connect(made->loop, &to, &PEER_HANDLER, &peer, &err);
		if (peer.stream != NULL && !stream_write(peer.stream, SLICE("hello"), &err)) {
			stream_close(peer.stream);
			peer.stream = NULL;
		}
	}
	while (peer.stream != NULL && peer.received.length < 5 && !peer.received.failed && !host.peer.received.failed &&
	       host.errors == 0 && !late)
		assert_true(loop_turn(made->loop, &err));
	assert_false(late);
	done = peer.received.length == 5;
	loop_timer_stop(made->loop, &timer);
	peer_destroy(&peer);
	host_destroy(&host);
	turn_for(made->loop, 1);
	tls_settings_release(server);
	tls_settings_release(client);
	return done;
}

static void an_allocation_that_fails_breaks_one_exchange_and_nothing_else(void **state)
{
	struct certificates *made = *state;
	unsigned failures = 0;
	bool reached = true;

	(void)exchange(made); /* what the library sets up once and for all */
	for (unsigned long n = 1; reached; n += 1 + n / 24) {
		bool done;

		memory_fail_at(n);
		done = exchange(made);
		reached = memory_allocation_count() >= n;
		memory_fail_at(0);
		failures += done ? 0 : 1;
	}
	assert_true(failures > 20);
	assert_true(exchange(made));
}

static void a_ca_without_memory_is_an_error(void **state)
{
	struct certificates *made = *state;
	unsigned failures = 0;

	for (unsigned long n = 1;; n += 1 + n / 16) {
		struct error err = { 0 };
		struct buffer certificate, key;
		struct tls_ca *ca;
		bool reached;

		memory_fail_at(n);
		ca = tls_ca_create(made->loop, "x", &err);
		if (ca != NULL && tls_ca_issue(ca, &REQUEST, &certificate, &key, &err)) {
			buffer_destroy(&certificate);
			buffer_destroy(&key);
		} else {
			failures++;
			assert_true(err.code != ERROR_NONE);
		}
		reached = memory_allocation_count() >= n;
		memory_fail_at(0);
		tls_ca_destroy(ca);
		if (!reached)
			break;
	}
	assert_true(failures > 10);
}

/* ---- inputs ---- */

static void expect_server_error(struct certificates *made, struct slice certificate, struct slice key,
                                struct slice client_ca, const char *text)
{
	struct tls_server_options options = { .certificate_pem = certificate,
		                              .key_pem = key,
		                              .client_ca_pem = client_ca };
	struct error err;

	assert_null(tls_server_settings_create(made->loop, &options, &err));
	assert_string_equal(err.text, text);
	assert_int_equal(err.code, ERROR_SYNTAX);
}

static void wrong_inputs_are_named(void **state)
{
	struct certificates *made = *state;
	struct slice certificate = buffer_slice(&made->certificate), key = buffer_slice(&made->key), none = { 0 };

	expect_server_error(made, none, key, none, "server certificate: there is no certificate in PEM form");
	expect_server_error(made, key, key, none, "server certificate: there is no certificate in PEM form");
	expect_server_error(made, certificate, none, none, "server key: there is no private key in PEM form");
	expect_server_error(made, certificate, certificate, none, "server key: there is no private key in PEM form");
	expect_server_error(made, certificate, buffer_slice(&made->other_key), none,
	                    "server key doesn't belong to the certificate");
	expect_server_error(made, certificate, key, SLICE("nonsense"),
	                    "certificates to trust clients by: there is no certificate in PEM form");

	struct tls_client_options options = { .ca_pem = tls_ca_certificate_pem(made->ca),
		                              .certificate_pem = certificate };
	struct error err;

	assert_null(tls_client_settings_create(made->loop, &options, &err));
	assert_string_equal(err.text, "client key: there is no private key in PEM form");
	options.ca_pem = SLICE("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	assert_null(tls_client_settings_create(made->loop, &options, &err));
	assert_int_equal(err.code, ERROR_SYNTAX);
	assert_memory_equal(err.text, "certificates to trust: ", 23);
}

static void among_certificates_to_trust_a_strange_one_is_passed_over(void **state)
{
	struct certificates *made = *state;
	struct buffer bundle;
	struct tls_client_options options = { 0 };
	struct error err;

	buffer_init(&bundle, 65536);
	buffer_append_text(&bundle, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	buffer_append_slice(&bundle, tls_ca_certificate_pem(made->ca));
	options.ca_pem = buffer_slice(&bundle);
	struct tls_settings *settings = tls_client_settings_create(made->loop, &options, &err);
	assert_non_null(settings);
	tls_settings_release(tls_settings_hold(settings));
	tls_settings_release(settings);
	tls_settings_release(NULL);

	/* of our own chain, every one counts */
	buffer_clear(&bundle);
	buffer_append_slice(&bundle, buffer_slice(&made->certificate));
	buffer_append_text(&bundle, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	expect_server_error(made, buffer_slice(&bundle), buffer_slice(&made->key), (struct slice){ 0 },
	                    "server certificate: 1 certificates of the chain can't be read");
	buffer_destroy(&bundle);
}

static void without_certificates_to_trust_the_systems_count(void **state)
{
	static const char PATH[] = "certificates to trust: open /etc/ssl/certs/ca-certificates.crt: ";
	struct certificates *made = *state;
	struct tls_client_options options = { 0 };
	struct error err;
	struct tls_settings *settings = tls_client_settings_create(made->loop, &options, &err);

	if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) == 0) {
		assert_non_null(settings);
	} else {
		assert_null(settings);
		assert_memory_equal(err.text, PATH, sizeof PATH - 1);
	}
	tls_settings_release(settings);
}

static void a_ca_refuses_names_it_can_not_write(void **state)
{
	static const char *const WRONG[] = { "", "a,b", "a=b", "a+b",
		                             "1234567890123456789012345678901234567890123456789012345678901234x" };
	struct certificates *made = *state;
	static const char *many[TLS_CA_NAMES + 1];
	struct tls_ca_request request = { .common_name = "many", .names = many, .name_count = TLS_CA_NAMES + 1 };
	struct buffer certificate, key;
	struct error err;

	for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
		assert_null(tls_ca_create(made->loop, WRONG[i], &err));
		assert_int_equal(err.code, ERROR_SYNTAX);
	}
	for (size_t i = 0; i <= TLS_CA_NAMES; i++)
		many[i] = "a-name-of-some-length.example";
	assert_false(tls_ca_issue(made->ca, &request, &certificate, &key, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	request.name_count--;
	assert_true(tls_ca_issue(made->ca, &request, &certificate, &key, &err));
	buffer_destroy(&certificate);
	buffer_destroy(&key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake_and_data_pass_byte_by_byte),
		cmocka_unit_test(an_allocation_that_fails_breaks_one_exchange_and_nothing_else),
		cmocka_unit_test(a_ca_without_memory_is_an_error),
		cmocka_unit_test(wrong_inputs_are_named),
		cmocka_unit_test(among_certificates_to_trust_a_strange_one_is_passed_over),
		cmocka_unit_test(without_certificates_to_trust_the_systems_count),
		cmocka_unit_test(a_ca_refuses_names_it_can_not_write),
	};

	return cmocka_run_group_tests(tests, make_certificates, destroy_certificates);
}
