#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codec/quantity.h"

static const char E1[] = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
static const char E2[] = "unable to parse quantity's suffix";

/* The lines of tests/vectors/NAME that aren't comments. */
static void for_each_vector(const char *name, void (*check)(struct slice line))
{
	char path[200], text[400];
	size_t count = 0;

	snprintf(path, sizeof path, "tests/vectors/%s", name);

	FILE *file = fopen(path, "r");

	assert_non_null(file);
	while (fgets(text, sizeof text, file) != NULL) {
		struct slice line = slice_of(text);

		assert_int_equal(text[line.length - 1], '\n');
		line.length--;
		if (text[0] == '#')
			continue;
		check(line);
		count++;
	}
	fclose(file);
	assert_true(count > 20);
}

static void assert_content(const struct buffer *buffer, struct slice expected, struct slice vector)
{
	if (!slice_equal(buffer_slice(buffer), expected))
		fail_msg("%.*s: got \"%.*s\"", SLICE_ARGS(vector), SLICE_ARGS(buffer_slice(buffer)));
}

static void assert_number(int64_t number, struct slice expected, struct slice vector)
{
	char text[32];

	snprintf(text, sizeof text, "%" PRId64, number);
	if (!slice_equal_text(expected, text) && !slice_equal_text(expected, "-"))
		fail_msg("%.*s: got %s", SLICE_ARGS(vector), text);
}

static void check_parse_vector(struct slice line)
{
	struct slice rest = line;
	struct quantity quantity = { .nanos = 77, .format = QUANTITY_EXPONENT };
	struct buffer buffer;
	struct error err;

	slice_take_until(&rest, '\t');

	struct slice text = slice_take_until(&rest, '\t');
	struct slice value = slice_take_until(&rest, '\t');
	struct slice milli = slice_take_until(&rest, '\t');

	if (!quantity_parse(text, &quantity, &err)) {
		const char *expected = slice_equal_text(value, "E1") ? E1 : slice_equal_text(value, "E2") ? E2 : "";

		assert_true(quantity.nanos == 77);
		if (slice_equal_text(value, "range"))
			assert_int_equal(err.code, ERROR_LIMIT);
		else if (strcmp(err.text, expected) != 0 || err.code != ERROR_SYNTAX)
			fail_msg("%.*s: got the error %s", SLICE_ARGS(line), err.text);
		return;
	}
	assert_number(quantity_value(quantity), value, line);
	assert_number(quantity_milli_value(quantity), milli, line);
	buffer_init(&buffer, 100);
	quantity_print(quantity, &buffer);
	if (!slice_equal_text(rest, "-"))
		assert_content(&buffer, rest, line);
	buffer_destroy(&buffer);
}

static void texts_are_read_as_the_vectors_say(void **state)
{
	(void)state;
	for_each_vector("quantity_parse.tsv", check_parse_vector);
}

static void check_print_vector(struct slice line)
{
	struct slice rest = line;
	struct buffer buffer;
	uint64_t amount;

	slice_take_until(&rest, '\t');

	struct slice kind = slice_take_until(&rest, '\t');

	assert_true(slice_to_u64(slice_take_until(&rest, '\t'), &amount));
	buffer_init(&buffer, 100);
	if (slice_equal_text(kind, "cpu"))
		milli_cpu_print_quantity((uint32_t)amount, &buffer);
	else if (slice_equal_text(kind, "cpu-text"))
		milli_cpu_print((uint32_t)amount, &buffer);
	else
		bytes_print(amount, &buffer);
	assert_content(&buffer, rest, line);
	buffer_destroy(&buffer);
}

static void amounts_are_printed_as_the_vectors_say(void **state)
{
	(void)state;
	for_each_vector("quantity_print.tsv", check_print_vector);
}

static void a_number_that_prints_is_read_as_itself(void **state)
{
	(void)state;
	static const uint64_t AMOUNTS[] = { 0,        1,       999,     1023,    1024,
		                            1025,     1000000, 1048576, 1048577, 123456789012345678,
		                            INT64_MAX };

	for (size_t i = 0; i < sizeof AMOUNTS / sizeof AMOUNTS[0]; i++) {
		struct quantity quantity;
		struct buffer buffer;
		struct error err;

		buffer_init(&buffer, 100);
		bytes_print(AMOUNTS[i], &buffer);
		assert_true(quantity_parse(buffer_slice(&buffer), &quantity, &err));
		assert_int_equal(quantity_value(quantity), AMOUNTS[i]);
		buffer_destroy(&buffer);
	}
}

static void bytes_beyond_64_bits_signed_saturate_as_a_value(void **state)
{
	(void)state;
	assert_int_equal(quantity_value(quantity_from_bytes(UINT64_MAX)), INT64_MAX);
	assert_int_equal(quantity_milli_value(quantity_from_bytes(UINT64_MAX)), INT64_MAX);
}

static void a_text_that_goes_on_for_ever_is_refused(void **state)
{
	(void)state;
	char text[300];
	struct quantity quantity;
	struct error err;

	memset(text, '0', sizeof text);
	text[0] = '1';
	text[1] = '.';
	text[255] = '1';
	assert_true(quantity_parse(slice_from(text, 256), &quantity, &err));
	assert_int_equal(quantity_value(quantity), 2);
	assert_false(quantity_parse(slice_from(text, 257), &quantity, &err));
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_string_equal(err.text, "a quantity of 257 characters is over 256");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_read_as_the_vectors_say),
		cmocka_unit_test(amounts_are_printed_as_the_vectors_say),
		cmocka_unit_test(a_number_that_prints_is_read_as_itself),
		cmocka_unit_test(bytes_beyond_64_bits_signed_saturate_as_a_value),
		cmocka_unit_test(a_text_that_goes_on_for_ever_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
