#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"

/* First outputs of the authors' reference code for the state 1, 2, 3, 4. */
static void it_is_xoshiro256_starstar(void **state)
{
	(void)state;
	static const uint64_t EXPECTED[] = {
		11520,
		0,
		1509978240,
		1215971899390074240,
		1216172134540287360,
		607988272756665600,
		16172922978634559625U,
		8476171486693032832,
		10595114339597558777U,
		2904607092377533576,
	};
	struct rng rng = { { 1, 2, 3, 4 } };

	for (size_t i = 0; i < sizeof EXPECTED / sizeof EXPECTED[0]; i++)
		assert_int_equal(rng_next(&rng), EXPECTED[i]);
}

/* First outputs of the authors' reference code of splitmix64 for 1234567. */
static void the_seed_is_spread_by_splitmix64(void **state)
{
	(void)state;
	static const uint64_t EXPECTED[] = { 6457827717110365317, 3203168211198807973, 9817491932198370423U,
		                             4593380528125082431 };
	struct rng rng;

	rng_seed(&rng, 1234567);
	assert_memory_equal(rng.state, EXPECTED, sizeof EXPECTED);
}

static void every_value_of_a_range_is_drawn_about_equally_often(void **state)
{
	(void)state;
	enum { VALUES = 7, DRAWS = 70000 };
	int counts[VALUES] = { 0 };
	struct rng rng;

	rng_seed(&rng, 1);
	for (int i = 0; i < DRAWS; i++) {
		uint64_t value = rng_between(&rng, 10, 10 + VALUES);

		assert_in_range(value, 10, 10 + VALUES - 1);
		counts[value - 10]++;
	}
	for (int i = 0; i < VALUES; i++)
		assert_in_range(counts[i], DRAWS / VALUES * 95 / 100, DRAWS / VALUES * 105 / 100);
}

static void edges_of_ranges_are_defined(void **state)
{
	(void)state;
	struct rng rng;

	rng_seed(&rng, 1);
	assert_int_equal(rng_between(&rng, 5, 5), 5);
	assert_int_equal(rng_between(&rng, 5, 4), 5);
	assert_int_equal(rng_between(&rng, 5, 6), 5);
	for (int i = 0; i < 100; i++)
		assert_true(rng_between(&rng, 1, UINT64_MAX) >= 1);
}

static void the_unit_interval_is_covered_and_its_end_never_reached(void **state)
{
	(void)state;
	double least = 1, most = 0, sum = 0;
	struct rng rng;

	rng_seed(&rng, 2);
	for (int i = 0; i < 10000; i++) {
		double value = rng_unit(&rng);

		assert_true(value >= 0 && value < 1);
		least = value < least ? value : least;
		most = value > most ? value : most;
		sum += value;
	}
	assert_true(least < 0.01 && most > 0.99);
	assert_true(sum > 4800 && sum < 5200);
}

static void filling_writes_all_bytes_and_no_more(void **state)
{
	(void)state;
	unsigned char data[32];
	struct rng rng, same;

	for (size_t length = 0; length < 30; length++) {
		int changed = 0;

		rng_seed(&rng, length);
		rng_seed(&same, length);
		memset(data, 0, sizeof data);
		rng_fill(&rng, data, length);
		for (size_t i = 0; i < length; i++)
			changed += data[i] != 0;
		assert_true(changed >= (int)length / 2);
		for (size_t i = length; i < sizeof data; i++)
			assert_int_equal(data[i], 0);
		if (length >= 8) {
			uint64_t word = rng_next(&same);

			assert_memory_equal(data, &word, sizeof word);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_xoshiro256_starstar),
		cmocka_unit_test(the_seed_is_spread_by_splitmix64),
		cmocka_unit_test(every_value_of_a_range_is_drawn_about_equally_often),
		cmocka_unit_test(edges_of_ranges_are_defined),
		cmocka_unit_test(the_unit_interval_is_covered_and_its_end_never_reached),
		cmocka_unit_test(filling_writes_all_bytes_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
