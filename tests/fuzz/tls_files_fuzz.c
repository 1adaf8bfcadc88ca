/*
 * Any bytes as the files that TLS is set up with: certificates to trust, a chain and a key, with NULs between, for a client
 * and for a server. What is taken makes settings, what isn't has a reason, and a key never stands in it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/loop_sim.h"
#include "net/tls.h"

enum { MAX_BYTES = 64 * 1024, KEY_LINE_BYTES = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* No line of a key that is long enough to be one may be quoted. */
static void check_reason(const struct error *err, struct slice key)
{
	require(err->code != ERROR_NONE && err->text[0] != '\0');
	while (key.length > 0) {
		struct slice line = slice_take_until(&key, '\n');

		if (line.length >= KEY_LINE_BYTES && line.data[0] != '-')
			require(!slice_contains(slice_of(err->text), line));
	}
}

static void try_settings(struct loop *loop, struct slice ca, struct slice certificate, struct slice key)
{
	const struct tls_client_options client = { .ca_pem = ca, .certificate_pem = certificate, .key_pem = key };
	const struct tls_server_options server = { .certificate_pem = certificate,
		                                   .key_pem = key,
		                                   .client_ca_pem = ca };
	struct error err = { .code = ERROR_NONE };
	struct tls_settings *settings = NULL;

	if (ca.length > 0) { /* else the system's, which are many */
		settings = tls_client_settings_create(loop, &client, &err);
		if (settings == NULL)
			check_reason(&err, key);
		tls_settings_release(settings);
	}
	err.code = ERROR_NONE;
	settings = tls_server_settings_create(loop, &server, &err);
	if (settings == NULL)
		check_reason(&err, key);
	require(settings == NULL || (certificate.length > 0 && key.length > 0));
	tls_settings_release(settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct address ADDRESS = { .bytes = { 10, 0, 0, 1 } };
	struct slice rest = slice_from(data, size);
	struct slice ca, certificate;
	struct sim_world *world;
	struct loop *loop;
	struct error err;

	if (size > MAX_BYTES)
		return 0;
	world = sim_world_create(1, INT64_C(1700000000) * NS_PER_S, &err);
	loop = world != NULL ? loop_sim_create(world, "tls", &ADDRESS, &err) : NULL;
	require(loop != NULL);
	ca = slice_take_until(&rest, '\0');
	certificate = slice_take_until(&rest, '\0');
	try_settings(loop, ca, certificate, rest);
	loop_destroy(loop);
	sim_world_destroy(world);
	return 0;
}
