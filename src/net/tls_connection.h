/*
 * TLS on one connection: takes and gives bytes through two functions of its user and knows no loop (but for its
 * randomness and clock, which come from the settings' loop). Verification, resumption and the sentences for what can go
 * wrong are here.
 */
#ifndef BALLAST_NET_TLS_CONNECTION_H
#define BALLAST_NET_TLS_CONNECTION_H

#include "base/error.h"
#include "net/address.h"
#include "net/loop.h"
#include "net/tls.h"

struct tls_connection;

/* How encrypted bytes travel; as socket_read and socket_write. */
struct tls_transport {
	enum socket_result (*read)(void *context, void *data, size_t size, size_t *ret_length, struct error *err);
	enum socket_result (*write)(void *context, const void *data, size_t length, size_t *ret_written,
	                            struct error *err);
	void *context;
};

enum tls_result {
	TLS_OK,
	TLS_WANT_READ,  /* call again when the transport is readable */
	TLS_WANT_WRITE, /* … writable */
	TLS_END,        /* the peer closed properly */
	TLS_FAILED,
};

/* server_name: whom the certificate must name. Takes a reference to the settings. */
struct tls_connection *tls_connection_create_client(struct tls_settings *settings, const char *server_name,
                                                    uint16_t port, const struct tls_transport *transport,
                                                    struct error *err);
/* peer is for error texts. */
struct tls_connection *tls_connection_create_server(struct tls_settings *settings, const struct address *peer,
                                                    const struct tls_transport *transport, struct error *err);
void tls_connection_destroy(struct tls_connection *connection); /* NULL is fine */

/* Goes on with the handshake. TLS_OK when it is done. */
enum tls_result tls_connection_handshake(struct tls_connection *connection, struct error *err);

/*
 * Reads decrypted bytes. Must be called until it doesn't answer TLS_OK: what it holds decrypted, no socket will tell.
 */
enum tls_result tls_connection_read(struct tls_connection *connection, void *data, size_t size, size_t *ret_length,
                                    struct error *err);

/*
 * Takes bytes to send. After TLS_WANT_…, the next call must offer the same bytes first (more may follow them): some are
 * on their way already.
 */
enum tls_result tls_connection_write(struct tls_connection *connection, const void *data, size_t length,
                                     size_t *ret_written, struct error *err);

/* Tells the peer that nothing more comes. */
enum tls_result tls_connection_close_notify(struct tls_connection *connection, struct error *err);

/* "api.example:443", the peer in error texts. */
const char *tls_connection_peer(const struct tls_connection *connection);
/* What was agreed, for tests and logs: "TLSv1.3"; and whether an earlier session was resumed. After the handshake. */
const char *tls_connection_version(const struct tls_connection *connection);
bool tls_connection_resumed(const struct tls_connection *connection);

#endif
