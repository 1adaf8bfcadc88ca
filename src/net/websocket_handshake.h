/*
 * The opening handshake of WebSocket (RFC 6455 section 4): what either side writes, and what it checks of the other's.
 */
#ifndef BALLAST_NET_WEBSOCKET_HANDSHAKE_H
#define BALLAST_NET_WEBSOCKET_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/slice.h"
#include "net/http_message.h"

enum {
	WEBSOCKET_NONCE_BYTES = 16,
	WEBSOCKET_KEY_BYTES = 25,    /* base64 of 16 bytes, and NUL */
	WEBSOCKET_ACCEPT_BYTES = 29, /* base64 of a SHA-1, and NUL */
};

/* The client's Sec-WebSocket-Key, from 16 random bytes. */
void websocket_make_key(const unsigned char nonce[WEBSOCKET_NONCE_BYTES], char key[WEBSOCKET_KEY_BYTES]);
/* The server's Sec-WebSocket-Accept for a key of at most WEBSOCKET_KEY_BYTES - 1 bytes. */
void websocket_make_accept(struct slice key, char accept[WEBSOCKET_ACCEPT_BYTES]);

/*
 * Client: whether the server agreed (RFC 6455 4.1, spec agent-runtime 11.2.2): 101, Upgrade, Connection, the right
 * accept value, and neither a subprotocol nor an extension, since none was offered. Otherwise a sentence that names
 * what is wrong.
 */
bool websocket_check_response(int status, struct http_fields fields, const char *key, struct error *err);

/* Server: whether the request asks for a websocket as it must (RFC 6455 4.2.1); *ret_key points into fields. */
bool websocket_check_request(struct slice method, bool is_http10, struct http_fields fields, struct slice *ret_key,
                             struct error *err);

#endif
