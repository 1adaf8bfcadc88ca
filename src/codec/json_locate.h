/*
 * Where something stands in a JSON document: for those who check what was read and want to name the line.
 */
#ifndef BALLAST_CODEC_JSON_LOCATE_H
#define BALLAST_CODEC_JSON_LOCATE_H

#include <stdbool.h>

#include "base/slice.h"
#include "codec/json_reader.h"

struct json_place {
	bool present;
	/* From 1; of the value or, when it is missing, of the innermost object (or other value) on the way to it. */
	unsigned line;
};

/*
 * Finds the value at path ("scaling.computeUnit.mem"; keys are exact, no arrays) in an opened reader's document. Of
 * duplicate keys the first counts.
 */
struct json_place json_locate(struct json_reader *reader, struct slice path);

#endif
