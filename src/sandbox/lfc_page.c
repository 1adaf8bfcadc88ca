#include "sandbox/lfc_page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PLAIN_BELOW = 1000000,
	DOUBLE_DIGITS = 17, /* as many tell any double */
	NUMBER_BYTES = 32,
	LABEL_BYTES = 12,
	WINDOW_SECONDS = 60,
	PAGE_SIZE_BYTES = 8192,    /* of Postgres */
	CHUNK_BYTES = 1024 * 1024, /* of the cache */
};

/* C's exponents have two digits at least, as the exporter's do. */
void lfc_page_append_number(struct buffer *out, uint64_t value)
{
	char text[NUMBER_BYTES];

	if (value < PLAIN_BELOW) {
		buffer_append_format(out, "%llu", (unsigned long long)value);
		return;
	}
	for (int digits = 1; digits <= DOUBLE_DIGITS; digits++) {
		snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
		if (strtod(text, NULL) == (double)value)
			break;
	}
	buffer_append_text(out, text);
}

static void append_head(struct buffer *out, const char *name, const char *help)
{
	buffer_append_format(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void append_gauge(struct buffer *out, const char *name, const char *help, uint64_t value)
{
	append_head(out, name, help);
	buffer_append_format(out, "%s ", name);
	lfc_page_append_number(out, value);
	buffer_append_char(out, '\n');
}

struct window {
	char label[LABEL_BYTES];
	uint64_t pages;
};

static int compare_windows(const void *a, const void *b)
{
	return strcmp(((const struct window *)a)->label, ((const struct window *)b)->label);
}

static void append_windows(struct buffer *out, const struct lfc_page *page)
{
	static const char NAME[] = "lfc_approximate_working_set_size_windows";
	struct window windows[LFC_PAGE_WINDOWS] = { 0 };

	for (unsigned i = 0; i < LFC_PAGE_WINDOWS; i++) {
		snprintf(windows[i].label, sizeof windows[i].label, "%u", (i + 1) * WINDOW_SECONDS);
		windows[i].pages = page->window_pages[i];
	}
	qsort(windows, LFC_PAGE_WINDOWS, sizeof windows[0], compare_windows);
	append_head(out, NAME, "Approximate working set size in pages of 8192 bytes");
	for (unsigned i = 0; i < LFC_PAGE_WINDOWS; i++) {
		buffer_append_format(out, "%s{duration_seconds=\"%s\"} ", NAME, windows[i].label);
		lfc_page_append_number(out, windows[i].pages);
		buffer_append_char(out, '\n');
	}
}

void lfc_page_append(const struct lfc_page *page, struct buffer *out)
{
	uint64_t touched = page->window_pages[LFC_PAGE_WINDOWS - 1] / (CHUNK_BYTES / PAGE_SIZE_BYTES);
	uint64_t chunks = page->cache_limit_bytes / CHUNK_BYTES;

	append_windows(out, page);
	append_gauge(out, "lfc_cache_size_limit", "LFC cache size limit in bytes", page->cache_limit_bytes);
	append_gauge(out, "lfc_hits", "lfc_hits", page->hits);
	append_gauge(out, "lfc_misses", "lfc_misses", page->misses);
	append_gauge(out, "lfc_used", "LFC chunks used (chunk = 1MB)", touched < chunks ? touched : chunks);
	append_gauge(out, "lfc_writes", "lfc_writes", page->writes);
}
