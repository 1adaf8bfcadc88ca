/*
 * The machine's clocks, for those at the edge (the real loop, the command line). Everything else asks its loop.
 */
#ifndef BALLAST_BASE_CLOCK_H
#define BALLAST_BASE_CLOCK_H

#include <stdint.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

uint64_t clock_monotonic_ns(void);
int64_t clock_wall_ns(void); /* since 1970-01-01T00:00:00Z */

#endif
