#include "report/sigv4.h"

#include <mbedtls/platform_util.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "report/limits.h"
#include "report/secret.h"

static const char ALGORITHM[] = "AWS4-HMAC-SHA256";

enum { DAY_BYTES = 8, TEXT_BYTES = 4096 };

void sigv4_time(int64_t wall_ns, char ret_time[SIGV4_TIME_BYTES])
{
	time_t when = (time_t)(wall_ns / NS_PER_S);
	struct tm date = { 0 };

	(void)gmtime_r(&when, &date);
	if (strftime(ret_time, SIGV4_TIME_BYTES, "%Y%m%dT%H%M%SZ", &date) == 0)
		ret_time[0] = '\0';
}

void sigv4_append_path(struct buffer *out, struct slice path)
{
	while (path.length > 0) {
		const char *slash = memchr(path.data, '/', path.length);
		size_t length = slash != NULL ? (size_t)(slash - path.data) : path.length;

		http_append_escaped(out, slice_from(path.data, length));
		if (slash != NULL)
			buffer_append_char(out, '/');
		path = slice_from_offset(path, length + 1);
	}
}

/* A field's value with its inner runs of spaces as one. */
static void append_value(struct buffer *out, struct slice value)
{
	value = slice_trim(value);
	for (size_t i = 0; i < value.length; i++)
		if (value.data[i] != ' ' || value.data[i - 1] != ' ')
			buffer_append_char(out, value.data[i]);
}

static void append_signed_names(struct buffer *out, struct http_fields fields)
{
	for (size_t i = 0; i < fields.count; i++) {
		if (i > 0)
			buffer_append_char(out, ';');
		buffer_append_slice(out, fields.items[i].name);
	}
}

void sigv4_append_canonical(struct buffer *out, const struct sigv4_request *request)
{
	buffer_append_slice(out, request->method);
	buffer_append_char(out, '\n');
	buffer_append_slice(out, request->path);
	buffer_append_char(out, '\n');
	buffer_append_slice(out, request->query);
	buffer_append_char(out, '\n');
	for (size_t i = 0; i < request->fields.count; i++) {
		buffer_append_slice(out, request->fields.items[i].name);
		buffer_append_char(out, ':');
		append_value(out, request->fields.items[i].value);
		buffer_append_char(out, '\n');
	}
	buffer_append_char(out, '\n');
	append_signed_names(out, request->fields);
	buffer_append_char(out, '\n');
	buffer_append_slice(out, request->payload_hash);
}

/* *key becomes HMAC(*key, data). */
static bool derive(uint8_t key[DIGEST_BYTES], struct slice data, struct error *err)
{
	return digest_hmac_sha256(slice_from(key, DIGEST_BYTES), data, key, err);
}

bool sigv4_key(const struct sigv4_identity *identity, struct slice day, uint8_t ret_key[DIGEST_BYTES],
               struct error *err)
{
	struct buffer first;
	bool done = false;

	if (!secret_buffer_init(&first, 4 + identity->secret.length, err))
		goto out;
	buffer_append_text(&first, "AWS4");
	buffer_append_slice(&first, identity->secret);
	done = digest_hmac_sha256(buffer_slice(&first), day, ret_key, err) && derive(ret_key, identity->region, err) &&
	       derive(ret_key, SLICE("s3"), err) && derive(ret_key, SLICE("aws4_request"), err);
out:
	buffer_destroy(&first);
	return done;
}

static void append_scope(struct buffer *out, struct slice day, struct slice region)
{
	buffer_append_slice(out, day);
	buffer_append_char(out, '/');
	buffer_append_slice(out, region);
	buffer_append_text(out, "/s3/aws4_request");
}

/* Hex of the SHA-256 of the canonical request. */
static bool hash_canonical(const struct sigv4_request *request, char ret_hex[DIGEST_HEX_BYTES], struct error *err)
{
	struct buffer canonical;
	uint8_t digest[DIGEST_BYTES];
	bool done = false;

	/* A session token is part of it. */
	if (secret_buffer_init(&canonical, 2 * REPORT_HEADER_VALUE_BYTES, err)) {
		sigv4_append_canonical(&canonical, request);
		done = buffer_check(&canonical, "the request to sign", err) &&
		       digest_sha256(buffer_slice(&canonical), digest, err);
	}
	if (done)
		digest_to_hex(digest, ret_hex);
	buffer_destroy(&canonical);
	return done;
}

bool sigv4_append_authorization(struct buffer *out, const struct sigv4_request *request,
                                const struct sigv4_identity *identity, const char *time, struct error *err)
{
	const struct slice day = slice_from(time, DAY_BYTES);
	struct buffer text;
	char hex[DIGEST_HEX_BYTES];
	uint8_t key[DIGEST_BYTES], signature[DIGEST_BYTES];
	bool done;

	if (!hash_canonical(request, hex, err))
		return false;
	buffer_init(&text, TEXT_BYTES);
	buffer_append_format(&text, "%s\n%s\n", ALGORITHM, time);
	append_scope(&text, day, identity->region);
	buffer_append_format(&text, "\n%s", hex);
	done = buffer_check(&text, "the text to sign", err) && sigv4_key(identity, day, key, err) &&
	       digest_hmac_sha256(slice_from(key, sizeof key), buffer_slice(&text), signature, err);
	mbedtls_platform_zeroize(key, sizeof key);
	buffer_destroy(&text);
	if (!done)
		return false;
	digest_to_hex(signature, hex);
	buffer_append_format(out, "%s Credential=%.*s/", ALGORITHM, SLICE_ARGS(identity->key_id));
	append_scope(out, day, identity->region);
	buffer_append_text(out, ", SignedHeaders=");
	append_signed_names(out, request->fields);
	buffer_append_format(out, ", Signature=%s", hex);
	return buffer_check(out, "the signature", err);
}
