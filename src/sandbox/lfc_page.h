/*
 * The metrics page of Postgres' local file cache (LFC) in a VM, as its exporter prints it (spec surroundings 4.2):
 * windows in the order of their texts, no timestamps, large numbers with exponents.
 */
#ifndef BALLAST_SANDBOX_LFC_PAGE_H
#define BALLAST_SANDBOX_LFC_PAGE_H

#include <stdint.h>

#include "base/buffer.h"

enum {
	LFC_PAGE_WINDOWS = 60, /* of a minute, two minutes, … an hour */
	LFC_PAGE_BYTES_MAX = 64 * 1024,
};

struct lfc_page {
	uint64_t window_pages[LFC_PAGE_WINDOWS]; /* of 8 KiB */
	uint64_t cache_limit_bytes;
	uint64_t hits, misses, writes; /* since Postgres' start */
};

/* Appends the page. */
void lfc_page_append(const struct lfc_page *page, struct buffer *out);
/* Appends a whole number: from a million on in exponent form. */
void lfc_page_append_number(struct buffer *out, uint64_t value);

#endif
