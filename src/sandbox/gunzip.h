/*
 * Unpacks gzip data that stands in memory.
 */
#ifndef BALLAST_SANDBOX_GUNZIP_H
#define BALLAST_SANDBOX_GUNZIP_H

#include <stdbool.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/slice.h"

/* Appends the content of the one member that packed must be, with nothing behind it; up to the buffer's limit. */
bool gunzip(struct slice packed, struct buffer *out, struct error *err);

#endif
