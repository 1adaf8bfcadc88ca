/*
 * Any text as what names, addresses and odds and ends of the network are read from: literal addresses, URLs, escapes,
 * queries, base64, resolv.conf. What is read prints back to what reads as the same, and nothing that was taken could
 * break out of the place where it is put.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "net/base64.h"
#include "net/dns_server.h"
#include "net/http_client.h"

enum { MAX_BYTES = 8192, PORT = 53, BLOCK = 3, BITS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void fuzz_address(struct slice text)
{
	struct address address, again;
	char printed[ADDRESS_TEXT_BYTES];

	if (!address_parse(text, PORT, &address))
		return;
	address_print_host(&address, false, printed);
	require(address_parse(slice_of(printed), PORT, &again) && address_equal(&address, &again));
	require(http_is_host(printed) || address.is_ipv6);
	/* Addresses are written in one way only. */
	address_print_host(&again, false, printed);
	require(slice_of(printed).length < ADDRESS_TEXT_BYTES);
}

static void fuzz_url(struct slice text)
{
	struct http_origin origin, again;
	struct slice path, path_again;
	struct error err = { .code = ERROR_NONE };
	struct buffer url;

	if (!http_url_parse(text, &origin, &path, &err)) {
		require(err.code != ERROR_NONE && err.text[0] != '\0');
		return;
	}
	require(http_is_target(path) && origin.port != 0 && http_is_host(origin.host));
	buffer_init(&url, (size_t)2 * MAX_BYTES);
	buffer_append_format(&url, strchr(origin.host, ':') != NULL ? "%s://[%s]:%u" : "%s://%s:%u",
	                     origin.secure ? "https" : "http", origin.host, origin.port);
	buffer_append_slice(&url, path);
	require(http_url_parse(buffer_slice(&url), &again, &path_again, &err));
	require(strcmp(origin.host, again.host) == 0 && origin.port == again.port && origin.secure == again.secure);
	require(slice_equal(path, path_again));
	buffer_destroy(&url);
}

/* Any bytes, escaped, are a piece of a target, and come back. */
static void fuzz_escapes(struct slice text)
{
	struct buffer escaped, back, read;

	buffer_init(&escaped, (size_t)4 * MAX_BYTES);
	buffer_init(&back, MAX_BYTES);
	buffer_init(&read, MAX_BYTES);
	buffer_append_char(&escaped, '/');
	http_append_escaped(&escaped, text);
	require(http_is_target(buffer_slice(&escaped)));
	require(http_unescape(slice_from_offset(buffer_slice(&escaped), 1), true, &back));
	require(slice_equal(buffer_slice(&back), text));
	require(!http_unescape(text, false, &read) || read.length <= text.length);
	buffer_destroy(&escaped);
	buffer_destroy(&back);
	buffer_destroy(&read);
}

static void fuzz_query(struct slice text)
{
	static const char *const KEYS[] = { "a", "watch", "limit", "" };

	for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++) {
		struct slice value = http_query_find(text, KEYS[i]);

		require(memchr(value.length > 0 ? value.data : "", '&', value.length) == NULL);
		require(value.data == NULL || value.length + strlen(KEYS[i]) <= text.length);
	}
}

static void encode(struct slice bytes, struct buffer *out)
{
	static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t at = 0; at < bytes.length; at += BLOCK) {
		size_t length = bytes.length - at < BLOCK ? bytes.length - at : BLOCK;
		unsigned value = 0;

		for (size_t i = 0; i < BLOCK; i++)
			value = value << 8 | (i < length ? (unsigned char)bytes.data[at + i] : 0U);
		for (size_t i = 0; i <= BLOCK; i++)
			buffer_append_char(out, i <= length ? DIGITS[value >> (BITS * (BLOCK - i)) & 63U] : '=');
	}
}

static void fuzz_base64(struct slice text)
{
	struct buffer out, again, encoded;
	struct error err = { .code = ERROR_NONE };

	buffer_init(&out, MAX_BYTES + 8);
	buffer_init(&again, MAX_BYTES + 8);
	buffer_init(&encoded, (size_t)2 * MAX_BYTES);
	buffer_append_text(&out, "kept");
	if (!base64_decode(text, &out, &err))
		require(err.code == ERROR_SYNTAX && out.length == 4);
	else
		require(out.length - 4 <= text.length / 4 * 3 + 3);
	require(memcmp(out.data, "kept", 4) == 0);
	/* What we wrote ourselves is read. */
	encode(text, &encoded);
	require(base64_decode(buffer_slice(&encoded), &again, &err) && slice_equal(buffer_slice(&again), text));
	buffer_destroy(&out);
	buffer_destroy(&again);
	buffer_destroy(&encoded);
}

static void fuzz_resolv_conf(struct slice text)
{
	char server[ADDRESS_TEXT_BYTES];
	struct slice host = { 0 };
	struct address address;

	dns_server_from(text, server);
	host = slice_of(server);
	require(host.length > 3 && strcmp(server + host.length - 3, ":53") == 0);
	host.length -= 3;
	if (host.data[0] == '[')
		host = slice_from(host.data + 1, host.length - 2);
	require(address_parse(host, PORT, &address));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);

	if (size > MAX_BYTES)
		return 0;
	fuzz_address(text);
	fuzz_url(text);
	fuzz_escapes(text);
	fuzz_query(text);
	fuzz_base64(text);
	fuzz_resolv_conf(text);
	return 0;
}
