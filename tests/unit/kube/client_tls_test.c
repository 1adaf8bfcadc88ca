/* TLS: whom the client trusts, and what it does when that changes. */
#include "kube_fixture.h"

#include "kube/client.h"
#include "net/tls_ca.h"

static const uint64_t SECOND = NS_PER_S;

/* A CA, and settings for a server that has a certificate of it for 127.0.0.1. */
struct authority {
	struct tls_ca *ca;
	struct tls_settings *server;
};

static struct authority authority_create(struct loop *loop, const char *address_text)
{
	struct authority authority;
	struct address address;
	struct tls_ca_request request = { .common_name = "api", .addresses = &address, .address_count = 1 };
	struct tls_server_options options = { 0 };
	struct buffer certificate;
	struct buffer key;
	struct error err;

	authority.ca = tls_ca_create(loop, "Test CA", &err);
	if (authority.ca == NULL)
		fail_msg("tls_ca_create: %s", err.text);
	assert_true(address_parse(slice_of(address_text), 0, &address));
	if (!tls_ca_issue(authority.ca, &request, &certificate, &key, &err))
		fail_msg("tls_ca_issue: %s", err.text);
	options.certificate_pem = buffer_slice(&certificate);
	options.key_pem = buffer_slice(&key);
	authority.server = tls_server_settings_create(loop, &options, &err);
	if (authority.server == NULL)
		fail_msg("tls_server_settings_create: %s", err.text);
	buffer_destroy(&certificate);
	buffer_destroy(&key);
	return authority;
}

static void authority_destroy(struct authority *authority)
{
	tls_settings_release(authority->server);
	tls_ca_destroy(authority->ca);
}

struct tls_fixture {
	struct kube_fixture *kube;
	struct authority first, second, elsewhere;
};

static int set_up(void **state)
{
	struct tls_fixture *fixture = calloc(1, sizeof *fixture);

	fixture->kube = fixture_create_bare();
	fixture->first = authority_create(fixture->kube->loop, "127.0.0.1");
	fixture->second = authority_create(fixture->kube->loop, "127.0.0.1");
	fixture->elsewhere = authority_create(fixture->kube->loop, "127.0.0.2");
	fixture->kube->api = scripted_api_start(fixture->kube->loop, fixture->first.server);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct tls_fixture *fixture = *state;

	authority_destroy(&fixture->first);
	authority_destroy(&fixture->second);
	authority_destroy(&fixture->elsewhere);
	fixture_destroy(fixture->kube);
	free(fixture);
	return 0;
}

/* One PATCH: not repeated by anybody, so that its outcome is that of one connection. */
static void request_once(struct tls_fixture *fixture, struct fixture_outcome *outcome)
{
	struct kube_request request = {
		.method = SLICE("PATCH"),
		.path = SLICE("/x"),
		.content_type = SLICE("application/json-patch+json"),
		.body = SLICE("[]"),
		.max_body_bytes = 100,
		.verb = "patch",
		.resource = "things",
	};
	size_t before = scripted_api_request_count(fixture->kube->api);
	struct error err;

	memset(outcome, 0, sizeof *outcome);
	outcome->call = kube_client_send(fixture->kube->client, &request, &FIXTURE_COLLECT, outcome, &err);
	assert_non_null(outcome->call);
	for (int i = 0; i < 1000 && !outcome->done; i++) {
		test_loop_spin(fixture->kube->loop, 1);
		if (scripted_api_request_count(fixture->kube->api) > before &&
		    scripted_api_request(fixture->kube->api, before)->on != NULL) {
			/* A new connection for the next one. */
			scripted_reply(scripted_api_request(fixture->kube->api, before), 200, "Connection: close\r\n",
			               "fine");
			scripted_close(scripted_api_request(fixture->kube->api, before));
		}
	}
	assert_true(outcome->done);
}

static void expect_fine(struct tls_fixture *fixture)
{
	struct fixture_outcome outcome;

	request_once(fixture, &outcome);
	if (outcome.failed)
		fail_msg("%s", outcome.err.text);
	assert_int_equal(outcome.body_length, 4);
}

static void expect_distrust(struct tls_fixture *fixture)
{
	size_t before = scripted_api_request_count(fixture->kube->api);
	struct fixture_outcome outcome;

	request_once(fixture, &outcome);
	assert_true(outcome.failed);
	assert_int_equal(outcome.status, 0);
	/* Not a byte of the request, and so no token, went to whom we don't trust. */
	assert_int_equal(scripted_api_request_count(fixture->kube->api), before);
}

static void write_ca(struct tls_fixture *fixture, const struct authority *authority)
{
	fixture_write(fixture->kube, "ca.crt", tls_ca_certificate_pem(authority->ca));
}

static void a_server_of_the_folder_s_ca_is_trusted_and_no_other(void **state)
{
	struct tls_fixture *fixture = *state;

	write_ca(fixture, &fixture->first);
	fixture->kube->client = fixture_client(fixture->kube, false);
	expect_fine(fixture);
	scripted_api_set_tls(fixture->kube->api, fixture->second.server);
	expect_distrust(fixture);
	expect_distrust(fixture);
}

static void the_address_must_be_in_the_certificate(void **state)
{
	struct tls_fixture *fixture = *state;

	write_ca(fixture, &fixture->elsewhere);
	scripted_api_set_tls(fixture->kube->api, fixture->elsewhere.server);
	fixture->kube->client = fixture_client(fixture->kube, false);
	expect_distrust(fixture);
}

static void a_new_ca_file_is_noticed_after_50_s(void **state)
{
	struct tls_fixture *fixture = *state;

	write_ca(fixture, &fixture->first);
	fixture->kube->client = fixture_client(fixture->kube, false);
	expect_fine(fixture);
	write_ca(fixture, &fixture->second);
	expect_fine(fixture); /* the old one still */
	scripted_api_set_tls(fixture->kube->api, fixture->second.server);
	test_clock_skip(51 * SECOND);
	test_loop_spin(fixture->kube->loop, 1);
	expect_fine(fixture);
	assert_int_equal(fixture_logged(fixture->kube, "CA certificates have changed"), 1);
}

static void a_new_ca_file_is_noticed_when_a_handshake_fails(void **state)
{
	struct tls_fixture *fixture = *state;

	write_ca(fixture, &fixture->first);
	fixture->kube->client = fixture_client(fixture->kube, false);
	expect_fine(fixture);
	scripted_api_set_tls(fixture->kube->api, fixture->second.server);
	expect_distrust(fixture);
	write_ca(fixture, &fixture->second);
	expect_distrust(fixture); /* that made it look */
	expect_fine(fixture);
}

static void a_broken_new_ca_file_leaves_the_old_one_in_force(void **state)
{
	struct tls_fixture *fixture = *state;

	write_ca(fixture, &fixture->first);
	fixture->kube->client = fixture_client(fixture->kube, false);
	fixture_write(fixture->kube, "ca.crt",
	              SLICE("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"));
	test_clock_skip(51 * SECOND);
	test_loop_spin(fixture->kube->loop, 1);
	expect_fine(fixture);
	assert_int_equal(fixture_logged(fixture->kube, "Unable to use the API server's new CA certificates"), 1);
	write_ca(fixture, &fixture->first);
	test_clock_skip(51 * SECOND);
	test_loop_spin(fixture->kube->loop, 1);
	expect_fine(fixture);
}

/* P9.1.2: missing or unusable, it is logged, and the system's roots are used: they don't know our server. */
static void without_a_usable_ca_file_the_system_s_roots_count(void **state)
{
	struct tls_fixture *fixture = *state;

	assert_int_equal(access("/etc/ssl/certs/ca-certificates.crt", R_OK), 0); /* package ca-certificates */
	fixture_remove(fixture->kube, "ca.crt");
	fixture->kube->client = fixture_client(fixture->kube, false);
	assert_int_equal(fixture_logged(fixture->kube, "Unable to read the API server's CA certificates"), 1);
	expect_distrust(fixture);
	kube_client_destroy(fixture->kube->client);
	fixture_write(fixture->kube, "ca.crt", SLICE("nonsense"));
	fixture->kube->client = fixture_client(fixture->kube, false);
	assert_int_equal(fixture_logged(fixture->kube, "Unable to use the API server's CA certificates"), 1);
	expect_distrust(fixture);
	/* As soon as the file is good, it counts. */
	write_ca(fixture, &fixture->first);
	expect_distrust(fixture);
	expect_fine(fixture);
}

int main(void)
{
#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(a_server_of_the_folder_s_ca_is_trusted_and_no_other),
		WITH_FIXTURE(the_address_must_be_in_the_certificate),
		WITH_FIXTURE(a_new_ca_file_is_noticed_after_50_s),
		WITH_FIXTURE(a_new_ca_file_is_noticed_when_a_handshake_fails),
		WITH_FIXTURE(a_broken_new_ca_file_leaves_the_old_one_in_force),
		WITH_FIXTURE(without_a_usable_ca_file_the_system_s_roots_count),
	};

	return cmocka_run_group_tests_name("client_tls", tests, NULL, NULL);
}
