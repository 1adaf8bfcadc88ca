#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "metrics/text_parser.h"
#include "tests/support/vector_file.h"

static struct metrics_text_parser parser;

static int make_parser(void **state)
{
	(void)state;
	metrics_text_parser_init(&parser, 42);
	return 0;
}

static int drop_parser(void **state)
{
	(void)state;
	metrics_text_parser_destroy(&parser);
	return 0;
}

static void describe_label(const struct metrics_text_label *label, struct buffer *out)
{
	struct buffer value;

	buffer_init(&value, 1 << 20);
	metrics_text_append_value(label, &value);
	buffer_append_format(out, "%.*s=\"", SLICE_ARGS(label->name));
	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] == '\n')
			buffer_append_text(out, "<newline>");
		else if (value.data[i] == '\r')
			buffer_append_text(out, "<cr>");
		else if (value.data[i] == '\0')
			buffer_append_text(out, "<nul>");
		else
			buffer_append_char(out, value.data[i]);
	}
	buffer_append_char(out, '"');
	buffer_destroy(&value);
}

static void describe_sample(const struct metrics_text_sample *sample, struct buffer *out)
{
	buffer_append_format(out, "%.*s %s %.*s", SLICE_ARGS(sample->family), metrics_text_type_name(sample->type),
	                     SLICE_ARGS(sample->name));
	for (size_t i = 0; i < sample->label_count; i++) {
		buffer_append_char(out, i == 0 ? '{' : ',');
		describe_label(&sample->labels[i], out);
	}
	buffer_append_format(out, "%s %.17g", sample->label_count > 0 ? "}" : "", sample->value);
	if (sample->has_timestamp)
		buffer_append_format(out, " @%lld", (long long)sample->timestamp_ms);
	buffer_append_char(out, '\n');
}

static void describe_page(struct slice page, struct buffer *out)
{
	struct metrics_text_sample sample;
	struct error err;

	metrics_text_begin(&parser, page);
	while (metrics_text_next(&parser, &sample, &err))
		describe_sample(&sample, out);
	if (metrics_text_finished(&parser))
		buffer_append_text(out, "end");
	else
		buffer_append_format(out, "error %s", err.text);
	buffer_append_char(out, '\0');
}

static void check_page(const struct vector_block *block)
{
	struct buffer text;
	char *exact = memory_copy_text(block->input.data, block->input.length);

	/* A block of exactly its size, so that reading beyond it is found. */
	assert_non_null(exact);
	exact = memory_resize(exact, block->input.length > 0 ? block->input.length : 1);
	buffer_init(&text, 1 << 20);
	describe_page(slice_from(exact, block->input.length), &text);
	if (strcmp(text.data, block->expected) != 0)
		fail_msg("%s:\n%s\nis not\n%s", block->name, text.data, block->expected);
	buffer_destroy(&text);
	memory_release(exact);
}

static void pages_give_what_the_vectors_say(void **state)
{
	(void)state;
	assert_int_equal(vector_blocks_walk("vectors/metrics_text.txt", check_page), 80);
}

static void count_page(struct slice page, size_t *ret_samples, size_t *ret_families)
{
	struct metrics_text_sample sample;
	struct error err = { .text = "" };
	uint32_t families = 0;

	*ret_samples = 0;
	metrics_text_begin(&parser, page);
	while (metrics_text_next(&parser, &sample, &err)) {
		++*ret_samples;
		if (sample.family_index >= families)
			families = sample.family_index + 1;
	}
	if (!metrics_text_finished(&parser))
		fail_msg("%s", err.text);
	*ret_families = families;
}

static void a_real_page_parses_whole(void **state)
{
	(void)state;
	size_t length;
	char *page = vector_read_file("data/metrics/node_exporter-1.5.prom", &length);
	size_t samples;
	size_t families;

	/* Twice: the table of families is used again. */
	for (int i = 0; i < 2; i++) {
		count_page(slice_from(page, length), &samples, &families);
		assert_int_equal(samples, 507);
		assert_int_equal(families, 283);
	}
	memory_release(page);
}

static void every_prefix_of_a_real_page_is_read_or_refused(void **state)
{
	(void)state;
	size_t length;
	char *page = vector_read_file("data/metrics/node_exporter-1.5.prom", &length);
	struct metrics_text_sample sample;

	for (size_t cut = 0; cut < 4000; cut++) {
		struct error err;
		char *exact = memory_copy_text(page, cut);

		exact = memory_resize(exact, cut > 0 ? cut : 1);
		metrics_text_begin(&parser, slice_from(exact, cut));
		while (metrics_text_next(&parser, &sample, &err))
			continue;
		/* Blank or cut lines only: a page is whole exactly when its last line is. */
		assert_int_equal(metrics_text_finished(&parser), cut == 0 || page[cut - 1] == '\n');
		memory_release(exact);
	}
	memory_release(page);
}

static void an_error_comes_again_when_asked_again(void **state)
{
	(void)state;
	struct metrics_text_sample sample = { .value = 17 };
	struct error err;

	metrics_text_begin(&parser, SLICE("x\n"));
	for (int i = 0; i < 2; i++) {
		assert_false(metrics_text_next(&parser, &sample, &err));
		assert_int_equal(err.code, ERROR_SYNTAX);
		assert_false(metrics_text_finished(&parser));
	}
	assert_true(sample.value == 17);
}

static void the_end_comes_again_when_asked_again(void **state)
{
	(void)state;
	struct metrics_text_sample sample;
	struct error err = { .code = ERROR_NONE };

	metrics_text_begin(&parser, SLICE("x 1\n"));
	assert_true(metrics_text_next(&parser, &sample, &err));
	for (int i = 0; i < 2; i++) {
		assert_false(metrics_text_next(&parser, &sample, &err));
		assert_true(metrics_text_finished(&parser));
	}
	assert_int_equal(err.code, ERROR_NONE);
}

static void labels_can_be_found(void **state)
{
	(void)state;
	struct metrics_text_sample sample;
	struct error err;

	metrics_text_begin(&parser, SLICE("x{a=\"1\",bc=\"2\"} 1\n"));
	assert_true(metrics_text_next(&parser, &sample, &err));
	assert_true(slice_equal(metrics_text_find_label(&sample, SLICE("bc"))->raw_value, SLICE("2")));
	assert_null(metrics_text_find_label(&sample, SLICE("b")));
}

static void check_refused(struct buffer *page, enum error_code code, const char *text)
{
	struct metrics_text_sample sample;
	struct error err;

	assert_false(page->failed);
	metrics_text_begin(&parser, buffer_slice(page));
	while (metrics_text_next(&parser, &sample, &err))
		continue;
	assert_false(metrics_text_finished(&parser));
	assert_int_equal(err.code, code);
	assert_string_equal(err.text, text);
}

static void append_labelled(struct buffer *page, int labels)
{
	buffer_append_text(page, "x{");
	for (int i = 0; i < labels; i++)
		buffer_append_format(page, "l%d=\"\",", i);
	buffer_append_text(page, "} 1\n");
}

static void labels_are_limited(void **state)
{
	(void)state;
	struct buffer page;
	size_t samples;
	size_t families;

	buffer_init(&page, 1 << 20);
	append_labelled(&page, METRICS_TEXT_LABELS_MAX);
	count_page(buffer_slice(&page), &samples, &families);
	assert_int_equal(samples, 1);
	append_labelled(&page, METRICS_TEXT_LABELS_MAX + 1);
	check_refused(&page, ERROR_LIMIT, "text format parsing error in line 2: more than 128 labels");
	buffer_destroy(&page);
}

static void families_are_limited(void **state)
{
	(void)state;
	struct buffer page;
	size_t samples;
	size_t families;

	buffer_init(&page, 1 << 20);
	for (int i = 0; i < METRICS_TEXT_FAMILIES_MAX; i++)
		buffer_append_format(&page, "x%d 1\n", i);
	count_page(buffer_slice(&page), &samples, &families);
	assert_int_equal(samples, METRICS_TEXT_FAMILIES_MAX);
	assert_int_equal(families, METRICS_TEXT_FAMILIES_MAX);
	buffer_append_text(&page, "x0 1\nx 1\n");
	check_refused(&page, ERROR_LIMIT, "text format parsing error in line 16386: more than 16384 metric families");
	buffer_destroy(&page);
}

static void lines_are_limited(void **state)
{
	(void)state;
	struct buffer page;
	size_t samples;
	size_t families;

	buffer_init(&page, 2 * METRICS_TEXT_LINE_BYTES_MAX);
	buffer_append_text(&page, "x{a=\"");
	memset(buffer_reserve(&page, 1 << 20), 'y', 1 << 20);
	buffer_advance(&page, 1 << 20);
	buffer_append_text(&page, "\"} 1\n");
	count_page(buffer_slice(&page), &samples, &families);
	assert_int_equal(samples, 1);

	buffer_append_text(&page, "#");
	memset(buffer_reserve(&page, METRICS_TEXT_LINE_BYTES_MAX), 'y', METRICS_TEXT_LINE_BYTES_MAX);
	buffer_advance(&page, METRICS_TEXT_LINE_BYTES_MAX);
	buffer_append_text(&page, "\n");
	check_refused(&page, ERROR_LIMIT, "text format parsing error in line 2: longer than 4194304 bytes");
	buffer_destroy(&page);
}

static void being_short_of_memory_is_an_error(void **state)
{
	(void)state;
	struct buffer page;

	buffer_init(&page, 1 << 20);
	for (int i = 0; i < 1000; i++)
		buffer_append_format(&page, "x%d 1\n", i);
	for (unsigned long step = 1; step <= 6; step++) {
		struct metrics_text_parser fresh;
		struct metrics_text_sample sample;
		struct error err = { .code = ERROR_NONE };
		size_t count = 0;

		metrics_text_parser_init(&fresh, 1);
		metrics_text_begin(&fresh, buffer_slice(&page));
		memory_fail_at(step);
		while (metrics_text_next(&fresh, &sample, &err))
			continue;
		memory_fail_at(0);
		assert_false(metrics_text_finished(&fresh));
		assert_int_equal(err.code, ERROR_NO_MEMORY);

		metrics_text_begin(&fresh, buffer_slice(&page));
		while (metrics_text_next(&fresh, &sample, &err))
			count++;
		assert_true(metrics_text_finished(&fresh));
		assert_int_equal(count, 1000);
		metrics_text_parser_destroy(&fresh);
	}
	buffer_destroy(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_give_what_the_vectors_say),
		cmocka_unit_test(a_real_page_parses_whole),
		cmocka_unit_test(every_prefix_of_a_real_page_is_read_or_refused),
		cmocka_unit_test(an_error_comes_again_when_asked_again),
		cmocka_unit_test(the_end_comes_again_when_asked_again),
		cmocka_unit_test(labels_can_be_found),
		cmocka_unit_test(labels_are_limited),
		cmocka_unit_test(families_are_limited),
		cmocka_unit_test(lines_are_limited),
		cmocka_unit_test(being_short_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_parser, drop_parser);
}
