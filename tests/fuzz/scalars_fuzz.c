/*
 * Any text as a quantity, a duration and an instant, and as something to be quoted: what is read prints as something
 * that reads as the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "codec/duration_text.h"
#include "codec/go_quote.h"
#include "codec/quantity.h"
#include "codec/rfc3339.h"

enum { MAX_BYTES = 4096, OUT_BYTES = 64 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void fuzz_quantity(struct slice text, struct buffer *out)
{
	struct quantity quantity;
	struct quantity again;
	struct error err;

	if (!quantity_parse(text, &quantity, &err)) {
		require(err.code == ERROR_SYNTAX || err.code == ERROR_LIMIT);
		return;
	}
	buffer_clear(out);
	quantity_print(quantity, out);
	require(!out->failed && quantity_parse(buffer_slice(out), &again, &err));
	require(again.nanos == quantity.nanos);
	require(quantity_value(again) == quantity_value(quantity));
	require(quantity_milli_value(again) == quantity_milli_value(quantity));
}

static void fuzz_duration(struct slice text, struct buffer *out)
{
	struct error err;
	int64_t ns;
	int64_t again;

	if (!duration_parse(text, &ns, &err))
		return;
	buffer_clear(out);
	duration_print(ns, out);
	require(!out->failed && duration_parse(buffer_slice(out), &again, &err) && again == ns);
}

static void fuzz_instant(struct slice text, struct buffer *out)
{
	struct error err;
	int64_t ns;
	int64_t again;

	if (!rfc3339_parse(text, &ns, &err))
		return;
	buffer_clear(out);
	rfc3339_print_nanoseconds(ns, out);
	require(!out->failed && rfc3339_parse(buffer_slice(out), &again, &err) && again == ns);
	buffer_clear(out);
	rfc3339_print_seconds(ns, out);
	require(!out->failed && rfc3339_parse(buffer_slice(out), &again, &err) && again <= ns);
	require((uint64_t)ns - (uint64_t)again < 1000000000);
}

static void fuzz_quote(struct slice text, struct buffer *out)
{
	struct slice quoted;

	buffer_clear(out);
	go_quote_append(out, text);
	quoted = buffer_slice(out);
	require(!out->failed && quoted.length >= 2 && quoted.data[0] == '"' && quoted.data[quoted.length - 1] == '"');
	require(slice_is_utf8(quoted));
	for (size_t i = 0; i < quoted.length; i++)
		require((unsigned char)quoted.data[i] >= ' ');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = slice_from(data, size);
	struct buffer out;

	if (size > MAX_BYTES)
		return 0;
	buffer_init(&out, OUT_BYTES);
	fuzz_quantity(text, &out);
	fuzz_duration(text, &out);
	fuzz_instant(text, &out);
	fuzz_quote(text, &out);
	buffer_destroy(&out);
	return 0;
}
