#include "net/websocket_handshake.h"

#include <string.h>

#include <mbedtls/base64.h>
#include <mbedtls/sha1.h>

enum { SHA1_BYTES = 20 };

void websocket_make_key(const unsigned char nonce[WEBSOCKET_NONCE_BYTES], char key[WEBSOCKET_KEY_BYTES])
{
	size_t written;

	/* Fails only if the room is too small, which it isn't. */
	(void)mbedtls_base64_encode((unsigned char *)key, WEBSOCKET_KEY_BYTES, &written, nonce, WEBSOCKET_NONCE_BYTES);
}

void websocket_make_accept(struct slice key, char accept[WEBSOCKET_ACCEPT_BYTES])
{
	static const char GUID[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 section 1.3 */
	unsigned char text[WEBSOCKET_KEY_BYTES + sizeof GUID];
	unsigned char hash[SHA1_BYTES] = { 0 };
	size_t length = key.length < WEBSOCKET_KEY_BYTES ? key.length : WEBSOCKET_KEY_BYTES - 1;
	size_t written;

	if (length > 0)
		memcpy(text, key.data, length);
	memcpy(text + length, GUID, sizeof GUID - 1);
	(void)mbedtls_sha1(text, length + sizeof GUID - 1, hash); /* fails with hardware accelerators only */
	(void)mbedtls_base64_encode((unsigned char *)accept, WEBSOCKET_ACCEPT_BYTES, &written, hash, sizeof hash);
}

/* The only field of that name, or data NULL if there is none or several. */
static struct slice find_single(struct http_fields fields, const char *name)
{
	struct slice found = { 0 };

	for (size_t i = 0; i < fields.count; i++) {
		if (!slice_equal_fold(fields.items[i].name, slice_of(name)))
			continue;
		if (found.data != NULL)
			return (struct slice){ 0 };
		found = fields.items[i].value;
	}
	return found;
}

bool websocket_check_response(int status, struct http_fields fields, const char *key, struct error *err)
{
	static const char *const UNASKED[] = { "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions" };
	char accept[WEBSOCKET_ACCEPT_BYTES];

	if (status != 101)
		return error_set(err, ERROR_REFUSED, "status is %d, not 101", status);
	if (!http_fields_have_token(fields, "Connection", "upgrade"))
		return error_set(err, ERROR_SYNTAX, "Connection header doesn't have \"upgrade\"");
	if (!http_fields_have_token(fields, "Upgrade", "websocket"))
		return error_set(err, ERROR_SYNTAX, "Upgrade header doesn't have \"websocket\"");
	websocket_make_accept(slice_of(key), accept);
	if (!slice_equal_text(find_single(fields, "Sec-WebSocket-Accept"), accept))
		return error_set(err, ERROR_SYNTAX, "Sec-WebSocket-Accept doesn't match the key");
	for (size_t i = 0; i < sizeof UNASKED / sizeof UNASKED[0]; i++)
		if (http_fields_find(fields, UNASKED[i]).data != NULL)
			return error_set(err, ERROR_SYNTAX, "%s was not asked for", UNASKED[i]);
	return true;
}

/* Whether the text is base64 of 16 bytes. */
static bool is_key(struct slice text)
{
	unsigned char nonce[WEBSOCKET_NONCE_BYTES];
	size_t written;

	return text.length == WEBSOCKET_KEY_BYTES - 1 &&
	       mbedtls_base64_decode(nonce, sizeof nonce, &written, (const unsigned char *)text.data, text.length) ==
	               0 &&
	       written == sizeof nonce;
}

bool websocket_check_request(struct slice method, bool is_http10, struct http_fields fields, struct slice *ret_key,
                             struct error *err)
{
	struct slice key = find_single(fields, "Sec-WebSocket-Key");

	if (!slice_equal(method, SLICE("GET")))
		return error_set(err, ERROR_SYNTAX, "method is not GET");
	if (is_http10)
		return error_set(err, ERROR_SYNTAX, "HTTP/1.0 can't be upgraded");
	if (!http_fields_have_token(fields, "Connection", "upgrade"))
		return error_set(err, ERROR_SYNTAX, "Connection header doesn't have \"upgrade\"");
	if (!http_fields_have_token(fields, "Upgrade", "websocket"))
		return error_set(err, ERROR_SYNTAX, "Upgrade header doesn't have \"websocket\"");
	if (!slice_equal(find_single(fields, "Sec-WebSocket-Version"), SLICE("13")))
		return error_set(err, ERROR_SYNTAX, "Sec-WebSocket-Version is not 13");
	if (!is_key(key))
		return error_set(err, ERROR_SYNTAX, "Sec-WebSocket-Key is not base64 of 16 bytes");
	*ret_key = key;
	return true;
}
