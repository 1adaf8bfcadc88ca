#include "report/digest.h"

#include <mbedtls/base64.h>
#include <mbedtls/md.h>

static const unsigned char *bytes_of(struct slice data)
{
	return (const unsigned char *)(data.length > 0 ? data.data : "");
}

static bool check(int result, struct error *err)
{
	if (result != 0)
		return error_set(err, ERROR_NO_MEMORY, "a digest can't be computed (mbedTLS %d)", result);
	return true;
}

bool digest_sha256(struct slice data, uint8_t ret_digest[DIGEST_BYTES], struct error *err)
{
	return check(mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), bytes_of(data), data.length, ret_digest),
	             err);
}

bool digest_hmac_sha256(struct slice key, struct slice data, uint8_t ret_digest[DIGEST_BYTES], struct error *err)
{
	return check(mbedtls_md_hmac(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256), bytes_of(key), key.length,
	                             bytes_of(data), data.length, ret_digest),
	             err);
}

void digest_to_hex(const uint8_t digest[DIGEST_BYTES], char ret_hex[DIGEST_HEX_BYTES])
{
	static const char DIGITS[] = "0123456789abcdef";

	for (size_t i = 0; i < DIGEST_BYTES; i++) {
		ret_hex[2 * i] = DIGITS[digest[i] >> 4];
		ret_hex[2 * i + 1] = DIGITS[digest[i] & 15];
	}
	ret_hex[DIGEST_HEX_BYTES - 1] = '\0';
}

void digest_append_base64(struct buffer *out, struct slice data)
{
	size_t room = (data.length + 2) / 3 * 4 + 1; /* the function writes a NUL */
	size_t length;
	char *to = buffer_reserve(out, room);

	if (to != NULL && mbedtls_base64_encode((unsigned char *)to, room, &length, bytes_of(data), data.length) == 0)
		buffer_advance(out, length);
}

bool digest_decode_base64(struct slice text, struct buffer *out, struct error *err)
{
	size_t length = 0;
	char *to = buffer_reserve(out, text.length / 4 * 3 + 3);

	if (to == NULL)
		return buffer_check(out, "decoded base64", err);
	if (mbedtls_base64_decode((unsigned char *)to, text.length / 4 * 3 + 3, &length, bytes_of(text), text.length) !=
	    0)
		return error_set(err, ERROR_SYNTAX, "not base64");
	buffer_advance(out, length);
	return true;
}
