/*
 * The system's root certificates.
 */
#ifndef BALLAST_NET_TLS_ROOTS_H
#define BALLAST_NET_TLS_ROOTS_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"

/* Reads /etc/ssl/certs/ca-certificates.crt, PEM, at most NET_CA_FILE_BYTES. The caller destroys the buffer. */
bool tls_roots_read(struct buffer *ret_pem, struct error *err);

/* The same from another file. */
bool tls_roots_read_file(const char *path, struct buffer *ret_pem, struct error *err);

#endif
