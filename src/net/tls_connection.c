/*
 * Every call into the library goes between enter and leave (tls_hooks.h). The transport's failures arrive there as mere
 * codes, so `err` points at the caller's error during a call, and the transport's own words stand in it when the call
 * fails.
 */
#include "net/tls_connection.h"

#include <mbedtls/net_sockets.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "net/limits.h"
#include "net/tls_hooks.h"
#include "net/tls_internal.h"

enum { PEER_BYTES = NET_HOST_BYTES + ADDRESS_TEXT_BYTES, RECORD_BYTES = 16 * 1024 };

struct tls_connection {
	mbedtls_ssl_context ssl;
	struct tls_settings *settings;
	struct tls_transport transport;
	struct error *err;     /* the caller's, during a call */
	bool transport_failed; /* *err tells already */
	bool is_client;
	bool open;
	bool offered;         /* a remembered session */
	bool saw_certificate; /* so it wasn't resumed */
	struct address address;
	struct tls_verdict verdict;
	size_t repeat_bytes; /* what a write that was put off must repeat */
	char peer[PEER_BYTES];
};

/* ---- transport ---- */

static int send_encrypted(void *context, const unsigned char *data, size_t length)
{
	struct tls_connection *connection = context;
	size_t written = 0;

	switch (connection->transport.write(connection->transport.context, data, length, &written, connection->err)) {
	case SOCKET_OK:
		return (int)written;
	case SOCKET_AGAIN:
		return MBEDTLS_ERR_SSL_WANT_WRITE;
	default:
		connection->transport_failed = true;
		return MBEDTLS_ERR_NET_SEND_FAILED;
	}
}

static int receive_encrypted(void *context, unsigned char *data, size_t size)
{
	struct tls_connection *connection = context;
	size_t length = 0;

	switch (connection->transport.read(connection->transport.context, data, size, &length, connection->err)) {
	case SOCKET_OK:
		return (int)length;
	case SOCKET_AGAIN:
		return MBEDTLS_ERR_SSL_WANT_READ;
	case SOCKET_END:
		return 0;
	default:
		connection->transport_failed = true;
		return MBEDTLS_ERR_NET_RECV_FAILED;
	}
}

/* ---- verification ---- */

/*
 * Whether the certificate names the address. The library could check that too, but only together with sending it as a
 * name (SNI), which RFC 6066 section 3 forbids.
 */
static bool names_address(const mbedtls_x509_crt *certificate, const struct address *address)
{
	const mbedtls_x509_sequence *entry = &certificate->subject_alt_names;
	const size_t length = address->is_ipv6 ? 16 : 4;

	for (; entry != NULL && entry->buf.p != NULL; entry = entry->next)
		if ((entry->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK) == MBEDTLS_X509_SAN_IP_ADDRESS &&
		    entry->buf.len == length && memcmp(entry->buf.p, address->bytes, length) == 0)
			return true;
	return false;
}

/* Called for each certificate of the chain, from the root down to the peer's own (depth 0). */
static int verify(void *context, mbedtls_x509_crt *certificate, int depth, uint32_t *flags)
{
	struct tls_connection *connection = context;
	struct tls_verdict *verdict = &connection->verdict;

	connection->saw_certificate = true;
	if (depth == 0) {
		if (verdict->is_address && !names_address(certificate, &connection->address))
			*flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
		/* mbedTLS falls back on the common name; Go and browsers don't, nor should an RFC 6125 client. */
		verdict->has_no_names = certificate->subject_alt_names.buf.p == NULL;
		if (connection->is_client && verdict->has_no_names)
			*flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
		verdict->own_flags = *flags;
		verdict->self_signed =
			slice_equal(slice_from(certificate->issuer_raw.p, certificate->issuer_raw.len),
		                    slice_from(certificate->subject_raw.p, certificate->subject_raw.len));
	}
	verdict->chain_flags |= *flags;
	return 0;
}

/* ---- life ---- */

static struct tls_connection *create(struct tls_settings *settings, const struct tls_transport *transport,
                                     struct error *err)
{
	struct tls_connection *connection = memory_allocate(sizeof *connection);

	if (connection == NULL) {
		error_set(err, ERROR_NO_MEMORY, "no memory for a TLS connection");
		return NULL;
	}
	connection->settings = tls_settings_hold(settings);
	connection->transport = *transport;
	mbedtls_ssl_init(&connection->ssl);

	int result = mbedtls_ssl_setup(&connection->ssl, &settings->config);

	if (result != 0) {
		tls_error_set_code(err, result, "TLS connection");
		tls_connection_destroy(connection);
		return NULL;
	}
	mbedtls_ssl_set_bio(&connection->ssl, connection, send_encrypted, receive_encrypted, NULL);
	mbedtls_ssl_set_verify(&connection->ssl, verify, connection);
	return connection;
}

struct tls_connection *tls_connection_create_client(struct tls_settings *settings, const char *server_name,
                                                    uint16_t port, const struct tls_transport *transport,
                                                    struct error *err)
{
	struct loop *before = tls_hooks_enter(settings->loop);
	struct tls_connection *connection = create(settings, transport, err);

	if (connection == NULL)
		goto out;
	connection->is_client = true;
	if (settings->server_name[0] != '\0')
		server_name = settings->server_name;
	connection->verdict.is_address = address_parse(slice_of(server_name), port, &connection->address);
	if (connection->verdict.is_address)
		address_print(&connection->address, connection->peer);
	else
		snprintf(connection->peer, sizeof connection->peer, "%s:%u", server_name, port);

	int result = mbedtls_ssl_set_hostname(&connection->ssl, connection->verdict.is_address ? NULL : server_name);

	if (result != 0) {
		tls_error_set_code(err, result, "TLS server name");
		tls_connection_destroy(connection);
		connection = NULL;
		goto out;
	}
	connection->offered = tls_sessions_offer(settings, connection->peer, &connection->ssl);
out:
	tls_hooks_leave(before);
	return connection;
}

struct tls_connection *tls_connection_create_server(struct tls_settings *settings, const struct address *peer,
                                                    const struct tls_transport *transport, struct error *err)
{
	struct loop *before = tls_hooks_enter(settings->loop);
	struct tls_connection *connection = create(settings, transport, err);

	if (connection != NULL)
		address_print(peer, connection->peer);
	tls_hooks_leave(before);
	return connection;
}

void tls_connection_destroy(struct tls_connection *connection)
{
	if (connection == NULL)
		return;
	mbedtls_ssl_free(&connection->ssl);
	tls_settings_release(connection->settings);
	memory_release(connection);
}

/* ---- results ---- */

static struct loop *enter(struct tls_connection *connection, struct error *err)
{
	connection->err = err;
	connection->transport_failed = false;
	return tls_hooks_enter(connection->settings->loop);
}

static void explain_handshake(struct tls_connection *connection, int code, struct error *err)
{
	switch (code) {
	case MBEDTLS_ERR_X509_CERT_VERIFY_FAILED:
		tls_error_set_verdict(err, connection->peer, &connection->verdict);
		return;
	case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
		error_set(err, ERROR_REFUSED, "tls: client didn't provide a certificate");
		break;
	case MBEDTLS_ERR_SSL_INVALID_RECORD:
	case MBEDTLS_ERR_SSL_UNEXPECTED_RECORD:
	case MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE:
		error_set(err, ERROR_SYNTAX, "tls: first record does not look like a TLS handshake");
		break;
	case MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION:
		error_set(err, ERROR_REFUSED, "tls: the peer speaks none of the versions 1.2 and 1.3");
		break;
	default:
		tls_error_set_code(err, code, "tls");
		break;
	}
	error_wrap(err, "TLS handshake with %s", connection->peer);
}

/* From the library's code to ours; *err gets a sentence if it is a failure. */
static enum tls_result conclude(struct tls_connection *connection, int code, struct error *err)
{
	switch (code) {
	case MBEDTLS_ERR_SSL_WANT_READ:
		return TLS_WANT_READ;
	case MBEDTLS_ERR_SSL_WANT_WRITE:
		return TLS_WANT_WRITE;
	case MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY:
		return TLS_END;
	case MBEDTLS_ERR_SSL_CONN_EOF:
		error_set(err, ERROR_CLOSED, connection->open ? "unexpected EOF" : "EOF");
		break;
	case MBEDTLS_ERR_SSL_INVALID_MAC:
		/*
		 * Also what becomes of an alert that a peer encrypts with another key than is due, as mbedTLS does in
		 * the 1.3 handshake.
		 */
		error_set(err, ERROR_REFUSED, "tls: bad record MAC");
		break;
	case MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE:
		tls_error_set_alert(err, connection->ssl.MBEDTLS_PRIVATE(in_msg)[1]);
		break;
	default:
		if (connection->transport_failed)
			break;
		if (!connection->open) {
			explain_handshake(connection, code, err);
			return TLS_FAILED;
		}
		tls_error_set_code(err, code, "tls");
		return TLS_FAILED;
	}
	if (!connection->open)
		error_wrap(err, "TLS handshake with %s", connection->peer);
	return TLS_FAILED;
}

/* ---- talking ---- */

enum tls_result tls_connection_handshake(struct tls_connection *connection, struct error *err)
{
	struct loop *before = enter(connection, err);
	int code = mbedtls_ssl_handshake(&connection->ssl);
	enum tls_result result = TLS_OK;

	if (code != 0) {
		/* The library tells the peer of all its refusals but this one. */
		if (code == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE &&
		    mbedtls_ssl_get_version_number(&connection->ssl) == MBEDTLS_SSL_VERSION_TLS1_2)
			mbedtls_ssl_send_alert_message(&connection->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL,
			                               MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE);
		result = conclude(connection, code, err);
		if (result == TLS_FAILED && connection->offered)
			tls_sessions_forget(connection->settings, connection->peer);
	} else {
		connection->open = true;
		if (connection->is_client &&
		    mbedtls_ssl_get_version_number(&connection->ssl) == MBEDTLS_SSL_VERSION_TLS1_2)
			tls_sessions_remember(connection->settings, connection->peer, &connection->ssl);
	}
	tls_hooks_leave(before);
	return result;
}

/* A session ticket may come at any time after the handshake, to a call that writes too if the ticket came in pieces. */
static bool was_ticket(struct tls_connection *connection, int code)
{
	if (code != MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
		return false;
	tls_sessions_remember(connection->settings, connection->peer, &connection->ssl);
	return true;
}

enum tls_result tls_connection_read(struct tls_connection *connection, void *data, size_t size, size_t *ret_length,
                                    struct error *err)
{
	struct loop *before = enter(connection, err);
	enum tls_result result = TLS_OK;
	int code;

	do
		code = mbedtls_ssl_read(&connection->ssl, data, size);
	while (was_ticket(connection, code));
	if (code > 0)
		*ret_length = (size_t)code;
	else
		result = conclude(connection, code == 0 ? MBEDTLS_ERR_SSL_CONN_EOF : code, err);
	tls_hooks_leave(before);
	return result;
}

enum tls_result tls_connection_write(struct tls_connection *connection, const void *data, size_t length,
                                     size_t *ret_written, struct error *err)
{
	struct loop *before = enter(connection, err);
	enum tls_result result = TLS_OK;

	if (length > RECORD_BYTES)
		length = RECORD_BYTES;
	if (connection->repeat_bytes != 0)
		length = connection->repeat_bytes;

	int code;

	do
		code = mbedtls_ssl_write(&connection->ssl, data, length);
	while (was_ticket(connection, code));
	connection->repeat_bytes = 0;
	if (code >= 0) {
		*ret_written = (size_t)code;
	} else {
		result = conclude(connection, code, err);
		if (result == TLS_WANT_READ || result == TLS_WANT_WRITE)
			connection->repeat_bytes = length;
	}
	tls_hooks_leave(before);
	return result;
}

enum tls_result tls_connection_close_notify(struct tls_connection *connection, struct error *err)
{
	struct loop *before = enter(connection, err);
	int code;
	enum tls_result result;

	do
		code = mbedtls_ssl_close_notify(&connection->ssl);
	while (was_ticket(connection, code));
	result = code == 0 ? TLS_OK : conclude(connection, code, err);
	tls_hooks_leave(before);
	return result;
}

const char *tls_connection_peer(const struct tls_connection *connection)
{
	return connection->peer;
}

const char *tls_connection_version(const struct tls_connection *connection)
{
	return mbedtls_ssl_get_version(&connection->ssl);
}

bool tls_connection_resumed(const struct tls_connection *connection)
{
	return connection->open && connection->offered && !connection->saw_certificate;
}
