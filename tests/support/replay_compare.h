/*
 * Compares two lines of replay output as JSON values, by the rules of spec replay 5: the order of keys and the spelling
 * of numbers don't matter, nor does the text of a panic or of a dump's error.
 */
#ifndef BALLAST_TESTS_REPLAY_COMPARE_H
#define BALLAST_TESTS_REPLAY_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* False fills difference with where the lines differ and how. Both must be valid JSON. */
bool replay_lines_agree(struct slice actual, struct slice expected, char *difference, size_t size);

/* The raw value of a key of an object; the empty slice if it isn't there. */
struct slice replay_value_of(struct slice object, const char *key);

#endif
