/*
 * What the tests of TLS share: a CA, a server it vouches for, and a client that trusts it.
 */
#ifndef BALLAST_TESTS_UNIT_NET_TLS_SCENE_H
#define BALLAST_TESTS_UNIT_NET_TLS_SCENE_H

#include <psa/crypto.h>
#include <psa/crypto_extra.h>
#include <stdio.h>

#include "net/stream_internal.h"
#include "net/tls_ca.h"
#include "net/tls_internal.h"
#include "peer.h"

struct scene {
	struct loop *loop;
	struct tls_ca *ca;
	struct tls_settings *server;
	struct tls_settings *client;
	struct host host;
	struct peer peer;
};

static inline struct tls_ca *make_ca(struct loop *loop)
{
	struct error err;
	struct tls_ca *ca = tls_ca_create(loop, "test authority", &err);

	assert_non_null(ca);
	return ca;
}

static inline struct tls_settings *server_of(struct loop *loop, struct slice certificate, struct slice key,
                                             struct slice client_ca)
{
	struct tls_server_options options = { .certificate_pem = certificate,
		                              .key_pem = key,
		                              .client_ca_pem = client_ca };
	struct error err;
	struct tls_settings *settings = tls_server_settings_create(loop, &options, &err);

	if (settings == NULL)
		fail_msg("%s", err.text);
	return settings;
}

/* ca NULL: self-signed. */
static inline struct tls_settings *make_server(struct loop *loop, struct tls_ca *ca,
                                               const struct tls_ca_request *request)
{
	struct buffer certificate, key;
	struct error err;
	struct tls_settings *settings;

	if (ca != NULL)
		assert_true(tls_ca_issue(ca, request, &certificate, &key, &err));
	else
		assert_true(tls_ca_self_sign(loop, request, &certificate, &key, &err));
	settings = server_of(loop, buffer_slice(&certificate), buffer_slice(&key), (struct slice){ 0 });
	buffer_destroy(&certificate);
	buffer_destroy(&key);
	return settings;
}

static inline struct tls_settings *make_client(struct loop *loop, const struct tls_ca *ca)
{
	struct tls_client_options options = { .ca_pem = tls_ca_certificate_pem(ca) };
	struct error err;
	struct tls_settings *settings = tls_client_settings_create(loop, &options, &err);

	if (settings == NULL)
		fail_msg("%s", err.text);
	return settings;
}

static const char *const LOCALHOST[] = { "localhost", "*.example" };
static const struct address LOOPBACK = { .bytes = { 127, 0, 0, 1 } };

static const struct tls_ca_request REQUEST = {
	.common_name = "test server",
	.names = LOCALHOST,
	.name_count = 2,
	.addresses = &LOOPBACK,
	.address_count = 1,
};

static inline void scene_init_with(struct scene *scene, const struct tls_ca_request *request)
{
	struct loop *loop = new_loop();

	*scene = (struct scene){ .loop = loop, .ca = make_ca(loop) };
	scene->server = make_server(loop, scene->ca, request);
	scene->client = make_client(loop, scene->ca);
	host_init(&scene->host, loop, scene->server);
	peer_init(&scene->peer, loop);
}

static inline void scene_init(struct scene *scene)
{
	scene_init_with(scene, &REQUEST);
}

/* Keys live in the library's own store, where no leak checker sees them. */
static inline size_t keys_in_use(void)
{
	mbedtls_psa_stats_t stats;

	mbedtls_psa_get_stats(&stats);
	return stats.MBEDTLS_PRIVATE(volatile_slots);
}

static inline void scene_destroy(struct scene *scene)
{
	peer_destroy(&scene->peer);
	host_destroy(&scene->host);
	turn_for(scene->loop, 2);
	tls_settings_release(scene->server);
	tls_settings_release(scene->client);
	tls_ca_destroy(scene->ca);
	loop_destroy(scene->loop);
	assert_int_equal(keys_in_use(), 0);
}

static inline void start(struct scene *scene, const char *name)
{
	struct stream_connect_options options = {
		.host = "127.0.0.1",
		.port = scene->host.address.port,
		.server_name = name,
		.tls = scene->client,
	};

	peer_destroy(&scene->peer);
	peer_init(&scene->peer, scene->loop);
	peer_connect(&scene->peer, &options);
}

/* Connects as if the server were called `name`, and says hello both ways. */
static inline void talk(struct scene *scene, const char *name)
{
	scene->host.peer.echoes = true;
	start(scene, name);
	TURN_UNTIL(scene->loop, scene->peer.opened + scene->peer.closed == 1);
	if (scene->peer.closed != 0)
		fail_msg("%s", scene->peer.err.text);
	peer_write(&scene->peer, SLICE("hello"));
	TURN_UNTIL(scene->loop, scene->peer.received.length == 5);
	assert_memory_equal(scene->peer.received.data, "hello", 5);
}

#endif
