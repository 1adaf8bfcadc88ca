/*
 * Base64 (RFC 4648 section 4).
 */
#ifndef BALLAST_NET_BASE64_H
#define BALLAST_NET_BASE64_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

/* Appends what the text stands for; line ends in it are passed over. False, and nothing appended, if it is no base64. */
bool base64_decode(struct slice text, struct buffer *out, struct error *err);

#endif
