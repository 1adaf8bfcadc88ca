/*
 * A certificate authority in memory: the sandbox and the tests make one at start and issue certificates for their
 * servers and clients. Keys are P-256. Nothing of it is meant to outlive the process or to be trusted by anybody else.
 */
#ifndef BALLAST_NET_TLS_CA_H
#define BALLAST_NET_TLS_CA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"
#include "net/address.h"
#include "net/loop.h"

enum { TLS_CA_NAMES = 64 }; /* most names and addresses in one certificate */

struct tls_ca;

/* Whom a certificate is for. */
struct tls_ca_request {
	const char *common_name;  /* 1 … 64 bytes, without any of , = + " \ < > ; # */
	const char *const *names; /* DNS names */
	size_t name_count;
	const struct address *addresses; /* ports are ignored */
	size_t address_count;
	/* Seconds since 1970. 0: an hour ago, a year from now. */
	int64_t not_before_s;
	int64_t not_after_s;
};

/*
 * Makes a key and a certificate that signs others, valid from an hour ago for ten years. Time and randomness are the
 * loop's.
 */
struct tls_ca *tls_ca_create(struct loop *loop, const char *common_name, struct error *err);
void tls_ca_destroy(struct tls_ca *ca); /* NULL is fine */

/* What others must trust. Valid as long as the CA. */
struct slice tls_ca_certificate_pem(const struct tls_ca *ca);

/* Issues a certificate, good for servers and clients, with a fresh key. The caller destroys both buffers. */
bool tls_ca_issue(struct tls_ca *ca, const struct tls_ca_request *request, struct buffer *ret_certificate_pem,
                  struct buffer *ret_key_pem, struct error *err);

/* The same, signed by nobody but itself. */
bool tls_ca_self_sign(struct loop *loop, const struct tls_ca_request *request, struct buffer *ret_certificate_pem,
                      struct buffer *ret_key_pem, struct error *err);

#endif
