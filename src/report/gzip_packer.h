/*
 * Packs bytes as they come into one gzip member (RFC 1952), which stands in a buffer of the caller's.
 *
 * Room for the worst case is made before anything is taken, so that a piece is taken as a whole or not at all.
 */
#ifndef BALLAST_REPORT_GZIP_PACKER_H
#define BALLAST_REPORT_GZIP_PACKER_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

struct gzip_packer; /* about 64 KiB */

/* NULL with *err when memory is short. */
struct gzip_packer *gzip_packer_create(struct error *err);
/* Takes two pieces, one behind the other. False when memory or the buffer's limit is short: nothing was taken. */
bool gzip_packer_add(struct gzip_packer *packer, struct slice first, struct slice second, struct buffer *out,
                     struct error *err);
/* Writes the rest and the trailer. Never fails after a successful add. */
bool gzip_packer_finish(struct gzip_packer *packer, struct buffer *out, struct error *err);
void gzip_packer_destroy(struct gzip_packer *packer); /* NULL is fine */

#endif
