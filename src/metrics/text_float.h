/*
 * Decimal floats as the Prometheus text format writes them (spec agent-core M-6): optional sign, digits, point and
 * exponent, or inf, +Inf, infinity, nan in any letter case. Independent of the locale; correctly rounded.
 */
#ifndef BALLAST_METRICS_TEXT_FLOAT_H
#define BALLAST_METRICS_TEXT_FLOAT_H

#include <stdbool.h>

/*
 * Reads the longest number at start. Something that can't belong to a number (a blank, a newline, a quote) must follow
 * somewhere; *ret_end is where the number ends, and the caller judges what stands there. False without a number, or
 * when it is too large for a double.
 */
bool metrics_text_float_read(const unsigned char *start, const unsigned char **ret_end, double *ret_value);

#endif
