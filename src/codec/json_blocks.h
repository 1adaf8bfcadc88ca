/*
 * Goes over the inside of a JSON value fast, to find where it ends, without looking at its grammar.
 */
#ifndef BALLAST_CODEC_JSON_BLOCKS_H
#define BALLAST_CODEC_JSON_BLOCKS_H

#include <stdbool.h>

enum { JSON_BLOCK_BYTES = 64 };

/*
 * Skips whole blocks of 64 bytes in which the value can't end. depth is the number of brackets open at `at`, in_string
 * whether it is within a string, escaped whether a backslash stood just before; all are kept up to date. Returns where
 * it stopped: at a block in which the value may end, or with less than a block left.
 */
const char *json_skip_blocks(const char *at, const char *end, int *depth, bool *in_string, bool *escaped);

#endif
