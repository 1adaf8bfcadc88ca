#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <time.h>

#include "base/local_time.h"

enum { WINTER = 1741338304 /* 2025-03-07T09:05:04Z */, SUMMER = 1751338304 };

static int32_t offset(const char *zone, int64_t unix_s)
{
	setenv("TZ", zone, 1);
	tzset();
	return local_time_offset_s(unix_s);
}

static void the_zone_is_the_processs(void **state)
{
	(void)state;
	assert_int_equal(offset("UTC", WINTER), 0);
	assert_int_equal(offset("XXX-5:30", WINTER), 5 * 3600 + 1800);
	assert_int_equal(offset("XXX3", WINTER), -3 * 3600);
}

static void each_instant_has_its_own(void **state)
{
	(void)state;
	assert_int_equal(offset("CET-1CEST,M3.5.0,M10.5.0/3", WINTER), 3600);
	assert_int_equal(offset("CET-1CEST,M3.5.0,M10.5.0/3", SUMMER), 7200);
}

static void beyond_all_calendars_it_is_utc(void **state)
{
	(void)state;
	assert_int_equal(offset("XXX3", INT64_MAX), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_zone_is_the_processs),
		cmocka_unit_test(each_instant_has_its_own),
		cmocka_unit_test(beyond_all_calendars_it_is_utc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
