#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "codec/json_reader.h"
#include "codec/json_writer.h"

enum { MAX_BYTES = 4096 };

static struct buffer buffer;
static struct json_writer writer;
static struct error err;

static int set_up(void **state)
{
	(void)state;
	buffer_init(&buffer, MAX_BYTES);
	json_writer_init(&writer, &buffer);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	buffer_destroy(&buffer);
	return 0;
}

static void assert_written(const char *expected)
{
	assert_true(json_writer_check(&writer, "a test", &err));
	buffer_append_char(&buffer, '\0');
	assert_string_equal(buffer.data, expected);
	buffer_clear(&buffer);
	json_writer_init(&writer, &buffer);
}

static void commas_are_the_writers_business(void **state)
{
	(void)state;
	json_writer_object_begin(&writer);
	json_writer_key(&writer, SLICE("a"));
	json_writer_array_begin(&writer);
	json_writer_int(&writer, -1);
	json_writer_null(&writer);
	json_writer_object_begin(&writer);
	json_writer_object_end(&writer);
	json_writer_array_begin(&writer);
	json_writer_array_end(&writer);
	json_writer_array_end(&writer);
	json_writer_key(&writer, SLICE("b"));
	json_writer_bool(&writer, true);
	json_writer_key(&writer, SLICE("c"));
	json_writer_raw(&writer, SLICE("{\"x\":1}"));
	json_writer_key(&writer, SLICE("d"));
	json_writer_raw(&writer, SLICE(""));
	json_writer_object_end(&writer);
	assert_written("{\"a\":[-1,null,{},[]],\"b\":true,\"c\":{\"x\":1},\"d\":null}");
}

static void integers_are_written_whole(void **state)
{
	(void)state;
	json_writer_array_begin(&writer);
	json_writer_int(&writer, INT64_MIN);
	json_writer_int(&writer, INT64_MAX);
	json_writer_uint(&writer, UINT64_MAX);
	json_writer_uint(&writer, 0);
	json_writer_array_end(&writer);
	assert_written("[-9223372036854775808,9223372036854775807,18446744073709551615,0]");
}

static void strings_are_escaped_also_for_html_unless_told_otherwise(void **state)
{
	(void)state;
	json_writer_string(&writer, SLICE("a<b>&\"\\\n\x01\xe2\x80\xa8"));
	assert_written("\"a\\u003cb\\u003e\\u0026\\\"\\\\\\n\\u0001\\u2028\"");
	writer.escape_html = false;
	json_writer_string(&writer, SLICE("a<b>&"));
	assert_written("\"a<b>&\"");
}

static void floats_are_the_shortest_that_read_back(void **state)
{
	(void)state;
	json_writer_array_begin(&writer);
	json_writer_double(&writer, 0.7000000000000001);
	json_writer_double(&writer, 1e21);
	json_writer_double(&writer, 1e-7);
	json_writer_float(&writer, 0.37F);
	json_writer_float(&writer, 3155079168.0F);
	json_writer_array_end(&writer);
	assert_written("[0.7000000000000001,1e+21,1e-7,0.37,3155079200]");
}

static void a_nan_fails_the_whole_encoding(void **state)
{
	(void)state;
	json_writer_array_begin(&writer);
	json_writer_double(&writer, NAN);
	json_writer_array_end(&writer);
	assert_false(json_writer_check(&writer, "the dump", &err));
	assert_string_equal(err.text, "the dump: a NaN or an infinity can't be written as JSON");
}

static void named_floats_are_strings(void **state)
{
	(void)state;
	json_writer_array_begin(&writer);
	json_writer_double_or_name(&writer, NAN);
	json_writer_double_or_name(&writer, -INFINITY);
	json_writer_float_or_name(&writer, INFINITY);
	json_writer_float_or_name(&writer, 0.1F);
	json_writer_array_end(&writer);
	assert_written("[\"NaN\",\"-Inf\",\"Inf\",0.1]");
}

/* Spec protocols 10, P10 … P21, and the string forms. */
static void amounts_are_numbers_or_strings_as_the_spec_says(void **state)
{
	static const uint32_t CPUS[] = { 0, 50, 1000, 1001, 10000, 512000, 250 };
	static const uint64_t BYTES[] = { 0, 1023, 1024, 1025, 1000000000, 1610612736, 1099511627776 };

	(void)state;
	json_writer_array_begin(&writer);
	for (size_t i = 0; i < sizeof CPUS / sizeof CPUS[0]; i++)
		json_writer_milli_cpu(&writer, CPUS[i]);
	json_writer_array_end(&writer);
	assert_written("[0,\"50m\",1,\"1001m\",10,512,\"250m\"]");
	json_writer_array_begin(&writer);
	for (size_t i = 0; i < sizeof BYTES / sizeof BYTES[0]; i++)
		json_writer_quantity(&writer, BYTES[i]);
	json_writer_array_end(&writer);
	assert_written("[0,1023,\"1Ki\",\"1025\",\"1000000000\",\"1536Mi\",\"1Ti\"]");
	json_writer_array_begin(&writer);
	json_writer_milli_cpu_string(&writer, 2000);
	json_writer_milli_cpu_string(&writer, 250);
	json_writer_quantity_string(&writer, 1073741824);
	json_writer_array_end(&writer);
	assert_written("[\"2\",\"250m\",\"1Gi\"]");
}

static void instants_are_rfc_3339_and_the_zero_one_is_null(void **state)
{
	(void)state;
	json_writer_array_begin(&writer);
	json_writer_instant(&writer, 1741064767500000000);
	json_writer_instant_nanoseconds(&writer, 1741064767500000000);
	json_writer_instant(&writer, RFC3339_ZERO);
	json_writer_array_end(&writer);
	assert_written("[\"2025-03-04T05:06:07Z\",\"2025-03-04T05:06:07.5Z\",null]");
}

static void maps_and_kept_members_are_written_in_their_order(void **state)
{
	static const struct json_pair PAIRS[] = { { { "b", 1 }, { "2", 1 } }, { { "a", 1 }, { "<", 1 } } };
	static const struct json_member MEMBERS[] = { { { "x", 1 }, { "[1]", 3 } }, { { "y", 1 }, { "null", 4 } } };

	(void)state;
	json_writer_array_begin(&writer);
	json_writer_string_map(&writer, PAIRS, 2);
	json_writer_string_map(&writer, NULL, 0);
	json_writer_object_begin(&writer);
	json_writer_key(&writer, SLICE("k"));
	json_writer_int(&writer, 1);
	json_writer_members(&writer, MEMBERS, 2);
	json_writer_object_end(&writer);
	json_writer_array_end(&writer);
	assert_written("[{\"b\":\"2\",\"a\":\"\\u003c\"},{},{\"k\":1,\"x\":[1],\"y\":null}]");
}

static void running_out_of_room_is_told_at_the_end(void **state)
{
	(void)state;
	buffer_destroy(&buffer);
	buffer_init(&buffer, 8);
	json_writer_string(&writer, SLICE("much too long"));
	json_writer_int(&writer, 1);
	assert_false(json_writer_check(&writer, "the answer", &err));
	assert_int_equal(err.code, ERROR_LIMIT);
}

static void failing_memory_is_told_at_the_end(void **state)
{
	(void)state;
	memory_fail_at(1);
	json_writer_string(&writer, SLICE("x"));
	memory_fail_at(0);
	assert_false(json_writer_check(&writer, "the answer", &err));
	assert_int_equal(err.code, ERROR_NO_MEMORY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(commas_are_the_writers_business),
		TEST(integers_are_written_whole),
		TEST(strings_are_escaped_also_for_html_unless_told_otherwise),
		TEST(floats_are_the_shortest_that_read_back),
		TEST(a_nan_fails_the_whole_encoding),
		TEST(named_floats_are_strings),
		TEST(amounts_are_numbers_or_strings_as_the_spec_says),
		TEST(instants_are_rfc_3339_and_the_zero_one_is_null),
		TEST(maps_and_kept_members_are_written_in_their_order),
		TEST(running_out_of_room_is_told_at_the_end),
		TEST(failing_memory_is_told_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
