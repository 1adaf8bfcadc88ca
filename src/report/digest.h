/*
 * The few cryptographic functions that signatures of requests are made of.
 */
#ifndef BALLAST_REPORT_DIGEST_H
#define BALLAST_REPORT_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

enum { DIGEST_BYTES = 32, DIGEST_HEX_BYTES = 2 * DIGEST_BYTES + 1 };

/* False only when memory is short; the output is undefined then. */
bool digest_sha256(struct slice data, uint8_t ret_digest[DIGEST_BYTES], struct error *err);
bool digest_hmac_sha256(struct slice key, struct slice data, uint8_t ret_digest[DIGEST_BYTES], struct error *err);
/* Lower-case, NUL-terminated. */
void digest_to_hex(const uint8_t digest[DIGEST_BYTES], char ret_hex[DIGEST_HEX_BYTES]);
void digest_append_base64(struct buffer *out, struct slice data);
/* Decodes into out; false when text isn't base64 or out is full. */
bool digest_decode_base64(struct slice text, struct buffer *out, struct error *err);

#endif
