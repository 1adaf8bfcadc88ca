/*
 * The process's time zone (TZ, or the machine's own), for the few stamps that are in local time because the reference's
 * are. An image without zone data has UTC.
 */
#ifndef BALLAST_BASE_LOCAL_TIME_H
#define BALLAST_BASE_LOCAL_TIME_H

#include <stdint.h>

/* How many seconds local time is ahead of UTC at that instant; 0 if the instant is beyond what the system can say. */
int32_t local_time_offset_s(int64_t unix_s);

#endif
