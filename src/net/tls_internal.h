/*
 * What the files behind tls.h and tls_connection.h share.
 *
 *   tls.c             settings: certificates, keys, trust
 *   tls_sessions.c    sessions that a client remembers for resumption
 *   tls_connection.c  one connection
 *   tls_error.c       from codes to sentences
 */
#ifndef BALLAST_NET_TLS_INTERNAL_H
#define BALLAST_NET_TLS_INTERNAL_H

#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/x509_crt.h>

#include "base/table.h"
#include "net/limits.h"
#include "net/tls.h"

struct tls_settings {
	struct loop *loop;
	unsigned references;
	mbedtls_ssl_config config;
	mbedtls_x509_crt trusted;
	mbedtls_x509_crt chain;
	mbedtls_pk_context key;
	mbedtls_ssl_ticket_context tickets; /* servers */
	struct table sessions;              /* clients: "host:port" to struct tls_session */
	char server_name[NET_HOST_BYTES];   /* clients: in place of the host's, if not empty */
};

/* For tests: nothing newer than TLS 1.2. */
void tls_settings_limit_to_1_2(struct tls_settings *settings);

/* ---- tls_sessions.c ---- */

/* Offers what is remembered for the peer, if anything. Returns whether. */
bool tls_sessions_offer(struct tls_settings *settings, const char *peer, mbedtls_ssl_context *ssl);
/* Remembers the connection's session. Failing to is no error: the next handshake is merely longer. */
void tls_sessions_remember(struct tls_settings *settings, const char *peer, mbedtls_ssl_context *ssl);
void tls_sessions_forget(struct tls_settings *settings, const char *peer);
void tls_sessions_destroy(struct table *sessions);

/* ---- tls_error.c ---- */

/* What verification found; of the peer's own certificate and of the whole chain. */
struct tls_verdict {
	uint32_t own_flags; /* MBEDTLS_X509_BADCERT_… */
	uint32_t chain_flags;
	bool self_signed;
	bool is_address;   /* the name to verify is an IP address */
	bool has_no_names; /* nothing but a common name, which counts for nothing */
};

/* Says why the certificate of `peer` isn't accepted. Returns false. */
bool tls_error_set_verdict(struct error *err, const char *peer, const struct tls_verdict *verdict);
/* Whether the library's code means that memory was short. */
bool tls_error_is_memory(int code);
/* "what: text of the library's code"; ERROR_NO_MEMORY if that is it. Returns false. */
bool tls_error_set_code(struct error *err, int code, const char *what);
/* The peer sent this alert (RFC 8446 section 6.2). Returns false. */
bool tls_error_set_alert(struct error *err, unsigned alert);

#endif
