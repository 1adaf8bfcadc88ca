#include "base/local_time.h"

#include <time.h>

int32_t local_time_offset_s(int64_t unix_s)
{
	time_t instant = (time_t)unix_s;
	struct tm parts;

	if (localtime_r(&instant, &parts) == NULL)
		return 0;
	return (int32_t)parts.tm_gmtoff;
}
