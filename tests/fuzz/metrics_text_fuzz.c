/*
 * Any bytes as a metrics page: the parser either reads it to the end or says why not, stays within it, and what it gives is
 * well-formed; the two readers of the agent come to the same verdict on the syntax.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/metrics_input.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "metrics/text_parser.h"

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_within(struct slice part, struct slice page)
{
	return part.data >= page.data && part.data + part.length <= page.data + page.length;
}

static void check_label(const struct metrics_text_label *label, struct slice page)
{
	struct buffer value;

	require(label->name.length > 0 && is_within(label->name, page) && is_within(label->raw_value, page));
	require(label->has_escapes == slice_contains(label->raw_value, SLICE("\\")));
	buffer_init(&value, page.length + 1);
	metrics_text_append_value(label, &value);
	require(!value.failed && value.length <= label->raw_value.length && slice_is_utf8(buffer_slice(&value)));
	buffer_destroy(&value);
}

static void check_sample(const struct metrics_text_sample *sample, struct slice page)
{
	require(sample->name.length > 0 && is_within(sample->name, page));
	require(sample->family.length > 0 && is_within(sample->family, page));
	require(slice_starts_with(sample->name, sample->family));
	require(sample->type != METRICS_TEXT_UNKNOWN);
	require(sample->label_count <= METRICS_TEXT_LABELS_MAX);
	for (size_t i = 0; i < sample->label_count; i++)
		check_label(&sample->labels[i], page);
}

static bool read_all(struct metrics_text_parser *parser, struct slice page)
{
	struct metrics_text_sample sample;
	struct error err = { .code = ERROR_NONE };

	metrics_text_begin(parser, page);
	while (metrics_text_next(parser, &sample, &err))
		check_sample(&sample, page);
	require(metrics_text_finished(parser) == (err.code == ERROR_NONE));
	return metrics_text_finished(parser);
}

/* Whether the reader found nothing wrong with the syntax; a value that is missing is another matter. */
static bool syntax_is_fine(bool ok, const struct error *err)
{
	return ok || strncmp(err->text, "failed to extract", 17) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct metrics_text_parser parser;
	struct system_metrics system;
	struct lfc_metrics lfc;
	struct slice page = slice_from(data, size);
	struct error err;

	metrics_text_parser_init(&parser, 1);

	bool fine = read_all(&parser, page);
	bool ok = metrics_input_read_system(&parser, page, METRICS_INPUT_AS_IS, &system, &err);

	require(syntax_is_fine(ok, &err) == fine);
	ok = metrics_input_read_lfc(&parser, page, METRICS_INPUT_REJECT_UNUSABLE, &lfc, &err);
	require(syntax_is_fine(ok, &err) == fine);
	require(!ok || lfc.window_count <= LFC_WINDOWS_MAX);
	metrics_text_parser_destroy(&parser);
	return 0;
}
