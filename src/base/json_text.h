/*
 * The two primitives of JSON text that both the log and the codec's writer need.
 */
#ifndef BALLAST_BASE_JSON_TEXT_H
#define BALLAST_BASE_JSON_TEXT_H

#include <stdbool.h>

#include "base/buffer.h"

/*
 * Appends text as a JSON string with its quotes. " \ and control characters are escaped; invalid UTF-8 becomes U+FFFD.
 * With escape_html also < > & U+2028 U+2029 as \u003c … (spec protocols 1.2.2; log lines don't).
 */
void json_text_append_string(struct buffer *buffer, struct slice text, bool escape_html);

/*
 * Appends the shortest decimal that reads back as the same value (spec protocols 1.2.3): plain for 1e-6 <= |x| < 1e21
 * and 0, else 1e-7, 1e+21. single: shortest for binary32. False for NaN and infinities, and then nothing is appended.
 */
bool json_text_append_number(struct buffer *buffer, double value, bool single);

#endif
