/*
 * TLS settings: what to trust, who we are. Shared by many streams and counted, so that a reload makes new settings
 * while old connections keep theirs. Version 1.2 and 1.3; verification is always on for clients unless said otherwise,
 * loudly.
 */
#ifndef BALLAST_NET_TLS_H
#define BALLAST_NET_TLS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/loop.h"

struct tls_settings;

struct tls_client_options {
	/* Certificates to trust; empty: the system's roots (/etc/ssl/certs/ca-certificates.crt). */
	struct slice ca_pem;
	struct slice certificate_pem; /* client certificate and key, or empty */
	struct slice key_pem;
	bool insecure_skip_verify;
	const char *server_name; /* asked for and verified in place of the host's; NULL or empty: the host's */
};

struct tls_server_options {
	struct slice certificate_pem; /* the chain, own certificate first */
	struct slice key_pem;
	struct slice client_ca_pem; /* not empty: clients must show a certificate signed by one of these */
};

/* Each returns settings with one reference, or NULL with a sentence that names what is wrong with which input. */
struct tls_settings *tls_client_settings_create(struct loop *loop, const struct tls_client_options *options,
                                                struct error *err);
struct tls_settings *tls_server_settings_create(struct loop *loop, const struct tls_server_options *options,
                                                struct error *err);
struct tls_settings *tls_settings_hold(struct tls_settings *settings);
void tls_settings_release(struct tls_settings *settings); /* NULL is fine */

#endif
