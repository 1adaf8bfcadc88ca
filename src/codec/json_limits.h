/*
 * What JSON text may be at most. A schema's max_items and max_bytes are tighter bounds for single fields.
 */
#ifndef BALLAST_CODEC_JSON_LIMITS_H
#define BALLAST_CODEC_JSON_LIMITS_H

enum {
	JSON_MAX_TEXT_BYTES = 256 * 1024 * 1024, /* of one document; token offsets are int */
	JSON_MAX_DEPTH = 64,                     /* objects and arrays within each other */
	JSON_MAX_ITEMS = 1000000,                /* of one array or map */
	JSON_MAX_PROBLEMS = 64,                  /* kept in collect-all mode; more are only counted */
	JSON_MAX_NUMBER_BYTES = 4096,            /* of one number's text */
};

#endif
